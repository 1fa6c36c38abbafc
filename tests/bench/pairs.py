"""Measure Pinchpoint and a peer in turn on the same server, and compute medians over the pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

PAIRS = 5

Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True)
class Pairs(Generic[Measured]):
    """Measurements of Pinchpoint and of the peer, in the order of the pairs."""

    ours: list[Measured]
    peer: list[Measured]

    def medians(self, figure: Callable[[Measured], float]) -> tuple[float, float, float]:
        """Return medians of a figure: (Pinchpoint's, the peer's, the median of the ratios of the pairs)."""
        mine, its = [figure(each) for each in self.ours], [figure(each) for each in self.peer]
        return median(mine), median(its), median(one / other for one, other in zip(mine, its, strict=True))


def interleaved(
    ours: Callable[[], Measured], peer: Callable[[], Measured], pairs: int = PAIRS
) -> Pairs[Measured]:
    """Measure in turn. Every other pair begins with the peer, so that a drift favours neither."""
    found: Pairs[Measured] = Pairs([], [])
    for number in range(pairs):
        first = (ours, found.ours), (peer, found.peer)
        for measure, place in first if number % 2 == 0 else reversed(first):
            place.append(measure())
    return found
