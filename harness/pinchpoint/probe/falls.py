"""Falls to a lower level that holds, while a suite goes on: credits that are used up.

Within a repetition, where they have come back before the next; and between two measurements of one workload,
where every measurement that follows, of whatever workload, stands at the lower level or below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.movement import COUNTED
from pinchpoint.analysis.thresholds import DISK_SHIFT, FLAT
from pinchpoint.data.inputs import Limits
from pinchpoint.data.series import Floats
from pinchpoint.probe.record import Trial
from pinchpoint_scenarios.storage_probe import Cell

LEAST_STEPS = 5
"""Fewer steps of a repetition show no level (our value)."""
LEAST_AT = 5
"""A level that nothing exceeds is one where so many measurements stand at it (our value)."""
WORKLOADS = 2
"""So many workloads must share it: what one alone falls to may be the device's (our value)."""
Trials = Mapping[Cell, Sequence[Trial]]


@dataclass(frozen=True, slots=True)
class Fall:
    """The level fell between two measurements of one workload, and nothing exceeded it from then on.

    Attributes:
        started: UTC begin of the first measurement at the lower level.
        name: ``iops`` or ``bytes_per_s``.
        before: the highest rate of those workloads until then.
        after: the lower level.
        workloads: which did more before, with as much or less outstanding.
        how: the test, in words.
    """

    started: str
    name: str
    before: float
    after: float
    workloads: tuple[str, ...]
    how: str

    @property
    def limits(self) -> Limits:
        """What held until then, as far as it was reached."""
        iops, size = (self.before if self.name == name else None for name in ("iops", "bytes_per_s"))
        return Limits(iops, size, None)


def held_from(trial: Trial) -> int | None:
    """The step from which on a repetition holds a lower level than at first; None where it did not fall."""
    values = _steps(trial)
    if len(values) < LEAST_STEPS or trial.series is None:
        return None
    for first in range(1, len(values) - 1):
        level = float(np.median(values[first:]))
        if not level or values[0] < level * (1 + DISK_SHIFT.value):
            return None
        apart = np.abs(values[first:] / level - 1) > _allowed(level * trial.series.step_s)
        if not apart.any():
            return first if values[:first].min() > level else None
    return None


def level_of(trial: Trial, first: int) -> float:
    """I/Os per second from that step on."""
    return float(np.median(_steps(trial)[first:]))


def cut(trial: Trial, first: int) -> Trial:
    """What a repetition measured from that step on; its histogram, which is of all steps, is left out."""
    series = trial.series
    if series is None or not trial.iops:
        return trial
    later = replace(series, iops=series.iops[first:], latency_s=series.latency_s[first:])
    share = float(np.mean(later.iops)) / trial.iops
    known = [(one, rate) for one, rate in zip(later.latency_s, later.iops, strict=True) if one is not None]
    weight = sum(rate for _, rate in known)
    return replace(
        trial,
        seconds=len(later.iops) * series.step_s,
        reads_per_s=_times(trial.reads_per_s, share),
        writes_per_s=_times(trial.writes_per_s, share),
        read_bytes_per_s=_times(trial.read_bytes_per_s, share),
        write_bytes_per_s=_times(trial.write_bytes_per_s, share),
        latency=None,
        mean_s=sum(one * rate for one, rate in known) / weight if weight else None,
        series=later,
    )


def fallen(trial: Trial) -> Trial:
    """The part after its fall; all of it where it did not fall."""
    first = held_from(trial)
    return trial if first is None else cut(trial, first)


def between(cells: Trials) -> Fall | None:
    """The first fall that everything measured afterwards confirms; None where there was none."""
    return next(filter(None, (_between(cells, name) for name in ("iops", "bytes_per_s"))), None)


def _between(cells: Trials, name: str) -> Fall | None:
    rows = sorted(_rows(cells, name), key=lambda row: row[0].started)
    rates = np.array([rate for *_, rate in rows])
    highest_from = np.maximum.accumulate(rates[::-1])[::-1]
    for at, (trial, _, level) in enumerate(rows):
        if highest_from[at] > level * (1 + FLAT.value):
            continue
        there = [
            cell
            for _, cell, rate in rows[at:]
            if (cell.outstanding or 0) > 1 and rate >= level * (1 - FLAT.value)
        ]
        did_more = _did_more(rows[:at], rows[at:], level)
        if did_more and len(there) >= LEAST_AT and len({cell.workload for cell in there}) >= WORKLOADS:
            many = f"{len(there)} measurements of {len({cell.workload for cell in there})} workloads"
            how = f"from then on {many} stand at one level (within 3 %), and nothing exceeded it"
            return Fall(trial.started, name, max(did_more.values()), level, tuple(did_more), how)
    return None


def _rows(cells: Trials, name: str) -> Iterator[tuple[Trial, Cell, float]]:
    for cell, trials in cells.items():
        for trial in trials:
            rate = None if trial.failed else getattr(fallen(trial), name)
            if rate:
                yield trial, cell, rate


def _did_more(
    before: Sequence[tuple[Trial, Cell, float]], after: Sequence[tuple[Trial, Cell, float]], level: float
) -> dict[str, float]:
    """Workload -> its highest rate before, of those that did more then, with no more outstanding."""
    deepest: dict[str, int] = {}
    for _, cell, rate in after:
        if cell.outstanding and rate >= level * (1 - FLAT.value):
            deepest[cell.workload] = max(deepest.get(cell.workload, 0), cell.outstanding)
    found: dict[str, float] = {}
    for _, cell, rate in before:
        shallower = (cell.outstanding or 0) <= deepest.get(cell.workload, -1)
        if shallower and rate >= level * (1 + DISK_SHIFT.value):
            found[cell.workload] = max(found.get(cell.workload, 0.0), rate)
    return found


def _steps(trial: Trial) -> Floats:
    return np.array(trial.series.iops if trial.series else (), dtype=float)


def _allowed(count: float) -> float:
    """How far a step may be from its level: as a regulator's, or as counting whole I/Os makes it."""
    return max(FLAT.value, COUNTED / count)


def _times(value: float | None, factor: float) -> float | None:
    return value and value * factor
