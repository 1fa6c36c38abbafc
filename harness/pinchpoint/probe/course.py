"""How a disk went over the time of a probe: credits that ran out, warming up, answers from somebody's memory.

What is outstanding is held by the probe, so a rate that changes is the disk's. The course of one cell is that
of its seconds, repetition after repetition; that of the probe the figures of all repetitions in the order in
which they were made, each as a share of its cell's mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy  # which loads its parts when they are used: most reports need none

from pinchpoint.analysis.changes import find_shift
from pinchpoint.analysis.drift import PARTS
from pinchpoint.analysis.thresholds import DISK_SHIFT, DRIFTS, FLAT, MIN_SAMPLES
from pinchpoint.data.series import Floats
from pinchpoint.probe.falls import held_from, level_of
from pinchpoint.probe.record import Probe, Trial
from pinchpoint_scenarios.storage_probe import Cell

LEAST_TRIALS = 8
"""Fewer repetitions have no trend that could be told from chance (Kendall's tau, p < .01)."""
LEAST_FALLS = 3
"""So many repetitions that fall to one level and hold it are no chance (our value)."""
LEAST_APART = 5
"""Of so many the first may stand apart: further from all others than they from each other (our value)."""
SLOWEST_RATIO = 10.0
"""An outlier is a step with ten times the usual latency (our value)."""

Move = Literal["fell", "rose", "steady", "unsteady"]
OVER_TIME: Mapping[str, str] = {"fell": "disk_burst_exhausted", "rose": "disk_warm_up"}
"""What a disk is called that went so."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a figure went.

    Attributes:
        move: ``fell`` and held there, ``rose``, ``steady``; ``unsteady``: it fell and did not hold.
        before: figure before the change, or at first.
        after: after it, or at last.
        at_s: seconds of measuring until then, of each repetition that fell where several did; None where
            repetitions were compared.
        at_trial: the repetition in or after which it changed; None where seconds were compared.
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
    """Steps that took far longer than usual.

    Attributes:
        count: how many.
        of: of so many.
        usual_s: the median latency.
        longest_s: the highest of the steps' means.
    """

    count: int
    of: int
    usual_s: float
    longest_s: float


def of_cell(trials: Sequence[Trial]) -> Change | None:
    """How one cell went; None where too little was measured to tell."""
    done = [trial for trial in trials if trial.failed is None]
    anew = _anew(done)
    if anew is not None:
        return anew
    by_trials = _of_trials(np.array([one.figure for one in done if one.figure is not None], dtype=float))
    steps = [(one.number, value) for one in done if one.series for value in one.series.iops]
    if len(steps) < MIN_SAMPLES.value:
        return by_trials
    step_s = next(one.series.step_s for one in done if one.series)
    found = _of_steps(np.array([value for _, value in steps]), step_s)
    if found.move == "steady":
        # A first repetition that stands apart is too short a level for a test of levels.
        return by_trials if by_trials and by_trials.move != "steady" else found
    if len(done) == 1 or found.at_s is None:
        return found
    return replace(found, at_s=None, at_trial=steps[round(found.at_s / step_s)][0])


def of_group(probe: Probe, cells: Sequence[Cell]) -> Change | None:
    """How several cells went: as the first that moved did, else as all of them together."""
    each = [of_cell(probe.cells[cell]) for cell in cells]
    moved = [one for one in each if one is not None and one.move in ("fell", "rose")]
    return moved[0] if moved else of_probe(probe, cells)


def of_probe(probe: Probe, cells: Sequence[Cell]) -> Change | None:
    """How several cells together went from repetition to repetition, each a share of its own mean.

    A cell that was measured once says nothing of time. None where too little was measured to tell.
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
    shift = find_shift(values) if len(rows) >= MIN_SAMPLES.value else None
    if shift is None or not shift.before or abs(shift.after / shift.before - 1) < DISK_SHIFT.value:
        return _of_trials(np.array([float(np.mean(by_trial[number])) for number in sorted(by_trial)]))
    number = rows[shift.at][0]
    how = f"a change of level over {len(rows)} steps of all repetitions (CUSUM, block bootstrap, p < .05)"
    move: Move = "rose"
    if shift.after < shift.before:
        held = [_held(probe.cells[cell], number) for cell in cells]
        move = "fell" if sum(held) * 2 > len(held) else "unsteady"
    return Change(move, shift.before, shift.after, None, number, how)


def _held(trials: Sequence[Trial], after: int) -> bool:
    """Whether the repetitions after that one stand at one level."""
    values = [one.figure for one in trials if one.failed is None and one.figure and one.number > after]
    return bool(values) and (max(values) - min(values)) / 2 <= FLAT.value * float(np.median(values))


def outliers(trials: Sequence[Trial]) -> Outliers | None:
    """Steps with ten times the usual latency; None where no course was kept."""
    steps = [value for one in trials if one.series for value in one.series.latency_s if value is not None]
    if len(steps) < MIN_SAMPLES.value:
        return None
    usual = float(np.median(steps))
    many = sum(value >= SLOWEST_RATIO * usual for value in steps)
    return Outliers(many, len(steps), usual, max(steps))


def _anew(done: Sequence[Trial]) -> Change | None:
    """Repetitions that begin higher and fall to one level, which holds half of them; None where they do not.

    What was allowed on credits is used up in each, and some of it is back when the next begins.
    """
    found = [(one, held_from(one)) for one in done]
    falls = [(one, at) for one, at in found if at and one.series and at <= len(one.series.iops) // 2]
    if len(falls) < max(LEAST_FALLS, len(done) / 2):
        return None
    after = np.array([level_of(one, at) for one, at in falls])
    level = float(np.median(after))
    if (np.abs(after / level - 1) > FLAT.value).any():
        return None
    before = float(np.median([one.series.iops[0] for one, _ in falls if one.series]))
    at_s = float(np.median([at * one.series.step_s for one, at in falls if one.series]))
    how = f"{len(falls)} of {len(done)} repetitions fall to one level (within 3 %) and begin higher again"
    return Change("fell", before, level, at_s, None, how)


def _of_steps(values: Floats, step_s: float) -> Change:
    """A change of level, else a trend over ten parts."""
    shift = find_shift(values)
    if shift and shift.before and abs(shift.after / shift.before - 1) >= DISK_SHIFT.value:
        how = f"a change of level over {len(values)} steps of {step_s:g} s (CUSUM, block bootstrap, p < .05)"
        move = _move(values[shift.at :], shift.before, shift.after)
        return Change(move, shift.before, shift.after, shift.at * step_s, None, how)
    parts = np.array([float(part.mean()) for part in np.array_split(values, PARTS)])
    return _trend(parts, f"{PARTS} parts of {len(values)} steps of {step_s:g} s")


def _of_trials(values: Floats) -> Change | None:
    """Of a few figures: the first that stands apart, or a trend."""
    if len(values) < LEAST_APART:
        return None
    first, rest = float(values[0]), values[1:]
    middle = float(np.median(rest))
    apart = float(np.abs(rest - first).min())
    if apart >= DISK_SHIFT.value * middle and apart > np.ptp(rest):
        how = f"the first of {len(values)} repetitions stands apart from all the others"
        move: Move = "rose" if middle > first else _move(rest, first, middle)
        return Change(move, first, middle, None, 1, how)
    if len(values) < LEAST_TRIALS:
        return None
    return _trend(values, f"{len(values)} repetitions")


def _trend(values: Floats, over: str) -> Change:
    """Whether values stand in order beyond chance, and the last third differs by a fifth from the first."""
    tau, p = scipy.stats.kendalltau(np.arange(len(values)), values) if np.ptp(values) else (0.0, 1.0)
    third = max(1, len(values) // 3)
    begin, end = float(values[:third].mean()), float(values[-third:].mean())
    how = f"a trend over {over} (Kendall's tau {tau:.2f}, p {p:.3f})"
    if p >= DRIFTS.value or not begin or abs(end / begin - 1) < DISK_SHIFT.value:
        return Change("steady", begin, end, None, None, how)
    return Change("rose" if tau > 0 else "unsteady", begin, end, None, None, how)


def _move(after: Floats, before_level: float, after_level: float) -> Move:
    """A lower level that holds is one that somebody set; what goes on falling, or swings, is not."""
    if after_level > before_level:
        return "rose"
    low, high = np.quantile(after, [1 / 6, 5 / 6])
    return "fell" if (high - low) / 2 <= FLAT.value * after_level else "unsteady"
