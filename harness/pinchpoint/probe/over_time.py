"""Finds changes over the time of a probe: spent burst credits, warm-up, a cache on the host.

The probe keeps the queue depth constant, so a change of the rate is caused by the disk. The course of a cell
is the rate of its seconds, repetition after repetition. The course of the probe is the figures of all
repetitions in order of time, each divided by the mean of its cell.

A lasting fall happens within a repetition, if credits return before the next one; or between two measurements
of a workload, if every later measurement of any workload is at the lower level or below it. Caps are computed
from the measurements after the fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pinchpoint.analysis.drift import PARTS
from pinchpoint.analysis.resources.disk.rate_response import COUNTED
from pinchpoint.analysis.thresholds import DISK_SHIFT, DRIFTS, FLAT, LEVEL_SHIFT, MIN_SAMPLES
from pinchpoint.data import changes
from pinchpoint.data.inputs import Limits
from pinchpoint.data.series import Floats
from pinchpoint.probe.record import Probe, Trial
from pinchpoint_scenarios.storage_probe import Cell

LEAST_STEPS = 5
"""Fewest steps of a repetition that show a level (design value)."""
LEAST_AT = 5
"""Measurements that must be at a level that no measurement exceeds (design value)."""
WORKLOADS = 2
"""Workloads that must share the lower level, because a device can slow down a single workload (design
value)."""
Trials = Mapping[Cell, Sequence[Trial]]


@dataclass(frozen=True, slots=True)
class Fall:
    """A fall between two measurements of one workload, after which no measurement exceeded the lower level.

    Attributes:
        started: UTC start of the first measurement at the lower level.
        name: ``iops`` or ``bytes_per_s``.
        before: the highest rate of ``workloads`` before the fall.
        after: the rate after the fall.
        workloads: the workloads with a higher rate before the fall, at the same or a lower queue depth.
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
        """The rate before the fall as ``Limits``."""
        iops, size = (self.before if self.name == name else None for name in ("iops", "bytes_per_s"))
        return Limits(iops, size, None)


def held_from(trial: Trial) -> int | None:
    """The first step of the lower, constant level of a repetition; None if the rate did not fall."""
    values = _rates(trial)
    if len(values) < LEAST_STEPS or trial.series is None:
        return None
    step_s = trial.series.step_s
    # The tolerance of a step: that of a regulator, or the error from counting whole I/Os.
    return changes.held_from(
        values,
        smallest=DISK_SHIFT.value,
        within=lambda level: max(FLAT.value, COUNTED / (level * step_s)),
    )


def level_of(trial: Trial, first: int) -> float:
    """The median I/Os per second from step ``first`` on."""
    return float(np.median(_rates(trial)[first:]))


def cut(trial: Trial, first: int) -> Trial:
    """The part of a repetition from step ``first`` on, without the histogram, which covers all steps."""
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
    """The part of a repetition after its fall; the whole repetition if its rate did not fall."""
    first = held_from(trial)
    return trial if first is None else cut(trial, first)


def between(cells: Trials) -> Fall | None:
    """The first fall that all later measurements confirm; None if there is none."""
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
            how = f"from then on {many} stay at one level (within 3 %) and none exceeds it"
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
    """Workload -> its highest rate before the fall, if above the level at no higher queue depth."""
    deepest: dict[str, int] = {}
    for _, cell, rate in after:
        if cell.outstanding and rate >= level * (1 - FLAT.value):
            deepest[cell.workload] = max(deepest.get(cell.workload, 0), cell.outstanding)
    result: dict[str, float] = {}
    for _, cell, rate in before:
        shallower = (cell.outstanding or 0) <= deepest.get(cell.workload, -1)
        if shallower and rate >= level * (1 + DISK_SHIFT.value):
            result[cell.workload] = max(result.get(cell.workload, 0.0), rate)
    return result


def _rates(trial: Trial) -> Floats:
    return np.array(trial.series.iops if trial.series else (), dtype=float)


def _times(value: float | None, factor: float) -> float | None:
    return value and value * factor


LEAST_TRIALS = 8
"""Fewest repetitions whose trend can be distinguished from chance (Kendall's tau, p < 0.01)."""
LEAST_FALLS = 3
"""Repetitions with a fall to the same level that are not chance (design value)."""
LEAST_APART = 5
"""Fewest repetitions of which the first can be an outlier, further from all others than they from each other
(design value)."""
SLOWEST_RATIO = 10.0
"""A step is an outlier if its latency is this many times the median (design value)."""

Move = Literal["fell", "rose", "steady", "unsteady"]
OVER_TIME: Mapping[str, str] = {"fell": "disk_burst_exhausted", "rose": "disk_warm_up"}
"""Move of a rate -> kind of finding."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """The change of a figure over time.

    Attributes:
        move: ``fell`` (to a constant level), ``rose``, ``steady``, or ``unsteady`` (fell without a constant
            level).
        before: the figure before the change, or at the start.
        after: the figure after the change, or at the end.
        at_s: seconds of measurement before the change, of each repetition if several fell; None if
            repetitions were compared.
        at_trial: the repetition in or after which the figure changed; None if seconds were compared.
        how: the test, in words.
    """

    move: Move
    before: float
    after: float
    at_s: float | None
    at_trial: int | None
    how: str


@dataclass(frozen=True, slots=True)
class Outliers:
    """Steps with a latency far above the median.

    Attributes:
        count: number of outlier steps.
        of: number of all steps.
        usual_s: the median latency of a step, in seconds.
        longest_s: the highest latency of a step, in seconds; a step's latency is the mean of its I/Os.
    """

    count: int
    of: int
    usual_s: float
    longest_s: float


def of_cell(trials: Sequence[Trial]) -> RateChange | None:
    """The change of one cell over time; None if too little was measured."""
    done = [trial for trial in trials if trial.failed is None]
    anew = _anew(done)
    if anew is not None:
        return anew
    by_trials = _of_trials(np.array([one.figure for one in done if one.figure is not None], dtype=float))
    steps = [(one.number, value) for one in done if one.series for value in one.series.iops]
    if len(steps) < MIN_SAMPLES.value:
        return by_trials
    step_s = next(one.series.step_s for one in done if one.series)
    change = _of_steps(np.array([value for _, value in steps]), step_s)
    if change.move == "steady":
        # A single first repetition is too short a level for the test of levels.
        return by_trials if by_trials and by_trials.move != "steady" else change
    if len(done) == 1 or change.at_s is None:
        return change
    return replace(change, at_s=None, at_trial=steps[round(change.at_s / step_s)][0])


def of_group(probe: Probe, cells: Sequence[Cell]) -> RateChange | None:
    """The change of several cells: the first cell that fell or rose, else all cells together."""
    each = [of_cell(probe.cells[cell]) for cell in cells]
    moved = [one for one in each if one is not None and one.move in ("fell", "rose")]
    return moved[0] if moved else of_probe(probe, cells)


def of_probe(probe: Probe, cells: Sequence[Cell]) -> RateChange | None:
    """The change of several cells together over the repetitions, each figure divided by its cell's mean.

    A cell with one repetition is left out. None if too little was measured.
    """
    rows: list[tuple[int, float]] = []
    by_trial: dict[int, list[float]] = {}
    for cell in cells:
        known = [one for one in probe.cells[cell] if one.failed is None and one.figure]
        mean = sum(one.figure or 0.0 for one in known) / len(known) if known else 0.0
        for one in known if len(known) > 1 else []:
            by_trial.setdefault(one.number, []).append((one.figure or 0.0) / mean)
            steps = one.series.iops if one.series and one.iops else ()
            rows += [(one.number, value / mean) for value in steps]
    rows.sort(key=lambda row: row[0])
    values = np.array([value for _, value in rows])
    shift = _shift(values)
    if shift is None or not shift.before or abs(shift.after / shift.before - 1) < DISK_SHIFT.value:
        return _of_trials(np.array([float(np.mean(by_trial[number])) for number in sorted(by_trial)]))
    number = rows[shift.at][0]
    how = f"a change of level over {len(rows)} steps of all repetitions (CUSUM, block bootstrap, p < .05)"
    move: Move = "rose"
    if shift.after < shift.before:
        held = [_held(probe.cells[cell], number) for cell in cells]
        move = "fell" if sum(held) * 2 > len(held) else "unsteady"
    return RateChange(move, shift.before, shift.after, None, number, how)


def _held(trials: Sequence[Trial], after: int) -> bool:
    """Whether the repetitions after number ``after`` are at one level."""
    values = [one.figure for one in trials if one.failed is None and one.figure and one.number > after]
    return bool(values) and (max(values) - min(values)) / 2 <= FLAT.value * float(np.median(values))


def outliers(trials: Sequence[Trial]) -> Outliers | None:
    """Steps with at least ten times the median latency; None if there are too few steps."""
    steps = [value for one in trials if one.series for value in one.series.latency_s if value is not None]
    if len(steps) < MIN_SAMPLES.value:
        return None
    usual = float(np.median(steps))
    many = sum(value >= SLOWEST_RATIO * usual for value in steps)
    return Outliers(many, len(steps), usual, max(steps))


def _anew(done: Sequence[Trial]) -> RateChange | None:
    """Repetitions that start higher and fall to one level; None if fewer than half of them do.

    Each repetition spends its burst credits, and some credits return before the next one starts.
    """
    result = [(one, held_from(one)) for one in done]
    falls = [(one, at) for one, at in result if at and one.series and at <= len(one.series.iops) // 2]
    if len(falls) < max(LEAST_FALLS, len(done) / 2):
        return None
    after = np.array([level_of(one, at) for one, at in falls])
    level = float(np.median(after))
    if (np.abs(after / level - 1) > FLAT.value).any():
        return None
    before = float(np.median([one.series.iops[0] for one, _ in falls if one.series]))
    at_s = float(np.median([at * one.series.step_s for one, at in falls if one.series]))
    how = f"{len(falls)} of {len(done)} repetitions fall to one level (within 3 %) and start higher again"
    return RateChange("fell", before, level, at_s, None, how)


def _shift(values: Floats) -> changes.Shift | None:
    return changes.find_shift(values, least=MIN_SAMPLES.value, smallest=LEVEL_SHIFT.value)


def _of_steps(values: Floats, step_s: float) -> RateChange:
    """The change of a rate over its steps: a change of level, else a trend over ten parts."""
    shift = _shift(values)
    if shift and shift.before and abs(shift.after / shift.before - 1) >= DISK_SHIFT.value:
        how = f"a change of level over {len(values)} steps of {step_s:g} s (CUSUM, block bootstrap, p < .05)"
        move = _move(values[shift.at :], shift.before, shift.after)
        return RateChange(move, shift.before, shift.after, shift.at * step_s, None, how)
    parts = np.array([float(part.mean()) for part in np.array_split(values, PARTS)])
    return _trend(parts, f"{PARTS} parts of {len(values)} steps of {step_s:g} s")


def _of_trials(values: Floats) -> RateChange | None:
    """The change of a few figures: a first figure that differs from all others, or a trend.

    The first figure differs if its ratio to the nearest other one is larger than the ratios among the others.
    """
    if len(values) < LEAST_APART:
        return None
    first, rest = float(values[0]), values[1:]
    middle = float(np.median(rest))
    near = float(np.abs(rest - first).min())
    factors = np.log(np.maximum(values, np.finfo(float).tiny))
    if near >= DISK_SHIFT.value * middle and np.abs(factors[1:] - factors[0]).min() > np.ptp(factors[1:]):
        how = f"the first of {len(values)} repetitions differs from all others"
        move: Move = "rose" if middle > first else _move(rest, first, middle)
        return RateChange(move, first, middle, None, 1, how)
    if len(values) < LEAST_TRIALS:
        return None
    return _trend(values, f"{len(values)} repetitions")


def _trend(values: Floats, over: str) -> RateChange:
    """A trend, if values are in order beyond chance and the last third differs from the first by a fifth."""
    tau, p = changes.kendall(values)
    third = max(1, len(values) // 3)
    begin, end = float(values[:third].mean()), float(values[-third:].mean())
    how = f"a trend over {over} (Kendall's tau {tau:.2f}, p {p:.3f})"
    if p >= DRIFTS.value or not begin or abs(end / begin - 1) < DISK_SHIFT.value:
        return RateChange("steady", begin, end, None, None, how)
    return RateChange("rose" if tau > 0 else "unsteady", begin, end, None, None, how)


def _move(after: Floats, before_level: float, after_level: float) -> Move:
    """The direction of a change; ``fell`` only to a constant level, because a regulator sets such a level."""
    if after_level > before_level:
        return "rose"
    low, high = np.quantile(after, [1 / 6, 5 / 6])
    return "fell" if (high - low) / 2 <= FLAT.value * after_level else "unsteady"


def settled(trials: Sequence[Trial], writes: RateChange | None, fall: Fall | None) -> Sequence[Trial]:
    """The repetitions of one cell after the change of level, each cut to the part after its own fall.

    Args:
        trials: the repetitions of the cell.
        writes: the change of all writes over the repetitions.
        fall: the fall of the whole probe; None if there was none.

    Returns:
        All repetitions if no level changed; none if the cell was measured before the fall of the probe.
    """
    own = of_cell(trials)
    if fall is not None:
        trials = [fallen(one) for one in trials if one.started >= fall.started and not one.failed]
    elif own is not None and own.move == "fell" and own.at_s is not None:
        held = own.after * (1 + FLAT.value)
        trials = [one for each in trials if (one := _part(each, own)).iops and one.iops <= held] or trials
    elif writes is not None and writes.at_trial is not None and writes.move in OVER_TIME:
        trials = [one for one in trials if one.number > writes.at_trial] or trials
    return trials


def _part(trial: Trial, change: RateChange) -> Trial:
    """A repetition after its fall: from its own steps, else cut at the time of ``change``."""
    after = fallen(trial)
    if after is trial and trial.series and change.at_s and trial.seconds and change.at_s < trial.seconds:
        return cut(trial, round(change.at_s / trial.series.step_s))
    return after
