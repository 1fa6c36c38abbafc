"""Step 8: how sure. The same resource must be named by resamples of the run, and nothing may be unseen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.blame import rank, suspects
from pinchpoint.analysis.doubts import doubts, unseen_behind
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.knee import Knee
from pinchpoint.analysis.resources.base import GENERATOR, CpuMeasures, Resource, ShareMeasures, Suspicion
from pinchpoint.analysis.resources.cpu import strangers, unwatched
from pinchpoint.analysis.resources.disk.measures import not_measured, readings, told
from pinchpoint.analysis.resources.kinds import KINDS
from pinchpoint.analysis.seen import stolen, unseen
from pinchpoint.analysis.stages import Rows, Stage
from pinchpoint.analysis.thresholds import (
    LOOP_LAG,
    MIN_LEVELS,
    MIN_SAMPLES,
    STABLE_HIGH,
    STABLE_MEDIUM,
    STOLEN,
    STRANGERS,
)
from pinchpoint.analysis.verdict import Confidence
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.resample import block_rows

RESAMPLES = 200
MOST_TIMES = 10
"""As long as this a run can be asked to be made in place of another."""
SEED = 1
"""Fixed: the same samples must give the same words."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the finding can be trusted.

    Attributes:
        level: None where two candidates cannot be told apart.
        stable_ratio: share of the resamples that named the same resource.
        why_not_more: sentences.
        named: resource -> how many resamples named it first; None: those that named nothing.
        experiment: what would decide, where it is not the usual one for such suspects.
    """

    level: Confidence | None
    stable_ratio: float
    why_not_more: tuple[str, ...]
    named: Mapping[str | None, int]
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class Untold:
    """Why nobody is named though something is used up.

    Attributes:
        why: in words.
        experiment: what would tell; "" where it is the usual one for such suspects.
    """

    why: str
    experiment: str = ""


def votes(
    found: Sequence[Suspicion], resources: tuple[Resource, ...], stage: Stage, flows: tuple[Flow, ...]
) -> Counter[str | None]:
    """Resource -> in how many block-bootstrap resamples of the stage it comes first; None: nothing does.

    What several levels say of a resource (``found``) is not drawn anew: it comes from all of them.
    """
    grown = {one.resource.key: {fact.evidence for fact in one.grown} for one in found}
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


def _could_be_suspected(one: Resource, stage: Stage) -> bool:
    """Whether any choice of the rows could: of what never reaches its limit none does.

    What others are judged by is kept in any case: how much is used of disks, allowances and interfaces.
    """
    least = KINDS[one.type].least
    if least is None or one.type in {"allowance", "network"} or least.column not in one.columns:
        return True
    return bool((one.columns[least.column][stage.rows] >= least.limit.value).any())


def trust(
    inputs: Inputs,
    found: tuple[Suspicion, ...],
    resources: tuple[Resource, ...],
    stage: Stage,
    flows: tuple[Flow, ...],
    knee: Knee,
) -> Trust:
    """High, medium or low by METHOD step 8; None names no one. Too few load levels: at most medium."""
    first = found[0]
    named = votes(found, resources, stage, flows)
    stable = named[first.resource.key] / RESAMPLES
    if stable < STABLE_MEDIUM.value:
        return Trust(None, stable, ("resamples of the run do not agree on one resource",), named)
    untold = _untold(inputs, first, stage)
    if untold is not None:
        return Trust(None, stable, (untold.why,), named, untold.experiment)
    lowered = tuple(_lowering(inputs, found, resources, stage, flows))
    if lowered:
        return Trust("low", stable, lowered, named)
    if knee.levels < MIN_LEVELS.value:
        return Trust("medium", stable, (f"{knee.why}: at most medium",), named)
    strong = len(first.evidence) >= 3 and ("E3" in first.evidence or first.exact)
    if strong and stable >= STABLE_HIGH.value:
        return Trust("high", stable, (), named)
    return Trust("medium", stable, tuple(_short_of_high(first, stable)), named)


def _short_of_high(first: Suspicion, stable: float) -> Iterator[str]:
    """What several load levels did not bring."""
    if len(first.evidence) < 3:
        missing = [kind for kind in ("E1", "E2", "E3", "E4") if kind not in first.evidence]
        yield f"only two of the four kinds of evidence; {', '.join(missing)} are missing"
    if "E3" not in first.evidence and not first.exact:
        yield "neither its ceiling (E3) nor a declared limit it stands at exactly tells that it ends here"
    if stable < STABLE_HIGH.value:
        yield f"{units.percent(stable)} of the resamples name it; 95 % are needed"


def _lowering(
    inputs: Inputs,
    found: tuple[Suspicion, ...],
    resources: tuple[Resource, ...],
    stage: Stage,
    flows: tuple[Flow, ...],
) -> Iterator[str]:
    """Every reason for which no more than low confidence is due."""
    first = found[0]
    if len(first.evidence) < 2:
        yield "only one kind of evidence"
    if len(stage.rows) < MIN_SAMPLES.value:
        yield f"only {len(stage.rows)} samples, {MIN_SAMPLES.value:.0f} are needed"
    yield from doubts(inputs, first, resources, stage, flows)
    if len(found) > 1 and not found[1].demoted and len(found[1].evidence) >= len(first.evidence):
        yield "another resource is used up as well"
    if isinstance(first.found, CpuMeasures):
        yield from _of_shared_cores(first.resource, first.found)
    yield from unseen(inputs)
    yield from stolen(inputs)
    crashed = [event.get("tier") for event in inputs.events if event.get("event") == "tier_crashed"]
    yield from (f"the {tier} tier crashed during the run" for tier in crashed)


def _of_shared_cores(resource: Resource, found: CpuMeasures) -> Iterator[str]:
    """That it is not known who uses a pool of cores, or that the load generator uses too much of it."""
    if len(resource.tiers) > 1 and not set(found.uses) & set(resource.tiers):
        yield "which tier uses the shared cores was not measured"
    own = found.uses.get(GENERATOR, 0.0)
    if own >= STRANGERS.value:
        yield f"the load generator used {units.percent(own)} of these cores: without it they may carry more"


def _untold(inputs: Inputs, first: Suspicion, stage: Stage) -> Untold | None:
    """Why the first suspect cannot be named, however often the resamples name it."""
    if first.resource.type == "disk" and not told(first.resource, stage.rows):
        return seldom(first.resource, stage.rows)
    return (
        _its_own_lag(inputs, first)
        or _stolen_from(inputs, first)
        or _not_the_farm(first)
        or _any_size(first)
        or _behind_it(inputs, first)
    )


def _behind_it(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why nothing outside, and no pool, can be named: what it is the victim of may be what nobody saw.

    Both are named only where everything deeper has room (METHOD step 5), which then is not known.
    """
    missing = unseen_behind(inputs, first) if first.kind in {"external", "pool"} else ()
    if not missing:
        return None
    what = listed(list(missing))
    why = f"whether everything else has room is not known: {what}"
    return Untold(why, f"Watch the whole farm ({what}), and run the same plan again.")


def _stolen_from(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why what seems used up may merely wait for CPU time that the hypervisor took; None where it does not.

    Of the CPU itself it can be said: what is left of it is used up.
    """
    taken = listed(list(stolen(inputs, STOLEN)))
    if not taken or isinstance(first.found, CpuMeasures):
        return None
    return Untold(taken, "Run the same plan again when the host under that machine has room.")


def _any_size(first: Suspicion) -> Untold | None:
    """Why a disk may be held to bytes per second as well as be a slow one; None where that can be told."""
    pace, disk = first.resource.pace, first.resource
    if first.kind not in {"disk_device", "disk_latency"} or pace is None or not pace.differ or pace.known:
        return None
    why = (
        "its I/Os differ much in size, and too few of them were seen to tell a slow device from a limit of "
        "bytes per second"
    )
    what = f"what the {disk.role} disk of {disk.hosts[0]} can do (limits)"
    return Untold(why, f"Declare {what} in the farm file, or {_longer(pace.short_of)}; then run again.")


def seldom(disk: Resource, rows: Rows) -> Untold:
    """Why nothing can be said of a disk that was read too seldom."""
    place = disk.hosts[0]
    where = f"all disks of {place} together" if disk.whole else f"the {disk.role} disk of {place}"
    missing = not_measured(disk, rows)
    if missing:
        what = f"{listed(list(missing))} of {where}"
        why = f"nobody measured {what}: whether it is at a limit or merely slow takes that"
        return Untold(why, f"Have {what} measured as well, and run the same plan again.")
    read = readings(disk, rows)
    why = (
        f"{where} {'were' if disk.whole else 'was'} read {read} times only in {len(rows)} steps: whether "
        f"it is at a limit or merely slow takes {MIN_SAMPLES.value:.0f} readings"
    )
    times = MIN_SAMPLES.value / max(read, 1)
    # No longer run than one can be asked for would do: then only reading it more often does.
    longer = f", or {_longer(times)}" if 1.5 * times <= MOST_TIMES else ""
    return Untold(why, f"Have {where} read more often{longer}; then run again.")


def _longer(times: float) -> str:
    """For how long to measure where ``times`` as much would just do: half as much again, in whole times."""
    return f"measure {min(MOST_TIMES, math.ceil(1.5 * times))} times as long at the same load"


def _not_the_farm(first: Suspicion) -> Untold | None:
    """Why no tier is to blame for full cores: other programs used too much of them; None where they did not.

    What the farm's own bottleneck would be without them, nobody has seen.
    """
    rest = strangers(first.resource, first.found)
    if rest is None:
        return None
    host, unseen_tiers = first.resource.hosts[0], unwatched(first)
    who = "programs that are not the farm's"
    if unseen_tiers:
        who = f"others than were watched: {', '.join(unseen_tiers)}, or {who}"
    return Untold(f"{units.percent(rest)} of the CPU of {host} was used by {who}")


def _its_own_lag(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why waiting outside of the farm may be the load generator's own; None where it cannot be."""
    each_s = first.found.each_s if isinstance(first.found, ShareMeasures) else None
    lags = [inputs.samples.mean(*key) or 0.0 for key in inputs.samples.keys("generator.loop_lag_s")]
    if first.resource.type != "dependency" or not each_s or max(lags, default=0.0) < LOOP_LAG.value * each_s:
        return None
    lag, each = units.seconds(max(lags)), units.seconds(each_s)
    return Untold(
        f"the load generator comes {lag} late itself, and what is waited for takes {each}",
        "Give the load generator more CPU, and run the same plan again.",
    )
