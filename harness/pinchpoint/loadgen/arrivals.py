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


def arrival_times(
    profile: RateProfile, arrivals: str, seed: int, worker: int = 0, workers: int = 1
) -> Iterator[float]:
    """Intended start times of one worker's share, in seconds from the load's start, for ever.

    The gaps are drawn for a rate of one and stretched over the profile's cumulative rate, which keeps a
    Poisson process exact where the rate changes. A worker's share of a Poisson process is a Poisson
    process of ``1/workers`` of the rate; of a constant one, every ``workers``-th arrival.

    Args:
        profile: the rate over time, of all workers together.
        arrivals: ``"poisson"`` or ``"constant"``.
        seed: of the scenario; each worker derives its own stream.
        worker: this worker's number, from 0.
        workers: how many share the load.
    """
    # A string seed: tuples are not allowed, and sums of small integers would repeat between workers.
    draw = random.Random(f"{seed}/{worker}/{workers}")  # noqa: S311 -- a schedule, not a secret
    gap: Callable[[], float] = (
        (lambda: draw.expovariate(1.0) * workers) if arrivals == "poisson" else (lambda: float(workers))
    )
    # The first constant arrivals of the workers are one gap apart, as those of a single worker are.
    left = gap() if arrivals == "poisson" else float(worker + 1)
    time_s = 0.0
    while True:
        rate, change = profile.at(time_s)
        if left <= rate * (change - time_s):
            time_s += left / rate
            yield time_s
            left = gap()
        else:
            left -= rate * (change - time_s)
            time_s = change
