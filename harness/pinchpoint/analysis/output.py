"""Step 7: the parts of a verdict: the bottleneck, headroom, the next bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pinchpoint.analysis.capacity import Demand
from pinchpoint.analysis.confidence import Trust
from pinchpoint.analysis.gates import RECORDED, Gate
from pinchpoint.analysis.resources.base import Resource, ResourceKind, Suspicion
from pinchpoint.analysis.resources.kinds import KINDS, WAYS, facts, kind_of, measure, owner
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import PRESSED, exceeds
from pinchpoint.analysis.verdict import Next, Suspect
from pinchpoint.data.inputs import Inputs, utc

LEAST_USED = 0.05
"""A resource with a lower use by the load is no next bottleneck: the ratio would have no meaning."""


def window_of(inputs: Inputs, stage: Stage | None) -> tuple[str, str]:
    """UTC start and end of the analysed time."""
    window = inputs.window
    first, last = (int(stage.rows[0]), int(stage.rows[-1])) if stage is not None else (0, window.steps - 1)
    return utc(window.first_s + first * window.step_s), utc(window.first_s + (last + 1) * window.step_s)


def named(inputs: Inputs, stage: Stage, one: Suspicion, trust: Trust | None) -> Suspect:
    """A suspicion as the verdict names it; without ``trust`` it is a candidate only."""
    tier, host = owner(one.resource, one.found)
    return Suspect(
        kind=one.kind,
        tier=tier,
        host=host,
        resource=kind_of(one).reported,
        instance=one.resource.instance,
        role=one.resource.role,
        confidence=trust.level if trust else None,
        window=window_of(inputs, stage),
        evidence=facts(one),
        shared_with=tuple(other for other in one.resource.tiers if other != tier),
        uses=tuple({"tier": name, "share_ratio": share} for name, share in one.found.uses.items()),
        why_not_more=trust.why_not_more if trust else (),
    )


def generator_at_fault(inputs: Inputs, stage: Stage | None, gates: tuple[Gate, ...]) -> Suspect:
    """An invalid run's bottleneck: contention on its machine, the load generator, or the recorder in it.

    It has no confidence: the run says nothing of the farm.
    """
    first, contention = gates[0], gates[0].contention
    blamed = "recorder" if first.fact.metric == RECORDED else "generator"
    facts_ = tuple(gate.fact for gate in gates)
    return Suspect(
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


def nearest(inputs: Inputs, stage: Stage, resources: Iterable[Resource]) -> tuple[Suspect, ...]:
    """Where nothing stands out: the two resources nearest to their limit, the unmeasured among them."""
    ranked = []
    for one in resources:
        kind, found = KINDS[one.type], measure(one, stage.rows)
        near = kind.nearness(one, found)
        if kind.nearest and one.whole is None and near >= PRESSED.value:
            ranked.append((-near, -1.0 if found.use is None else found.use, one))
    ranked.sort(key=lambda each: (each[0], -each[1]))
    return candidates(inputs, stage, (one for *_, one in ranked[:2]))


def candidates(inputs: Inputs, stage: Stage, resources: Iterable[Resource]) -> tuple[Suspect, ...]:
    """CPUs and disks as candidates, in that order."""
    rated = ((one, KINDS[one.type]) for one in resources)
    return tuple(_candidate(inputs, stage, one, kind) for one, kind in rated if kind.candidate is not None)


def _candidate(inputs: Inputs, stage: Stage, one: Resource, kind: ResourceKind[Any]) -> Suspect:
    found = kind.measure(one, stage.rows)
    tier, host = kind.owner(one, found)
    return Suspect(
        kind=kind.candidate or kind.kind,
        tier=tier,
        host=host,
        resource=one.type,
        instance=one.instance,
        role=one.role,
        confidence=None,
        window=window_of(inputs, stage),
        evidence=(kind.standing(one, found),),
        shared_with=tuple(other for other in one.tiers if other != tier),
    )


def reach(first: Suspicion, demands: Sequence[Demand]) -> float:
    """The throughput at which the first resource is saturated ÷ throughput now: 1 if it is saturated now.

    For a disk whose burst credits ran out it is below 1: the throughput since then ÷ the mean before and
    after.
    """
    left = kind_of(first).left(first, first.found)
    if left is not None:
        return left
    own = next((one for one in demands if one.resource.key == first.resource.key), None)
    if own is None or first.contradicted or WAYS[first.kind] != "use":
        return 1.0
    return max(1.0, own.ceiling_ratio)


def others(first: Suspicion | None, demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """The resources that would limit after the first, the smallest ceiling first."""
    return tuple(one for one in demands if _counts(one, first))


def _counts(one: Demand, first: Suspicion | None) -> bool:
    resource = one.resource
    if first is not None and resource.key == first.resource.key:
        return False
    # What the load itself takes of it must count: sessions that stay open use a pool at any load. What does
    # more than it can is not what was declared; a little more is at its limit.
    part = first is not None and KINDS[resource.type].is_part_of(resource, first.resource)
    return not exceeds(one.use) and one.use - one.base >= LEAST_USED and not part


def following(first: Suspicion | None, demands: Sequence[Demand]) -> tuple[Next, ...]:
    """The next bottlenecks after the first, in order: gain at most X_2 ÷ X_1 - 1 (docs/rules.md)."""
    now = 1.0 if first is None else reach(first, demands)
    return tuple(_next(one, now) for one in others(first, demands))


def _next(one: Demand, now: float) -> Next:
    tier, host = owner(one.resource, one.found)
    return Next(
        kind=KINDS[one.resource.type].kind,
        tier=tier,
        host=host,
        resource=one.resource.type,
        instance=one.resource.instance,
        role=one.resource.role,
        utilisation_ratio=one.use,
        gain_ratio=max(0.0, one.ceiling_ratio / now - 1),
        assumes=one.assumes,
        at_most=one.levels > 1,
    )
