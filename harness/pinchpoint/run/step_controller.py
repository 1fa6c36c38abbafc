"""Decides when a load in steps ends: the farm does not follow the load, or misses an objective."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.loadgen.load_schedule import is_closed, levels
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.plan import Objective, Plan, Steps
from pinchpoint.run.recent_seconds import LATE_S, RecentSeconds, Reported
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.common.times import utc

FOLLOWS = 0.95
"""Share of an open load that must be completed for the load to count as served (docs/rules.md)."""
CHANCE = 2.0
"""Tolerance in standard deviations, because random arrivals vary: in one of forty levels they are fewer by
two."""
KNEE = 0.10
"""Share of the first level's gain per unit. If a step gains less, the farm is saturated (docs/rules.md)."""
EXPLODED = 10.0
"""Factor of the median time over that of the first level above which the farm does not follow (design
value)."""
IN_A_ROW = 2
"""Number of consecutive bad steps after which the load ends. One step can be bad by chance, and the knee can
only be recognised with levels above it."""


@dataclass(frozen=True, slots=True)
class HeldStep:
    """A level that lasted its full time.

    Attributes:
        level: rate per second, or number of users.
        reported: figures of the level, reported by the load generators.
    """

    level: float
    reported: Reported


def saturated(steps: Sequence[HeldStep], *, closed: bool) -> str | None:
    """Return why the farm does not follow the load; None if it follows, or if this is not known yet."""
    if len(steps) <= IN_A_ROW:
        return None
    judged = range(len(steps) - IN_A_ROW, len(steps))
    last, first = steps[-1], steps[0]
    if not closed and not any(_served(steps[number]) for number in judged):
        return f"{last.reported.ok_per_s:.4g}/s of {last.level:.4g}/s were served"
    slope = first.reported.ok_per_s / first.level
    if closed and slope and all(_gain(steps, number) < KNEE * slope for number in judged):
        return f"the last {IN_A_ROW} steps added less than a tenth of what their users brought at first"
    if not closed and all(_exploded(first, steps[number]) for number in judged):
        return f"half of the operations took {EXPLODED:g} times as long as at the first level"
    return None


def _served(step: HeldStep) -> bool:
    """Return whether an open load is served, within random variation."""
    offered = step.level * step.reported.seconds
    return step.reported.ok >= FOLLOWS * offered - CHANCE * math.sqrt(offered)


def _exploded(first: HeldStep, step: HeldStep) -> bool:
    """Return whether times exploded. Only an open load can show that: with more users, times always rise."""
    if first.reported.p50_s is None or step.reported.p50_s is None:
        return False
    return step.reported.p50_s > EXPLODED * first.reported.p50_s


def _gain(steps: Sequence[HeldStep], number: int) -> float:
    here, before = steps[number], steps[number - 1]
    return (here.reported.ok_per_s - before.reported.ok_per_s) / (here.level - before.level)


def missed(step: HeldStep, objectives: Sequence[Objective], *, closed: bool = False) -> str | None:
    """Return the objective that a level misses; None if the level meets all objectives.

    An objective for throughput is not missed if the offered load was lower, or if the load has users.
    """
    reported = step.reported
    if reported.ok == 0:
        return "nothing got through"
    for objective in objectives:
        for name in ("p50", "p95", "p99"):
            promised, result = getattr(objective, f"{name}_s"), getattr(reported, f"{name}_s")
            if promised is not None and result is not None and result > promised:
                return name
        if objective.errors_ratio is not None and (reported.error_ratio or 0.0) > objective.errors_ratio:
            return "errors"
        wanted = objective.throughput_per_s
        offered = wanted is not None and not closed and step.level >= wanted
        if offered and wanted is not None and not _served(HeldStep(wanted, reported)):
            return "throughput"
    return None


_HEARD_S = 2.0
"""Seconds within which every load generator knows the end of the steps. No generator schedules further
ahead."""


class StepController:
    """Follows the load in steps of one scenario, and decides when it ends.

    Args:
        name: name of the scenario.
        load: load model of the scenario.
        plan: plan with the objectives.
        store: run directory for events and the manifest.
        live: reports of the load generators.
        pool: load generators, which report the start of the load.
    """

    def __init__(
        self,
        name: str,
        load: Steps,
        plan: Plan,
        store: RunWriter,
        live: RecentSeconds,
        pool: GeneratorPool,
    ) -> None:
        self._name = name
        self._load = load
        self._objectives = [one for one in plan.scenario_objectives if one.scenario == name]
        self._store = store
        self._live = live
        self._pool = pool
        travelling: Mapping[str, Any] = load.to_json()
        self._closed = is_closed(travelling)
        self._levels = levels(travelling)
        self._begun: float | None = None
        self._begun_ns = 0
        self._steps: list[HeldStep] = []
        self._ended: str | None = None

    def over(self) -> bool:
        """Return whether the last step has ended, or no further step is needed. Call it often."""
        if self._begun is None:
            self._begun_ns = self._pool.begun_ns(self._name)
            self._begun = time.monotonic() + (self._begun_ns - time.time_ns()) / 1e9
            self._announce(0)
        while self._ended is None and time.monotonic() >= self._end_of(len(self._steps)) + LATE_S:
            self._judge()
        return self._ended is not None

    def hold(self) -> None:
        """Hold the load at its current or next level."""
        if self._begun is None:
            return  # the load has not begun yet
        number = int((time.monotonic() + _HEARD_S - self._begun) / self._load.each_s)
        number = min(number, len(self._levels) - 1)
        self._pool.hold({self._name: (number + 0.5) * self._load.each_s})
        self._store.event("steps_held", scenario=self._name, level=self._levels[number])

    def _end_of(self, number: int) -> float:
        assert self._begun is not None  # noqa: S101 -- set by the first call of ``over``
        return self._begun + (number + 1) * self._load.each_s

    def _judge(self) -> None:
        number = len(self._steps)
        ended = self._end_of(number)
        # The first second of a level is left out, because it contains operations of the level before.
        reported = self._live.between([self._name], ended - self._load.each_s + 1.0, ended)
        self._steps.append(HeldStep(self._levels[number], reported))
        self._note(number)
        self._ended = self._why_enough() or (
            "it was the last step" if number + 1 == len(self._levels) else None
        )
        if self._ended is None:
            self._announce(number + 1)
        else:
            self._store.event("steps_ended", scenario=self._name, why=self._ended)

    def _note(self, number: int) -> None:
        """Record a completed level for the analysis."""
        each_ns = round(self._load.each_s * 1e9)
        begin_ns = self._begun_ns + number * each_ns
        self._store.manifest.setdefault("steps", []).append(
            {
                "scenario": self._name,
                "level": self._levels[number],
                "unit": "users" if self._closed else "per_s",
                "from": utc(begin_ns),
                "to": utc(begin_ns + each_ns),
            }
        )
        self._store.save_manifest()

    def _why_enough(self) -> str | None:
        if self._load.until == "objective":
            result = missed(self._steps[-1], self._objectives, closed=self._closed)
            return f"an objective was missed: {result}" if result else None
        return saturated(self._steps, closed=self._closed)

    def _announce(self, number: int) -> None:
        self._store.event("step", scenario=self._name, number=number + 1, level=self._levels[number])
