"""Step 8: how sure. The same resource must be named by resamples of the run, and nothing may be unseen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.behind import at_work, calls
from pinchpoint.analysis.blame import YIELDING, rank, suspects
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.knee import Knee
from pinchpoint.analysis.resources.base import (
    CpuMeasures,
    Resource,
    ShareMeasures,
    Suspicion,
    Untold,
    busy,
    mean_of,
)
from pinchpoint.analysis.resources.cpu import measure_cpu, not_shared_out, strangers, unwatched
from pinchpoint.analysis.resources.dependency import LOCKS
from pinchpoint.analysis.resources.disk.measures import kind_unknown, measure_disk
from pinchpoint.analysis.resources.disk.slowness import MINOR_SHARE
from pinchpoint.analysis.resources.kinds import KINDS, suspect
from pinchpoint.analysis.seen import stolen, unseen, unseen_at
from pinchpoint.analysis.stages import Rows, Stage
from pinchpoint.analysis.stores import operations_inside
from pinchpoint.analysis.thresholds import (
    HARDLY,
    LOOP_LAG,
    MIN_LEVELS,
    MIN_SAMPLES,
    OWN_USE,
    PRESSURE,
    REGULATOR_FLAT,
    STABLE_HIGH,
    STABLE_MEDIUM,
    STEADIER,
    STOLEN,
    UTILISATION,
    WAIT_SHARE,
    at_least,
)
from pinchpoint.analysis.verdict import Confidence
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.resample import block_rows
from pinchpoint.data.series import mean, spread

RESAMPLES = 200
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
    """High, medium or low by METHOD step 8; None names no one. Too few load levels: medium at most."""
    first = found[0]
    named = votes(found, resources, stage, flows)
    stable = named[first.resource.key] / RESAMPLES
    if stable < STABLE_MEDIUM.value:
        return Trust(None, stable, ("resamples of the run name different resources",), named)
    untold = _untold(inputs, first)
    if untold is not None:
        return Trust(None, stable, (untold.why,), named, untold.experiment)
    lowered = tuple(_lowering(inputs, found, resources, stage, flows))
    if lowered:
        tells = kind_unknown(first.resource, stage.rows).experiment if first.kind == "disk" else ""
        return Trust("low", stable, lowered, named, tells)
    if knee.levels < MIN_LEVELS.value:
        return Trust("medium", stable, (f"{knee.why}: medium at most",), named)
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
        yield "neither a ceiling (E3) nor a declared limit confirms that it is at its limit"
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
    if first.outrun:
        yield f"throughput went on rising while it was saturated: {first.outrun}"
    yield from KINDS[first.resource.type].doubts(first, first.found, stage.rows, flows)
    yield from _deeper(inputs, first, resources, stage, flows)
    yield from _beside(first, resources, stage, flows)
    if len(found) > 1 and not found[1].demoted and len(found[1].evidence) >= len(first.evidence):
        yield "another resource is saturated as well"
    yield from unseen(inputs)
    yield from stolen(inputs)
    crashed = [event.get("tier") for event in inputs.events if event.get("event") == "tier_crashed"]
    yield from (f"the {tier} tier crashed during the run" for tier in crashed)


def _beside(
    first: Suspicion, resources: Sequence[Resource], stage: Stage, flows: tuple[Flow, ...]
) -> Iterator[str]:
    """What else on its machine, or which other disk, may be what is waited for."""
    of_nobody = first.resource.type == "cpu" and not_shared_out(first.resource)
    for one in resources:
        here = one.machine == first.resource.machine and one.key != first.resource.key
        if one.type == "cpu" and here:
            found = measure_cpu(one, stage.rows)
            rest = strangers(one, found)
            if at_least(found.busy, UTILISATION) and rest is not None:
                share = units.percent(rest)
                yield f"{share} of the CPU of {one.hosts[0]} was used by other processes"
        if one.type == "lock" and here and of_nobody and suspect(one, stage.rows, flows) is not None:
            share = units.percent(mean_of(one, "witness", stage.rows))
            yield (
                f"{share} of the operations in flight wait for each other's locks, and which work keeps "
                "these cores busy was not measured"
            )
        if one.type == "disk" and first.resource.type == "disk" and one.key != first.resource.key:
            yield from _shared_limit(first.resource, one, stage.rows)


def _shared_limit(first: Resource, other: Resource, rows: Rows) -> Iterator[str]:
    """That two disks are together as flat as only a regulator makes them, and neither alone.

    A load that comes evenly may be spread over them by chance, and is together as even as it came.
    """
    if first.whole is not None or other.whole is not None or first.even or other.even:
        return
    own, its = ((disk.columns["reads"] + disk.columns["writes"])[rows] for disk in (first, other))
    part, whole, flat = mean(its), mean(own + its), spread(own + its)
    alone = [one for one in (spread(own), spread(its)) if one is not None]
    if not part or not whole or part < MINOR_SHARE * whole or flat is None or len(alone) < 2:
        return
    if flat <= REGULATOR_FLAT.value and min(alone) >= STEADIER.value * flat:
        yield (
            f"together with the {other.role} disk of {other.hosts[0]} it is held at "
            f"{units.per_second(whole)}, and neither alone is: they may share a limit"
        )


def _deeper(
    inputs: Inputs,
    first: Suspicion,
    resources: tuple[Resource, ...],
    stage: Stage,
    flows: tuple[Flow, ...],
) -> Iterator[str]:
    """What lies deeper than a lock, a pool or a dependency, and may be why it is waited for."""
    if first.kind not in YIELDING or not isinstance(first.found, ShareMeasures):
        return
    if first.kind == "lock" and at_least(first.found.own, WAIT_SHARE):
        share = units.percent(first.found.own)
        yield f"{share} of the sessions that wait for no lock (the lock holders among them) wait for a disk"
    disks = [one for one in resources if one.type == "disk"]
    if first.kind == "external" and not set(first.resource.tiers) & set(LOCKS):
        behind = _unasked_behind(inputs, first.resource.tiers)
        for host in [*first.resource.hosts, *(one.name for one in inputs.hosts if one.tier in behind)]:
            yield from _waits_for_io(inputs, host, disks, stage)
        yield from _strange_sessions(inputs, first.resource.tiers, flows)
    for disk in disks:
        used = measure_disk(disk, stage.rows).utilisation
        if at_least(used, OWN_USE):
            whose = disk.whole or f"the {disk.role} disk of {disk.hosts[0]}"
            yield f"{whose} is used {units.percent(used)} of its declared limit itself"


def _waits_for_io(inputs: Inputs, host: str, disks: Sequence[Resource], stage: Stage) -> Iterator[str]:
    """That work waits for I/O there, or a disk is busy where that was not measured; that neither was."""
    machines = [one.machine for one in inputs.hosts if one.name == host]
    everyone = [host, *(one.name for machine in machines for one in inputs.on_machine(machine))]
    waits = mean(inputs.samples.first_of(everyone, "pressure.io_ratio"))
    if at_least(waits, PRESSURE):
        yield f"processes wait for I/O on {host} {units.percent(waits)} of the time"
    if waits is not None:
        return
    used = {f"the {one.role} disk": busy(one, stage.rows) for one in disks if host in one.hosts}
    known = {one.instance for one in disks}
    for key in inputs.samples.keys("disk.busy_ratio"):
        if key.host in everyone and key.instance not in known:
            used[f"disk {key.instance}"] = inputs.samples.mean(*key)
    for disk, ratio in used.items():
        if at_least(ratio, PRESSURE):
            yield f"{disk} of {host} is busy {units.percent(ratio)} of the time"
    # A store that says how much it has to do says so of what waits for its disks, too.
    told = [inputs.samples.steps(host, "db.main_thread.busy_ratio"), operations_inside(inputs, host)]
    if all(ratio is None for ratio in used.values()) and not np.isfinite(told).any():
        yield f"whether processes wait for a disk on {host} was not measured"


def _strange_sessions(inputs: Inputs, tiers: tuple[str, ...], flows: tuple[Flow, ...]) -> Iterator[str]:
    """Sessions at work in a deeper tier that are none of a scenario's, nor can all be of these tiers."""
    there = sum(flow.going_on(tier) for flow in flows for tier in tiers)
    for deeper in _behind(inputs, tiers):
        more = (mean(at_work(inputs, deeper)) or 0.0) - sum(flow.going_on(deeper) for flow in flows)
        if more > HARDLY.value * there:
            yield f"{more:.2g} sessions are active in {deeper}; whose requests they serve is not known"


def _behind(inputs: Inputs, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """The tiers that these may wait for themselves."""
    deeper = dict.fromkeys(host.tier for host in inputs.hosts)
    return tuple(one for one in deeper if any(calls(inputs, tier, one) for tier in tiers))


def _unasked_behind(inputs: Inputs, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """Those of them in which nobody asked who is at work."""
    return tuple(one for one in _behind(inputs, tiers) if not np.isfinite(at_work(inputs, one)).any())


def _untold(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why the first suspect cannot be named, however often the resamples name it."""
    return (
        _its_own_lag(inputs, first)
        or _stolen_from(inputs, first)
        or _not_the_farm(first)
        or _behind_it(inputs, first)
    )


def _behind_it(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why nothing outside, and no pool, can be named: what it is the victim of may be what nobody saw.

    Both are named only where everything deeper has room (METHOD step 5), which then is not known.
    """
    own = first.resource.tiers
    missing = list(unseen_at(inputs, (*own, *_unasked_behind(inputs, own))))
    if not missing or first.kind not in {"external", "pool"}:
        return None
    what = listed(missing)
    why = f"the rest of the farm was not fully measured: {what}"
    return Untold(why, f"Watch the whole farm ({what}), and run the same plan again.")


def _stolen_from(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why what seems used up may merely wait for CPU time that the hypervisor took; None where it does not.

    Of the CPU itself it can be said: what is left of it is used up.
    """
    taken = listed(list(stolen(inputs, STOLEN)))
    if not taken or isinstance(first.found, CpuMeasures):
        return None
    return Untold(taken, "Run the same plan again when the host under that machine has room.")


def _not_the_farm(first: Suspicion) -> Untold | None:
    """Why no tier is to blame for full cores: other programs used too much of them; None where they did not.

    What the farm's own bottleneck would be without them, nobody has seen.
    """
    rest = strangers(first.resource, first.found)
    if rest is None:
        return None
    host, unseen_tiers = first.resource.hosts[0], unwatched(first)
    who = "other processes"
    if unseen_tiers:
        who = f"processes that were not watched: {', '.join(unseen_tiers)}, or {who}"
    return Untold(f"{units.percent(rest)} of the CPU of {host} was used by {who}")


def _its_own_lag(inputs: Inputs, first: Suspicion) -> Untold | None:
    """Why waiting outside of the farm may be the load generator's own; None where it cannot be."""
    each_s = first.found.each_s if isinstance(first.found, ShareMeasures) else None
    lags = [inputs.samples.mean(*key) or 0.0 for key in inputs.samples.keys("generator.loop_lag_s")]
    if first.resource.type != "dependency" or not each_s or max(lags, default=0.0) < LOOP_LAG.value * each_s:
        return None
    lag, each = units.seconds(max(lags)), units.seconds(each_s)
    return Untold(
        f"the load generator itself is {lag} late; the wait takes only {each}",
        "Give the load generator more CPU, and run the same plan again.",
    )
