"""Collector kind ``mongodb``: journal, tickets, cache, operations and clients of a MongoDB server.

All metrics come from ``serverStatus``. A place in its answer is written as ``part.part.name``; ``place |
place`` covers versions with different places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pinchpoint_collectors.databases.base import (
    ReadingQuestion,
    RefusedError,
    ServerCollector,
    ServerKind,
    ServerReading,
)
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Metric, Value, grown, mean
from pinchpoint_collectors.value import levels as levels_of
from pinchpoint_collectors.value import rates as rates_of

Status = Mapping[str, Any]

# ---- commands -----------------------------------------------------------------------------------------

_LEFT_OUT = ("locks", "tcmalloc", "repl", "mirroredReads", "shardingStatistics", "transportSecurity")
"""Parts of the answer that no metric uses. They would cost the server time and the network bandwidth."""
STATUS = {"serverStatus": 1, **dict.fromkeys(_LEFT_OUT, 0)}

SETTINGS = (
    *("journalCommitInterval", "syncdelay", "storageEngineConcurrencyAdjustmentAlgorithm"),
    *("storageEngineConcurrentReadTransactions", "storageEngineConcurrentWriteTransactions"),
    *("wiredTigerConcurrentReadTransactions", "wiredTigerConcurrentWriteTransactions"),
    *("enableFlowControl", "flowControlTargetLagSeconds"),
)
"""Settings that are read by name. None is a secret. Each version knows some of them."""

# ---- figures ------------------------------------------------------------------------------------------


def _tickets(kind: str, name: str) -> str:
    """Return the places of tickets, which moved from the storage engine (to 7.0) to the queues (8.0 on)."""
    return f"queues.execution.{kind}.{name} | wiredTiger.concurrentTransactions.{kind}.{name}"


def _ticket_queue(kind: str, name: str) -> str:
    """Return the places of a ticket queue.

    7.0 has one queue per kind of ticket, 8.0 one per priority; older versions have none.
    """
    return f"queues.execution.{kind}.normalPriority.{name} | wiredTiger.concurrentTransactions.{kind}.{name}"


_FLUSHES = "wiredTiger.log.log sync operations"
_FLUSH_TIME = "wiredTiger.log.log sync time duration (usecs)"
_PAGE_READ = "wiredTiger.cache.application threads page read from disk to cache"
_MOST_CACHE = "wiredTiger.cache.maximum bytes configured"
_CHECKPOINTS = (
    "wiredTiger.checkpoint.total time (msecs)"
    " | wiredTiger.transaction.transaction checkpoint total time (msecs)"
)
_CACHE_WAIT = "wiredTiger.thread-yield.application thread time waiting for cache (usecs)"
_WRITE_CONCERN = "metrics.getLastError.wtime"

LEVELS = {
    "connections.current": Metric("db.connections"),
    "globalLock.activeClients.readers": Metric("db.clients_active", "read"),
    "globalLock.activeClients.writers": Metric("db.clients_active", "write"),
    "globalLock.currentQueue.readers": Metric("db.clients_queued", "read"),
    "globalLock.currentQueue.writers": Metric("db.clients_queued", "write"),
    _tickets("read", "out"): Metric("db.tickets_used", "read"),
    _tickets("write", "out"): Metric("db.tickets_used", "write"),
    _ticket_queue("read", "queueLength"): Metric("db.tickets_queued", "read"),
    _ticket_queue("write", "queueLength"): Metric("db.tickets_queued", "write"),
    "mem.resident": Metric("db.memory_used_bytes", unit=2**20),
}
"""Place of a figure -> metric for its current value."""

RATES = {
    "connections.totalCreated": Metric("db.connections_made_per_s"),
    "network.bytesIn": Metric("db.received_bytes_per_s"),
    "network.bytesOut": Metric("db.sent_bytes_per_s"),
    **{
        f"opcounters.{name}": Metric("db.operations_per_s", name)
        for name in ("insert", "query", "update", "delete", "getmore", "command")
    },
    _FLUSHES: Metric("db.journal.syncs_per_s"),
    _FLUSH_TIME: Metric("db.journal.sync_s_per_s", unit=1e-6),
    "wiredTiger.log.log bytes written": Metric("db.journal.bytes_per_s"),
    _ticket_queue("read", "totalTimeQueuedMicros"): Metric("db.tickets_wait_s_per_s", "read", 1e-6),
    _ticket_queue("write", "totalTimeQueuedMicros"): Metric("db.tickets_wait_s_per_s", "write", 1e-6),
    _CACHE_WAIT: Metric("db.cache_wait_s_per_s", unit=1e-6),
    "wiredTiger.cache.pages evicted by application threads": Metric("db.cache_client_evictions_per_s"),
    _CHECKPOINTS: Metric("db.checkpoint_s_per_s", unit=1e-3),
    "flowControl.timeAcquiringMicros": Metric("db.flow_control_s_per_s", unit=1e-6),
}
"""Place of a counter -> metric for its growth per second."""


class MeanTime(NamedTuple):
    """Places of a total time and of the number of operations. The metric has the unit of the time."""

    time: str
    operations: str
    metric: Metric


MEANS = (
    MeanTime(_FLUSH_TIME, _FLUSHES, Metric("db.journal.sync_latency_s", unit=1e-6)),
    *(
        MeanTime(
            f"opLatencies.{name}.latency",
            f"opLatencies.{name}.ops",
            Metric("db.request_latency_s", instance, 1e-6),
        )
        for name, instance in (("reads", "read"), ("writes", "write"), ("commands", "command"))
    ),
    MeanTime(
        f"{_PAGE_READ} time (usecs)", f"{_PAGE_READ} count", Metric("db.cache_read_latency_s", unit=1e-6)
    ),
    MeanTime(
        f"{_WRITE_CONCERN}.totalMillis",
        f"{_WRITE_CONCERN}.num",
        Metric("db.write_concern_latency_s", unit=1e-3),
    ),
)
"""Latencies with the number of operations as weight."""


class UsedShare(NamedTuple):
    """Places of a used amount and of its limit."""

    used: str
    limit: str
    metric: Metric


RATIOS = (
    UsedShare(_tickets("read", "out"), _tickets("read", "totalTickets"), Metric("db.tickets_ratio", "read")),
    UsedShare(
        _tickets("write", "out"), _tickets("write", "totalTickets"), Metric("db.tickets_ratio", "write")
    ),
    UsedShare("wiredTiger.cache.bytes currently in the cache", _MOST_CACHE, Metric("db.cache_ratio")),
    UsedShare(
        "wiredTiger.cache.tracked dirty bytes in the cache", _MOST_CACHE, Metric("db.cache_dirty_ratio")
    ),
)
"""Used shares of limited resources."""


def figure(status: Status, places: str) -> float | None:
    """Return the figure at the first place that exists."""
    for place in places.split(" | "):
        here: Any = status
        for name in place.split("."):
            here = here.get(name) if isinstance(here, Mapping) else None
        if here is not None:
            return float(here)
    return None


def levels(status: Status) -> Iterator[Value]:
    """Return current values. A figure that the server lacks is not sent."""
    yield from levels_of(LEVELS, {places: figure(status, places) for places in LEVELS})
    current, free = (figure(status, f"connections.{name}") for name in ("current", "available"))
    if current is not None and free is not None:
        yield Value("db.connections_ratio", "", current / (current + free))
    for used_at, limit_at, (metric, instance, _) in RATIOS:
        used, limit = figure(status, used_at), figure(status, limit_at)
        if used is not None and limit:
            yield Value(metric, instance, used / limit)


def since(before: Status, after: Status, interval_s: float) -> Iterator[Value]:
    """Return the growth of counters between two readings of one server, without counters that it lacks."""
    counters = (*RATES, *(each.time for each in MEANS), *(each.operations for each in MEANS))
    old, new = ({places: figure(status, places) for places in counters} for status in (before, after))
    yield from rates_of(RATES, old, new, interval_s)
    for time, operations, (metric, instance, unit) in MEANS:
        if None not in (old[time], new[time], old[operations], new[operations]):
            spent, done = grown(old, new, time, operations)
            yield mean(metric, instance, None if spent is None else spent * unit, done)


def is_same_server(before: Status, after: Status) -> bool:
    """Return whether the server has run since the last reading. A restart resets counters."""
    same = all(before.get(key) == after.get(key) for key in ("host", "pid"))
    return same and after["uptimeMillis"] >= before["uptimeMillis"]


def not_measured(status: Status) -> Iterator[NotMeasured]:
    """Return the metrics that the version or the storage engine of this server does not report."""
    for places, metric in (
        *LEVELS.items(),
        *RATES.items(),
        *((each.time, each.metric) for each in MEANS),
        *((each.limit, each.metric) for each in RATIOS),
    ):
        if figure(status, places) is None:
            why = f"this server's serverStatus has no {places.partition(' | ')[0]}"
            yield NotMeasured(metric.metric, metric.instance, why, None)


# ---- the collector ------------------------------------------------------------------------------------


class MongodbCollector(ServerCollector):
    """Reads ``serverStatus`` at each reading."""

    KIND = "mongodb"

    def _begin(self) -> None:
        self._version = str(self._server.ask({"buildInfo": 1})["version"])
        self._about = self._server.ask(STATUS)

    def _questions(self) -> Mapping[str, ReadingQuestion]:
        return {"status": ReadingQuestion(STATUS)}

    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        return is_same_server(before["status"], now["status"])

    def _levels(self, now: ServerReading) -> Iterator[Value]:
        return levels(now["status"])

    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterable[Value]:
        return since(before["status"], now["status"], interval_s) if before else ()

    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        connections = self._about["connections"]
        free = connections.get("available")
        database = {
            "server": str(self._about["process"]),
            "version": self._version,
            "role": self._server.user,
            "storage_engine": self._about.get("storageEngine", {}).get("name"),
            "connections_limit": None if free is None else connections["current"] + free,
            "settings": self._settings(),
        }
        return database, not_measured(self._about)

    def _settings(self) -> Mapping[str, str] | None:
        """Return the values of ``SETTINGS`` that the server has; None without any, or without the right."""
        try:
            answer = self._server.ask({"getParameter": 1, **dict.fromkeys(SETTINGS, 1)})
        except RefusedError:
            return None
        return {name: str(answer[name]) for name in SETTINGS if name in answer}


class MongodbKind(ServerKind):
    """Collector kind ``mongodb`` of farm.yaml: MongoDB from 4.2 on."""

    name = "mongodb"
    product = "MongoDB"
    schemes = ("mongodb", "mongodb+srv")
    package = "pymongo"
    collector = MongodbCollector
    connection = "MongoServerConnection"
