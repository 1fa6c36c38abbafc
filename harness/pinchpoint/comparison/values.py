"""One figure on both sides: every run's value, the two medians, their ratio, and why one is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of both sides.

    Attributes:
        base: the median of the base's runs that measured it, None where none did.
        other: likewise.
        base_values: each run's, in their order; None where that run did not measure it.
        other_values: likewise.
        ratio: other ÷ base; None where either is missing, the base is 0, or both are not the same quantity.
        why: why there is no ratio, one sentence; None where there is one.
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
        base: one value per run, None where it was not measured.
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
