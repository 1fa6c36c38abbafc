"""When operations of an open load are meant to start: pure, reproducible from the plan's seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

LATEST_START_S = 10.0
"""An open operation that could not start this long after its intended time is dropped (design value)."""


class RateProfile(Protocol):
    """An arrival rate over time, constant between its changes."""

    def at(self, time_s: float) -> tuple[float, float]:
        """(rate per second from ``time_s`` on, the time of its next change)."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate for ever."""

    rate_per_s: float

    def at(self, time_s: float) -> tuple[float, float]:  # noqa: ARG002 -- the protocol's argument
        """See ``RateProfile``."""
        return self.rate_per_s, float("inf")


@dataclass(frozen=True, slots=True)
class Bursts:
    """A base rate with a burst in the last ``for_s`` seconds of every ``every_s`` seconds."""

    base_per_s: float
    peak_per_s: float
    every_s: float
    for_s: float

    def at(self, time_s: float) -> tuple[float, float]:
        """See ``RateProfile``."""
        # Whole numbers of periods, then compare with the very sums handed out as changes: a remainder
        # (time % every) can fall a rounding error short of the change and never get past it.
        period = int(time_s // self.every_s)
        while time_s >= (period + 1) * self.every_s:
            period += 1
        start, end = (period + 1) * self.every_s - self.for_s, (period + 1) * self.every_s
        return (self.base_per_s, start) if time_s < start else (self.peak_per_s, end)

    def windows(self, until_s: float) -> list[tuple[float, float]]:
        """The bursts that begin before ``until_s``: (begin, end), in seconds from the load's start."""
        found = []
        begin = self.every_s - self.for_s
        while begin < until_s:
            found.append((begin, begin + self.for_s))
            begin += self.every_s
        return found


def arrival_times(profile: RateProfile, arrivals: str, seed: int) -> Iterator[float]:
    """Intended start times of a whole load, in seconds from its begin, for ever.

    The gaps are drawn for a rate of one and stretched over the profile's cumulative rate, which keeps a
    Poisson process exact where the rate changes. Every worker draws the same ones and does its own.

    Args:
        profile: the rate over time.
        arrivals: ``"poisson"`` or ``"constant"``.
        seed: of the scenario.
    """
    draw = random.Random(seed)  # noqa: S311 -- a schedule, not a secret
    gap: Callable[[], float] = (lambda: draw.expovariate(1.0)) if arrivals == "poisson" else (lambda: 1.0)
    left, time_s = gap(), 0.0
    while True:
        rate, change = profile.at(time_s)
        if left <= rate * (change - time_s):
            time_s += left / rate
            yield time_s
            left = gap()
        else:
            left -= rate * (change - time_s)
            time_s = change
