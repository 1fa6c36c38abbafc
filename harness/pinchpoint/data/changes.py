"""Finds changes in a series: the end of a transient, levels, drift.

The change-point test is a CUSUM whose null distribution comes from a circular block bootstrap, because
neighbouring seconds resemble each other: the textbook quantiles see changes in most steady runs. How many
values it takes and which change matters, callers say: seconds, steps of a probe, and runs differ in that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # which loads its parts when they are used: most verdicts need none

from pinchpoint.data.resample import block_rows
from pinchpoint.data.series import Floats

RESAMPLES = 199
SIGNIFICANT = 0.05
BATCH = 5
SEED = 1


@dataclass(frozen=True, slots=True)
class Shift:
    """One change of level.

    Attributes:
        at: the first value of the new level.
        before: mean until then.
        after: mean from then on.
    """

    at: int
    before: float
    after: float


def mser5(series: Floats) -> int:
    """How many values to cut from the start so that the mean of the rest is known best (White 1997).

    Batches of five; at most half is cut (a minimum in the second half means that nothing was steady).
    """
    batches = series[: len(series) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    errors = [batches[cut:].var() / (len(batches) - cut) for cut in range(len(batches) // 2 + 1)]
    return int(np.argmin(errors)) * BATCH


def find_shift(
    series: Floats,
    *,
    least: float,
    smallest: float,
    edge: int = BATCH,
    alone: bool = False,
) -> Shift | None:
    """The change of level in a series without gaps, if it is significant (p < .05) and large enough.

    Args:
        series: in order of time.
        least: with fewer values there is no answer.
        smallest: the least change that counts, relative to the mean.
        edge: a level has this many values at least.
        alone: values do not resemble their neighbours (runs, not seconds): they are drawn one by one.
    """
    count = len(series)
    if count < least or series.std() == 0:
        return None
    centred = series - series.mean()
    walk = np.cumsum(centred)
    split = int(np.argmax(np.abs(walk[edge - 1 : count - edge]))) + edge
    before, after = float(series[:split].mean()), float(series[split:].mean())
    if abs(after - before) < smallest * series.mean():
        return None
    # The null keeps the shift it is to be tested for. Taking it out first (as is often done) makes a third of
    # steady runs (φ = 0.8, 120 values) look changed; with it a tenth do, and real shifts are still seen.
    random = np.random.default_rng(SEED)
    rows = random.integers(0, count, (RESAMPLES, count)) if alone else block_rows(count, RESAMPLES, random)
    drawn = centred[rows]
    drawn -= drawn.mean(axis=1, keepdims=True)
    null = np.abs(np.cumsum(drawn, axis=1)).max(axis=1)
    exceeding = int((null >= np.abs(walk).max()).sum())
    return Shift(split, before, after) if (1 + exceeding) / (1 + RESAMPLES) < SIGNIFICANT else None


def find_early_fall(series: Floats, *, least: float, smallest: float) -> Shift | None:
    """A fall in the first third that ``find_shift`` is blind to, as its sums weigh little near an end.

    Every value before is above every value after by ``smallest`` or more, except the one in which it fell;
    noise sorts so few values by their time only where there is hardly any of it. Arguments as of
    ``find_shift``.
    """
    count = len(series)
    if count < least:
        return None
    places = np.arange(BATCH, count // 3 + 1)
    sums = np.cumsum(series)
    before, after = sums[places - 1] / places, (sums[-1] - sums[places - 1]) / (count - places)
    split = int(places[np.argmax((before - after) ** 2 * places * (count - places))])
    first, rest = series[: split - 1], series[split + 1 :]
    if len(first) == 0 or first.min() < rest.max() * (1 + smallest):
        return None
    return Shift(split, float(series[:split].mean()), float(series[split:].mean()))


def find_levels(series: Floats, *, least: float, smallest: float, edge: int) -> list[int]:
    """Where levels begin in a series whose values do not resemble their neighbours.

    The change of the whole, then those on both sides of it; none between levels that hardly differ: the first
    cut of two like steps may fall between them, and the steps found, it is none. Arguments as of
    ``find_shift``.
    """
    logs, kept = np.log(series), sorted(_cuts(series, 0, least, smallest, edge))
    while kept:
        means = [float(each.mean()) for each in np.split(logs, kept)]
        steps = np.abs(np.diff(means))
        nearest = int(np.argmin(steps))
        if steps[nearest] >= -math.log1p(-smallest):
            break
        del kept[nearest]
    return kept


def _cuts(series: Floats, first: int, least: float, smallest: float, edge: int) -> Iterator[int]:
    shift = find_shift(series, least=least, smallest=smallest, edge=edge, alone=True)
    if shift is None:
        return
    at = _at_an_end(series) if shift.at in (edge, len(series) - edge) else shift.at
    yield first + at
    yield from _cuts(series[:at], first, least, smallest, edge)
    yield from _cuts(series[at:], first + at, least, smallest, edge)


def _at_an_end(series: Floats) -> int:
    """Where two levels part best: by least squares of the logarithms.

    The test looks no nearer to an end than ``edge``, and so puts there what changed at the last value.
    """
    logs = np.log(series)

    def left(cut: int) -> float:
        return float(logs[:cut].var() * cut + logs[cut:].var() * (len(logs) - cut))

    return min(range(1, len(logs)), key=left)


def held_from(series: Floats, *, smallest: float, within: Callable[[float], float]) -> int | None:
    """The first value of a level that stays below all earlier values; None if there is no such level.

    Args:
        series: in order of time.
        smallest: the least distance of the first value above the level, relative to it.
        within: the level -> how far a value of it may be from it, relative to it.
    """
    for first in range(1, len(series) - 1):
        level = float(np.median(series[first:]))
        if not level or series[0] < level * (1 + smallest):
            return None
        if (np.abs(series[first:] / level - 1) <= within(level)).all():
            return first if series[:first].min() > level else None
    return None


def kendall(values: Floats) -> tuple[float, float]:
    """Kendall's tau of values and their order, and its p; (0, 1) where all are the same."""
    if np.ptp(values) == 0:
        return 0.0, 1.0
    tau, p = scipy.stats.kendalltau(np.arange(len(values)), values)
    return float(tau), float(p)
