"""Tests of a Cassandra node's tables as metrics, with recorded rows."""

from __future__ import annotations

from typing import Any

from collectors.asking import of

from pinchpoint_collectors.databases import cassandra
from pinchpoint_collectors.databases.cassandra import TABLES


def pool(name: str, **columns: int) -> dict[str, Any]:
    row = {
        "name": name, "active_tasks": 0, "active_tasks_limit": 16, "blocked_tasks": 0,
        "blocked_tasks_all_time": 0, "completed_tasks": 1001, "pending_tasks": 0,
    }  # fmt: skip
    return row | columns


# Cassandra 5.0.2 with writers that wait for the commit log's disk, and a compaction in progress.
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


def test_an_older_node_sends_what_it_has_and_lists_the_rest() -> None:
    """Cassandra 4.0 has no statements and hints; its missing metrics are listed."""
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
