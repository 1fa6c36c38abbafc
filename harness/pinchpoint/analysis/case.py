"""The input of a verdict: steps 0 to 6 over one stretch of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.cause import rank, suspects
from pinchpoint.analysis.flows import Flows, find_flows
from pinchpoint.analysis.gates import Gate, check_gates
from pinchpoint.analysis.growth import SteppedLevels, with_growth
from pinchpoint.analysis.knee import Knee, no_knee
from pinchpoint.analysis.resources.base import Resources, Suspicion
from pinchpoint.analysis.resources.disk.classify import fell
from pinchpoint.analysis.resources.disk.devices import find_disks
from pinchpoint.analysis.resources.disk.measures import settle
from pinchpoint.analysis.resources.kinds import find_resources
from pinchpoint.analysis.stages import Rows, Stage, find_stages
from pinchpoint.data.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Case:
    """The results of steps 0 to 6, from which the conclusion is drawn.

    Attributes:
        gates: all gates, passed or not.
        stages: the load levels.
        stage: the judged one: the sustained one unless only bursts saturated something.
        found: the evidence against each resource in it, the cause first.
        climb: the figures of the levels of a load in steps; None without any.
    """

    inputs: Inputs
    flows: Flows
    resources: Resources
    gates: tuple[Gate, ...]
    knee: Knee
    stages: tuple[Stage, ...]
    stage: Stage | None
    found: tuple[Suspicion, ...]
    climb: SteppedLevels | None

    def now_per_s(self) -> dict[str, float]:
        """The present throughput by scenario, for every verdict and prediction.

        Successful operations per second over the judged steps: those with measured utilisations.
        """
        return {} if self.stage is None else self._per_s(self.stage.rows)

    def served_per_s(self) -> dict[str, float]:
        """The same over all load levels, bursts included; they differ where a load has several."""
        return self._per_s(np.concatenate([one.rows for one in self.stages])) if self.stages else {}

    def _per_s(self, rows: Rows) -> dict[str, float]:
        ended = {
            flow.load.scenario: self.inputs.traffic.of(flow.load.scenario).whole().ok() for flow in self.flows
        }
        rates = {name: float(one.per_step(self.inputs.window)[rows].mean()) for name, one in ended.items()}
        return {name: rate for name, rate in rates.items() if rate > 0}

    @property
    def failed(self) -> tuple[Gate, ...]:
        """The gates that failed."""
        return tuple(gate for gate in self.gates if not gate.held)


def build_case(
    inputs: Inputs, knee: Knee | None = None, climb: SteppedLevels | None = None, since: Inputs | None = None
) -> Case:
    """Run all steps on one part of the run, as if nothing else had been measured.

    Args:
        inputs: the stretch.
        knee: of a load in steps.
        climb: the figures of all its levels.
        since: the same with earlier measurements: a disk without burst credits has none now.
    """
    flows, stages = find_flows(inputs), find_stages(inputs)
    resources = _with_earlier_falls(_with_service_times(find_resources(inputs, flows), climb), since)
    stage, resources, result = _judged(stages, resources, flows)
    result = by_all_levels(result, climb)
    knee = knee or no_knee(len(stages))
    return Case(inputs, flows, resources, check_gates(inputs, flows), knee, stages, stage, result, climb)


def by_all_levels(suspicions: tuple[Suspicion, ...], climb: SteppedLevels | None) -> tuple[Suspicion, ...]:
    """The suspected resources, the cause first, with the evidence from all load levels."""
    if climb is None:
        return suspicions
    return tuple(sorted(with_growth(suspicions, climb), key=rank, reverse=True))


def _with_service_times(resources: Resources, climb: SteppedLevels | None) -> Resources:
    """The service-time model of disks, over all levels: the last ones differ too little."""
    if climb is None:
        return resources
    models = {one.key: one.service_time for one in climb.resources}
    return tuple(replace(one, service_time=models.get(one.key, one.service_time)) for one in resources)


def _with_earlier_falls(resources: Resources, since: Inputs | None) -> Resources:
    """The resources, with falls of disks' levels before this part."""
    if since is None:
        return resources
    before = {one.key: one.shift for one in find_disks(since) if fell(one.shift)}
    return tuple(replace(one, shift=one.shift or before.get(one.key)) for one in resources)


def _judged(
    stages: tuple[Stage, ...], resources: Resources, flows: Flows
) -> tuple[Stage | None, Resources, tuple[Suspicion, ...]]:
    """The first stage in which a resource is saturated (sustained ones first), else the first one."""
    first = None
    for stage in stages:
        there = settle(resources, stage.rows)
        first = first or (stage, there)
        result = suspects(there, stage.rows, flows)
        if result:
            return stage, there, result
    return (*first, ()) if first else (None, resources, ())
