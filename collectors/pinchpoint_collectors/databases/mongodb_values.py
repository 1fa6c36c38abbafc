"""MongoDB's ``serverStatus`` as values. Pure: tables of where a figure stands, and what it is called here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pinchpoint_collectors.proc.value import Value, growth, rate
from pinchpoint_collectors.record import NotMeasured

Status = Mapping[str, Any]
Path = tuple[str, ...]


class Figure(NamedTuple):
    """One figure of ``serverStatus``.

    Attributes:
        metric: its name here.
        instance: likewise.
        paths: where it stands, by version: the first that is there counts.
        unit: what one of it is worth in the base unit.
    """

    metric: str
    instance: str
    paths: tuple[Path, ...]
    unit: float = 1.0


class Mean(NamedTuple):
    """A time and the number of operations it was spent on.

    Attributes:
        metric: its name here.
        instance: likewise.
        times: where the time stands.
        operations: where their number stands.
        unit: what one of the time is worth in seconds.
    """

    metric: str
    instance: str
    times: tuple[Path, ...]
    operations: tuple[Path, ...]
    unit: float = 1e-6


class Ratio(NamedTuple):
    """A share of something that has a limit.

    Attributes:
        metric: its name here.
        instance: likewise.
        used: where the part stands.
        limit: where the whole stands.
    """

    metric: str
    instance: str
    used: tuple[Path, ...]
    limit: tuple[Path, ...]


def _at(*names: str) -> tuple[Path, ...]:
    return (names,)


def _tickets(kind: str, *names: str) -> tuple[Path, ...]:
    """Tickets moved from the storage engine (to 7.0) to the queues (8.0 on)."""
    return ("queues", "execution", kind, *names), ("wiredTiger", "concurrentTransactions", kind, *names)


def _ticket_queue(kind: str, name: str) -> tuple[Path, ...]:
    """7.0 knows one queue for each kind of ticket, 8.0 one for each priority; before, there is none."""
    return (
        ("queues", "execution", kind, "normalPriority", name),
        ("wiredTiger", "concurrentTransactions", kind, name),
    )


_LOG = "wiredTiger", "log"
_CACHE = "wiredTiger", "cache"
_CHECKPOINT_S = (
    ("wiredTiger", "checkpoint", "total time (msecs)"),
    ("wiredTiger", "transaction", "transaction checkpoint total time (msecs)"),
)
_SYNC = "log sync time duration (usecs)"
_WAIT_FOR_CACHE = "application thread time waiting for cache (usecs)"
_READ = "application threads page read from disk to cache"

LEVELS = (
    Figure("db.connections", "", _at("connections", "current")),
    Figure("db.clients_active", "read", _at("globalLock", "activeClients", "readers")),
    Figure("db.clients_active", "write", _at("globalLock", "activeClients", "writers")),
    Figure("db.clients_queued", "read", _at("globalLock", "currentQueue", "readers")),
    Figure("db.clients_queued", "write", _at("globalLock", "currentQueue", "writers")),
    Figure("db.tickets_used", "read", _tickets("read", "out")),
    Figure("db.tickets_used", "write", _tickets("write", "out")),
    Figure("db.tickets_queued", "read", _ticket_queue("read", "queueLength")),
    Figure("db.tickets_queued", "write", _ticket_queue("write", "queueLength")),
    Figure("db.memory_used_bytes", "", _at("mem", "resident"), 2**20),
)
"""Figures whose value now is told."""

RATES = (
    Figure("db.connections_made_per_s", "", _at("connections", "totalCreated")),
    Figure("db.received_bytes_per_s", "", _at("network", "bytesIn")),
    Figure("db.sent_bytes_per_s", "", _at("network", "bytesOut")),
    *(
        Figure("db.operations_per_s", name, _at("opcounters", name))
        for name in ("insert", "query", "update", "delete", "getmore", "command")
    ),
    Figure("db.journal.syncs_per_s", "", _at(*_LOG, "log sync operations")),
    Figure("db.journal.sync_s_per_s", "", _at(*_LOG, _SYNC), 1e-6),
    Figure("db.journal.bytes_per_s", "", _at(*_LOG, "log bytes written")),
    Figure("db.tickets_wait_s_per_s", "read", _ticket_queue("read", "totalTimeQueuedMicros"), 1e-6),
    Figure("db.tickets_wait_s_per_s", "write", _ticket_queue("write", "totalTimeQueuedMicros"), 1e-6),
    Figure("db.cache_wait_s_per_s", "", _at("wiredTiger", "thread-yield", _WAIT_FOR_CACHE), 1e-6),
    Figure("db.cache_client_evictions_per_s", "", _at(*_CACHE, "pages evicted by application threads")),
    Figure("db.checkpoint_s_per_s", "", _CHECKPOINT_S, 1e-3),
    Figure("db.flow_control_s_per_s", "", _at("flowControl", "timeAcquiringMicros"), 1e-6),
)
"""Counters whose growth per second is told."""

MEANS = (
    Mean("db.journal.sync_latency_s", "", _at(*_LOG, _SYNC), _at(*_LOG, "log sync operations")),
    *(
        Mean(
            "db.request_latency_s",
            instance,
            _at("opLatencies", name, "latency"),
            _at("opLatencies", name, "ops"),
        )
        for name, instance in (("reads", "read"), ("writes", "write"), ("commands", "command"))
    ),
    Mean(
        "db.cache_read_latency_s", "", _at(*_CACHE, f"{_READ} time (usecs)"), _at(*_CACHE, f"{_READ} count")
    ),
    Mean(
        "db.write_concern_latency_s",
        "",
        _at("metrics", "getLastError", "wtime", "totalMillis"),
        _at("metrics", "getLastError", "wtime", "num"),
        1e-3,
    ),
)
"""Times told per operation, with the number of operations as weight."""

RATIOS = (
    Ratio("db.tickets_ratio", "read", _tickets("read", "out"), _tickets("read", "totalTickets")),
    Ratio("db.tickets_ratio", "write", _tickets("write", "out"), _tickets("write", "totalTickets")),
    Ratio(
        "db.cache_ratio",
        "",
        _at(*_CACHE, "bytes currently in the cache"),
        _at(*_CACHE, "maximum bytes configured"),
    ),
    Ratio(
        "db.cache_dirty_ratio",
        "",
        _at(*_CACHE, "tracked dirty bytes in the cache"),
        _at(*_CACHE, "maximum bytes configured"),
    ),
)
"""Shares that hold now."""


def found(status: Status, paths: tuple[Path, ...]) -> float | None:
    """The figure at the first of these places that is there."""
    for path in paths:
        here: Any = status
        for name in path:
            here = here.get(name) if isinstance(here, Mapping) else None
        if here is not None:
            return float(here)
    return None


def levels(status: Status) -> Iterator[Value]:
    """What holds at this moment. A figure the server does not have is not sent."""
    for figure in LEVELS:
        value = found(status, figure.paths)
        if value is not None:
            yield Value(figure.metric, figure.instance, value * figure.unit)
    current, free = (found(status, _at("connections", name)) for name in ("current", "available"))
    if current is not None and free is not None:
        yield Value("db.connections_ratio", "", current / (current + free))
    for ratio in RATIOS:
        used, limit = found(status, ratio.used), found(status, ratio.limit)
        if used is not None and limit:
            yield Value(ratio.metric, ratio.instance, used / limit)


def since(before: Status, after: Status, interval_s: float) -> Iterator[Value]:
    """What grew between two readings of one server, a counter that went back being null."""
    for figure in RATES:
        then, now = found(before, figure.paths), found(after, figure.paths)
        if then is not None and now is not None:
            yield Value(figure.metric, figure.instance, rate(then, now, interval_s, figure.unit))
    for mean in MEANS:
        times = found(before, mean.times), found(after, mean.times)
        counts = found(before, mean.operations), found(after, mean.operations)
        if None not in (*times, *counts):
            yield _mean(mean, growth(*times), growth(*counts))  # type: ignore[type-var]  # none of them is None


def _mean(mean: Mean, spent: float | None, done: float | None) -> Value:
    if spent is None or done is None:
        return Value(mean.metric, mean.instance, None)
    return Value(mean.metric, mean.instance, spent * mean.unit / done if done else None, done)


def same_server(before: Status, after: Status) -> bool:
    """Whether two readings are of one life of one server: counters begin anew with each."""
    alike = all(before.get(key) == after.get(key) for key in ("host", "pid"))
    return alike and after["uptimeMillis"] >= before["uptimeMillis"]


def not_measured(status: Status) -> Iterator[NotMeasured]:
    """What this server's ``serverStatus`` does not hold: another version, or another storage engine."""
    for metric, instance, paths in (
        *((each.metric, each.instance, each.paths) for each in (*LEVELS, *RATES)),
        *((each.metric, each.instance, each.times) for each in MEANS),
        *((each.metric, each.instance, each.limit) for each in RATIOS),
    ):
        if found(status, paths) is None:
            place = ".".join(paths[0])
            yield NotMeasured(metric, instance, f"this server's serverStatus has no {place}", None)
