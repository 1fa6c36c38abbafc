"""Computes each resource's demand per operation, and the throughput that saturates it (step 3).

For a load in steps the levels give a line ``U = b + D X`` (docs/rules.md). U is the utilisation of the
resource, X the throughput of the scenario that is varied, and D the demand of one operation. b is the
utilisation at rest and by the other scenarios. The ceiling is ``(1 - b) / D``. One load level does not show
b. The ceiling is then ``X / U``, which assumes that operations cause all of the utilisation and that all
scenarios grow in proportion. A resource without a known limit has no utilisation and no ceiling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.growth import LINE, SteppedLevels, find_line
from pinchpoint.analysis.model.parts import MOST_OF_OTHERS
from pinchpoint.analysis.resources.base import Measures, Resource
from pinchpoint.analysis.resources.cpu import others_share
from pinchpoint.analysis.resources.gain import SAME
from pinchpoint.analysis.resources.kinds import KINDS, measure, place
from pinchpoint.analysis.stages import Rows
from pinchpoint.base import units

ONE_LEVEL = f"{SAME}; use in proportion to throughput in all scenarios, as only one load level was measured"
SEVERAL = f"{SAME}; the other scenarios stay as they are"

MOVES = 0.02
"""A utilisation that differs by less than this between all load levels is not caused by the load."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The load's demand for one resource, and the resource's headroom.

    Attributes:
        found: measures of the resource in the judged stage.
        use: utilisation of the resource in the judged stage; 1 is saturated.
        base: the part of ``use`` at rest and by scenarios that were not varied. With one load level only
            other processes are counted.
        each_s: demand of one operation in seconds (share x seconds); None with one load level.
        ceiling_ratio: the throughput that saturates the resource ÷ throughput now; 1 or more while the
            resource is not saturated.
        ceilings_per_s: scenario -> throughput that saturates the resource, operations per second.
        levels: number of load levels that the demand was computed from.
        assumes: conditions of the ceiling, in words. From one load level the ceiling is an estimate and not a
            bound: all utilisation is assumed to grow with the load, including utilisation at rest.
        others: utilisation by other processes on the host, as far as known; 0 if none is known.
    """

    resource: Resource
    found: Measures
    use: float
    base: float
    each_s: float | None
    ceiling_ratio: float
    ceilings_per_s: Mapping[str, float]
    levels: int
    assumes: str
    others: float = 0.0


def loads_of(resource: Resource, flows: Sequence[Flow]) -> frozenset[str]:
    """The scenarios that load a resource; all scenarios if none is known to use it."""
    if resource.scenario:
        return frozenset({resource.scenario})
    there = [flow for flow in flows if any(flow.visits(tier) for tier in resource.tiers)]
    return frozenset(flow.load.scenario for flow in there or flows)


def of_its_loads(first: Resource, demands: Sequence[Demand], flows: Sequence[Flow]) -> tuple[Demand, ...]:
    """The demands of resources that share a scenario with ``first``; only these change without ``first``."""
    own = loads_of(first, flows)
    return tuple(one for one in demands if own & loads_of(one.resource, flows))


def demands_of(case: Case) -> tuple[Demand, ...]:
    """The demand of every resource of a case; empty if no stage was judged."""
    if case.stage is None:
        return ()
    return find_demands(case.resources, case.stage.rows, case.flows, case.now_per_s(), case.climb)


def find_demands(
    resources: Sequence[Resource],
    rows: Rows,
    flows: Sequence[Flow],
    served: Mapping[str, float],
    climb: SteppedLevels | None = None,
) -> tuple[Demand, ...]:
    """The demand of every resource with a known utilisation, the smallest ceiling first.

    Args:
        resources: the resources, with their columns over the judged part.
        rows: numbers of the steps of the judged stage.
        flows: the flows of all scenarios in the same window.
        served: scenario -> throughput over ``rows``, operations per second.
        climb: measurements of the levels of a load in steps; None for other loads.
    """
    result = []
    for resource in resources:
        measured = measure(resource, rows)
        use = KINDS[resource.type].load_use(resource, measured, in_steps=climb is not None)
        if use is None or use <= 0 or (climb and _unmoved(resource, climb)):
            continue
        own = loads_of(resource, flows)
        result.append(
            (climb and _of_levels(resource, measured, use, served, climb))
            or _of_one_level(resource, measured, use, {n: rate for n, rate in served.items() if n in own})
        )
    return tuple(sorted(result, key=lambda one: (one.ceiling_ratio, one.resource.key)))


def _of_one_level(resource: Resource, measured: Measures, use: float, served: Mapping[str, float]) -> Demand:
    """The demand from one load level: operations cause all utilisation except that of other processes.

    As in the model, other processes leave at least half of the cores to the farm.
    """
    others = (others_share(resource, measured) or 0.0) * use
    times = (1 - min(others, MOST_OF_OTHERS)) / (use - others)
    return Demand(
        resource=resource,
        found=measured,
        use=use,
        base=others,
        each_s=None,
        ceiling_ratio=times,
        ceilings_per_s={name: rate * times for name, rate in served.items()},
        levels=1,
        assumes=_assumed(ONE_LEVEL, resource, _of_others(others)),
        others=others,
    )


def _of_others(ratio: float) -> str:
    """The assumption about the CPU use of other processes, in words; "" without other processes."""
    if ratio > MOST_OF_OTHERS:
        return f"other processes, which use {units.percent(ratio)} of the CPU, leave half of it to the farm"
    return f"other processes go on using {units.percent(ratio)} of the CPU" if ratio else ""


def _unmoved(resource: Resource, climb: SteppedLevels) -> bool:
    """Whether a resource's utilisation does not grow with throughput over the levels.

    The load does not cause such a utilisation. For example, open sessions keep their connections at any load,
    and a job beside the load has a constant CPU share.
    """
    uses = np.array([found.use for found in climb.measured(resource)], dtype=float)
    known = np.isfinite(uses)
    if known.sum() > 1 and np.ptp(uses[known]) < MOVES:
        return True
    enough = known.sum() >= LINE and np.ptp(climb.done[known]) > 0
    return bool(enough and np.polyfit(climb.done[known], uses[known], 1)[0] <= 0)


def _of_levels(
    resource: Resource, measured: Measures, use: float, served: Mapping[str, float], climb: SteppedLevels
) -> Demand | None:
    """The demand from a line through the levels; None with too few levels or if a level contradicts the line.

    A level contradicts the line if the throughput is above the line's ceiling while the resource is not
    saturated.
    """
    scenario = climb.levels[0].scenario
    uses, now = [found.use for found in climb.measured(resource)], served.get(scenario)
    if not uses or not now:
        return None
    line = find_line(climb, np.array(uses, dtype=float))
    if line is None or (line.ceiling_per_s < now and use < 1 - line.base):
        return None
    return Demand(
        resource=resource,
        found=measured,
        use=use,
        base=line.base,
        each_s=line.each_s,
        ceiling_ratio=line.ceiling_per_s / now,
        ceilings_per_s={scenario: line.ceiling_per_s},
        levels=line.levels,
        assumes=_assumed(SEVERAL, resource),
    )


def _assumed(always: str, resource: Resource, more: str = "") -> str:
    """The assumptions of a demand, in words."""
    return "; ".join(filter(None, [always, more, "its burst credits last" if resource.baseline else ""]))


def demand_row(demand: Demand) -> dict[str, Any]:
    """The utilisation of a resource and the throughput at which it is saturated."""
    return {
        **place(demand.resource, demand.found),
        "used_ratio": demand.use,
        "base_ratio": demand.base if demand.each_s is not None else None,
        "each_s": demand.each_s,
        "ceilings_per_s": dict(demand.ceilings_per_s),
        "levels": demand.levels,
        "assumes": demand.assumes,
    }
