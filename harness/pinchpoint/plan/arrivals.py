"""When operations of an open load are meant to start: pure, reproducible from the plan's seed."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator

from pinchpoint.plan.profiles import RateProfile

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
