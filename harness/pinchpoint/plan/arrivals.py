"""Computes the intended start times of an open load from its rate over time."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


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
        """How long after its begin this many have arrived, on average; less than ``self.arrivals``.

        With rate r and slope s: r t + s t² / 2 = n, in the form that stays exact for a slope of 0.
        """
        slope = (self.last_per_s - self.first_per_s) / self.length_s
        root = math.sqrt(max(0.0, self.first_per_s**2 + 2 * slope * arrivals))
        return 2 * arrivals / (self.first_per_s + root)


class RateProfile(Protocol):
    """An arrival rate over time."""

    def pieces(self) -> Iterator[Piece]:
        """From the load's begin on, without an end, until the time is over."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate for ever."""

    rate_per_s: float

    def pieces(self) -> Iterator[Piece]:
        yield Piece(math.inf, self.rate_per_s, self.rate_per_s)


@dataclass(frozen=True, slots=True)
class Bursts:
    """A base rate, and at the end of every period a burst, or several back to back.

    Attributes:
        base_per_s: the rate between bursts.
        peak_per_s: the rate in them.
        every_s: a period's length.
        for_s: how long one burst lasts, its rise and its fall included.
        ramp_s: how long it rises from base to peak, and falls again; 0: at once.
        back_to_back: this many bursts end each period.
        gap_s: the time at the base rate between those.
        jitter_ratio: they come earlier by up to this share of the period's time without a burst.
        seed: of the jitter.
    """

    base_per_s: float
    peak_per_s: float
    every_s: float
    for_s: float
    ramp_s: float = 0.0
    back_to_back: int = 1
    gap_s: float = 0.0
    jitter_ratio: float = 0.0
    seed: int = 0

    def pieces(self) -> Iterator[Piece]:
        base, peak, ramp_s = self.base_per_s, self.peak_per_s, self.ramp_s
        burst = [Piece(self.for_s - 2 * ramp_s, peak, peak)]
        if ramp_s:
            burst = [Piece(ramp_s, base, peak), *burst, Piece(ramp_s, peak, base)]
        burst = [piece for piece in burst if piece.length_s > 0]
        for calm_s, rest_s in self._calms():
            yield Piece(calm_s, base, base)
            yield from burst
            for _ in range(self.back_to_back - 1):
                yield Piece(self.gap_s, base, base)
                yield from burst
            if rest_s:
                yield Piece(rest_s, base, base)

    def windows(self, until_s: float) -> list[tuple[float, float]]:
        """The bursts that begin before ``until_s``: (begin, end), in seconds from the load's start."""
        result: list[tuple[float, float]] = []
        for number, (calm_s, _) in enumerate(self._calms()):
            begin = number * self.every_s + calm_s
            if begin >= until_s:
                return result
            for place in range(self.back_to_back):
                start = begin + place * (self.for_s + self.gap_s)
                if start < until_s:
                    result.append((start, start + self.for_s))
        return result

    def _calms(self) -> Iterator[tuple[float, float]]:
        """Of each period, the time at the base rate before its bursts, and after them."""
        draw = random.Random(self.seed)  # noqa: S311 -- a schedule, not a secret
        calm_s = self.every_s - self.back_to_back * self.for_s - (self.back_to_back - 1) * self.gap_s
        while True:
            earlier_s = calm_s * self.jitter_ratio * draw.random() if self.jitter_ratio else 0.0
            yield calm_s - earlier_s, earlier_s


def bursts(load: Mapping[str, Any], seed: int) -> Bursts:
    """The bursts of a load of the model ``burst``, as it travels; ``seed``: of its scenario."""
    return Bursts(
        load["base_per_s"],
        load["peak_per_s"],
        load["every_s"],
        load["for_s"],
        ramp_s=load.get("ramp_s") or 0.0,
        back_to_back=load.get("back_to_back") or 1,
        gap_s=load.get("gap_s") or 0.0,
        jitter_ratio=load.get("jitter_ratio") or 0.0,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class RampRate:
    """From one rate evenly to another, which then stays."""

    from_per_s: float
    to_per_s: float
    over_s: float

    def pieces(self) -> Iterator[Piece]:
        yield Piece(self.over_s, self.from_per_s, self.to_per_s)
        yield Piece(math.inf, self.to_per_s, self.to_per_s)


@dataclass(frozen=True, slots=True)
class StepRates:
    """Levels one after the other, each for the same time; the last one stays.

    Attributes:
        held: returns how many seconds after the load's begin the steps end: the level of
            that moment then stays.
    """

    levels_per_s: tuple[float, ...]
    each_s: float
    held: Callable[[], float] = lambda: math.inf

    def pieces(self) -> Iterator[Piece]:
        level = self.levels_per_s[0]
        for number, following in enumerate(self.levels_per_s[1:], 1):
            yield Piece(self.each_s, level, level)
            if number * self.each_s >= self.held():
                break
            level = following
        yield Piece(math.inf, level, level)


LATEST_START_S = 10.0
"""An open operation that could not start this long after its intended time is dropped (design value)."""


def scenario_seed(seed: int, name: str) -> int:
    """A scenario's own random streams: adding one to a plan must not change another's schedule."""
    return seed * 2**32 + zlib.crc32(name.encode())


def arrival_times(profile: RateProfile, arrivals: str, seed: int) -> Iterator[float]:
    """Intended start times of a whole load, in seconds from its begin, as long as its rate is above 0.

    The gaps are drawn for a rate of one and stretched over the profile's cumulative rate, which keeps a
    Poisson process exact where the rate changes. Every worker draws the same ones and does its own.

    Args:
        profile: the rate over time.
        arrivals: ``"poisson"`` or ``"constant"``.
        seed: of the scenario.
    """
    draw = random.Random(seed)  # noqa: S311 -- a schedule, not a secret
    gap: Callable[[], float] = (lambda: draw.expovariate(1.0)) if arrivals == "poisson" else (lambda: 1.0)
    due, begin_s = gap(), 0.0
    for piece in profile.pieces():
        # Sums from the begin of a piece: adding up gaps would add up rounding errors over a long one.
        while due <= piece.arrivals:
            yield begin_s + piece.after(due)
            due += gap()
        due -= piece.arrivals
        begin_s += piece.length_s
