"""A load in steps while it goes on: which level it is at, and when it has gone far enough."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pinchpoint.loadgen.load import is_closed, levels
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.plan import Plan, Steps
from pinchpoint.run.seconds import LATE_S, LiveSeconds
from pinchpoint.run.stepping import Step, missed, saturated
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.common.times import utc

_HEARD_S = 2.0
"""Every generator knows by then that the climb ends; none looks so far into its schedule."""


class Climb:
    """One scenario's load in steps: follows it, and says when it has gone far enough.

    Args:
        name: the scenario's.
        load: its load.
        plan: for its objectives.
        store: for events and the manifest.
        told: what the generators tell.
        pool: the generators, for when they began.
    """

    def __init__(
        self,
        name: str,
        load: Steps,
        plan: Plan,
        store: RunWriter,
        told: LiveSeconds,
        pool: GeneratorPool,
    ) -> None:
        self._name = name
        self._load = load
        self._objectives = [one for one in plan.objectives if one.scenario == name]
        self._store = store
        self._told = told
        self._pool = pool
        travelling: Mapping[str, Any] = load.to_json()
        self._closed = is_closed(travelling)
        self._levels = levels(travelling)
        self._begun: float | None = None
        self._begun_ns = 0
        self._steps: list[Step] = []
        self._ended: str | None = None

    def over(self) -> bool:
        """Whether the last step there is, or that there needs to be, has been held; to be called often."""
        if self._begun is None:
            self._begun_ns = self._pool.begun_ns(self._name)
            self._begun = time.monotonic() + (self._begun_ns - time.time_ns()) / 1e9
            self._announce(0)
        while self._ended is None and time.monotonic() >= self._end_of(len(self._steps)) + LATE_S:
            self._judge()
        return self._ended is not None

    def hold(self) -> None:
        """Let the load climb no further: the level it is at, or is about to reach, stays."""
        if self._begun is None:
            return  # it has not begun yet
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
        # Not its first second, in which the level before still shows.
        told = self._told.between([self._name], ended - self._load.each_s + 1.0, ended)
        self._steps.append(Step(self._levels[number], told))
        self._note(number)
        self._ended = self._why_enough() or (
            "it was the last step" if number + 1 == len(self._levels) else None
        )
        if self._ended is None:
            self._announce(number + 1)
        else:
            self._store.event("steps_ended", scenario=self._name, why=self._ended)

    def _note(self, number: int) -> None:
        """Write down a level that was held, for the analysis."""
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
            found = missed(self._steps[-1], self._objectives, closed=self._closed)
            return f"an objective was missed: {found}" if found else None
        return saturated(self._steps, closed=self._closed)

    def _announce(self, number: int) -> None:
        self._store.event("step", scenario=self._name, number=number + 1, level=self._levels[number])
