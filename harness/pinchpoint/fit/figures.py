"""The figures of production as its sources give them, and where these differ."""

from __future__ import annotations

from dataclasses import dataclass, field

from pinchpoint.plan.production import FIGURES


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of production.

    Attributes:
        value: in base units.
        origin: where it comes from, in words.
    """

    value: float
    origin: str


Figures = dict[str, Figure]
"""Name (of ``FIGURES``) -> figure; what a source does not tell is not there."""

APART = 0.1
"""Two sources that differ by more than this share tell different things."""


@dataclass(slots=True)
class Told:
    """What all sources tell together; where several tell the same figure, one is taken.

    Attributes:
        figures: those that were taken.
        disagreements: sentences on sources that differ: both figures, which was taken, and why.
    """

    figures: Figures = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def take(self, name: str, figure: Figure, why: str, apart: float = APART) -> None:
        """Take a figure, unless a better source told it already.

        Args:
            name: of ``FIGURES``.
            figure: sources come in the order of preference.
            why: why one that was told before is the better one.
            apart: by how much they may differ without a word.
        """
        taken = self.figures.setdefault(name, figure)
        if taken is not figure:
            self.compare(FIGURES[name], taken, figure, why, apart)

    def compare(self, what: str, taken: Figure, other: Figure, why: str, apart: float = APART) -> None:
        """Note where two sources differ."""
        if abs(taken.value - other.value) > apart * max(abs(taken.value), abs(other.value)):
            self.disagreements.append(
                f"{what}: {plain(taken.value)} ({taken.origin}), {plain(other.value)} ({other.origin}); "
                f"taken is the first: {why}"
            )


def plain(value: float, digits: int = 4) -> str:
    """A number with so many digits, without an exponent."""
    return f"{float(f'{value:.{digits}g}'):.12f}".rstrip("0").rstrip(".") or "0"
