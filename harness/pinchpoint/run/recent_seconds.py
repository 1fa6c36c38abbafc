"""Stores the reports of the load generators about the last seconds of a run."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pinchpoint.base.objects import JsonObject
from pinchpoint.loadgen.latency_bins import percentiles_s
from pinchpoint.plan import Plan, Steps

_LEAST_KEPT_S = 60.0
LATE_S = 1.5
"""Time in seconds within which a worker reports a finished second."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The reported figures of scenarios over a period.

    Attributes:
        seconds: length of the period in seconds.
        ok: successful operations.
        failed: failed operations.
        dropped: operations that could not start.
        p95_s: p95 over successful and dropped operations, with an infinite time for dropped ones, within half
            a per cent; None without a successful operation. p50_s and p99_s are calculated in the same way.
        skipped: operations for which there was no work; they are not failures.
    """

    seconds: float
    ok: int
    failed: int
    dropped: int
    p95_s: float | None
    p50_s: float | None = None
    p99_s: float | None = None
    skipped: int = 0

    @property
    def ok_per_s(self) -> float:
        """Return the successful operations per second."""
        return self.ok / self.seconds if self.seconds else 0.0

    @property
    def error_ratio(self) -> float | None:
        """Return failed and dropped operations ÷ all requested operations; None without operations."""
        total = self.ok + self.failed + self.skipped + self.dropped
        return (self.failed + self.dropped) / total if total else None


def longest_look_s(plan: Plan) -> float:
    """Return the longest period in seconds that steps and stop rules of a plan need."""
    steps = [one.load.each_s for one in plan.scenarios.values() if isinstance(one.load, Steps)]
    return max([_LEAST_KEPT_S, *steps, *(rule.for_s for rule in plan.stop_when)])


class RecentSeconds:
    """Stores the seconds of every load generator. Reader threads write them.

    Args:
        kept_s: length of the stored period in seconds.
    """

    def __init__(self, kept_s: float = _LEAST_KEPT_S) -> None:
        self._kept_s = kept_s + 2 * LATE_S
        self._lock = threading.Lock()
        self._seconds: dict[str, deque[JsonObject]] = defaultdict(deque)

    def second(self, progress: Mapping[str, JsonObject]) -> None:
        """Receive the report of a load generator about its last second."""
        with self._lock:
            for scenario, figures in progress.items():
                kept = self._seconds[scenario]
                kept.append(figures)
                # After a clock is set forward, even the newest report is too old.
                while kept and kept[0]["before_s"] < time.time() - self._kept_s:
                    kept.popleft()

    def between(self, scenarios: Iterable[str], begun: float, ended: float) -> Reported:
        """Return the reported figures of scenarios for the seconds that ended between two monotonic times.

        All seconds in the period count, however late their reports arrive.
        """
        utc_s = time.time() - time.monotonic()
        with self._lock:
            result = [
                figures
                for scenario in scenarios
                for figures in self._seconds[scenario]
                if begun + utc_s < figures["before_s"] <= ended + utc_s
            ]
        ok, failed, skipped, dropped = (
            sum(one[name] for one in result) for name in ("ok", "failed", "skipped", "dropped")
        )
        times = percentiles_s((one["times"] for one in result), (50, 95, 99), dropped)
        p50_s, p95_s, p99_s = times or (None,) * 3
        return Reported(ended - begun, ok, failed, dropped, p95_s, p50_s, p99_s, skipped)
