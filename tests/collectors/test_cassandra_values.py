"""A Cassandra node's tables as values: recorded rows, no server."""

from __future__ import annotations

from typing import Any

from pinchpoint_collectors.databases import cassandra
from pinchpoint_collectors.databases.cassandra import TABLES


def pool(name: str, **columns: int) -> dict[str, Any]:
    row = {
        "name": name, "active_tasks": 0, "active_tasks_limit": 16, "blocked_tasks": 0,
        "blocked_tasks_all_time": 0, "completed_tasks": 1001, "pending_tasks": 0,
    }  # fmt: skip
    return row | columns


# Cassandra 5.0.2; the writers wait for the commit log's disk, a compaction is under way.
RECORDED: dict[str, list[dict[str, Any]]] = {
    "thread_pools": [
        pool("MutationStage", active_tasks=16, pending_tasks=19),
        pool("Native-Transport-Requests", active_tasks=39, active_tasks_limit=128, blocked_tasks_all_time=2),
        pool("PerDiskMemtableFlushWriter_0", active_tasks_limit=2),
        pool("Sampler", active_tasks_limit=1),
    ],
    "coordinator_read_latency": [{"keyspace_name": "system", "count": 300}],
    "coordinator_write_latency": [
        {"keyspace_name": "loadtest", "count": 1000},
        {"keyspace_name": "other", "count": 24},
        {"keyspace_name": "system_auth", "count": 7},
    ],
    "sstable_tasks": [
        {"kind": "compaction", "progress": 2_000_000, "total": 6_000_000, "unit": "bytes"},
        {"kind": "compaction", "progress": 3, "total": 9, "unit": "ranges"},
    ],
    "caches": [
        {"name": "keys", "hit_count": 71, "request_count": 82},
        {"name": "rows", "hit_count": 0, "request_count": 0},
    ],
    "clients": [{"port": 60652}, {"port": 60666}],
    "cql_metrics": [
        {"name": "prepared_statements_executed", "value": 1300.0},
        {"name": "regular_statements_executed", "value": 145.0},
        {"name": "prepared_statements_ratio", "value": 0.89},
    ],
    "pending_hints": [{"files": 2}, {"files": 1}],
}


def of(values: Any) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    return {(value.metric, value.instance): (value.value, value.weight) for value in values}


def test_what_holds_now() -> None:
    """The pool at its limit with tasks pending; ranges of a repair are no bytes; idle pools are left out."""
    found = of(cassandra.levels(RECORDED, 64))
    assert found["db.pool.busy_ratio", "MutationStage"] == (1.0, None)
    assert found["db.pool.pending", "MutationStage"] == (19, None)
    assert found["db.pool.busy_ratio", "Native-Transport-Requests"] == (39 / 128, None)
    assert ("db.pool.active", "PerDiskMemtableFlushWriter_0") in found
    assert ("db.pool.active", "Sampler") not in found
    assert found["db.compactions_running", ""] == (2, None)
    assert found["db.compaction_left_bytes", ""] == (4_000_000, None)
    assert found["db.connections", ""] == (2, None)
    assert found["db.connections_ratio", ""] == (2 / 64, None)
    assert found["db.hints_files", ""] == (3, None)


def later() -> dict[str, list[dict[str, Any]]]:
    return RECORDED | {
        "thread_pools": [
            pool("MutationStage", completed_tasks=1201),
            pool("Native-Transport-Requests", active_tasks_limit=128, blocked_tasks_all_time=6),
            pool("ReadStage"),
        ],
        "coordinator_write_latency": [
            {"keyspace_name": "loadtest", "count": 1200},
            {"keyspace_name": "other", "count": 24},
            {"keyspace_name": "system_auth", "count": 90},
        ],
        "caches": [
            {"name": "keys", "hit_count": 80, "request_count": 94},
            {"name": "rows", "hit_count": 0, "request_count": 0},
        ],
        "cql_metrics": [
            {"name": "prepared_statements_executed", "value": 1500.0},
            {"name": "regular_statements_executed", "value": 165.0},
        ],
    }


def test_what_grew() -> None:
    """Per second; the node's own tables are nobody's requests; a hit ratio weighs as many as asked."""
    found = of(cassandra.since(RECORDED, later(), 2.0))
    assert found["db.pool.completed_per_s", "MutationStage"] == (100.0, None)
    assert found["db.pool.blocked_per_s", "Native-Transport-Requests"] == (2.0, None)
    assert ("db.pool.completed_per_s", "ReadStage") not in found, "no difference without a before"
    assert found["db.requests_per_s", "write"] == (100.0, None)
    assert found["db.requests_per_s", "read"] == (0.0, None)
    assert found["db.cache_hit_ratio", "keys"] == (0.75, 12)
    assert found["db.cache_hit_ratio", "rows"] == (None, 0)
    assert found["db.statements_per_s", "prepared"] == (100.0, None)
    assert found["db.statements_per_s", "regular"] == (10.0, None)


def test_counters_that_went_back_are_null() -> None:
    """A table that was dropped takes its count along."""
    found = of(cassandra.since(later(), RECORDED, 1.0))
    assert found["db.requests_per_s", "write"] == (None, None)
    assert found["db.pool.completed_per_s", "MutationStage"] == (None, None)
    assert found["db.cache_hit_ratio", "keys"] == (None, None)


def test_an_older_node_sends_what_it_has_and_lists_the_rest() -> None:
    """4.0 has neither statements nor hints; what no version tells is listed always."""
    there = [name for name in TABLES if name not in ("cql_metrics", "pending_hints")]
    old = {name: RECORDED[name] for name in there}
    sent = {*of(cassandra.levels(old, None)), *of(cassandra.since(old, old, 1.0))}
    assert not [metric for metric, _ in sent if metric.startswith(("db.statements", "db.hints"))]
    assert [each.metric for each in cassandra.not_measured(there, None)] == [
        "db.connections_ratio", "db.commit_log_wait_s", "db.request_latency_s", "db.statements*",
        "db.hints_files",
    ]  # fmt: skip
    assert [each.metric for each in cassandra.not_measured(TABLES, 64)] == [
        "db.commit_log_wait_s", "db.request_latency_s",
    ]  # fmt: skip
