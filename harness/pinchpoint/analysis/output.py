"""Builds the parts of a verdict (step 7): the bottleneck, the headroom, the next bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pinchpoint.analysis.capacity import Demand
from pinchpoint.analysis.confidence import Trust
from pinchpoint.analysis.gates import RECORDED, Gate
from pinchpoint.analysis.resources.base import Resource, ResourceKind, Suspicion
from pinchpoint.analysis.resources.kinds import KINDS, LIMIT_MODES, facts, kind_of, measure, place
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import PRESSED, exceeds
from pinchpoint.analysis.verdict import Bottleneck, Next
from pinchpoint.data.inputs import Inputs, utc

LEAST_USED = 0.05
"""A resource of which the load uses less is no next bottleneck: its ceiling would have no meaning."""


def window_of(inputs: Inputs, stage: Stage | None) -> tuple[str, str]:
    """UTC start and end of the analysed time."""
    window = inputs.window
    first, last = (int(stage.rows[0]), int(stage.rows[-1])) if stage is not None else (0, window.steps - 1)
    return utc(window.first_s + first * window.step_s), utc(window.first_s + (last + 1) * window.step_s)


def named(inputs: Inputs, stage: Stage, suspicion: Suspicion, trust: Trust | None) -> Bottleneck:
    """A suspected resource in the verdict's form; without ``trust`` the resource is only a candidate."""
    where = place(suspicion.resource, suspicion.found) | {"resource": kind_of(suspicion).reported}
    return Bottleneck(
        kind=suspicion.kind,
        **where,
        confidence=trust.level if trust else None,
        window=window_of(inputs, stage),
        evidence=facts(suspicion),
        shared_with=tuple(other for other in suspicion.resource.tiers if other != where["tier"]),
        uses=tuple({"tier": name, "share_ratio": share} for name, share in suspicion.found.uses.items()),
        why_not_more=trust.why_not_more if trust else (),
    )


def generator_at_fault(inputs: Inputs, stage: Stage | None, gates: tuple[Gate, ...]) -> Bottleneck:
    """The cause of an invalid run: contention on the machine, the load generator, or the recorder.

    The cause has no confidence, because the run is no evidence about the farm.
    """
    first, contention = gates[0], gates[0].contention
    blamed = "recorder" if first.fact.metric == RECORDED else "generator"
    facts_ = tuple(gate.fact for gate in gates)
    return Bottleneck(
        kind="generator" if contention is None else "contention",
        tier=None,
        host=(first.host or None) if contention is None else contention.host,
        resource=blamed if contention is None else "cpu",
        instance="",
        role=None,
        confidence=None,
        window=window_of(inputs, stage),
        evidence=facts_ if contention is None else (contention.fact(), *facts_),
    )


def nearest(inputs: Inputs, stage: Stage, resources: Iterable[Resource]) -> tuple[Bottleneck, ...]:
    """The two resources nearest to their limits, unmeasured ones included, if none stands out."""
    ranked = []
    for one in resources:
        kind, result = KINDS[one.type], measure(one, stage.rows)
        near = kind.nearness(one, result)
        if kind.nearest and one.whole is None and near >= PRESSED.value:
            ranked.append((-near, -1.0 if result.use is None else result.use, one))
    ranked.sort(key=lambda each: (each[0], -each[1]))
    return candidates(inputs, stage, (one for *_, one in ranked[:2]))


def candidates(inputs: Inputs, stage: Stage, resources: Iterable[Resource]) -> tuple[Bottleneck, ...]:
    """The CPUs and disks among the resources as candidates, in the order given."""
    rated = ((one, KINDS[one.type]) for one in resources)
    return tuple(_candidate(inputs, stage, one, kind) for one, kind in rated if kind.candidate is not None)


def _candidate(inputs: Inputs, stage: Stage, resource: Resource, kind: ResourceKind[Any]) -> Bottleneck:
    result = kind.measure(resource, stage.rows)
    where = place(resource, result)
    return Bottleneck(
        kind=kind.candidate or kind.kind,
        **where,
        confidence=None,
        window=window_of(inputs, stage),
        evidence=(kind.standing(resource, result),),
        shared_with=tuple(other for other in resource.tiers if other != where["tier"]),
    )


def reach(first: Suspicion, demands: Sequence[Demand]) -> float:
    """The throughput at which the first resource is saturated ÷ throughput now; 1 if saturated now.

    After a disk's burst credits ran out, the ratio is below 1: the throughput since then ÷ the mean before
    and after.
    """
    left = kind_of(first).left(first, first.found)
    if left is not None:
        return left
    own = next((one for one in demands if one.resource.key == first.resource.key), None)
    if own is None or first.contradicted or LIMIT_MODES[first.kind] != "use":
        return 1.0
    return max(1.0, own.ceiling_ratio)


def others(first: Suspicion | None, demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """The resources that would limit next, the smallest ceiling first."""
    return tuple(one for one in demands if _counts(one, first))


def _counts(demand: Demand, first: Suspicion | None) -> bool:
    resource = demand.resource
    if first is not None and resource.key == first.resource.key:
        return False
    # Only resources whose utilisation comes from the load count: open sessions use a pool at any load. A
    # resource far above its declared limit has another limit; slightly above, it is at its limit.
    part = first is not None and KINDS[resource.type].is_part_of(resource, first.resource)
    return not exceeds(demand.use) and demand.use - demand.base >= LEAST_USED and not part


def following(first: Suspicion | None, demands: Sequence[Demand]) -> tuple[Next, ...]:
    """The next bottlenecks after the first, in order; a gain is at most X_2 ÷ X_1 - 1 (docs/rules.md)."""
    now = 1.0 if first is None else reach(first, demands)
    return tuple(_next(one, now) for one in others(first, demands))


def _next(demand: Demand, now: float) -> Next:
    return Next(
        kind=KINDS[demand.resource.type].kind,
        **place(demand.resource, demand.found),
        utilisation_ratio=demand.use,
        gain_ratio=max(0.0, demand.ceiling_ratio / now - 1),
        assumes=demand.assumes,
        at_most=demand.levels > 1,
        others_ratio=demand.others or None,
    )
