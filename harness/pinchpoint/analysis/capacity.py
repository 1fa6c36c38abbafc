"""Step 3: each resource's demand per operation, and the throughput that saturates it.

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
"""A utilisation that differs less than this between load levels does not come from the load."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The load's demand for one resource, and its headroom there.

    Attributes:
        found: the measures of the judged stage.
        use: the utilisation in that stage.
        base: its part at rest and by scenarios that were not varied; 0 if one level cannot show it.
        each_s: one operation's demand (share x seconds); None if one level cannot attribute it.
        ceiling_ratio: ceiling ÷ throughput, 1 or more while the resource is not saturated.
        ceilings_per_s: by scenario, the throughput that saturates the resource.
        levels: number of load levels behind the figure.
        assumes: conditions of the figure. From one load level it is an estimate and not a bound: the
            utilisation at rest, and by loads that do not grow, is assumed to grow with the rest.
        others: the known part of other processes on the host; 0 if none.
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
    """The demands of resources with the same loads: removing the first limit changes no other."""
    own = loads_of(first, flows)
    return tuple(one for one in demands if own & loads_of(one.resource, flows))


def demands_of(case: Case) -> tuple[Demand, ...]:
    """The demand of every resource of a case; none without a stage to judge."""
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
        resources: with the columns of the judged part.
        rows: the steps of the judged stage.
        flows: of the same window.
        served: throughput by scenario over those rows.
        climb: the levels of a load in steps; None without any.
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
    """All utilisation is attributed to the operations, except that of other processes.

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
    """The assumption about other processes' utilisation; "" if it is unknown."""
    if ratio > MOST_OF_OTHERS:
        return f"other processes, which use {units.percent(ratio)} of the CPU, leave half of it to the farm"
    return f"other processes go on using {units.percent(ratio)} of the CPU" if ratio else ""


def _unmoved(resource: Resource, climb: SteppedLevels) -> bool:
    """Whether utilisation does not grow with throughput over the levels: then it does not come from the load.

    Open sessions keep their connections at any load, and a job beside the load has a constant CPU share.
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

    A level contradicts the line if the resource is not saturated at a throughput at which the line says it
    is.
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
