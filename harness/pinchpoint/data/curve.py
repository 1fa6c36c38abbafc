"""Computes the latency of one workload of a disk as a function of outstanding I/Os."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIDDLE = 0.5
"""The default shape of a curve: half-way between a regulator and a device, in logarithms."""

Points = Sequence[tuple[float, float]]
"""(outstanding I/Os, mean latency in seconds) of an undisturbed disk, sorted by outstanding I/Os."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The latency of an I/O by queue depth.

    Attributes:
        points: measured (outstanding I/Os, mean latency in seconds), sorted by outstanding I/Os; at least
            one.
        ends: whether the disk is saturated at the deepest point. If so, latency grows in proportion with more
            outstanding I/Os; else latency stays the same, apart from a regulator.
        shape: shape of the curve between two points. 0: a regulator, whose latency stays the same until its
            rate is reached. 1: a device, with a straight line in logarithms of both. Values between mix the
            two.
    """

    points: tuple[tuple[float, float], ...]
    ends: bool = True
    shape: float = MIDDLE

    def latency_s(self, outstanding: float) -> float:
        """The latency with this number of outstanding I/Os, seconds."""
        deepest, longest_s = self.points[-1]
        even_s = expected_s(self.points, outstanding)
        if even_s is None:
            return longest_s * outstanding / deepest if self.ends else longest_s
        before_s = max((point for point in self.points if point[0] <= outstanding), default=self.points[0])[1]
        after, after_s = next(point for point in self.points if point[0] >= outstanding)
        late_s = min(even_s, max(before_s, outstanding * after_s / after))
        return float(late_s ** (1 - self.shape) * even_s**self.shape)

    def times(self, factor: float) -> Curve:
        """The curve with all latencies multiplied by ``factor``."""
        points = tuple((depth, each_s * factor) for depth, each_s in self.points)
        return Curve(points, self.ends, self.shape)


def expected_s(points: Points, outstanding: float) -> float | None:
    """The latency with this number of outstanding I/Os, seconds; None above the deepest probed point.

    Between two points the line is straight in logarithms of both; below the first point latency is that of
    the first.
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
    """The highest I/O rate by Little's law, outstanding I/Os ÷ latency, per second; None without points."""
    return max((depth / latency_s for depth, latency_s in points), default=None)
