"""Finds changes in a series: the end of a transient, levels, drift.

The change-point test is a CUSUM whose null distribution comes from a circular block bootstrap, because
neighbouring seconds are correlated; textbook quantiles find changes in most steady runs. Callers choose the
number of values and the smallest change, which differ between seconds, steps of a probe, and runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # scipy loads its parts on first use, and most verdicts need none

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
        at: index of the first value of the new level.
        before: mean of the values before ``at``.
        after: mean of the values from ``at`` on.
    """

    at: int
    before: float
    after: float


def mser5(series: Floats) -> int:
    """The number of values to cut from the start for the smallest error of the mean (MSER-5, White 1997).

    Batches of five values; at most half of the series is cut. A minimum in the second half would mean that
    nothing was steady.
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
        series: values in order of time.
        least: the lowest number of values for an answer.
        smallest: the smallest change that counts, as a share of the mean.
        edge: the lowest number of values in a level.
        alone: whether values are independent (runs, not seconds); the bootstrap then draws single values
            instead of blocks.
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
    # The null keeps the shift that is tested. Removing the shift first (a common method) makes a third of
    # steady runs (φ = 0.8, 120 values) look changed; with the shift a tenth do, and real shifts are still
    # found.
    random = np.random.default_rng(SEED)
    rows = random.integers(0, count, (RESAMPLES, count)) if alone else block_rows(count, RESAMPLES, random)
    drawn = centred[rows]
    drawn -= drawn.mean(axis=1, keepdims=True)
    null = np.abs(np.cumsum(drawn, axis=1)).max(axis=1)
    exceeding = int((null >= np.abs(walk).max()).sum())
    return Shift(split, before, after) if (1 + exceeding) / (1 + RESAMPLES) < SIGNIFICANT else None


def find_early_fall(series: Floats, *, least: float, smallest: float) -> Shift | None:
    """A fall in the first third of a series, where ``find_shift`` finds little.

    The sums of ``find_shift`` have little weight near an end. Every value before the fall must be above every
    value after by the share ``smallest``, except the values next to the fall; noise rarely sorts values in
    this way. For the arguments see ``find_shift``.
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
    """The index of the first value of each level in a series of independent values.

    The function finds the change in the whole series, then the changes on both sides. It drops changes
    smaller than ``smallest``: with two similar steps the first cut may fall between them, and is not a change
    once the steps are found. For the arguments see ``find_shift``.
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
    """The cut that separates two levels best, by least squares of the logarithms.

    The test looks no nearer to an end than ``edge``, so it puts a change near an end at ``edge``.
    """
    logs = np.log(series)

    def left(cut: int) -> float:
        return float(logs[:cut].var() * cut + logs[cut:].var() * (len(logs) - cut))

    return min(range(1, len(logs)), key=left)


def held_from(series: Floats, *, smallest: float, within: Callable[[float], float]) -> int | None:
    """The index where a lower level begins that lasts to the end; None if there is no such level.

    Args:
        series: values in order of time.
        smallest: the smallest distance of the first value above the level, as a share of the level.
        within: function level -> the largest distance of a value from the level, as a share of the level.
    """
    for first in range(1, len(series) - 1):
        level = float(np.median(series[first:]))
        if not level or series[0] < level * (1 + smallest):
            return None
        if (np.abs(series[first:] / level - 1) <= within(level)).all():
            return first if series[:first].min() > level else None
    return None


def kendall(values: Floats) -> tuple[float, float]:
    """(Kendall's tau of the values and their order, its p); (0, 1) if all values are equal."""
    if np.ptp(values) == 0:
        return 0.0, 1.0
    tau, p = scipy.stats.kendalltau(np.arange(len(values)), values)
    return float(tau), float(p)
