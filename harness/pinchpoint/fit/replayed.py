"""The figures of a run of sql-mix, as production's are reckoned; what was not measured is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint.fit.files import DATA_WAITS, LOG_WAITS
from pinchpoint.plan.production import (
    DATA_READ_BYTES,
    DATA_READ_LATENCY_S,
    DATA_READS_PER_DATA_WRITE,
    DATA_WAIT_S,
    DATA_WRITE_BYTES,
    DISK_IO_BYTES,
    DISK_READ_BYTES,
    DISK_WRITE_BYTES,
    LOG_BYTES_PER_WRITE,
    LOG_DISK_BYTES_PER_WRITE,
    LOG_IOS_PER_WRITE,
    LOG_WAIT_S,
    LOG_WRITE_BYTES,
    LOG_WRITE_LATENCY_S,
    PAGE_READS_PER_OPERATION,
    READS_PER_S,
    READS_PER_WRITE,
    ROWS_PER_WRITE,
    TEMP_BYTES_PER_OPERATION,
    WRITES_PER_S,
)

USE = "sql-mix"
_ROWS_OF: Mapping[str, int | str] = {
    "log_append": 1,
    "log_batch": "batch_rows",
    "data_update": 1,
    "bulk_load": "copy_rows",
    "lock_contend": "lock_rows",
}
"""Operation that writes -> rows of one, or the parameter that says how many."""
_LOGS = ("wal", "log")
"""What the log is called: PostgreSQL's, and all others'."""

Means = Mapping[tuple[str, str], float]
"""(metric, instance) -> its mean over the measure phase, hosts added up."""


def replayed(
    counts: Mapping[str, int], params: Mapping[str, Any], length_s: float, means: Means
) -> dict[str, float]:
    """Its figures.

    Args:
        counts: operation -> how many were ok in the measure phase.
        params: of the scenario.
        length_s: how long the measure phase was.
        means: what collectors measured of the database's hosts.
    """
    writes = sum(count for name, count in counts.items() if name in _ROWS_OF)
    reads = sum(counts.values()) - writes
    if not writes + reads or length_s <= 0:
        return {}
    writes_per_s, reads_per_s = writes / length_s, reads / length_s
    found = {WRITES_PER_S: writes_per_s, READS_PER_S: reads_per_s}
    if writes:
        found[READS_PER_WRITE] = reads / writes
        rows = [(count, _rows_of(name, params)) for name, count in counts.items() if name in _ROWS_OF]
        if all(each is not None for _, each in rows):
            found[ROWS_PER_WRITE] = sum(count * (each or 0) for count, each in rows) / writes
    return found | _of_server(means, writes_per_s, reads_per_s) | _of_disks(means)


def _rows_of(operation: str, params: Mapping[str, Any]) -> int | None:
    """The rows that one operation writes; None where the plan leaves them to a default."""
    rows = _ROWS_OF[operation]
    return params.get(rows) if isinstance(rows, str) else rows


def _of_server(means: Means, writes_per_s: float, reads_per_s: float) -> dict[str, float]:
    """What the database server itself counted."""
    operations_per_s = writes_per_s + reads_per_s
    log_writes, log_bytes, log_s = (
        _first(means, f"db.{name}", _LOGS) for name in ("writes_per_s", "write_bytes_per_s", "write_s_per_s")
    )
    reads, read_bytes, read_s, data_writes, data_bytes = (
        means.get((f"db.{name}_per_s", "data"))
        for name in ("reads", "read_bytes", "read_s", "writes", "write_bytes")
    )
    return _ratios(
        {
            PAGE_READS_PER_OPERATION: (reads, operations_per_s),
            TEMP_BYTES_PER_OPERATION: (means.get(("db.temp_bytes_per_s", "")), operations_per_s),
            LOG_BYTES_PER_WRITE: (means.get(("db.wal_bytes_per_s", "")), writes_per_s),
            LOG_WRITE_BYTES: (log_bytes, log_writes),
            LOG_IOS_PER_WRITE: (log_writes, writes_per_s),
            LOG_DISK_BYTES_PER_WRITE: (log_bytes, writes_per_s),
            LOG_WRITE_LATENCY_S: (log_s, log_writes),
            DATA_READ_BYTES: (read_bytes, reads),
            DATA_WRITE_BYTES: (data_bytes, data_writes),
            DATA_READS_PER_DATA_WRITE: (reads, data_writes),
            DATA_READ_LATENCY_S: (read_s, reads),
            LOG_WAIT_S: (_waits(means, "wait_s", LOG_WAITS), _waits(means, "waits", LOG_WAITS)),
            DATA_WAIT_S: (_waits(means, "wait_s", DATA_WAITS), _waits(means, "waits", DATA_WAITS)),
        }
    )


def _of_disks(means: Means) -> dict[str, float]:
    """What the hosts' disks did, all together."""
    reads, writes, read_bytes, write_bytes = (
        _over_instances(means, f"disk.{name}_per_s")
        for name in ("reads", "writes", "read_bytes", "write_bytes")
    )
    both = [
        None if None in pair else sum(each or 0.0 for each in pair)
        for pair in ((read_bytes, write_bytes), (reads, writes))
    ]
    return _ratios(
        {
            DISK_READ_BYTES: (read_bytes, reads),
            DISK_WRITE_BYTES: (write_bytes, writes),
            DISK_IO_BYTES: (both[0], both[1]),
        }
    )


def _ratios(parts: Mapping[str, tuple[float | None, float | None]]) -> dict[str, float]:
    """Of what did not happen, or was not measured, there is no ratio."""
    return {name: amount / count for name, (amount, count) in parts.items() if amount is not None and count}


def _first(means: Means, metric: str, instances: Sequence[str]) -> float | None:
    return next((means[metric, each] for each in instances if (metric, each) in means), None)


def _waits(means: Means, name: str, begins: str) -> float | None:
    return _over_instances(means, f"db.{name}_per_s", begins)


def _over_instances(means: Means, metric: str, begins: str = "") -> float | None:
    several = [
        mean for (name, instance), mean in means.items() if name == metric and instance.startswith(begins)
    ]
    return sum(several) if several else None
