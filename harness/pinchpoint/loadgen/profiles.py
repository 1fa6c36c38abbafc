"""How the rate of an open load goes over time: pieces over which it is constant or changes evenly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Piece:
    """A time over which the rate changes evenly.

    Attributes:
        length_s: how long; infinite for the last one.
        first_per_s: the rate at its begin.
        last_per_s: the rate at its end.
    """

    length_s: float
    first_per_s: float
    last_per_s: float

    @property
    def arrivals(self) -> float:
        """How many arrive in it, on average."""
        return (self.first_per_s + self.last_per_s) / 2 * self.length_s if self.last_per_s else self._falling

    @property
    def _falling(self) -> float:
        # A rate of 0 for ever: infinity times 0.
        return self.first_per_s / 2 * self.length_s if self.first_per_s else 0.0

    def after(self, arrivals: float) -> float:
        """How long after its begin so many have arrived, on average; less than ``self.arrivals``.

        With rate r and slope s: r t + s t² / 2 = n, in the form that stays exact for a slope of 0.
        """
        slope = (self.last_per_s - self.first_per_s) / self.length_s
        root = math.sqrt(max(0.0, self.first_per_s**2 + 2 * slope * arrivals))
        return 2 * arrivals / (self.first_per_s + root)


class RateProfile(Protocol):
    """An arrival rate over time."""

    def pieces(self) -> Iterator[Piece]:
        """From the load's begin on, without an end: as many as there is time for."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate for ever."""

    rate_per_s: float

    def pieces(self) -> Iterator[Piece]:
        """See ``RateProfile``."""
        yield Piece(math.inf, self.rate_per_s, self.rate_per_s)


@dataclass(frozen=True, slots=True)
class Bursts:
    """A base rate with a burst in the last ``for_s`` seconds of every ``every_s`` seconds."""

    base_per_s: float
    peak_per_s: float
    every_s: float
    for_s: float

    def pieces(self) -> Iterator[Piece]:
        """See ``RateProfile``."""
        while True:
            yield Piece(self.every_s - self.for_s, self.base_per_s, self.base_per_s)
            yield Piece(self.for_s, self.peak_per_s, self.peak_per_s)

    def windows(self, until_s: float) -> list[tuple[float, float]]:
        """The bursts that begin before ``until_s``: (begin, end), in seconds from the load's start."""
        found = []
        begin = self.every_s - self.for_s
        while begin < until_s:
            found.append((begin, begin + self.for_s))
            begin += self.every_s
        return found


@dataclass(frozen=True, slots=True)
class Ramp:
    """From one rate evenly to another, which then holds."""

    from_per_s: float
    to_per_s: float
    over_s: float

    def pieces(self) -> Iterator[Piece]:
        """See ``RateProfile``."""
        yield Piece(self.over_s, self.from_per_s, self.to_per_s)
        yield Piece(math.inf, self.to_per_s, self.to_per_s)


@dataclass(frozen=True, slots=True)
class Steps:
    """Levels one after the other, each for the same time; the last one holds.

    Attributes:
        held: says whenever it is asked how many seconds after the load's begin the climb ends: the level of
            that moment then holds.
    """

    levels_per_s: tuple[float, ...]
    each_s: float
    held: Callable[[], float] = lambda: math.inf

    def pieces(self) -> Iterator[Piece]:
        """See ``RateProfile``."""
        level = self.levels_per_s[0]
        for number, following in enumerate(self.levels_per_s[1:], 1):
            yield Piece(self.each_s, level, level)
            if number * self.each_s >= self.held():
                break
            level = following
        yield Piece(math.inf, level, level)
