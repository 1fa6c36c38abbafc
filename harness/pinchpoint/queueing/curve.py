"""Latency over what is outstanding, of one workload of a disk."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.analysis.curve import expected_s

MIDDLE = 0.5
"""Between two measured depths the truth lies between two shapes: half-way, in logarithms."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What an I/O takes with so many outstanding.

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
        """Seconds of an I/O with so many outstanding."""
        deepest, longest_s = self.points[-1]
        even_s = expected_s(self.points, outstanding)
        if even_s is None:
            return longest_s * outstanding / deepest if self.ends else longest_s
        before_s = max((point for point in self.points if point[0] <= outstanding), default=self.points[0])[1]
        after, after_s = next(point for point in self.points if point[0] >= outstanding)
        late_s = min(even_s, max(before_s, outstanding * after_s / after))
        return float(late_s ** (1 - self.shape) * even_s**self.shape)

    def times(self, factor: float) -> Curve:
        """The same, every I/O so many times as long."""
        points = tuple((depth, each_s * factor) for depth, each_s in self.points)
        return Curve(points, self.ends, self.shape)
