"""Step 3: the demand per operation on each resource, and the throughput at which it is saturated.

Over the levels of a load in steps ``U = b + D X`` (docs/rules.md): X the throughput of the scenario that is
varied; what the others take of it, and what is used at rest, is b. The ceiling is ``(1 - b) / D``. With one
level there is no b: ``X / U``, as if the operations took all of it and all scenarios grew in proportion.
Where no cap is known there is no use, and no ceiling.
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
"""A use that differs less than this between the levels of a load in steps is not the load's."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What the load takes of one resource, and how much more of that load it allows.

    Attributes:
        found: what was measured in the stage that is judged.
        use: how much of it is used there.
        base: the part of it used at rest and by scenarios that were not varied; 0 if one level cannot show
            it.
        each_s: what one operation takes of it (share times seconds); None if one level cannot show whose.
        ceiling_ratio: ceiling ÷ throughput there, 1 or more while it is not saturated.
        ceilings_per_s: by scenario, the throughput that uses it up.
        levels: how many load levels this is measured over.
        assumes: what must stay as it is for that to hold. By one load level it is an estimate, no bound: what
            is used at rest, and by loads that do not grow, is taken to grow with the rest.
        others: the part of the use that other processes on the host are known to have; 0 if none is.
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
    """The scenarios that load a resource; all scenarios if none is known to reach it."""
    if resource.scenario:
        return frozenset({resource.scenario})
    there = [flow for flow in flows if any(flow.visits(tier) for tier in resource.tiers)]
    return frozenset(flow.load.scenario for flow in there or flows)


def of_its_loads(first: Resource, demands: Sequence[Demand], flows: Sequence[Flow]) -> tuple[Demand, ...]:
    """The demands of resources that the same loads use: removing the first limit changes no other."""
    own = loads_of(first, flows)
    return tuple(one for one in demands if own & loads_of(one.resource, flows))


def demands_of(case: Case) -> tuple[Demand, ...]:
    """The demand of every resource of a case; none where it has no stage to judge."""
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
    """The demand of every resource whose use is known, the smallest ceiling first.

    Args:
        resources: with the columns of what is judged.
        rows: of the stage that is judged.
        flows: of the same window.
        served: throughput by scenario over those rows.
        climb: the levels of a load in steps; None if there were none.
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
    """All use is taken for the operations' own, but what other processes are known to use.

    As in the model, other processes leave half of the cores to the farm.
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
    """What is assumed of the use by other processes; "" if none is known."""
    if ratio > MOST_OF_OTHERS:
        return f"other processes, which use {units.percent(ratio)} of the CPU, leave half of it to the farm"
    return f"other processes go on using {units.percent(ratio)} of the CPU" if ratio else ""


def _unmoved(resource: Resource, climb: SteppedLevels) -> bool:
    """Whether its use does not grow with throughput over the levels: then it is not the load's.

    Open sessions keep their connections at any load, and a job beside the load uses its share of a CPU.
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
    """The demand by the line through the levels; None with too few levels, or if a level contradicts it.

    It does if the resource still has room at a throughput at which the line says that it is saturated.
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
    """The assumptions under which a demand holds."""
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
