"""Step 7: from suspects to the verdict's parts: who is named, how much room is left, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pinchpoint.analysis.capacity import Demand
from pinchpoint.analysis.confidence import Trust
from pinchpoint.analysis.gates import RECORDED, Gate
from pinchpoint.analysis.resources.base import CpuMeasures, DiskMeasures, Resource, ShareMeasures, Suspicion
from pinchpoint.analysis.resources.disk.classify import demoted
from pinchpoint.analysis.resources.disk.slowness import is_slow
from pinchpoint.analysis.resources.kinds import KINDS, facts, measure, owner
from pinchpoint.analysis.stages import Rows, Stage
from pinchpoint.analysis.thresholds import PRESSED, exceeds
from pinchpoint.analysis.verdict import Kind, Next, Suspect
from pinchpoint.data.inputs import Inputs, utc

AT_A_CEILING = ("cpu", "cpu_thread", "disk_cap", "network", "pool")
"""Kinds in which its use tells how much more of the load a resource allows."""
RATED = ("cpu", "allowance", "thread", "disk")
"""Resources of which a candidate can be made."""
LEAST_USED = 0.05
"""A resource of which the load takes less is no next bottleneck: the ratio would have no meaning."""
NOT_MEASURED_RANK = 0.75
"""Where a resource that was not measured stands among the candidates: before those known to have room."""

SLOW_RANK = 0.9
"""Where a disk slower than its role's limit stands among them: something is known against it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a resource is used, in one stage.

    Attributes:
        ratio: None where that is not known (no declared cap, not measured).
    """

    resource: Resource
    found: CpuMeasures | DiskMeasures
    ratio: float | None


def usage(resources: tuple[Resource, ...], rows: Rows) -> tuple[Usage, ...]:
    """The use of every resource, the most used first; those whose use is not known come last."""
    found = [(resource, measure(resource, rows)) for resource in resources if resource.type in RATED]
    rated = [
        Usage(resource, figures, figures.use)
        for resource, figures in found
        if not isinstance(figures, ShareMeasures)
    ]
    return tuple(sorted(rated, key=lambda one: -(one.ratio if one.ratio is not None else -1.0)))


def window_of(inputs: Inputs, stage: Stage | None) -> tuple[str, str]:
    """UTC start and end of what was looked at."""
    window = inputs.window
    first, last = (int(stage.rows[0]), int(stage.rows[-1])) if stage is not None else (0, window.steps - 1)
    return utc(window.first_s + first * window.step_s), utc(window.first_s + (last + 1) * window.step_s)


def named(inputs: Inputs, stage: Stage, one: Suspicion, trust: Trust | None) -> Suspect:
    """A suspicion as the verdict names it; without ``trust`` it is a candidate only."""
    tier, host = owner(one.resource, one.found)
    uses = one.found.uses if isinstance(one.found, CpuMeasures) else {}
    return Suspect(
        kind=one.kind,
        tier=tier,
        host=host,
        resource="cpu" if one.kind == "cpu" else one.resource.type,
        instance=one.resource.instance,
        role=one.resource.role,
        confidence=trust.level if trust else None,
        window=window_of(inputs, stage),
        evidence=facts(one),
        shared_with=tuple(other for other in one.resource.tiers if other != tier),
        uses=tuple({"tier": name, "share_ratio": share} for name, share in uses.items()),
        why_not_more=trust.why_not_more if trust else (),
    )


def generator_at_fault(inputs: Inputs, stage: Stage | None, gates: tuple[Gate, ...]) -> Suspect:
    """An invalid run's bottleneck: contention on its machine, the load generator, or the recorder in it.

    It has no confidence: the run says nothing of the farm.
    """
    first = gates[0]
    if first.contention is not None:
        return Suspect(
            kind="contention",
            tier=None,
            host=first.contention.host,
            resource="cpu",
            instance="",
            role=None,
            confidence=None,
            window=window_of(inputs, stage),
            evidence=(first.contention.fact(), *(gate.fact for gate in gates)),
        )
    recorder = first.fact.metric == RECORDED
    return Suspect(
        kind="generator",
        tier=None,
        host=first.host or None,
        resource="recorder" if recorder else "generator",
        instance="",
        role=None,
        confidence=None,
        window=window_of(inputs, stage),
        evidence=tuple(gate.fact for gate in gates),
    )


def nearest(inputs: Inputs, stage: Stage, resources: tuple[Resource, ...]) -> tuple[Suspect, ...]:
    """Where nothing stands out: the two resources nearest to their limit, the unmeasured among them."""
    ranked = sorted(usage(resources, stage.rows), key=lambda one: -_nearness(one))
    close = [
        one
        for one in ranked
        if one.resource.type in {"cpu", "disk"}
        and one.resource.whole is None
        and _nearness(one) >= PRESSED.value
    ]
    return tuple(_candidate(inputs, stage, one) for one in close[:2])


def candidates(inputs: Inputs, stage: Stage, resources: Iterable[Resource]) -> tuple[Suspect, ...]:
    """CPUs and disks as candidates, in that order."""
    found = {one.resource.key: one for one in usage(tuple(resources), stage.rows)}
    return tuple(_candidate(inputs, stage, found[one.key]) for one in resources if one.key in found)


def _nearness(one: Usage) -> float:
    if isinstance(one.found, CpuMeasures):
        return NOT_MEASURED_RANK if one.ratio is None else one.ratio
    if is_slow(one.resource, one.found) and not demoted(one.resource, one.found):
        return SLOW_RANK
    if one.ratio is not None:
        return min(1.0, one.ratio)
    # Pressure is that of all disks together; one that idles is not what is waited for.
    return min(one.found.pressure or 0.0, 1.0 if one.found.busy is None else one.found.busy)


def _candidate(inputs: Inputs, stage: Stage, one: Usage) -> Suspect:
    tier, host = owner(one.resource, one.found)
    kind: Kind = "cpu" if one.resource.type == "cpu" else "disk_latency"
    evidence = (KINDS[one.resource.type].standing(one.resource, one.found),)
    return Suspect(
        kind=kind,
        tier=tier,
        host=host,
        resource=one.resource.type,
        instance=one.resource.instance,
        role=one.resource.role,
        confidence=None,
        window=window_of(inputs, stage),
        evidence=evidence,
        shared_with=tuple(other for other in one.resource.tiers if other != tier),
    )


def reach(first: Suspicion, demands: Sequence[Demand]) -> float:
    """The throughput at which the first resource is used up ÷ throughput now: 1 where that is now.

    Of a disk whose credits ran out it is less than 1: what is left of the mean of before and after.
    """
    if first.kind == "disk_burst_exhausted":
        return _after_burst(first)
    own = next((one for one in demands if one.resource.key == first.resource.key), None)
    if own is None or first.contradicted or first.kind not in AT_A_CEILING:
        return 1.0
    return max(1.0, own.ceiling_ratio)


def _after_burst(first: Suspicion) -> float:
    shift, found = first.resource.shift, first.found
    if shift is None or not isinstance(found, DiskMeasures):
        return 1.0
    usual = found.io if shift.of == "io" else found.bytes
    return min(1.0, shift.after / usual) if usual else 1.0


def others(first: Suspicion | None, demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """The resources that would limit after the first, the smallest ceiling first."""
    return tuple(one for one in demands if _counts(one, first))


def _counts(one: Demand, first: Suspicion | None) -> bool:
    resource = one.resource
    if first is not None and resource.key == first.resource.key:
        return False
    # What the load itself takes of it must count: sessions that stay open use a pool at any load. What does
    # more than it can is not what was declared; a little more is at its limit.
    return not exceeds(one.use) and one.use - one.base >= LEAST_USED and not _inside(resource, first)


def following(first: Suspicion | None, demands: Sequence[Demand]) -> tuple[Next, ...]:
    """What would give way once the first is gone, in order: gain at most X_2 ÷ X_1 - 1 (METHOD step 7)."""
    now = 1.0 if first is None else reach(first, demands)
    return tuple(_next(one, now) for one in others(first, demands))


def _next(one: Demand, now: float) -> Next:
    tier, host = owner(one.resource, one.found)
    return Next(
        kind=kind_at_ceiling(one.resource),
        tier=tier,
        host=host,
        resource=one.resource.type,
        instance=one.resource.instance,
        role=one.resource.role,
        utilisation_ratio=one.use,
        gain_ratio=max(0.0, one.ceiling_ratio / now - 1),
        assumes=one.assumes,
    )


def _inside(resource: Resource, first: Suspicion | None) -> bool:
    """A thread of the pool that is used up is part of the same bottleneck."""
    if first is None or resource.type != "thread":
        return False
    return first.resource.type == "cpu" and first.resource.machine == resource.machine


def kind_at_ceiling(resource: Resource) -> Kind:
    """What it is called when this resource is used up by more of the same load."""
    return KINDS[resource.type].kind
