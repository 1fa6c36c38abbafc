"""How long something was over its limit, and when, by samples alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.thresholds import Threshold
from pinchpoint.data.series import Floats, Series, Window

PLATEAU = Threshold(60.0, "MS-IO", "a spike that lasts a minute or longer is a plateau")
GAP = 1.5
"""Readings further apart than so many of their intervals do not belong to one stretch."""

Steps = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a series comes to; a latency is weighted by its operations, all else by time.

    Attributes:
        p95: of the values as they were read, each for as long as it covers.
        maximum: the largest value that was read.
    """

    mean: float
    p95: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which every reading was over the limit, UTC seconds."""

    from_s: float
    to_s: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.to_s - self.from_s


def figures(series: Series | None) -> Figures | None:
    """The figures of a series; None where nothing was measured."""
    if series is None:
        return None
    mean, highest = series.mean(), series.maximum()
    if mean is None or highest is None:
        return None
    values, covered = series.steps(), series.covered_s
    there = np.isfinite(values)
    order = np.argsort(values[there])
    reached = np.cumsum(covered[there][order])
    at = int(np.searchsorted(reached, 0.95 * reached[-1]))
    return Figures(mean, float(values[there][order][min(at, len(order) - 1)]), highest)


def seconds_over(covered_s: Floats, over: Steps) -> float:
    """How long the readings that are over the limit are together."""
    return float(covered_s[over].sum())


def stretches(window: Window, covered_s: Floats, over: Steps) -> tuple[Stretch, ...]:
    """The times in which all readings, one after the other, were over the limit; the longest first.

    Args:
        window: its steps.
        covered_s: how much of each step, or around it, was read; 0 where nothing was.
        over: the steps that are over the limit.
    """
    found: list[Stretch] = []
    begin_s = end_s = 0.0
    for at in np.flatnonzero(covered_s > 0):
        middle_s = window.first_s + (int(at) + 0.5) * window.step_s
        # A reading longer than a step lies in the step of its middle; shorter ones fill their step.
        half_s = max(float(covered_s[at]), float(window.step_s)) / 2
        if not over[at]:
            end_s = 0.0
            continue
        if found and end_s and middle_s - half_s - end_s <= GAP * half_s:
            end_s = middle_s + half_s
            found[-1] = Stretch(begin_s, end_s)
        else:
            begin_s, end_s = middle_s - half_s, middle_s + half_s
            found.append(Stretch(begin_s, end_s))
    return tuple(sorted(found, key=lambda each: -each.seconds))


def longest(found: Sequence[Stretch]) -> float:
    """Seconds of the longest one; 0 where there is none."""
    return found[0].seconds if found else 0.0
