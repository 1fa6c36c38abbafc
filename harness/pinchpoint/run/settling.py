"""When a warm-up is over: throughput and times of two following stretches do not differ. Pure."""

from __future__ import annotations

import math

from pinchpoint.run.seconds import Told

STRETCH_S = 5.0
"""So long is compared with as long before (design value)."""
SAME = 0.10
"""Levels within a tenth of each other are one level (design value, as in the analysis)."""
TIMES_SAME = 0.25
"""Percentiles of a few seconds move more than rates do (design value)."""


def settled(before: Told, after: Told) -> bool:
    """Whether one scenario's load has become stationary.

    Counts also differ by chance: by twice the square root of their sum no difference is seen.
    """
    counts = before.ok, after.ok
    if not all(counts):
        return False
    apart = abs(counts[1] - counts[0])
    if apart > max(SAME * max(counts), 2 * math.sqrt(sum(counts))):
        return False
    if before.p95_s is None or after.p95_s is None:
        return False
    times = before.p95_s, after.p95_s  # an endless one is like an endless one alone
    return min(times) >= (1 - TIMES_SAME) * max(times)
