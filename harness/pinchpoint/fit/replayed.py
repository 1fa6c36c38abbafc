"""Computes the figures of a run that replayed a fitted plan, to compare them with production."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.base.objects import JsonObject
from pinchpoint.fit.figures import COUNTED, WAITED, ratios
from pinchpoint.fit.rates import Rate, bursts
from pinchpoint.plan.production import (
    READS_PER_S,
    READS_PER_WRITE,
    RECORD_BASE_PER_S,
    RECORD_BURST_EVERY_S,
    RECORD_DURABLE_RATIO,
    RECORD_EXPIRING_RATIO,
    RECORD_INSERT_RATIO,
    RECORD_LOG_BYTES_PER_WRITE,
    RECORD_PEAK_PER_S,
    RECORD_READS_PER_S,
    RECORD_READS_PER_WRITE,
    RECORD_RECEIVED_BYTES,
    RECORD_SERVER_S,
    RECORD_WRITES_PER_S,
    ROWS_PER_WRITE,
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
"""Writing operation -> rows per operation, or the parameter with the number of rows."""
_LOGS = ("wal", "log")
"""Instance names of the log: of PostgreSQL, and of all other servers."""

Means = Mapping[tuple[str, str], float]
"""(metric, instance) -> mean over the measure phase, summed over hosts."""


def replayed(
    counts: Mapping[str, int], params: JsonObject, length_s: float, means: Means
) -> dict[str, float]:
    """The figures of a run, computed like production's figures.

    Args:
        counts: operation -> number of successes in the measure phase.
        params: parameters of the scenario.
        length_s: length of the measure phase in seconds.
        means: means of the metrics of the database's hosts.
    """
    writes = sum(count for name, count in counts.items() if name in _ROWS_OF)
    reads = sum(counts.values()) - writes
    if not writes + reads or length_s <= 0:
        return {}
    writes_per_s, reads_per_s = writes / length_s, reads / length_s
    result = {WRITES_PER_S: writes_per_s, READS_PER_S: reads_per_s}
    if writes:
        result[READS_PER_WRITE] = reads / writes
        rows = [(count, _rows_of(name, params)) for name, count in counts.items() if name in _ROWS_OF]
        if all(each is not None for _, each in rows):
            result[ROWS_PER_WRITE] = sum(count * (each or 0) for count, each in rows) / writes
    return result | _of_server(means, writes_per_s, reads_per_s)


def _rows_of(operation: str, params: JsonObject) -> int | None:
    """Rows that one operation writes; None if the plan uses a default."""
    rows = _ROWS_OF[operation]
    return params.get(rows) if isinstance(rows, str) else rows


def _of_server(means: Means, writes_per_s: float, reads_per_s: float) -> dict[str, float]:
    """The figures from the database server's counters and from the sum over its hosts' disks."""
    amounts = {
        "writes": writes_per_s,
        "operations": writes_per_s + reads_per_s,
        "temp_bytes": means.get(("db.temp_bytes_per_s", "")),
        "wal_bytes": means.get(("db.wal_bytes_per_s", "")),
    }
    for name in COUNTED:
        amounts[f"log.{name}"] = _first(means, f"db.{name}_per_s", _LOGS)
        amounts[f"data.{name}"] = means.get((f"db.{name}_per_s", "data"))
        amounts[f"disk.{name}"] = _over_instances(means, f"disk.{name}_per_s")
    for name, both in (("bytes", ("read_bytes", "write_bytes")), ("ios", ("reads", "writes"))):
        one, other = (amounts[f"disk.{each}"] for each in both)
        amounts[f"disk.{name}"] = None if one is None or other is None else one + other
    for what, begins in WAITED.items():
        for name in ("wait_s", "waits"):
            amounts[f"{what}.{name}"] = _over_instances(means, f"db.{name}_per_s", begins)
    return {one.figure: value for one, value in ratios(amounts)}


def _first(means: Means, metric: str, instances: Sequence[str]) -> float | None:
    return next((means[metric, each] for each in instances if (metric, each) in means), None)


def _over_instances(means: Means, metric: str, begins: str = "") -> float | None:
    several = [
        mean for (name, instance), mean in means.items() if name == metric and instance.startswith(begins)
    ]
    return sum(several) if several else None


RECORDS_USE = "nosql-burst"
_WRITING = ("insert", "update", "read_modify_write")
_READING = ("read", "read_modify_write")
_RECORD_LOGS = ("db.aof.bytes_per_s", "db.journal.bytes_per_s")
_NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class ScenarioDone:
    """The work of one scenario in the measure phase.

    Attributes:
        counts: operation -> number of successes.
        params: parameters of the scenario.
        said: the settings that the store reported at the start of the run (``endpoints`` of manifest.json).
    """

    counts: Mapping[str, int]
    params: JsonObject
    said: JsonObject

    @property
    def writes(self) -> int:
        """Number of records written."""
        batch = int(self.params.get("batch") or 1)
        return batch * sum(self.counts.get(name, 0) for name in _WRITING)

    @property
    def reads(self) -> int:
        """Number of records read."""
        return sum(self.counts.get(name, 0) for name in _READING)


def replayed_records(
    done: Sequence[ScenarioDone], length_s: float, means: Means, seconds: Iterable[Rate]
) -> dict[str, float]:
    """The figures of a run, computed like production's figures.

    Args:
        done: the work of each scenario of nosql-burst.
        length_s: length of the measure phase in seconds.
        means: means of the metrics of the store's hosts.
        seconds: operations per second of all scenarios together, for each second.
    """
    writes, reads = sum(each.writes for each in done), sum(each.reads for each in done)
    if not writes + reads or length_s <= 0:
        return {}
    result = {RECORD_WRITES_PER_S: writes / length_s, RECORD_READS_PER_S: reads / length_s}
    if writes:
        inserts = sum(int(each.params.get("batch") or 1) * each.counts.get("insert", 0) for each in done)
        expiring = sum(each.writes for each in done if each.params.get("ttl"))
        result |= {
            RECORD_READS_PER_WRITE: reads / writes,
            RECORD_INSERT_RATIO: inserts / writes,
            RECORD_EXPIRING_RATIO: expiring / writes,
        }
    log_bytes = next((means[metric, ""] for metric in _RECORD_LOGS if (metric, "") in means), None)
    if log_bytes is not None and writes:
        result[RECORD_LOG_BYTES_PER_WRITE] = log_bytes * length_s / writes
    for name, metric in (
        (RECORD_RECEIVED_BYTES, "db.received_bytes_per_s"),
        (RECORD_SERVER_S, "db.main_thread.commands_ratio"),
    ):
        if (metric, "") in means:
            result[name] = means[metric, ""] * length_s / (writes + reads)
    return result | _shape(seconds) | _durability(done)


def _shape(seconds: Iterable[Rate]) -> dict[str, float]:
    """The bursts of a run, detected like production's bursts."""
    rates = list(seconds)
    length_s = sum(rate.interval_s for rate in rates)
    shape = bursts(rates)
    if shape is None or not length_s:
        return {}
    mean = sum(rate.per_s * rate.interval_s for rate in rates) / length_s
    return {
        RECORD_BASE_PER_S: mean * shape.base_ratio,
        RECORD_PEAK_PER_S: mean * shape.peak_ratio,
        RECORD_BURST_EVERY_S: shape.every_s,
    }


def _durability(done: Sequence[ScenarioDone]) -> dict[str, float]:
    """1 if no store has a durability warning, else 0; empty if a store does not report its settings."""
    known = [each.said for each in done if each.said]
    if not known or any(_NOT_KNOWN in (said.get("settings") or {}).values() for said in known):
        return {}
    return {RECORD_DURABLE_RATIO: float(not any(said.get("warnings") for said in known))}
