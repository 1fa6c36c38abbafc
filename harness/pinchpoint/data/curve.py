"""Latency by outstanding I/Os, for one workload of a disk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIDDLE = 0.5
"""Latency between two measured depths: half-way between two possible shapes, in logarithms."""

Points = Sequence[tuple[float, float]]
"""(outstanding I/Os, seconds each) of an undisturbed disk, by what is outstanding."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The latency of an I/O by queue depth.

    Attributes:
        points: (outstanding, seconds each) as measured, by what is outstanding; one at least.
        ends: whether at the deepest point the disk gets all done that it can, so that more of them wait for
            each other; else, a regulator apart, they take as long as there.
        shape: between two of them: 0 as of a regulator (latency stays until its rate is reached), 1 as of a
            device (evenly, in logarithms of both); in between likewise.
    """

    points: tuple[tuple[float, float], ...]
    ends: bool = True
    shape: float = MIDDLE

    def latency_s(self, outstanding: float) -> float:
        """Seconds of an I/O with this many outstanding."""
        deepest, longest_s = self.points[-1]
        even_s = expected_s(self.points, outstanding)
        if even_s is None:
            return longest_s * outstanding / deepest if self.ends else longest_s
        before_s = max((point for point in self.points if point[0] <= outstanding), default=self.points[0])[1]
        after, after_s = next(point for point in self.points if point[0] >= outstanding)
        late_s = min(even_s, max(before_s, outstanding * after_s / after))
        return float(late_s ** (1 - self.shape) * even_s**self.shape)

    def times(self, factor: float) -> Curve:
        """The same, every I/O this many times as long."""
        points = tuple((depth, each_s * factor) for depth, each_s in self.points)
        return Curve(points, self.ends, self.shape)


def expected_s(points: Points, outstanding: float) -> float | None:
    """Seconds of an I/O with this many outstanding; None beyond what was probed.

    Between two depths evenly in logarithms of both; with fewer than one outstanding as with one.
    """
    if not points or outstanding > points[-1][0]:
        return None
    depth = max(outstanding, points[0][0])
    before = points[0]
    for after in points:
        if depth <= after[0]:
            break
        before = after
    if after[0] == before[0]:
        return after[1]
    share = math.log(depth / before[0]) / math.log(after[0] / before[0])
    return float(before[1] * (after[1] / before[1]) ** share)


def most_per_s(points: Points) -> float | None:
    """The highest rate by Little's law, outstanding ÷ latency; None without a curve."""
    return max((depth / latency_s for depth, latency_s in points), default=None)
