"""Computes the input of a verdict: the results of steps 0 to 6 over one part of a run."""

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
from pinchpoint.analysis.stages import Rows, Stage, at_main_level, find_stages
from pinchpoint.data.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Case:
    """The results of steps 0 to 6, from which the conclusion is drawn.

    Attributes:
        gates: all gates, passed or not.
        stages: the load levels of the run.
        stage: the judged stage: a sustained stage, or the peak if only bursts saturated a resource; None
            without stages.
        found: the suspected resources of ``stage`` with the evidence against each, the cause first.
        climb: measurements of the levels of a load in steps; None for other loads.
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
        """Scenario -> successful operations per second over the judged steps.

        All verdicts and predictions use this throughput, because the utilisations cover the same steps.
        """
        return {} if self.stage is None else self._per_s(self.stage.rows)

    def served_per_s(self) -> dict[str, float]:
        """Scenario -> successful operations per second over all load levels, bursts included."""
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
    """The results of all steps on one part of a run, as if nothing else had been measured.

    Args:
        inputs: the measurements of the part.
        knee: the knee of a load in steps; None for other loads.
        climb: measurements of all levels of a load in steps; None for other loads.
        since: the measurements from the start of the run to the end of the part, which show a disk that spent
            its burst credits before the part.
    """
    part = at_main_level(inputs)
    stages = find_stages(part, inputs.window.steps - part.window.steps)
    inputs, flows = part, find_flows(part)
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
    """The resources with disks' service-time models from all load levels.

    The judged levels alone differ too little for a model.
    """
    if climb is None:
        return resources
    models = {one.key: one.service_time for one in climb.resources}
    return tuple(replace(one, service_time=models.get(one.key, one.service_time)) for one in resources)


def _with_earlier_falls(resources: Resources, since: Inputs | None) -> Resources:
    """The resources with earlier falls of a disk's rate (for example without burst credits)."""
    if since is None:
        return resources
    before = {one.key: one.shift for one in find_disks(since) if fell(one.shift)}
    return tuple(replace(one, shift=one.shift or before.get(one.key)) for one in resources)


def _judged(
    stages: tuple[Stage, ...], resources: Resources, flows: Flows
) -> tuple[Stage | None, Resources, tuple[Suspicion, ...]]:
    """(stage, resources, suspects) of the first stage with a saturated resource, else of the first stage.

    Sustained stages come first.
    """
    first = None
    for stage in stages:
        there = settle(resources, stage.rows)
        first = first or (stage, there)
        result = suspects(there, stage.rows, flows)
        if result:
            return stage, there, result
    return (*first, ()) if first else (None, resources, ())
