"""Computes the confidence (step 8): resamples must name the same resource, and all must be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.cause import of_one_tier, rank, suspects
from pinchpoint.analysis.coverage import HOST_WITH_ROOM, stolen, unseen
from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.knee import Knee
from pinchpoint.analysis.resources.base import Context, NoSingleCause, Resource, Resources, Suspicion
from pinchpoint.analysis.resources.cpu import other_processes, unwatched
from pinchpoint.analysis.resources.kinds import KINDS, kind_of
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import (
    MIN_LEVELS,
    MIN_SAMPLES,
    STABLE_HIGH,
    STABLE_MEDIUM,
    STOLEN,
)
from pinchpoint.analysis.verdict import Confidence
from pinchpoint.base import units
from pinchpoint.base.wording import PROVES, listed
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.resample import block_rows
from pinchpoint_collectors.common.counts import counted

RESAMPLES = 200
SEED = 1
"""Fixed, so that the same samples give the same words."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The confidence in a bottleneck, with its reasons.

    Attributes:
        level: the confidence; None if two candidates cannot be separated.
        stable_ratio: share of the resamples that named the same resource, on any host of its tier.
        why_not_more: the reasons why the confidence is not higher, as sentences.
        named: resource -> number of resamples that named it first; the key None counts resamples that named
            no resource.
        experiment: the deciding experiment, if it differs from the usual one for such suspects.
    """

    level: Confidence | None
    stable_ratio: float
    why_not_more: tuple[str, ...]
    named: Mapping[str | None, int]
    experiment: str = ""


def votes(
    suspicions: Sequence[Suspicion], resources: Resources, stage: Stage, flows: Flows
) -> Counter[str | None]:
    """Resource -> number of block-bootstrap resamples of the stage that rank it first; None: no resource.

    Evidence from several levels (``suspicions``) is not resampled, because it comes from all levels.
    """
    grown = {one.resource.key: {fact.evidence for fact in one.grown} for one in suspicions}
    random = np.random.default_rng(SEED)
    resources = tuple(one for one in resources if _could_be_suspected(one, stage))
    counted: Counter[str | None] = Counter()
    for choice in block_rows(len(stage.rows), RESAMPLES, random):
        drawn = [
            replace(one, evidence=one.evidence | grown.get(one.resource.key, set()))
            for one in suspects(resources, stage.rows[choice], flows)
        ]
        counted[max(drawn, key=rank).resource.key if drawn else None] += 1
    return counted


def _could_be_suspected(resource: Resource, stage: Stage) -> bool:
    """Whether any choice of rows could make a resource a suspect: its utilisation must reach the limit once.

    Resources that help to judge others are always kept: disks, allowances and interfaces.
    """
    least = KINDS[resource.type].least
    if (
        least is None
        or least.column not in resource.columns
        or KINDS[resource.type].own_use(resource, stage.rows) is not None
    ):
        return True
    return bool((resource.columns[least.column][stage.rows] >= least.limit.value).any())


def trust(
    inputs: Inputs,
    suspicions: tuple[Suspicion, ...],
    resources: Resources,
    stage: Stage,
    flows: Flows,
    knee: Knee,
) -> Trust:
    """The confidence by docs/rules.md; the level is None if no resource can be named.

    With too few load levels the confidence is medium at most.
    """
    first = suspicions[0]
    named = votes(suspicions, resources, stage, flows)
    own = [first.resource, *(one for one in resources if of_one_tier(one, first.resource))]
    stable = sum(named[one.key] for one in own) / RESAMPLES
    if stable < STABLE_MEDIUM.value:
        return Trust(None, stable, ("resamples of the run name different resources",), named)
    undecided = _undecided(inputs, first)
    if undecided is not None:
        return Trust(None, stable, (undecided.why,), named, undecided.experiment)
    lowered = tuple(_lowering(inputs, suspicions, resources, stage, flows))
    if lowered:
        return Trust("low", stable, lowered, named, kind_of(first).experiment(first, stage.rows))
    if knee.levels < MIN_LEVELS.value:
        return Trust("medium", stable, (knee.why,), named)
    strong = len(first.evidence) >= 3 and ("E3" in first.evidence or first.exact)
    if strong and stable >= STABLE_HIGH.value:
        return Trust("high", stable, (), named)
    return Trust("medium", stable, tuple(_short_of_high(first, stable)), named)


def _short_of_high(first: Suspicion, stable: float) -> Iterator[str]:
    """Reasons why the evidence from several load levels is not enough for high confidence."""
    if len(first.evidence) < 3:
        missing = [words for kind, words in PROVES.items() if kind not in first.evidence]
        yield f"not all four kinds of evidence; missing: {', '.join(missing)}"
    if "E3" not in first.evidence and not first.exact:
        yield "neither a calculated maximum nor a declared limit confirms that it is saturated"
    if stable < STABLE_HIGH.value:
        yield f"{units.percent(stable)} of the bootstrap resamples name it; 95 % are needed"


def _lowering(
    inputs: Inputs,
    suspicions: tuple[Suspicion, ...],
    resources: Resources,
    stage: Stage,
    flows: Flows,
) -> Iterator[str]:
    """Every reason that lowers the confidence to low, as a sentence."""
    first, context = suspicions[0], Context(inputs, resources, stage.rows, flows)
    if len(first.evidence) < 2:
        yield "only one kind of evidence"
    if len(stage.rows) < MIN_SAMPLES.value:
        yield f"only {counted(len(stage.rows), 'sample')}, {MIN_SAMPLES.value:.0f} are needed"
    if first.outrun:
        yield f"throughput went on rising while it was saturated: {first.outrun}"
    yield from kind_of(first).confidence_limits(first, first.found, context)
    if kind_of(first).yields:
        yield from filter(None, (KINDS[one.type].deeper(one, stage.rows) for one in resources))
    for one in resources:
        if one.key != first.resource.key:
            yield from KINDS[one.type].beside(one, first, context)
    second = next((one for one in suspicions[1:] if not of_one_tier(one.resource, first.resource)), None)
    if second and not second.not_waited_for and len(second.evidence) >= len(first.evidence):
        yield "another resource is saturated as well"
    yield from unseen(inputs)
    yield from stolen(inputs)
    crashed = [event.get("tier") for event in inputs.events if event.get("event") == "tier_crashed"]
    yield from (f"the {tier} tier crashed during the run" for tier in crashed)


def _undecided(inputs: Inputs, first: Suspicion) -> NoSingleCause | None:
    """Why the first suspect cannot be named, whatever number of resamples name it; None if it can be.

    A resource may seem saturated because it waits for CPU time that the hypervisor took; this does not apply
    to the CPU itself. If other processes used the CPU, the bottleneck without these processes was not
    measured.
    """
    taken = listed(list(stolen(inputs, STOLEN)))
    if taken and kind_of(first).takes_cpu:
        return NoSingleCause(taken, HOST_WITH_ROOM)
    rest = other_processes(first.resource, first.found)
    if rest is None:
        return kind_of(first).why_not_named(first, first.found, inputs)
    host, unseen_tiers = first.resource.hosts[0], unwatched(first)
    who = "other processes"
    if unseen_tiers:
        who = f"processes that were not watched: {', '.join(unseen_tiers)}, or {who}"
    return NoSingleCause(f"{units.percent(rest)} of the CPU of {host} was used by {who}")
