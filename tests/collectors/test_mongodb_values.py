"""MongoDB's ``serverStatus`` as values: parts of a recorded answer of 4.2, and the places of 7.0 and 8.0."""

from __future__ import annotations

import copy
from typing import Any

import pytest

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


def of(values: Any) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    return {(value.metric, value.instance): (value.value, value.weight) for value in values}


def test_the_journals_flushes_have_count_time_and_latency() -> None:
    """20 flushes of 30 ms in 2 s: the journal's disk was busy for three tenths of the time."""
    after = later(
        **{
            "wiredTiger/log/log sync operations": 20,
            "wiredTiger/log/log sync time duration (usecs)": 600_000,
            "wiredTiger/log/log bytes written": 81_920,
        }
    )
    found = of(mongodb.since(RECORDED, after, 2.0))
    assert found["db.journal.syncs_per_s", ""] == (10.0, None)
    assert found["db.journal.sync_s_per_s", ""][0] == pytest.approx(0.3)
    latency, weight = found["db.journal.sync_latency_s", ""]
    assert latency == pytest.approx(0.03)
    assert weight == 20
    assert found["db.journal.bytes_per_s", ""] == (40960.0, None)


def test_operations_have_their_latency_with_its_weight() -> None:
    """In seconds; none of a kind is null with weight 0."""
    after = later(**{"opLatencies/writes/latency": 5_000_000, "opLatencies/writes/ops": 100})
    found = of(mongodb.since(RECORDED, after, 1.0))
    assert found["db.request_latency_s", "write"] == (0.05, 100)
    assert found["db.request_latency_s", "read"] == (None, 0)
    after = later(**{"metrics/getLastError/wtime/num": 4, "metrics/getLastError/wtime/totalMillis": 100})
    found = of(mongodb.since(RECORDED, after, 1.0))
    assert found["db.write_concern_latency_s", ""] == (0.025, 4)


def test_what_holds_now() -> None:
    """Shares of what there is; memory in bytes."""
    found = of(mongodb.levels(RECORDED))
    assert found["db.tickets_used", "read"] == (1.0, None)
    assert found["db.tickets_ratio", "read"] == (1 / 128, None)
    assert found["db.connections_ratio", ""] == (14 / 819, None)
    assert found["db.cache_dirty_ratio", ""][0] == pytest.approx(0.0013, abs=1e-4)
    assert found["db.memory_used_bytes", ""] == (159 * 2**20, None)
    assert ("db.tickets_queued", "write") not in found, "before 7.0 there is no queue of its own"


@pytest.mark.parametrize(
    "moved",
    [
        {"queues": {"execution": {"write": {
            "out": 4, "available": 0, "totalTickets": 4,
            "normalPriority": {"queueLength": 9, "totalTimeQueuedMicros": 5_000_000},
        }}}},
        {"wiredTiger": {"concurrentTransactions": {"write": {
            "out": 4, "available": 0, "totalTickets": 4, "queueLength": 9, "totalTimeQueuedMicros": 5_000_000,
        }}}},
    ],
    ids=["8.0", "7.0"],
)  # fmt: skip
def test_tickets_are_found_where_each_version_has_them(moved: dict[str, Any]) -> None:
    """All in use, nine waiting, five seconds waited in one: five at any time."""
    base = {key: value for key, value in RECORDED.items() if key != "wiredTiger"}
    found = of(mongodb.levels(base | moved))
    assert found["db.tickets_ratio", "write"] == (1.0, None)
    assert found["db.tickets_queued", "write"] == (9.0, None)
    earlier = copy.deepcopy(moved)
    write = (earlier.get("queues") or earlier["wiredTiger"]).popitem()[1]["write"]
    write.get("normalPriority", write)["totalTimeQueuedMicros"] = 0
    before = base | ({"queues": {"execution": {"write": write}}} if "queues" in moved else
                     {"wiredTiger": {"concurrentTransactions": {"write": write}}})  # fmt: skip
    grown = of(mongodb.since(before, base | moved, 1.0))
    assert grown["db.tickets_wait_s_per_s", "write"] == (5.0, None)


def test_checkpoints_are_found_where_newer_versions_have_them() -> None:
    """7.0 gave them a part of their own."""
    statuses = [RECORDED | {"wiredTiger": {"checkpoint": {"total time (msecs)": ms}}} for ms in (100, 600)]
    found = of(mongodb.since(statuses[0], statuses[1], 1.0))
    assert found["db.checkpoint_s_per_s", ""] == (0.5, None)


def test_a_restart_is_no_growth() -> None:
    """Another process, a younger one, or another host behind the same address."""
    assert mongodb.is_same_server(RECORDED, later(uptimeMillis=1000))
    assert not mongodb.is_same_server(RECORDED, later(pid=1, uptimeMillis=1000))
    assert not mongodb.is_same_server(RECORDED, later(uptimeMillis=-1000))
    assert not mongodb.is_same_server(RECORDED, RECORDED | {"host": "db2"})


def test_a_counter_that_went_back_is_null() -> None:
    """What happened in between is lost."""
    found = of(mongodb.since(later(**{"opLatencies/writes/ops": 5}), RECORDED, 1.0))
    assert found["db.request_latency_s", "write"] == (None, None)


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
