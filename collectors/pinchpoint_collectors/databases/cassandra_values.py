"""A Cassandra node's virtual tables as values. Pure.

Its latency tables' times are not among them: their percentiles fade over minutes instead of belonging to an
interval, and their "ms" are not (Cassandra 5.0.2 says 0.001 where clients wait for 2.5 ms).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.proc.value import Value, growth, rate
from pinchpoint_collectors.record import NotMeasured

Row = Mapping[str, Any]
Rows = Iterable[Row]

TABLES = {
    "thread_pools": "SELECT * FROM system_views.thread_pools",
    "coordinator_read_latency": "SELECT keyspace_name, count FROM system_views.coordinator_read_latency",
    "coordinator_write_latency": "SELECT keyspace_name, count FROM system_views.coordinator_write_latency",
    "sstable_tasks": "SELECT kind, progress, total, unit FROM system_views.sstable_tasks",
    "caches": "SELECT name, hit_count, request_count FROM system_views.caches",
    "clients": "SELECT port FROM system_views.clients",
    "cql_metrics": "SELECT name, value FROM system_views.cql_metrics",
    "pending_hints": "SELECT files FROM system_views.pending_hints",
}
"""What is asked at each reading, of those a version has. 4.0 has all but the last two."""

POOLS = frozenset({
    "Native-Transport-Requests", "MutationStage", "CounterMutationStage", "ViewMutationStage", "ReadStage",
    "RequestResponseStage", "ReadRepairStage", "HintsDispatcher", "CompactionExecutor", "ValidationExecutor",
    "MemtableFlushWriter", "MemtablePostFlush", "MemtableReclaimMemory", "SecondaryIndexExecutor",
})  # fmt: skip
"""Pools in which work waits, of twenty and more; ``PerDiskMemtableFlushWriter_N`` of each disk besides."""

_REQUESTS = {
    "coordinator_read_latency": "read",
    "coordinator_write_latency": "write",
}
_STATEMENTS = {
    "prepared_statements_executed": ("db.statements_per_s", "prepared"),
    "regular_statements_executed": ("db.statements_per_s", "regular"),
    "prepared_statements_evicted": ("db.statements_evicted_per_s", ""),
}


def levels(tables: Mapping[str, Rows], connections_limit: int | None) -> Iterator[Value]:
    """What holds at this moment. A table the node does not have is no metric.

    Args:
        tables: of ``TABLES``, their rows.
        connections_limit: how many connections the node takes; None: any number.
    """
    for row in _pools(tables):
        name, limit = row["name"], row["active_tasks_limit"]
        yield Value("db.pool.active", name, row["active_tasks"])
        yield Value("db.pool.pending", name, row["pending_tasks"])
        yield Value("db.pool.blocked", name, row["blocked_tasks"])
        if limit:
            yield Value("db.pool.busy_ratio", name, row["active_tasks"] / limit)
    if "sstable_tasks" in tables:
        tasks = list(tables["sstable_tasks"])
        yield Value("db.compactions_running", "", len(tasks))
        left = sum(row["total"] - row["progress"] for row in tasks if row["unit"] == "bytes")
        yield Value("db.compaction_left_bytes", "", left)
    if "clients" in tables:
        connections = sum(1 for _ in tables["clients"])
        yield Value("db.connections", "", connections)
        if connections_limit:
            yield Value("db.connections_ratio", "", connections / connections_limit)
    if "pending_hints" in tables:
        yield Value("db.hints_files", "", sum(row["files"] for row in tables["pending_hints"]))


def since(before: Mapping[str, Rows], after: Mapping[str, Rows], interval_s: float) -> Iterator[Value]:
    """What grew between two readings of one node, a counter that went back being null."""
    earlier = {row["name"]: row for row in _pools(before)}
    for row in _pools(after):
        old = earlier.get(row["name"])
        if old is not None:
            done, blocked = (
                rate(old[column], row[column], interval_s)
                for column in ("completed_tasks", "blocked_tasks_all_time")
            )
            yield Value("db.pool.completed_per_s", row["name"], done)
            yield Value("db.pool.blocked_per_s", row["name"], blocked)
    for table, instance in _REQUESTS.items():
        if table in before and table in after:
            counts = _requests(before[table]), _requests(after[table])
            yield Value("db.requests_per_s", instance, rate(*counts, interval_s))
    yield from _statements(before, after, interval_s)
    yield from _hits(before, after)


def not_measured(there: Iterable[str], connections_limit: int | None) -> Iterator[NotMeasured]:
    """What this node cannot say.

    Args:
        there: those of ``TABLES`` it has.
        connections_limit: as ``levels``.
    """
    if connections_limit is None:
        why = "the node takes any number of connections (native_transport_max_concurrent_connections)"
        yield NotMeasured("db.connections_ratio", "", why, None)
    jmx = "JMX has it: read it by other means and `pinchpoint import` it"
    yield NotMeasured(
        "db.commit_log_wait_s", "", "no virtual table tells how long writes wait for the commit log", jmx
    )
    yield NotMeasured(
        "db.request_latency_s", "", "the latency tables' percentiles are of minutes, in a unit that is wrong",
        None,
    )  # fmt: skip
    newer = "upgrade the node where this matters (Cassandra 4.1)"
    for table, metric in (("cql_metrics", "db.statements*"), ("pending_hints", "db.hints_files")):
        if table not in there:
            yield NotMeasured(metric, "", f"this version has no system_views.{table}", newer)


def _pools(tables: Mapping[str, Rows]) -> Iterator[Row]:
    for row in tables["thread_pools"]:
        if row["name"] in POOLS or row["name"].startswith("PerDiskMemtableFlushWriter"):
            yield row


def _requests(rows: Rows) -> int:
    """Of all tables but the node's own."""
    return sum(row["count"] for row in rows if not row["keyspace_name"].startswith("system"))


def _statements(before: Mapping[str, Rows], after: Mapping[str, Rows], interval_s: float) -> Iterator[Value]:
    then, now = (
        {row["name"]: row["value"] for row in each.get("cql_metrics", ())} for each in (before, after)
    )
    for name, (metric, instance) in _STATEMENTS.items():
        if name in then and name in now:
            yield Value(metric, instance, rate(then[name], now[name], interval_s))


def _hits(before: Mapping[str, Rows], after: Mapping[str, Rows]) -> Iterator[Value]:
    """Caches that were asked, and how often that was of use."""
    earlier = {row["name"]: row for row in before.get("caches", ())}
    for row in after.get("caches", ()):
        old = earlier.get(row["name"])
        if old is None:
            continue
        asked = growth(old["request_count"], row["request_count"])
        hits = growth(old["hit_count"], row["hit_count"])
        if asked is None or hits is None:
            yield Value("db.cache_hit_ratio", row["name"], None)
        else:
            yield Value("db.cache_hit_ratio", row["name"], hits / asked if asked else None, asked)
