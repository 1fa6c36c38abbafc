"""Tests of the collector `cassandra` with a real Cassandra 5 that needs passwords and grants nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import RoundRobinPolicy
from collectors.asking import asking, found
from collectors.server_contract import README, Peer, ServerContract
from javaservers import cassandra

from pinchpoint_collectors.databases.cassandra import TABLES
from pinchpoint_collectors.errors import CollectorError

ASKS_FOR_PASSWORDS = {
    "authenticator": "PasswordAuthenticator",
    "authorizer": "CassandraAuthorizer",
    "permissions_validity": "100ms",
    "permissions_update_interval": "100ms",
}


class Server:
    """A node: its address, its process, and a session of the superuser."""

    def __init__(self, address: str, pid: int) -> None:
        self.address, self.pid = address, pid
        self._cluster = self._log_in()
        self.session = self._cluster.connect()

    def _log_in(self) -> Any:
        deadline = time.monotonic() + 60
        while True:
            cluster = self.cluster("cassandra", "cassandra")
            try:
                cluster.connect()
            except NoHostAvailable:  # the node creates the superuser shortly after its start
                cluster.shutdown()
                assert time.monotonic() < deadline
                time.sleep(0.3)
            else:
                return cluster

    def cluster(self, user: str, password: str) -> Any:
        """Return a client with this login."""
        host, _, port = self.address.partition(":")
        login = PlainTextAuthProvider(user, password)
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
        return Cluster(
            [host],
            port=int(port),
            auth_provider=login,
            protocol_version=4,
            connect_timeout=30,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        )

    def url(self, user: str = "watcher") -> str:
        """Return the node's URL as in farm.yaml."""
        return f"cassandra://{user}:sesame@{self.address}/loadtest"

    def do(self, statement: str) -> list[Any]:
        """Run one statement as the superuser."""
        return list(self.session.execute(statement))

    def close(self) -> None:
        """Close the clients."""
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Run a node with a table, the README's watcher, and a role without rights."""
    with cassandra(ASKS_FOR_PASSWORDS) as started:
        found = Server(started.url.partition("//")[2].partition("/")[0], started.pid)
        try:
            found.do(
                "CREATE KEYSPACE loadtest WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            found.do("CREATE TABLE loadtest.records (id int PRIMARY KEY, payload text)")
            found.do("CREATE ROLE watcher WITH LOGIN = true AND PASSWORD = 'sesame'")
            found.do("CREATE ROLE nobody WITH LOGIN = true AND PASSWORD = 'sesame'")
            for table in (*TABLES, "settings"):
                found.do(f"GRANT SELECT ON system_views.{table} TO watcher")
            time.sleep(0.5)
            yield found
        finally:
            found.close()


@pytest.fixture(scope="module")
def peer(server: Server) -> Peer:
    """The contract's peer; the library opens two connections, one for itself and one for requests."""

    def count() -> int:
        return [row[0] for row in server.do("SELECT username FROM system_views.clients")].count("watcher")

    return Peer(server.url(), lambda: [server.pid], count, connections=2)


class TestContract(ServerContract):
    KIND = "cassandra"
    UNREACHABLE: ClassVar = {
        "cassandra://watcher:wrong-secret@{place}/x": "correct user and password in farm.yaml",
        "cassandra://{place}/x": "give user and password in farm.yaml",
        "cassandra://127.0.0.1:1/x": "start the node, or correct host and port in farm.yaml",
        "cassandra://127.0.0.1:99999/x": "correct the address in farm.yaml",
    }


watching = partial(asking, "cassandra", "c1", "nosql")


def test_writes_are_seen_in_the_pool_that_waits_for_the_commit_log(server: Server) -> None:
    """Each write counts as a statement and a request, and some sample sees the pool at work."""
    insert = server.session.prepare("INSERT INTO loadtest.records (id, payload) VALUES (?, ?)")
    rows = [(number, "x" * 500) for number in range(400)]
    with watching(server.url()) as collector:
        done, statements, requests, busiest = 0.0, 0.0, 0.0, 0.0
        pending = [server.session.execute_async(insert, row) for row in rows]
        for last in (False, False, True):
            if last:
                for future in pending:
                    future.result()
            samples = collector.read()
            values, interval_s = found(samples), samples[0].interval_s
            busiest = max(busiest, values["db.pool.busy_ratio", "MutationStage"] or 0)
            done += (values["db.pool.completed_per_s", "MutationStage"] or 0) * interval_s
            statements += (values["db.statements_per_s", "prepared"] or 0) * interval_s
            requests += (values["db.requests_per_s", "write"] or 0) * interval_s
    assert requests == pytest.approx(400, abs=0.01)
    assert statements == pytest.approx(400, abs=0.01)
    assert 0 < done <= 450, "the coordinator may write its own rows itself, past the pool"
    assert 0 < busiest <= 1


def test_reads_are_told_from_writes(server: Server) -> None:
    """Reads and writes are counted separately, for user tables only."""
    select = server.session.prepare("SELECT payload FROM loadtest.records WHERE id = ?")
    with watching(server.url()) as collector:
        execute_concurrent_with_args(server.session, select, [(number,) for number in range(50)])
        samples = collector.read()
    values, interval_s = found(samples), samples[0].interval_s
    assert (values["db.requests_per_s", "read"] or 0) * interval_s == pytest.approx(50)
    assert values["db.requests_per_s", "write"] == 0


def test_a_flush_of_a_table_is_work_of_the_flush_writers(server: Server) -> None:
    """A flush is counted in the flush writers' own pool."""
    with watching(server.url()) as collector:
        # flushes the node's own tables, which must store the truncation
        server.do("TRUNCATE loadtest.records")
        samples = collector.read()
    assert (found(samples)["db.pool.completed_per_s", "MemtableFlushWriter"] or 0) > 0


def test_the_documented_role_is_enough_and_may_do_nothing_else(server: Server) -> None:
    """The README's grants are enough, and give no access to user data or other system tables."""
    with watching(server.url()) as collector:
        facts = collector.inventory()["c1"]
    own = server.cluster("watcher", "sesame")
    try:
        session = own.connect()
        for statement in (
            "SELECT * FROM loadtest.records",
            "INSERT INTO loadtest.records (id) VALUES (1)",
            "SELECT * FROM system_views.system_properties",
            "SELECT * FROM system_auth.roles",
        ):
            with pytest.raises(Unauthorized):
                session.execute(statement)
    finally:
        own.shutdown()
    for table in (*TABLES, "settings"):
        assert f"`{table}`" in README
    assert facts["database"]["server"] == "cassandra"
    assert facts["database"]["role"] == "watcher"
    assert facts["database"]["settings"]["commitlog_sync"] == "batch"
    assert {each["metric"] for each in facts["not_measured"]} == {
        "db.commit_log_wait_s", "db.request_latency_s", "db.connections_ratio",
    }  # fmt: skip
    assert json.loads(json.dumps(facts)) == facts
    assert "://" not in json.dumps(facts), "no address, and so no password"


def test_a_role_without_grants_is_told_which(server: Server) -> None:
    """A role without grants gives an error with its name and all missing grants."""
    with pytest.raises(CollectorError) as caught, watching(server.url("nobody")):
        pass
    assert "run GRANT SELECT ON system_views.T TO nobody for each T of thread_pools, " in str(caught.value)
    assert str(caught.value).endswith("settings")
