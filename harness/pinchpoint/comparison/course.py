"""One figure of one run, step by step: how far chance within the run may have moved it.

Neighbouring seconds resemble each other (a checkpoint lasts, a queue drains), so that they are resampled in
blocks: a plain bootstrap's 95 % interval covers 53 % at autocorrelation .8 (METHOD 4.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.resample import block_length
from pinchpoint.data.series import Floats

Starts = npt.NDArray[np.int64]

MOST_STEPS = 1000
"""Longer runs are added up to so many steps: blocks are longer than that in any case."""
LEAST_STEPS = 20
"""Fewer steps are too few blocks to tell how much blocks differ."""
RESAMPLES = 500
"""The standard error of so many is known to 3 %."""
_LEAST_BLOCKS = 4
_LONGER = 2
_STRONGEST = 0.97  # autocorrelation beyond it cannot be told from a trend
_CHUNK = 50  # resamples at a time: a percentile needs a histogram of each


class Course(Protocol):
    """A figure as a function of a run's steps."""

    @property
    def value(self) -> float:
        """Of all steps."""

    @property
    def influence(self) -> Floats:
        """What each step adds to its deviation, in any unit: how neighbouring steps resemble each other."""

    def resampled(self, starts: Starts, length: int) -> Floats:
        """The figure of each resample: a line of ``starts`` holds where its blocks of that length begin.

        A block goes on at the run's begin where it reaches its end.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Mean:
    """A sum over a sum: operations per second, seconds per write, documents per second of a crawl.

    Attributes:
        above: what is counted in each step.
        below: what it is divided by.
    """

    above: Floats
    below: Floats

    @property
    def value(self) -> float:
        """See ``Course``."""
        return float(self.above.sum() / self.below.sum())

    @property
    def influence(self) -> Floats:
        """See ``Course``."""
        return self.above - self.value * self.below

    def resampled(self, starts: Starts, length: int) -> Floats:
        """See ``Course``."""
        above, below = (_blocks(each, length)[starts].sum(axis=1) for each in (self.above, self.below))
        found: Floats = np.divide(above, below, out=np.full(len(starts), np.nan), where=below > 0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Percentile:
    """A percentile of all operations of a run, from one histogram per step.

    Attributes:
        counts: a line per step, a column per value: how many operations took so long.
        values: what the columns stand for, from short to long.
        percent: 0 to 100.
    """

    counts: Floats
    values: Floats
    percent: float

    @property
    def value(self) -> float:
        """See ``Course``."""
        return float(self._of(self.counts.sum(axis=0)[None, :])[0])

    @property
    def influence(self) -> Floats:
        """See ``Course``."""
        above = self.counts[:, self.values > self.value].sum(axis=1)
        return np.asarray(above - (1 - self.percent / 100) * self.counts.sum(axis=1), dtype=np.float64)

    def resampled(self, starts: Starts, length: int) -> Floats:
        """See ``Course``."""
        blocks = _blocks(self.counts, length)
        parts = [starts[first : first + _CHUNK] for first in range(0, len(starts), _CHUNK)]
        return np.concatenate([self._of(blocks[part].sum(axis=1)) for part in parts])

    def _of(self, counts: Floats) -> Floats:
        reached = np.cumsum(counts, axis=1)
        wanted = np.maximum(1.0, np.floor(reached[:, -1:] * self.percent / 100 + 0.5))
        at = np.minimum((reached < wanted).sum(axis=1), len(self.values) - 1)
        return np.where(reached[:, -1] > 0, self.values[at], np.nan)


def _blocks(steps: Floats, length: int) -> Floats:
    """The sum of the block that begins at each step, along the first axis."""
    around = np.concatenate([np.zeros_like(steps[:1]), steps, steps[: length - 1]])
    reached = np.cumsum(around, axis=0)
    found: Floats = reached[length:] - reached[:-length]
    return found


def together(count: int) -> int:
    """So many neighbouring steps of a run of ``count`` are added up to one."""
    return max(1, -(-count // MOST_STEPS))


def joined(steps: Floats) -> Floats:
    """A run's steps, neighbours added up, at most ``MOST_STEPS`` of them."""
    each = together(len(steps))
    return np.asarray(np.add.reduceat(steps, np.arange(0, len(steps), each)), dtype=np.float64)


def spread_of(course: Course) -> tuple[float, float] | None:
    """(variance of the figure's logarithm by chance within the run, its degrees of freedom).

    By the circular block bootstrap. Its variance is that of k blocks: it misses one k-th, which is made up
    for, and has k - 1 degrees of freedom. None where the run is too short, or did nothing for most of it.
    """
    influence = course.influence
    count = len(influence)
    if count < LEAST_STEPS or course.value <= 0:
        return None
    length = blocks_of(influence)
    drawn = -(-count // length)
    starts = np.random.default_rng(1).integers(0, count, (RESAMPLES, drawn))
    values = course.resampled(starts, length)
    if not (np.isfinite(values) & (values > 0)).all():
        return None
    blocks = count / length
    whole = drawn * length / count  # a resample is a little longer than the run
    return float(np.log(values).var(ddof=1)) * whole * blocks / (blocks - 1), blocks - 1


def blocks_of(influence: Floats) -> int:
    """Steps per block: what first-order autocorrelation asks for, at least √n, at most a quarter of all.

    With autocorrelation r from one step to the next, the variance errs least with blocks of
    1.1447 (a n)^(1/3), a = 4 r² ÷ (1 - r²)² (Andrews 1991, of a first-order autoregression). Intervals are
    right more often with twice that: measured at r = .8, 120 steps, 92 % of them once, 95 % twice.
    """
    count = len(influence)
    near = _memory(influence)
    wanted = _LONGER * 1.1447 * (4 * near**2 / (1 - near**2) ** 2 * count) ** (1 / 3)
    length: int = min(max(math.ceil(wanted), block_length(count)), count // _LEAST_BLOCKS)
    return length


def _memory(influence: Floats) -> float:
    """Autocorrelation from one step to the next, 0 to below 1, of what lasts.

    Chance within a step (how many operations happened to be slow) hides it from the first lag; but it decays
    from the first to the second as it does, so that their ratio is looked at as well where the first is none
    of chance.
    """
    count = len(influence)
    centred = influence - influence.mean()
    square = float(centred @ centred)
    if square == 0:
        return 0.0
    first, second = (float(centred[lag:] @ centred[:-lag]) / square for lag in (1, 2))
    lasting = second / first if first > 2 / math.sqrt(count) else 0.0
    return min(max(first, lasting, 0.0), _STRONGEST)


def widest(courses: Sequence[Course | None]) -> tuple[float, float] | None:
    """The spread of a side's runs: of several the widest, so that their number does not narrow it.

    None where one of them has none.
    """
    spreads = [spread_of(course) if course is not None else None for course in courses]
    known = [spread for spread in spreads if spread is not None]
    return max(known) if known and len(known) == len(spreads) else None
