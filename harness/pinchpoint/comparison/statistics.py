"""Computes ratio, confidence interval, Holm's correction and the call for one figure of two sides.

Comparisons of runs and of probes use this module. Intervals are computed on logarithms, so that double and
half are equally far from no change, and swapping the sides only inverts the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
import scipy  # scipy loads its modules at their first use

from pinchpoint.base.figures import Better


@dataclass(frozen=True, slots=True)
class Pair:
    """The values of a figure on both sides.

    Attributes:
        base: the median of the base's runs that measured the figure; None if no run did.
        other: the median of the other side's runs that measured the figure; None if no run did.
        base_values: the value of each run of the base, in order; None for a run that did not measure the
            figure.
        other_values: the value of each run of the other side, in order; None for a run that did not measure
            the figure.
        ratio: other ÷ base; None if a value is missing, the base is 0, or the values are different
            quantities.
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
        """The measured values of both sides' runs."""
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
    """Combine the values of both sides' runs into a ``Pair``.

    Args:
        base: one value per run of the base; None if not measured.
        other: one value per run of the other side; None if not measured.
        labels: the names of both sides.
        unlike: why the values are different quantities, so that there is no ratio; None if they are the same
            quantity.
    """
    ours, theirs = middle(base), middle(other)
    why = unlike or _missing(ours, theirs, labels)
    ratio = None if why or ours is None or theirs is None else theirs / ours
    return Pair(ours, theirs, tuple(base), tuple(other), ratio, why)


def middle(values: Sequence[float | None]) -> float | None:
    """The median of the measured values, which one extreme run does not change; None without values."""
    measured = [value for value in values if value is not None]
    return median(measured) if measured else None


def _missing(base: float | None, other: float | None, labels: tuple[str, str]) -> str | None:
    absent = [label for label, value in zip(labels, (base, other), strict=True) if value is None]
    if absent:
        return f"not measured in {' and '.join(absent)}"
    return f"it is 0 in {labels[0]}, so there is no ratio" if base == 0 else None


Call = Literal["better", "worse", "changed", "equivalent", "inconclusive"]
"""The judgement of a figure; ``changed`` is for a figure of which neither direction is better."""

ENOUGH = 5
"""Runs or repetitions that each side of a comparison needs (docs/dev-against-prod.md)."""
SAME = 0.05
"""Relative difference within which two sides are equivalent (docs/dev-against-prod.md)."""
RUN_TO_RUN = 1.5
"""Ratio above which a change is reported if a side has too few runs."""
SIGNIFICANT = 0.05

_HALF_OUTSIDE = 0.975
_FARTHEST = 100.0  # limits an interval to e^100, so that it stays finite


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of the logarithm of a ratio, other ÷ base.

    Attributes:
        shift: the logarithm of the ratio.
        error: the standard error of ``shift``.
        freedom: the degrees of freedom of ``error``, above 0.
    """

    shift: float
    error: float
    freedom: float

    @property
    def ci95(self) -> tuple[float, float]:
        """The 95 % interval of the ratio, by Student's t."""
        half = float(scipy.stats.t.ppf(_HALF_OUTSIDE, self.freedom)) * self.error if self.error else 0.0
        low, high = (
            math.exp(min(max(end, -_FARTHEST), _FARTHEST)) for end in (self.shift - half, self.shift + half)
        )
        return low, high

    def p_within(self, margin: float) -> float:
        """The p-value of the hypothesis that the true ratio lies within 1/margin to margin.

        Two-sided: below 0.05 only if the 95 % interval lies outside the margin.

        Args:
            margin: a ratio of at least 1.
        """
        beyond = abs(self.shift) - math.log(margin)
        if self.error == 0:
            return 0.0 if beyond > 0 else 1.0
        return min(1.0, 2 * float(scipy.stats.t.sf(beyond / self.error, self.freedom)))


def welch(base: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """The ratio of two sides' geometric means, from one value per run (Welch 1947, on logarithms).

    None if a side has fewer than two values, or if a value is not above 0.
    """
    if min(len(base), len(other)) < 2 or min(*base, *other) <= 0:
        return None
    logs = [np.log(np.asarray(side, dtype=np.float64)) for side in (base, other)]
    shift = float(logs[1].mean() - logs[0].mean())
    squares = [float(side.var(ddof=1)) / len(side) for side in logs]
    return combined(shift, squares, [len(side) - 1 for side in logs])


def combined(shift: float, squares: Sequence[float], freedoms: Sequence[float]) -> Estimate:
    """The estimate of a shift whose error has independent parts (Welch-Satterthwaite degrees of freedom).

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
    """The p-values with Holm's correction (1979): the smallest of k is multiplied by k, the next by k - 1."""
    corrected, worst = [0.0] * len(p), 0.0
    for place, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        worst = max(worst, min(1.0, p[index] * (len(p) - place)))
        corrected[index] = worst
    return corrected


def call_of(estimate: Estimate, p: float, *, same: float | None, better: Better | None) -> Call:
    """The judgement of an estimate in one word.

    Args:
        estimate: the estimate of the ratio's logarithm.
        p: corrected p-value of the hypothesis that the ratio lies within the margin.
        same: the sides are equivalent if the interval lies within 1/same to same; None: never equivalent.
        better: the direction that is better; None if neither is.
    """
    if p < SIGNIFICANT:
        if better is None:
            return "changed"
        return "better" if (estimate.shift > 0) == (better == "higher") else "worse"
    low, high = estimate.ci95
    return "equivalent" if same is not None and 1 / same <= low and high <= same else "inconclusive"
