"""What the generators tell while a run goes on, second by second: for what cannot wait for its end."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_KEPT_S = 900.0
LATE_S = 1.5
"""A second is told when it is over, at a moment of its worker's own."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of one scenario over a time.

    Attributes:
        seconds: how long.
        ok: operations that did what they should.
        failed: those that failed.
        dropped: those that could not start.
        p95_s: mean of the seconds' 95th percentiles, weighted by operations; None where none ended.
    """

    seconds: float
    ok: int
    failed: int
    dropped: int
    p95_s: float | None

    @property
    def ok_per_s(self) -> float:
        """Throughput."""
        return self.ok / self.seconds if self.seconds else 0.0

    @property
    def error_ratio(self) -> float | None:
        """Failed and dropped ÷ all; None where there was nothing."""
        total = self.ok + self.failed + self.dropped
        return (self.failed + self.dropped) / total if total else None


class LiveSeconds:
    """Takes every generator's seconds; written by reader threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, deque[tuple[float, Mapping[str, Any]]]] = defaultdict(deque)

    def second(self, progress: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what one generator told of its last second."""
        now = time.monotonic()
        with self._lock:
            for scenario, figures in progress.items():
                kept = self._told[scenario]
                kept.append((now, figures))
                while kept[0][0] < now - _KEPT_S:
                    kept.popleft()

    def between(self, scenarios: Iterable[str], begun: float, ended: float) -> Told:
        """What was told of scenarios between two moments (monotonic), as late as it is told."""
        with self._lock:
            found = [
                figures
                for scenario in scenarios
                for at, figures in self._told[scenario]
                if begun + LATE_S <= at < ended + LATE_S
            ]
        timed = [(one["p95_s"], one["ok"] + one["failed"]) for one in found if one["p95_s"] is not None]
        weight = sum(count for _, count in timed)
        return Told(
            seconds=ended - begun,
            ok=sum(one["ok"] for one in found),
            failed=sum(one["failed"] for one in found),
            dropped=sum(one["dropped"] for one in found),
            p95_s=sum(p95 * count for p95, count in timed) / weight if weight else None,
        )
