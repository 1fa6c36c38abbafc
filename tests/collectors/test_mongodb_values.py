"""MongoDB's ``serverStatus`` as values: parts of a recorded answer of 4.2, and the places of 7.0 and 8.0."""

from __future__ import annotations

import copy
from typing import Any

from collectors.asking import of

from pinchpoint_collectors.databases import mongodb

# MongoDB 4.2, the primary of a replica set at rest; the parts that are read.
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
    """The same server, with figures at ``a/b/c`` grown by so much."""
    status = copy.deepcopy(RECORDED)
    for place, grown in changes.items():
        *folders, name = place.split("/")
        here = status
        for folder in folders:
            here = here[folder]
        here[name] += grown
    return status


def test_a_restart_is_no_growth() -> None:
    """Another process, a younger one, or another host behind the same address."""
    assert mongodb.is_same_server(RECORDED, later(uptimeMillis=1000))
    assert not mongodb.is_same_server(RECORDED, later(pid=1, uptimeMillis=1000))
    assert not mongodb.is_same_server(RECORDED, later(uptimeMillis=-1000))
    assert not mongodb.is_same_server(RECORDED, RECORDED | {"host": "db2"})


def test_what_a_server_does_not_hold_is_listed_with_its_place() -> None:
    """Another engine has no journal of this kind: nothing of it is sent, and nothing is 0."""
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
