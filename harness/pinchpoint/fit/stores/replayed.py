"""The figures of a run of nosql-burst, as production's are reckoned; what was not measured is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.fit.replayed import Means
from pinchpoint.fit.shape import Rate, bursts
from pinchpoint.plan.production import (
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
)

USE = "nosql-burst"
_WRITING = ("insert", "update", "read_modify_write")
_READING = ("read", "read_modify_write")
_LOGS = ("db.aof.bytes_per_s", "db.journal.bytes_per_s")
_NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Done:
    """What one scenario did in the measure phase.

    Attributes:
        counts: operation -> how many were ok.
        params: of the scenario.
        said: what its store said of itself when the run began (manifest.json, ``endpoints``).
    """

    counts: Mapping[str, int]
    params: Mapping[str, Any]
    said: Mapping[str, Any]

    @property
    def writes(self) -> int:
        """Records written."""
        batch = int(self.params.get("batch") or 1)
        return batch * sum(self.counts.get(name, 0) for name in _WRITING)

    @property
    def reads(self) -> int:
        """Records read."""
        return sum(self.counts.get(name, 0) for name in _READING)


def replayed(
    done: Sequence[Done], length_s: float, means: Means, seconds: Iterable[Rate]
) -> dict[str, float]:
    """Its figures.

    Args:
        done: each scenario of nosql-burst.
        length_s: how long the measure phase was.
        means: what collectors measured of the store's hosts.
        seconds: operations of all of them by the second.
    """
    writes, reads = sum(each.writes for each in done), sum(each.reads for each in done)
    if not writes + reads or length_s <= 0:
        return {}
    found = {RECORD_WRITES_PER_S: writes / length_s, RECORD_READS_PER_S: reads / length_s}
    if writes:
        inserts = sum(int(each.params.get("batch") or 1) * each.counts.get("insert", 0) for each in done)
        expiring = sum(each.writes for each in done if each.params.get("ttl"))
        found |= {
            RECORD_READS_PER_WRITE: reads / writes,
            RECORD_INSERT_RATIO: inserts / writes,
            RECORD_EXPIRING_RATIO: expiring / writes,
        }
    log_bytes = next((means[metric, ""] for metric in _LOGS if (metric, "") in means), None)
    if log_bytes is not None and writes:
        found[RECORD_LOG_BYTES_PER_WRITE] = log_bytes * length_s / writes
    for name, metric in (
        (RECORD_RECEIVED_BYTES, "db.received_bytes_per_s"),
        (RECORD_SERVER_S, "db.main_thread.commands_ratio"),
    ):
        if (metric, "") in means:
            found[name] = means[metric, ""] * length_s / (writes + reads)
    return found | _shape(seconds) | _durability(done)


def _shape(seconds: Iterable[Rate]) -> dict[str, float]:
    """Its bursts, found as production's are."""
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


def _durability(done: Sequence[Done]) -> dict[str, float]:
    """1 where no store had anything to warn of; nothing where one does not tell."""
    told = [each.said for each in done if each.said]
    if not told or any(_NOT_KNOWN in (said.get("settings") or {}).values() for said in told):
        return {}
    return {RECORD_DURABLE_RATIO: float(not any(said.get("warnings") for said in told))}
