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
    """A period in which the arrival rate changes linearly.

    Attributes:
        length_s: length of the period, seconds; infinite for the last piece of a profile.
        first_per_s: arrivals per second at the start of the piece.
        last_per_s: arrivals per second at the end of the piece.
    """

    length_s: float
    first_per_s: float
    last_per_s: float

    @property
    def arrivals(self) -> float:
        """The mean number of arrivals in the piece."""
        return (self.first_per_s + self.last_per_s) / 2 * self.length_s if self.last_per_s else self._falling

    @property
    def _falling(self) -> float:
        # A rate of 0 without an end: 0 times infinity would be NaN.
        return self.first_per_s / 2 * self.length_s if self.first_per_s else 0.0

    def after(self, arrivals: float) -> float:
        """Seconds from the start of the piece until ``arrivals`` operations have arrived on average.

        ``arrivals`` (n) must be less than ``self.arrivals``. With initial rate r and slope s of the rate, the
        time t solves r t + s t² / 2 = n; the formula used here is also exact for a slope of 0.
        """
        slope = (self.last_per_s - self.first_per_s) / self.length_s
        root = math.sqrt(max(0.0, self.first_per_s**2 + 2 * slope * arrivals))
        return 2 * arrivals / (self.first_per_s + root)


class RateProfile(Protocol):
    """An arrival rate over time."""

    def pieces(self) -> Iterator[Piece]:
        """The pieces of the profile, from the start of the load; the profile has no end."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A rate that never changes."""

    rate_per_s: float

    def pieces(self) -> Iterator[Piece]:
        yield Piece(math.inf, self.rate_per_s, self.rate_per_s)


@dataclass(frozen=True, slots=True)
class Bursts:
    """A base rate with one burst, or several bursts back to back, at the end of every period.

    Attributes:
        base_per_s: arrivals per second between the bursts.
        peak_per_s: arrivals per second in a burst.
        every_s: length of a period, seconds.
        for_s: length of a burst, seconds; includes the rise and the fall of the rate.
        ramp_s: time in which the rate rises from base to peak, seconds; the fall takes the same time. 0: the
            rate changes at once.
        back_to_back: number of bursts at the end of each period.
        gap_s: time at the base rate between two bursts of a period, seconds.
        jitter_ratio: bursts start earlier, at random, by up to this share of the period's time without a
            burst.
        seed: seed of the random jitter.
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
        """(start, end) of each burst that starts before ``until_s``, seconds from the start of the load."""
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
        """For each period, the seconds at the base rate before its bursts and after its bursts."""
        draw = random.Random(self.seed)  # noqa: S311 -- a schedule, not a secret
        calm_s = self.every_s - self.back_to_back * self.for_s - (self.back_to_back - 1) * self.gap_s
        while True:
            earlier_s = calm_s * self.jitter_ratio * draw.random() if self.jitter_ratio else 0.0
            yield calm_s - earlier_s, earlier_s


def bursts(load: Mapping[str, Any], seed: int) -> Bursts:
    """The ``Bursts`` of a load of the model ``burst``, given as JSON; ``seed`` is the scenario's seed."""
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
    """A rate that changes linearly from one value to another and then stays."""

    from_per_s: float
    to_per_s: float
    over_s: float

    def pieces(self) -> Iterator[Piece]:
        yield Piece(self.over_s, self.from_per_s, self.to_per_s)
        yield Piece(math.inf, self.to_per_s, self.to_per_s)


@dataclass(frozen=True, slots=True)
class StepRates:
    """Rate levels one after another, each for the same time; the last level stays.

    Attributes:
        held: returns the time, in seconds from the start of the load, at which the steps end; the load then
            stays at its current level.
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
"""An open operation that could not start within this time of its intended start is dropped (design value)."""


def scenario_seed(seed: int, name: str) -> int:
    """A seed for each scenario, so that adding a scenario to a plan does not change another's schedule."""
    return seed * 2**32 + zlib.crc32(name.encode())


def arrival_times(profile: RateProfile, arrivals: str, seed: int) -> Iterator[float]:
    """Intended start times of a whole load, in seconds from its start, while its rate is above 0.

    The gaps are drawn for a rate of 1 and stretched over the profile's cumulative rate; so a Poisson process
    stays exact where the rate changes. Every worker draws the same start times and executes its own share.

    Args:
        profile: the rate over time.
        arrivals: spacing of the operations: ``"poisson"`` or ``"constant"``.
        seed: the scenario's seed.
    """
    draw = random.Random(seed)  # noqa: S311 -- a schedule, not a secret
    gap: Callable[[], float] = (lambda: draw.expovariate(1.0)) if arrivals == "poisson" else (lambda: 1.0)
    due, begin_s = gap(), 0.0
    for piece in profile.pieces():
        # ``due`` counts from the start of the piece, because summing the gaps over a long load would sum
        # rounding errors.
        while due <= piece.arrivals:
            yield begin_s + piece.after(due)
            due += gap()
        due -= piece.arrivals
        begin_s += piece.length_s
