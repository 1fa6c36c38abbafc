"""Step 7: from suspects to the verdict's parts: who is named, how much room is left, what comes next."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.analysis.blame import owner
from pinchpoint.analysis.confidence import Trust
from pinchpoint.analysis.facts import context, facts
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.inputs import Inputs, utc
from pinchpoint.analysis.measures import CpuMeasures, DiskMeasures, Measures, ShareMeasures, measure
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.signature import Suspicion, demoted
from pinchpoint.analysis.slowness import is_slow
from pinchpoint.analysis.stages import Rows, Stage
from pinchpoint.analysis.thresholds import PRESSED
from pinchpoint.analysis.verdict import Kind, Next, Suspect

ASSUMES = "the same mix of operations, the same cache ratio, use in proportion to throughput"
WITHOUT_CEILING = ("disk_latency", "disk_concurrency", "disk_warm_up", "external", "lock", "memory")
"""Kinds in which a resource is not used up: how much more it could do is not known."""
CEILINGS = ("cpu", "allowance", "thread", "disk")
"""Resources whose use grows with throughput, so that it tells how much more of that they allow."""
LEAST_USED = 0.05
"""A resource used less than this is no next bottleneck: the ratio would be a number without a meaning."""
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
    found = [(resource, measure(resource, rows)) for resource in resources if resource.type in CEILINGS]
    rated = [
        Usage(resource, figures, _used(figures))
        for resource, figures in found
        if not isinstance(figures, ShareMeasures)
    ]
    return tuple(sorted(rated, key=lambda one: -(one.ratio if one.ratio is not None else -1.0)))


def _used(found: Measures) -> float | None:
    if isinstance(found, DiskMeasures):
        return found.utilisation
    return found.busy if isinstance(found, CpuMeasures) else found.used


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
    """An invalid run's bottleneck: the load generator, or the recorder in it."""
    first = gates[0]
    recorder = first.fact.metric == "generator.recorder_ok"
    return Suspect(
        kind="generator",
        tier=None,
        host=first.host or None,
        resource="recorder" if recorder else "generator",
        instance="",
        role=None,
        confidence="high",
        window=window_of(inputs, stage),
        evidence=tuple(gate.fact for gate in gates),
    )


def nearest(inputs: Inputs, stage: Stage, resources: tuple[Resource, ...]) -> tuple[Suspect, ...]:
    """Where nothing stands out: the two resources nearest to their limit, the unmeasured among them."""
    ranked = sorted(usage(resources, stage.rows), key=lambda one: -_nearness(one))
    close = [
        one for one in ranked if one.resource.type in {"cpu", "disk"} and _nearness(one) >= PRESSED.value
    ]
    return tuple(_candidate(inputs, stage, one) for one in close[:2])


def _nearness(one: Usage) -> float:
    if isinstance(one.found, CpuMeasures):
        return NOT_MEASURED_RANK if one.ratio is None else one.ratio
    if is_slow(one.resource, one.found) and not demoted(one.resource, one.found):
        return SLOW_RANK
    return min(1.0, one.ratio) if one.ratio is not None else one.found.pressure or 0.0


def _candidate(inputs: Inputs, stage: Stage, one: Usage) -> Suspect:
    tier, host = owner(one.resource, one.found)
    kind: Kind = "cpu" if one.resource.type == "cpu" else "disk_latency"
    evidence = context(one.resource, one.found)
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


def headroom(one: Suspicion) -> float | None:
    """1 ÷ U - 1 where the use is known; 0 for one that is flat; None where waiting, not use, is the limit."""
    if one.kind in WITHOUT_CEILING:
        return None
    used = _used(one.found)
    if used is None or one.contradicted or used >= 1:
        return 0.0
    return 1 / used - 1


def following(resources: tuple[Resource, ...], rows: Rows, first: Suspicion | None) -> Next | None:
    """The second-smallest ceiling: the most used of the other resources. Gain at most X_2 ÷ X_1 - 1.

    With one load level the ceiling of a resource is X ÷ U, which assumes no use at rest.
    """
    if first is not None and first.kind in WITHOUT_CEILING:
        return None
    now = 1.0 if first is None else 1 / (1 + (headroom(first) or 0.0))
    for one in usage(resources, rows):
        same = first is not None and one.resource.key == first.resource.key
        if same or one.ratio is None or one.ratio < LEAST_USED or one.resource.type == "allowance":
            continue
        if one.ratio > 1 or _inside(one.resource, first):
            continue
        tier, host = owner(one.resource, one.found)
        return Next(
            kind=_kind(one.resource),
            tier=tier,
            host=host,
            resource=one.resource.type,
            instance=one.resource.instance,
            role=one.resource.role,
            utilisation_ratio=one.ratio,
            gain_ratio=max(0.0, now / one.ratio - 1),
            assumes=ASSUMES,
        )
    return None


def _inside(resource: Resource, first: Suspicion | None) -> bool:
    """A thread of the pool that is used up is part of the same bottleneck."""
    if first is None or resource.type != "thread":
        return False
    return first.resource.type == "cpu" and first.resource.machine == resource.machine


def _kind(resource: Resource) -> Kind:
    if resource.type == "disk":
        return "disk_cap"
    return "cpu_thread" if resource.type == "thread" else "cpu"
