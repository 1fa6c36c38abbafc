"""Tests of the collector `postgres`: real servers, one of them with traps, and recorded rows as metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
import pytest
from collectors.asking import around_a_wait, asking, blocked, found
from collectors.pooler import pooled
from collectors.server_contract import README, Peer, ServerContract
from planted import planted
from postgresserver import Server, older_postgres
from servers import running

from pinchpoint_collectors.databases import postgres
from pinchpoint_collectors.databases.base import APPLICATION
from pinchpoint_collectors.databases.session_sampler import (
    SessionSample,
    activity,
    connections,
    mean_connections,
)
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Sample
from pinchpoint_infra.embedded.tiers.sql import Sql

OURS = f"FROM pg_stat_activity WHERE application_name = '{APPLICATION}'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Run PostgreSQL 18 with the roles of an embedded farm."""
    with running(Sql) as tier:
        assert isinstance(tier, Sql)
        urls = tier.endpoint()
        pid = int((tier.cluster / "postmaster.pid").read_text().split()[0])
        yield Server(tier._url("admin", tier._admin, "postgres"), urls["url"], urls["monitor"], pid)


@pytest.fixture(scope="module")
def peer(server: Server) -> Peer:
    def all_of_it() -> list[int]:
        return [server.pid, *(each.pid for each in psutil.Process(server.pid).children(recursive=True))]

    return Peer(server.monitor, all_of_it, lambda: int(server.ask(f"SELECT count(*) {OURS}")[0][0]))


class TestContract(ServerContract):
    KIND = "postgres"
    UNREACHABLE: ClassVar = {
        "postgresql://monitor:wrong-secret@{place}/postgres": "password authentication failed",
        "postgresql://monitor:{password}@{place}/nowhere": "does not exist; correct the url in farm.yaml",
        "postgresql://monitor:{password}@127.0.0.1:1/postgres": "start the server, or correct host and port",
    }


watching = partial(asking, "postgres", "sql1", "sql")


def total(samples: Sequence[Sample], metric: str) -> float:
    return sum(each.value or 0 for each in samples if each.metric == metric)


def test_sessions_that_wait_for_a_lock_are_counted(server: Server) -> None:
    """Three sessions blocked by an idle transaction are counted; before and afterwards none."""
    with watching(server.monitor) as collector:
        during, after = around_a_wait(collector, server.session)
    assert total(during, "db.sessions_waiting") == 3
    assert found(during)["db.connections_ratio", ""] == pytest.approx(5 / 197)
    assert after["db.sessions_waiting", "Lock:transactionid"] == 0, "a wait once seen is 0 from then on"


def test_commits_are_seen_as_flushes_of_the_log(server: Server) -> None:
    """The commits of one session are in the counters of log flushes, with their time."""
    with psycopg.connect(server.loader, autocommit=True) as session, watching(server.monitor) as collector:
        session.execute("CREATE TABLE rows (payload text)")
        time.sleep(1.1)  # sessions report their counters at most once a second
        session.execute("SELECT 1")
        collector.read()
        begun = time.monotonic()
        for _ in range(300):
            session.execute("INSERT INTO rows VALUES (repeat('x', 200))")
        took_s = time.monotonic() - begun
        time.sleep(1.1)
        session.execute("SELECT 1")
        session.execute("DROP TABLE rows")
        time.sleep(1.1)
        session.execute("SELECT 1")
        samples = collector.read()
    values = found(samples)
    interval_s = samples[0].interval_s
    flushes = (values["db.fsyncs_per_s", "wal"] or 0) * interval_s
    assert 300 <= flushes <= 330
    spent_s = (values["db.fsync_s_per_s", "wal"] or 0) * interval_s
    assert 0 < spent_s < took_s + 1
    assert values["db.fsync_latency_s", "wal"] == pytest.approx(spent_s / flushes, rel=0.01)
    assert (values["db.commits_per_s", ""] or 0) * interval_s >= 300
    assert (values["db.wal_bytes_per_s", ""] or 0) * interval_s > 300 * 200
    assert (values["db.write_bytes_per_s", "wal"] or 0) * interval_s > 300 * 200


def test_a_checkpoint_is_seen(server: Server) -> None:
    """A requested checkpoint and the pages that it writes are counted."""
    with watching(server.monitor) as collector:
        server.ask("CREATE TABLE wide AS SELECT repeat('x', 500) FROM generate_series(1, 20000)")
        server.ask("CHECKPOINT")
        server.ask("DROP TABLE wide")
        time.sleep(0.2)
        samples = collector.read()
    values, interval_s = found(samples), samples[0].interval_s
    assert (values["db.checkpoints_per_s", "requested"] or 0) * interval_s == pytest.approx(1)
    assert (values["db.checkpoint_buffers_per_s", ""] or 0) * interval_s > 1000
    assert (values["db.writes_per_s", "data"] or 0) > 0
    assert (values["db.fsyncs_per_s", "data"] or 0) > 0


def test_the_documented_role_sees_all_and_may_do_nothing_else(server: Server) -> None:
    """pg_read_all_stats is enough, and gives no access to the load test's database."""
    with watching(server.monitor) as collector:
        facts = collector.inventory()["sql1"]
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(server.monitor.replace("/postgres", "/loadtest"))
    assert facts["database"]["sees"] == "all sessions"
    assert facts["database"]["version"].startswith("18")
    assert facts["database"]["settings"]["fsync"] == "on"
    assert facts["not_measured"] == []
    assert "CREATE ROLE watcher LOGIN PASSWORD '...' IN ROLE pg_read_all_stats;\n" in README
    assert server.ask(
        "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = 'monitor'::regrole"
    ) == [("pg_read_all_stats",)]
    assert json.loads(json.dumps(facts)) == facts
    assert "://" not in json.dumps(facts), "no address, and so no password"


def test_an_ordinary_role_sees_its_own_sessions_and_says_so(server: Server) -> None:
    """An ordinary role gets all counters but not others' waits; the remedy is the grant."""
    server.ask("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    try:
        url = server.monitor.replace("//monitor:", "//plain:plain-not-")
        with (
            blocked(server.session, 2),
            watching(url, user="plain", password="plain") as plain,
            watching(server.loader) as own,
        ):
            plain.read()  # all connections exist from here on
            time.sleep(0.3)
            theirs, ours = found(plain.read()), found(own.read())
            facts = plain.inventory()["sql1"]
    finally:
        server.ask("DROP ROLE plain")
    assert theirs["db.lock_waiters", ""] == 0
    assert theirs["db.connections", ""] == 5, "that sessions are there is no secret"
    assert theirs["db.fsyncs_per_s", "wal"] is not None
    assert ours["db.lock_waiters", ""] == 2, "the load's own role sees the load"
    assert facts["database"]["sees"] == "sessions of role plain only"
    (missing,) = facts["not_measured"]
    assert missing["metric"] == "db.sessions_*"
    assert missing["remedy"] == 'run: GRANT pg_read_all_stats TO "plain"'


def test_what_a_session_is_to_be_like_is_asked_for_as_it_begins(server: Server) -> None:
    """Session settings are requested at connect; a statement's would pass to a pooler's next client."""
    url = f"{server.monitor}?options=-c%20work_mem%3D128kB"
    with watching(url) as collector:
        rows = collector._server.ask(  # type: ignore[attr-defined]
            "SELECT name, setting, source FROM pg_settings WHERE name IN ('default_transaction_read_only', "
            "'jit', 'lock_timeout', 'statement_timeout', 'work_mem')"
        )
    assert {row["name"]: row["setting"] for row in rows} == {
        "default_transaction_read_only": "on", "jit": "off", "lock_timeout": "500",
        "statement_timeout": "2000", "work_mem": "128",
    }  # fmt: skip
    assert {row["source"] for row in rows} == {"client"}


def test_through_a_pooler_it_leaves_no_trace_on_the_sessions_of_others(server: Server) -> None:
    """Through a pooler that takes no settings, nothing is set or prepared in shared sessions."""
    place = server.monitor.rpartition("@")[2].partition("/")[0]
    with pooled(place) as address, watching(server.monitor, address=address) as collector:
        for _ in range(8):
            assert found(collector.read())["db.connections", ""] is not None
        (row,) = collector._server.ask(  # type: ignore[attr-defined]
            "SELECT current_setting('statement_timeout') AS statements, "
            "current_setting('default_transaction_read_only') AS read_only, "
            "(SELECT count(*) FROM pg_prepared_statements) AS prepared"
        )
    assert row == {"statements": "0", "read_only": "off", "prepared": 0}


def test_without_timing_there_are_counts_and_no_times(server: Server) -> None:
    """Without timing, times are null and not the server's 0; the inventory has the remedy."""
    server.ask("ALTER SYSTEM SET track_wal_io_timing = off")
    # A setting on the server's command line stays; only a role's own setting overrides it.
    server.ask("ALTER ROLE monitor SET track_wal_io_timing = off")
    try:
        with watching(server.monitor) as collector:
            time.sleep(0.1)
            values = found(collector.read())
            missing = collector.inventory()["sql1"]["not_measured"]
    finally:
        server.ask("ALTER SYSTEM RESET track_wal_io_timing")
        server.ask("ALTER ROLE monitor RESET track_wal_io_timing")
    assert values["db.fsyncs_per_s", "wal"] is not None
    assert values["db.fsync_s_per_s", "wal"] is None
    assert values["db.write_s_per_s", "data"] is not None
    assert [(each["metric"], each["instance"]) for each in missing] == [("db.*_s", "wal")]


def test_a_database_without_an_encoding_is_watched(server: Server) -> None:
    """Text of an SQL_ASCII database is read as UTF-8; invalid bytes are replaced one by one."""
    server.ask(
        "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc "
        "LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    try:
        with watching(server.monitor.replace("/postgres", "/bytes")) as collector:
            time.sleep(0.2)
            values = found(collector.read())
            facts = collector.inventory()["sql1"]
            # The server's own views contain no such text.
            ask = collector._server.ask  # type: ignore[attr-defined]
            (row,) = ask("SELECT 'z' || chr(228) || 'hler' AS text, ('z' || chr(228))::name AS name")
    finally:
        server.ask("DROP DATABASE bytes")
    assert values["db.connections", ""] == 1
    assert values["db.commits_per_s", ""] is not None
    assert facts["database"]["role"] == "monitor"
    assert facts["database"]["settings"]["fsync"] == "on"
    assert row == {"text": "z\ufffdhler", "name": "z\ufffd"}


def test_a_lost_connection_costs_one_reading(server: Server) -> None:
    """After a kill of the collector's session one reading fails, and the next has its differences."""
    with watching(server.monitor) as collector:
        collector._sampler.stop()  # type: ignore[attr-defined]  # else it may be what meets the loss
        server.ask(f"SELECT pg_terminate_backend(pid) {OURS}")
        with pytest.raises(CollectorError, match="host 'sql1', collector 'postgres'") as caught:
            collector.read()
        assert "monitor:" not in str(caught.value)
        assert found(collector.read())["db.commits_per_s", ""] is not None


def test_an_older_server_is_read_with_its_own_views() -> None:
    """An older server gives the same metrics from its own views; missing ones are listed."""
    with older_postgres() as old, watching(old.monitor) as collector:
        facts = collector.inventory()["sql1"]
        with blocked(old.session, 2):
            time.sleep(0.5)
            blocked_values = found(collector.read())
        with psycopg.connect(old.loader, autocommit=True) as session:
            session.execute("CREATE TABLE rows (payload text)")
            for _ in range(50):
                session.execute("INSERT INTO rows VALUES ('x')")
        time.sleep(1.2)
        samples = collector.read()
    version = int(facts["database"]["version"].split(".")[0].split()[0])
    assert 13 <= version <= 17
    assert blocked_values["db.lock_waiters", ""] == pytest.approx(2, abs=1.2)
    assert blocked_values["db.sessions_blocked", ""] == 2
    values, interval_s = found(samples), samples[0].interval_s
    assert (values["db.commits_per_s", ""] or 0) * interval_s >= 50
    assert (values["db.wal_bytes_per_s", ""] or 0) > 0
    assert values["db.checkpoints_per_s", "timed"] is not None
    assert values["db.reads_per_s", "data"] is not None
    if version >= 14:
        assert (values["db.fsyncs_per_s", "wal"] or 0) * interval_s >= 50
        assert values["db.fsync_s_per_s", "wal"] is None, "track_wal_io_timing is off unless asked for"
    listed = {(each["metric"], each["instance"]) for each in facts["not_measured"]}
    assert ("db.write_latency_s", "data") not in values
    assert (("db.write_latency_s", "data") in listed) == (version < 16)
    assert {metric for metric, _ in values if f"`{metric}`" not in README} == set()


VERSIONS = range(postgres.OLDEST, postgres.NEWEST + 1)

# PostgreSQL 18 with 8 sessions that wait for a row, and one session hidden from the watcher.
SESSIONS: list[dict[str, Any]] = [
    {"state": "active", "wait_event_type": "Lock", "wait_event": "transactionid", "sessions": 6},
    {"state": "active", "wait_event_type": "Lock", "wait_event": "tuple", "sessions": 1},
    {"state": "active", "wait_event_type": "Timeout", "wait_event": "PgSleep", "sessions": 1},
    {"state": "active", "wait_event_type": None, "wait_event": None, "sessions": 2},
    {"state": "idle", "wait_event_type": "Client", "wait_event": "ClientRead", "sessions": 5},
    {"state": "idle in transaction", "wait_event_type": "Client", "wait_event": "ClientRead", "sessions": 1},
    {"state": "idle in transaction (aborted)", "wait_event_type": "Client", "wait_event": "ClientRead",
     "sessions": 1},
    {"state": None, "wait_event_type": None, "wait_event": None, "sessions": 3, "hidden": True},
    {"state": "active", "wait_event_type": None, "wait_event": None, "sessions": 1, "ours": True},
]  # fmt: skip


def sampled() -> SessionSample:
    return postgres.session_sample({"ours": False, "hidden": False, **row} for row in SESSIONS)


def test_an_interval_is_the_mean_of_its_samples() -> None:
    """Waits are means over the interval's samples, and the number of blocked sessions is a maximum."""
    seen = [
        sampled(),
        SessionSample(connections=10),
        SessionSample(running=2, connections=9),
        SessionSample({"IO:WalSync": 4}, 0, 0, 10),
    ]
    waits = ["Lock:transactionid", "IO:WalSync", "IO:DataFileRead"]
    values = [*activity(seen, waits), *connections(mean_connections(seen), 100)]
    found = {(v.metric, v.instance): v.value for v in values}
    assert found == {
        ("db.sessions_active", ""): (10 + 0 + 2 + 4) / 4,
        ("db.sessions_running", ""): 1.0,
        ("db.sessions_waiting", "Lock:transactionid"): 1.5,
        ("db.sessions_waiting", "IO:WalSync"): 1.0,
        ("db.sessions_waiting", "IO:DataFileRead"): 0.0,
        ("db.lock_waiters", ""): 1.75,
        ("db.sessions_blocked", ""): 7,
        ("db.sessions_idle_in_transaction", ""): 0.5,
        ("db.sessions_hidden", ""): 3.0,
        ("db.connections", ""): 12.5,
        ("db.connections_ratio", ""): 0.125,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_asked_for_the_views_it_has(version: int) -> None:
    """A statement names only views and columns that the version has."""
    asked = postgres.statements(version * 10_000 + 4)
    both = asked.totals + asked.files
    assert ("pg_stat_io" in both) == (version >= 16)
    assert ("pg_stat_checkpointer" in both) == (version >= 17)
    assert ("checkpoints_req " in both) == (version < 17)
    assert ("wal_sync_time" in both) == (14 <= version < 18)
    assert ("pg_stat_wal" in both) == (version >= 14)
    assert ("op_bytes" in both) == (version in (16, 17))
    assert ("restartpoints_req" in both) == (version >= 17), "a standby's, apart since 17"
    assert ("buffers_backend" in both) == (version < 16)
    assert "{" not in both
    assert set(postgres.TOTALS) >= {"commits", "wal_bytes", "checkpoints_timed"}


def test_a_newer_version_is_asked_as_the_newest_and_an_older_one_refused() -> None:
    """A newer version is read as the newest known; version 12 and older are refused."""
    assert postgres.statements(190001) == postgres.statements(180000)
    with pytest.raises(CollectorError, match="PostgreSQL 12; collector kind 'postgres' knows 13 to 18"):
        postgres.statements(120022)


def test_what_a_version_cannot_say_is_listed_with_the_reason() -> None:
    """Version 18 misses nothing, and older versions miss more, each with the reason."""
    counts = [len(list(postgres.not_measured(version * 10_000))) for version in VERSIONS]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    assert all(each.remedy for each in postgres.not_measured(130000))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with planted() as found:
        yield found


def test_straight_to_the_server(url: str) -> None:
    """With traps in place, each statement works and uses only the server's own views and functions."""
    with asking("postgres", "sql1", "sql", url) as collector:
        samples = collector.read()
    assert any(each.metric.startswith("db.") and each.value is not None for each in samples)
    assert not [each for each in samples if each.metric == "collector.ok" and each.value == 0]


def test_behind_a_pooler_that_takes_no_settings(url: str) -> None:
    """Behind a pooler the search path is set for one transaction and not left for the next client."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    with pooled(place) as there:
        behind = urlunsplit(parts._replace(netloc=f"{login}@{there}"))
        with asking("postgres", "sql1", "sql", behind) as collector:
            samples = collector.read()
    assert any(each.metric.startswith("db.") and each.value is not None for each in samples)
