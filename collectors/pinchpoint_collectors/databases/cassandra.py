"""Kind ``cassandra``: a Cassandra node's own view of its thread pools, requests and compactions (4.0 on)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pinchpoint_collectors.databases import cassandra_values
from pinchpoint_collectors.databases.cassandra_values import Row
from pinchpoint_collectors.databases.server_kind import NodeKind
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch

if TYPE_CHECKING:
    from pinchpoint_collectors.databases.cassandra_connection import Node

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


class CassandraKind(NodeKind):
    """The kind ``cassandra`` of farm.yaml."""

    name = "cassandra"
    product = "Cassandra"
    schemes = ("cassandra", "scylla")
    package = "cassandra-driver"

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        from pinchpoint_collectors.databases.cassandra_connection import Node  # noqa: PLC0415 -- an extra

        options = watches[0].options
        address = self._address(watches[0]) or ""
        node = Node(where, address, str(options["url"]), options.get("user"), options.get("password"))
        try:
            return CassandraCollector(watches, node, where)
        except CollectorError:
            node.close()
            raise


class CassandraCollector:
    """Watches one node: its virtual tables, at each reading."""

    def __init__(self, watches: Sequence[Watch], node: Node, where: str) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._node = node
        (self._about,), tables = node.ask((_ABOUT, _TABLES))
        there = {row["table_name"] for row in tables}
        if "thread_pools" not in there:
            raise CollectorError(
                f"{where}: the server says release {self._about['release_version']} and has no "
                "system_views.thread_pools; collector kind 'cassandra' knows Apache Cassandra from 4.0 on: "
                "leave this collector out (ScyllaDB has no such tables)"
            )
        self._statements = {
            name: statement for name, statement in cassandra_values.TABLES.items() if name in there
        }
        (settings,) = node.ask((_SETTINGS,))
        self._settings = {row["name"]: row["value"] for row in settings if row["value"] is not None}
        limit = int(self._settings.get("native_transport_max_concurrent_connections", -1))
        self._connections_limit = limit if limit > 0 else None
        self._before: _Reading | None = None

    def read(self) -> Sequence[Sample]:
        """What holds now, and what happened since the reading before."""
        now = _Reading(self._node, self._statements)
        before, self._before = self._before, now
        interval_s = (now.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        values = list(cassandra_values.levels(now.tables, self._connections_limit))
        # Counters begin anew with the node.
        if before is not None and before.started == now.started:
            values += cassandra_values.since(before.tables, now.tables, interval_s)
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """The node under ``database``. See collectors/README.md, "Inventory"."""
        database = {
            "server": "cassandra",
            "version": self._about["release_version"],
            "role": self._node.user,
            "data_center": self._about["data_center"],
            "rack": self._about["rack"],
            "connections_limit": self._connections_limit,
            "settings": self._settings,
        }
        missing = [
            asdict(each) for each in cassandra_values.not_measured(self._statements, self._connections_limit)
        ]
        return {
            host: {"tier": tier, "database": database, "not_measured": missing}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Close the connection."""
        self._node.close()


class _Reading:
    """What the node said at one instant."""

    def __init__(self, node: Node, statements: Mapping[str, str]) -> None:
        (started,), *answers = node.ask((_STARTED, *statements.values()))
        self.time_ns, self.monotonic_ns = time.time_ns(), time.monotonic_ns()
        self.started: int = started["gossip_generation"]
        self.tables: dict[str, list[Row]] = dict(zip(statements, answers, strict=True))
