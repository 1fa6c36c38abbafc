"""Collector kind ``cassandra``: thread pools, requests, compactions and caches, as counted by a node.

The collector reads virtual tables (4.0 and later). It does not use the times of latency tables: their
percentiles fade over minutes instead of covering one interval, and their unit is not ms (Cassandra 5.0.2
reports 0.001 when clients wait 2.5 ms).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.databases.base import (
    ReadingQuestion,
    Row,
    ServerCollector,
    ServerKind,
    ServerReading,
)
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Metric, Value, grown, mean, rate, rates

Rows = Iterable[Row]

# ---- statements ---------------------------------------------------------------------------------------

_ABOUT = "SELECT release_version, data_center, rack FROM system.local"
_STARTED = "SELECT gossip_generation FROM system.local"
_TABLES = "SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_views'"
_SETTINGS = """SELECT name, value FROM system_views.settings WHERE name IN (
    'commitlog_sync', 'commitlog_sync_period', 'commitlog_sync_period_in_ms', 'commitlog_sync_group_window',
    'commitlog_segment_size', 'commitlog_total_space', 'periodic_commitlog_sync_lag_block',
    'compaction_throughput', 'compaction_throughput_mb_per_sec', 'concurrent_compactors', 'concurrent_reads',
    'concurrent_writes', 'disk_access_mode', 'disk_optimization_strategy', 'memtable_allocation_type',
    'memtable_cleanup_threshold', 'memtable_flush_writers', 'memtable_heap_space', 'memtable_offheap_space',
    'native_transport_max_concurrent_connections', 'native_transport_max_threads', 'num_tokens',
    'row_cache_size', 'trickle_fsync')"""

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
"""Table -> statement. 4.0 has all tables except the last two."""

# ---- values -------------------------------------------------------------------------------------------

POOLS = frozenset({
    "Native-Transport-Requests", "MutationStage", "CounterMutationStage", "ViewMutationStage", "ReadStage",
    "RequestResponseStage", "ReadRepairStage", "HintsDispatcher", "CompactionExecutor", "ValidationExecutor",
    "MemtableFlushWriter", "MemtablePostFlush", "MemtableReclaimMemory", "SecondaryIndexExecutor",
})  # fmt: skip
"""Thread pools that can have waiting work, of more than twenty. ``PerDiskMemtableFlushWriter_N`` of each disk
is also read."""

_REQUESTS = {"coordinator_read_latency": "read", "coordinator_write_latency": "write"}
_STATEMENTS = {
    "prepared_statements_executed": Metric("db.statements_per_s", "prepared"),
    "regular_statements_executed": Metric("db.statements_per_s", "regular"),
    "prepared_statements_evicted": Metric("db.statements_evicted_per_s"),
}


def levels(tables: Mapping[str, Rows], connections_limit: int | None) -> Iterator[Value]:
    """Return current values. A table that the node lacks gives no metric.

    Args:
        tables: rows of each table in ``TABLES``.
        connections_limit: largest number of connections; None: unlimited.
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
    """Return the growth of counters between two readings of one node."""
    earlier = {row["name"]: row for row in _pools(before)}
    for row in _pools(after):
        name = row["name"]
        counters = {
            "completed_tasks": Metric("db.pool.completed_per_s", name),
            "blocked_tasks_all_time": Metric("db.pool.blocked_per_s", name),
        }
        yield from rates(counters, earlier.get(name, {}), row, interval_s)
    for table, instance in _REQUESTS.items():
        if table in before and table in after:
            counts = _requests(before[table]), _requests(after[table])
            yield Value("db.requests_per_s", instance, rate(*counts, interval_s))
    yield from rates(_STATEMENTS, _cql_metrics(before), _cql_metrics(after), interval_s)
    yield from _hits(before, after)


def not_measured(there: Iterable[str], connections_limit: int | None) -> Iterator[NotMeasured]:
    """Return the metrics that this node does not report.

    Args:
        there: tables of ``TABLES`` that the node has.
        connections_limit: largest number of connections; None: unlimited.
    """
    if connections_limit is None:
        why = "the node takes any number of connections (native_transport_max_concurrent_connections)"
        yield NotMeasured("db.connections_ratio", "", why, None)
    jmx = "JMX has it: read it by other means and `pinchpoint import` it"
    yield NotMeasured(
        "db.commit_log_wait_s", "", "no virtual table reports how long writes wait for the commit log", jmx
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
    """Return the requests of all tables except those of the node itself."""
    return sum(row["count"] for row in rows if not row["keyspace_name"].startswith("system"))


def _cql_metrics(tables: Mapping[str, Rows]) -> Row:
    return {row["name"]: row["value"] for row in tables.get("cql_metrics", ())}


def _hits(before: Mapping[str, Rows], after: Mapping[str, Rows]) -> Iterator[Value]:
    """Return the hit ratio of a cache."""
    earlier = {row["name"]: row for row in before.get("caches", ())}
    for row in after.get("caches", ()):
        old = earlier.get(row["name"])
        if old is not None:
            hits, wanted = grown(old, row, "hit_count", "request_count")
            yield mean("db.cache_hit_ratio", row["name"], hits, wanted)


# ---- the collector ------------------------------------------------------------------------------------


class CassandraCollector(ServerCollector):
    """Reads Cassandra's virtual tables at each reading."""

    KIND = "cassandra"

    def _begin(self) -> None:
        (self._about,), tables = self._server.ask((_ABOUT, _TABLES))
        there = {row["table_name"] for row in tables}
        if "thread_pools" not in there:
            raise CollectorError(
                f"{self._where}: the server says release {self._about['release_version']} and has no "
                "system_views.thread_pools; collector kind 'cassandra' knows Apache Cassandra from 4.0 on: "
                "leave this collector out (ScyllaDB has no such tables)"
            )
        self._statements = {name: statement for name, statement in TABLES.items() if name in there}
        (settings,) = self._server.ask((_SETTINGS,))
        self._settings = {row["name"]: row["value"] for row in settings if row["value"] is not None}
        limit = int(self._settings.get("native_transport_max_concurrent_connections", -1))
        self._connections_limit = limit if limit > 0 else None

    def _questions(self) -> Mapping[str, ReadingQuestion]:
        names = ("started", *self._statements)
        statements = (_STARTED, *self._statements.values())
        return {"tables": ReadingQuestion(statements, lambda answers: dict(zip(names, answers, strict=True)))}

    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        return bool(before["tables"]["started"] == now["tables"]["started"])

    def _levels(self, now: ServerReading) -> Iterator[Value]:
        return levels(now["tables"], self._connections_limit)

    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterable[Value]:
        return since(before["tables"], now["tables"], interval_s) if before else ()

    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        database = {
            "server": "cassandra",
            "version": self._about["release_version"],
            "role": self._server.user,
            "data_center": self._about["data_center"],
            "rack": self._about["rack"],
            "connections_limit": self._connections_limit,
            "settings": self._settings,
        }
        return database, not_measured(self._statements, self._connections_limit)


class CassandraKind(ServerKind):
    """Collector kind ``cassandra`` of farm.yaml: Apache Cassandra from 4.0 on."""

    name = "cassandra"
    product = "Cassandra"
    schemes = ("cassandra", "scylla")
    package = "cassandra-driver"
    collector = CassandraCollector
    connection = "CassandraServerConnection"
