"""A disk's own latency over outstanding I/Os, as a probe found it: what it takes undisturbed."""

from __future__ import annotations

import math
from collections.abc import Sequence

Curve = Sequence[tuple[float, float]]
"""(outstanding I/Os, seconds each), by what is outstanding."""


def expected_s(curve: Curve, outstanding: float) -> float | None:
    """Seconds of an I/O with so many outstanding; None beyond what was probed.

    Between two depths evenly in logarithms of both; with fewer than one outstanding as with one.
    """
    if not curve or outstanding > curve[-1][0]:
        return None
    depth = max(outstanding, curve[0][0])
    before = curve[0]
    for after in curve:
        if depth <= after[0]:
            break
        before = after
    if after[0] == before[0]:
        return after[1]
    share = math.log(depth / before[0]) / math.log(after[0] / before[0])
    return float(before[1] * (after[1] / before[1]) ** share)


def most_per_s(curve: Curve) -> float | None:
    """The highest rate by Little's law, outstanding ÷ latency; None without a curve."""
    return max((depth / latency_s for depth, latency_s in curve), default=None)
