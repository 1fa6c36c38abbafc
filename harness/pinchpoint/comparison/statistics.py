"""Ratio, confidence interval, Holm's correction and the resulting call for one figure of two sides.

One module for runs, probes and what else is compared. Intervals are of logarithms: twice as much and half as
much are equally far from no change, and swapping the sides swaps the answer and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
import scipy  # which loads its parts when they are used

from pinchpoint.base.figures import Better


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of both sides.

    Attributes:
        base: the median of the base's runs that measured it, None if none did.
        other: likewise.
        base_values: each run's, in their order; None if that run did not measure it.
        other_values: likewise.
        ratio: other ÷ base; None if either is missing, the base is 0, or both are not the same quantity.
        why: why there is no ratio, one sentence; None if there is one.
    """

    base: float | None
    other: float | None
    base_values: tuple[float | None, ...]
    other_values: tuple[float | None, ...]
    ratio: float | None
    why: str | None

    @property
    def measured(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The values of both sides' runs that measured it."""
        base, other = (
            tuple(value for value in values if value is not None)
            for values in (self.base_values, self.other_values)
        )
        return base, other


def pair(
    base: Sequence[float | None],
    other: Sequence[float | None],
    labels: tuple[str, str],
    unlike: str | None = None,
) -> Pair:
    """Put the run values of both sides beside each other.

    Args:
        base: one value per run, None if it was not measured.
        other: likewise.
        labels: what the sides are called.
        unlike: why the two are not the same quantity, where they are not: then they have no ratio.
    """
    ours, theirs = middle(base), middle(other)
    why = unlike or _missing(ours, theirs, labels)
    ratio = None if why or ours is None or theirs is None else theirs / ours
    return Pair(ours, theirs, tuple(base), tuple(other), ratio, why)


def middle(values: Sequence[float | None]) -> float | None:
    """The median of what was measured: one odd run does not move it."""
    measured = [value for value in values if value is not None]
    return median(measured) if measured else None


def _missing(base: float | None, other: float | None, labels: tuple[str, str]) -> str | None:
    absent = [label for label, value in zip(labels, (base, other), strict=True) if value is None]
    if absent:
        return f"not measured in {' and '.join(absent)}"
    return f"it is 0 in {labels[0]}, so there is no ratio" if base == 0 else None


Call = Literal["better", "worse", "changed", "equivalent", "inconclusive"]
"""``changed``: of a figure of which neither more nor less is better by itself."""

ENOUGH = 5
"""Runs, or repetitions, on each side that make a comparison (docs/dev-against-prod.md)."""
SAME = 0.05
"""Within 5 % of each other two sides are equivalent (docs/dev-against-prod.md)."""
RUN_TO_RUN = 1.5
"""With fewer runs: a run may differ by this many times from the next one of the same farm."""
SIGNIFICANT = 0.05

_HALF_OUTSIDE = 0.975
_FARTHEST = 100.0  # an interval to e^100 says nothing, and is still a number


@dataclass(frozen=True, slots=True)
class Estimate:
    """The logarithm of a ratio, other ÷ base, as it was estimated.

    Attributes:
        shift: itself.
        error: its standard error.
        freedom: degrees of freedom of that, above 0.
    """

    shift: float
    error: float
    freedom: float

    @property
    def ci95(self) -> tuple[float, float]:
        """The ratio's 95 % interval, by Student's t."""
        half = float(scipy.stats.t.ppf(_HALF_OUTSIDE, self.freedom)) * self.error if self.error else 0.0
        low, high = (
            math.exp(min(max(end, -_FARTHEST), _FARTHEST)) for end in (self.shift - half, self.shift + half)
        )
        return low, high

    def p_within(self, margin: float) -> float:
        """How probable a shift as far out is where the true ratio lies within 1/margin to margin.

        Two-sided: below .05 where, and only where, the 95 % interval lies outside the margin.

        Args:
            margin: a ratio of at least 1.
        """
        beyond = abs(self.shift) - math.log(margin)
        if self.error == 0:
            return 0.0 if beyond > 0 else 1.0
        return min(1.0, 2 * float(scipy.stats.t.sf(beyond / self.error, self.freedom)))


def welch(base: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """The ratio of two sides' geometric means, from one value per run (Welch 1947, on logarithms).

    None with fewer than two values on a side, or one that is not above 0.
    """
    if min(len(base), len(other)) < 2 or min(*base, *other) <= 0:
        return None
    logs = [np.log(np.asarray(side, dtype=np.float64)) for side in (base, other)]
    shift = float(logs[1].mean() - logs[0].mean())
    squares = [float(side.var(ddof=1)) / len(side) for side in logs]
    return combined(shift, squares, [len(side) - 1 for side in logs])


def combined(shift: float, squares: Sequence[float], freedoms: Sequence[float]) -> Estimate:
    """A shift whose error has independent parts (Welch and Satterthwaite's degrees of freedom).

    Args:
        shift: the logarithm of the ratio.
        squares: each part's variance.
        freedoms: each part's degrees of freedom.
    """
    square = sum(squares)
    if square == 0:
        return Estimate(shift, 0.0, sum(freedoms))
    parts = sum((part / square) ** 2 / freedom for part, freedom in zip(squares, freedoms, strict=True))
    return Estimate(shift, math.sqrt(square), 1 / parts)


def holm(p: Sequence[float]) -> list[float]:
    """Corrected for their number (Holm 1979): the smallest of k counts k times, the next k - 1 times."""
    corrected, worst = [0.0] * len(p), 0.0
    for place, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        worst = max(worst, min(1.0, p[index] * (len(p) - place)))
        corrected[index] = worst
    return corrected


def call_of(estimate: Estimate, p: float, *, same: float | None, better: Better | None) -> Call:
    """The judgement of an estimate.

    Args:
        estimate: the estimate.
        p: of the ratio lying within its margin, corrected.
        same: within 1/same to same the sides are equivalent; None: nothing is known to be.
        better: which way is better.
    """
    if p < SIGNIFICANT:
        if better is None:
            return "changed"
        return "better" if (estimate.shift > 0) == (better == "higher") else "worse"
    low, high = estimate.ci95
    return "equivalent" if same is not None and 1 / same <= low and high <= same else "inconclusive"
