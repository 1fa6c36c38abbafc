"""Pairs of measurements, ours and the peer's in turn on the same server, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

PAIRS = 5

Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True)
class Pairs(Generic[Measured]):
    """What was measured, in the order of the pairs."""

    ours: list[Measured]
    peer: list[Measured]

    def medians(self, figure: Callable[[Measured], float]) -> tuple[float, float, float]:
        """(ours, the peer's, the ratio): medians of a figure; the ratio's is that of the pairs' ratios."""
        mine, its = [figure(each) for each in self.ours], [figure(each) for each in self.peer]
        return median(mine), median(its), median(one / other for one, other in zip(mine, its, strict=True))


def interleaved(
    ours: Callable[[], Measured], peer: Callable[[], Measured], pairs: int = PAIRS
) -> Pairs[Measured]:
    """Measure in turn; every other pair begins with the peer, so that no drift favours either."""
    found: Pairs[Measured] = Pairs([], [])
    for number in range(pairs):
        first = (ours, found.ours), (peer, found.peer)
        for measure, place in first if number % 2 == 0 else reversed(first):
            place.append(measure())
    return found
