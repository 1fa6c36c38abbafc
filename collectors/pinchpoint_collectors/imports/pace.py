"""How far apart a recorder's readings usually are, and where they were not: there nobody looked."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from statistics import median_low

from pinchpoint_collectors.imports.record import Found

GAP = 2.5
"""Readings further apart than so many usual intervals have a gap between them."""
_LATEST = 15
"""So many intervals tell which one is usual,"""
_FEWEST = 3
"""and with fewer than these none is."""


class Pace:
    """The readings of one recorder, in their order.

    One that stood still says nothing of the time in between: what it reads afterwards is of the moment, or
    of one usual interval.
    """

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=_LATEST)
        self._gaps: list[tuple[float, float]] = []

    @property
    def usual_s(self) -> float | None:
        """Seconds between two readings; None before the second."""
        return median_low(self._steps) if self._steps else None

    def covered_s(self, before_s: float, time_s: float) -> float:
        """Seconds that a value read at ``time_s`` stands for: those since ``before_s``, or a usual interval.

        Args:
            before_s: UTC seconds of the reading before.
            time_s: UTC seconds of this one, later.
        """
        step_s = time_s - before_s
        usual_s = self.usual_s if len(self._steps) >= _FEWEST else None
        self._steps.append(step_s)
        if usual_s is None or step_s <= GAP * usual_s:
            return step_s
        self._gaps.append((before_s, time_s - usual_s))
        return usual_s

    def tell(self, found: Found, whose: str = "") -> None:
        """Say how often, and for how long at most, nothing was read."""
        if not self._gaps:
            return
        begin_s, end_s = max(self._gaps, key=lambda gap: gap[1] - gap[0])
        begin, end = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}" for at in (begin_s, end_s))
        times = "once" if len(self._gaps) == 1 else f"{len(self._gaps)} times, for longest"
        found.note(f"nothing was recorded{whose and f' of {whose}'} {times} from {begin} to {end} UTC")
