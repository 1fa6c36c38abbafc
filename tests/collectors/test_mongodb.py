"""Tests of the collector `mongodb` with a server of its protocol, and of recorded replies as metrics."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from collectors.asking import asking, found, of
from collectors.server_contract import README, Peer, ServerContract
from javaservers import mongo
from serverprocess import ServerProcess

from pinchpoint_collectors.databases import mongodb
from pinchpoint_collectors.databases.base import DatabaseTarget
from pinchpoint_collectors.databases.mongodb_driver import MongoServerConnection
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with mongo() as started:
        yield started


@pytest.fixture(scope="module")
def peer(server: ServerProcess) -> Peer:
    return Peer(server.url, lambda: [server.pid])


class TestContract(ServerContract):
    KIND = "mongodb"
    UNREACHABLE: ClassVar = {
        "mongodb://watcher:wrong-secret@127.0.0.1:1/admin": (
            "start the server, or correct host and port in farm.yaml"
        ),
        "mongodb://a:se:cret@h/x": "correct the url in farm.yaml",
        "mongodb://h:99999/x": "correct the url in farm.yaml",
        "mongodb://h/?tls=perhaps": "correct the url in farm.yaml",
    }


watching = partial(asking, "mongodb", "m1", "nosql")


def place(server: ServerProcess) -> str:
    return server.url.partition("//")[2].partition("/")[0]


def test_a_server_that_tells_little_is_read_and_the_rest_listed(server: ServerProcess) -> None:
    """A server with few statistics gives its connections; each missing metric is listed with its source."""
    with watching(server.url) as collector:
        samples = collector.read()
        facts = collector.inventory()["m1"]
    assert found(samples) == {("db.connections", ""): 1.0}, "one is ours, and there is no other"
    assert samples[0].interval_s > 0
    assert facts["database"]["version"].startswith("5.0")
    assert facts["database"]["settings"] is None, "it does not know the command"
    why = {each["metric"]: each["why"] for each in facts["not_measured"]}
    assert why["db.journal.syncs_per_s"] == (
        "this server's serverStatus has no wiredTiger.log.log sync operations"
    )


def test_every_metric_that_can_be_sent_is_in_the_readme() -> None:
    """The documentation lists every metric that can be sent."""
    metrics = {each.metric for each in mongodb.not_measured({})}
    assert len(metrics) > 20
    assert {metric for metric in metrics if f"`{metric}`" not in README} == set()


def test_of_several_members_the_watched_one_has_to_be_said(server: ServerProcess) -> None:
    """With several members the watched one must be named, also for replica sets and DNS seed lists."""
    url = f"mongodb://nowhere.invalid:27017,{place(server)}/loadtest?replicaSet=rs0"
    looked_up = {"url": "mongodb+srv://cluster.example/loadtest"}
    with pytest.raises(CollectorError, match="say which one this host is, as in `address: HOST:PORT`"):
        kind("mongodb").connect([Watch("m1", "nosql", options=looked_up)])
    with watching(url, address=place(server)) as collector:
        assert found(collector.read())["db.connections", ""]


def test_the_logins_place_and_the_secure_ways_settings_are_the_urls() -> None:
    """The login's database and TLS settings come from the URL; a user of the watch has priority."""
    url = "mongodb://loader:one@h1:27018,h2/loadtest?replicaSet=rs0&tls=true&tlsAllowInvalidCertificates=true"
    client = MongoServerConnection(DatabaseTarget("here", url, "h2:27017", "watcher", "two"))._open()
    try:
        options = client.options
        assert options.direct_connection
        login = options.pool_options._credentials
        assert login is not None
        assert (login.username, login.password, login.source) == ("watcher", "two", "loadtest")
        assert options.pool_options._ssl_context is not None
    finally:
        client.close()


# MongoDB 4.2, idle primary of a replica set; only the parts that are read.
RECORDED: dict[str, Any] = {
    "host": "db1",
    "pid": 2717,
    "uptimeMillis": 18605979,
    "connections": {"current": 14, "available": 805, "totalCreated": 120, "active": 2},
    "flowControl": {"enabled": True, "timeAcquiringMicros": 14473157, "isLagged": False},
    "globalLock": {
        "totalTime": 18605979000,
        "currentQueue": {"total": 0, "readers": 0, "writers": 0},
        "activeClients": {"total": 0, "readers": 0, "writers": 0},
    },
    "network": {"bytesIn": 12196796, "bytesOut": 24314417, "numRequests": 36946},
    "opLatencies": {
        "reads": {"latency": 1272754, "ops": 5137},
        "writes": {"latency": 14884845, "ops": 3771},
        "commands": {"latency": 2186862, "ops": 28036},
    },
    "opcounters": {
        "insert": 3768, "query": 127, "update": 52, "delete": 13, "getmore": 5081, "command": 28165,
    },
    "storageEngine": {"name": "wiredTiger", "persistent": True},
    "wiredTiger": {
        "cache": {
            "application threads page read from disk to cache count": 80,
            "application threads page read from disk to cache time (usecs)": 2408,
            "bytes currently in the cache": 23888765,
            "maximum bytes configured": 4294967296,
            "pages evicted by application threads": 0,
            "tracked dirty bytes in the cache": 5642154,
        },
        "log": {
            "log bytes written": 7641216,
            "log sync operations": 8955,
            "log sync time duration (usecs)": 10622323,
        },
        "thread-yield": {"application thread time waiting for cache (usecs)": 0},
        "transaction": {"transaction checkpoint total time (msecs)": 9913, "transaction checkpoints": 310},
        "concurrentTransactions": {
            "write": {"out": 0, "available": 128, "totalTickets": 128},
            "read": {"out": 1, "available": 127, "totalTickets": 128},
        },
    },
    "mem": {"bits": 64, "resident": 159, "virtual": 1894},
    "metrics": {"getLastError": {"wtime": {"num": 19, "totalMillis": 150195}, "wtimeouts": 10}},
}  # fmt: skip


def later(**changes: float) -> dict[str, Any]:
    """Return the same server's status with values at ``a/b/c`` increased."""
    status = copy.deepcopy(RECORDED)
    for place, grown in changes.items():
        *folders, name = place.split("/")
        here = status
        for folder in folders:
            here = here[folder]
        here[name] += grown
    return status


def test_a_restart_is_no_growth() -> None:
    """A new process, a lower uptime, or another host at the address gives no growth."""
    assert mongodb.is_same_server(RECORDED, later(uptimeMillis=1000))
    assert not mongodb.is_same_server(RECORDED, later(pid=1, uptimeMillis=1000))
    assert not mongodb.is_same_server(RECORDED, later(uptimeMillis=-1000))
    assert not mongodb.is_same_server(RECORDED, RECORDED | {"host": "db2"})


def test_what_a_server_does_not_hold_is_listed_with_its_place() -> None:
    """Metrics of another storage engine are listed as missing, and none is 0."""
    assert {each.metric for each in mongodb.not_measured(RECORDED)} == {
        "db.tickets_queued", "db.tickets_wait_s_per_s",
    }  # fmt: skip
    other = {key: value for key, value in RECORDED.items() if key != "wiredTiger"}
    missing = {(each.metric, each.instance): each.why for each in mongodb.not_measured(other)}
    assert missing["db.journal.sync_latency_s", ""] == (
        "this server's serverStatus has no wiredTiger.log.log sync time duration (usecs)"
    )
    sent = {*of(mongodb.levels(other)), *of(mongodb.since(other, other, 1.0))}
    assert not sent & set(missing)
    assert not [metric for metric, _ in sent if metric.startswith(("db.journal", "db.tickets", "db.cache"))]
