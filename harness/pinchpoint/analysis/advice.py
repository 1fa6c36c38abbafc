"""Step 7: what to do, from the model and the catalogue: what lifts the limit, how far, and what limits then.

Nothing here is a fixed phrase: each piece names what was measured, and types of disks and machines come from
the catalogue with their source. The gain is the model's (``model``) or, where no setting fits, that of the
ceilings (``capacity``). Where the gain is not known, it says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from pinchpoint.analysis.capacity import SAME, Demand
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.ground import Gain, Ground, advise
from pinchpoint.analysis.model.ask import Asked
from pinchpoint.analysis.resources.base import GENERATOR, CpuMeasures, Resource, ShareMeasures, busy
from pinchpoint.analysis.resources.disk.advice import about_disk, measure_it
from pinchpoint.analysis.resources.disk.types import AT_LEAST
from pinchpoint.analysis.resources.kinds import owner
from pinchpoint.analysis.thresholds import LITTLE, NETWORK, OWN_USE, UTILISATION
from pinchpoint.analysis.verdict import Advice, Kind, Suspect
from pinchpoint.base import units
from pinchpoint.base.wording import capitalised, listed
from pinchpoint.data.series import mean


def find_advice(case: Case, demands: tuple[Demand, ...]) -> tuple[Advice, ...]:
    """What to do about the bottleneck of a case, the most useful first."""
    ground = Ground(case, case.found[0], demands, Asked(case, ""))
    found = ground.first.found
    if isinstance(found, CpuMeasures):
        return tuple(_about_cpu(ground, found))
    if isinstance(found, ShareMeasures):
        return tuple(OF_SHARES[ground.first.resource.type](ground, found))
    return tuple(about_disk(ground, found))


def advice_on_candidates(candidates: Sequence[Suspect], case: Case) -> tuple[Advice, ...]:
    """Where no one could be named: what would have to be known of those who may be it."""
    return tuple(advice for one in candidates for advice in _unknowns(one, case))


def _unknowns(one: Suspect, case: Case) -> Iterator[Advice]:
    if one.resource == "cpu" and all(fact.value is None for fact in one.evidence):
        why = "how much of its CPU is used was not measured"
        what = f"Watch the CPU of {one.host} (a collector in farm.yaml), and run the same plan again"
        yield advise(one.kind, str(one.tier or one.host), what, Gain(None, None, why))
    if one.resource == "disk":
        place = (one.host, one.instance)
        role = next((disk for disk in case.inputs.disks if (disk.host, disk.device) == place), None)
        if role is not None and role.limits is None:
            yield measure_it(one.kind, f"{role.tier}.{role.role}", role.role)


def advice_on_generator(gates: Sequence[Gate]) -> tuple[Advice, ...]:
    """What makes an invalid run a valid one."""
    gain = Gain(None, None, "this run is invalid")
    remedies = dict.fromkeys(gate.remedy for gate in gates)
    kind: Kind = "generator" if gates[0].contention is None else "contention"
    return tuple(
        advise(kind, "generator", what, gain, text=f"{what}, and run again.")
        for what in map(capitalised, remedies)
    )


# ---- CPU ----------------------------------------------------------------------------------------


def _about_cpu(ground: Ground, found: CpuMeasures) -> Iterator[Advice]:
    first = ground.first
    resource = first.resource
    tier, host = owner(resource, found)
    more, gain = _more_cores(ground, _allowed(resource) if resource.type == "allowance" else resource.cores)
    if resource.type == "thread":
        thread = resource.instance.removeprefix("thread:")
        what = f"Run {tier} on a faster core, or as several processes ({thread} cannot use a second core)"
    elif resource.type == "allowance":
        what = f"Allow {tier} more CPU{_cores_words(_allowed(resource), more)}"
    elif len(resource.tiers) > 1:
        share = units.percent(found.uses[tier]) if tier and tier in found.uses else None
        most = f"; {tier} uses {share} of it: move that first" if share else ""
        if share and found.uses.get(GENERATOR, 0.0) > found.uses[str(tier)]:
            share = units.percent(found.uses[GENERATOR])
            most = f"; the load generator uses {share} of it: move that first"
        cores = _cores_words(resource.cores, more)
        what = f"Add CPUs to {host}, shared by {listed(resource.tiers)}{cores}{most}"
    else:
        beside = _beside(ground, found) if tier else []
        yield from _evenly(ground, found, beside)
        yield from _all_full(ground, beside)
        whom = f"{host}, of the hosts of {tier}" if beside else tier
        what = f"Add CPUs to {whom}{_cores_words(resource.cores, more)}"
    yield advise(first.kind, str(tier or host), what, gain)


def _beside(ground: Ground, found: CpuMeasures) -> list[tuple[Resource, float]]:
    """The other pools of cores that only the same tier uses, and how busy they are."""
    first, stage = ground.first.resource, ground.case.stage
    if stage is None or first.type != "cpu" or found.busy is None:
        return []
    others = (
        (one, busy(one, stage.rows))
        for one in ground.case.resources
        if one.type == "cpu" and one.key != first.key and one.tiers == first.tiers
    )
    return [(one, used) for one, used in others if used is not None]


def _evenly(ground: Ground, found: CpuMeasures, beside: Sequence[tuple[Resource, float]]) -> Iterator[Advice]:
    """Where other hosts of the tier have much room: as much as all of them carry when they share the load."""
    first = ground.first
    if not beside or max(used for _, used in beside) >= OWN_USE.value or not found.busy:
        return
    [tier], host = first.resource.tiers, first.resource.hosts[0]
    uses = {host: found.busy, **{one.hosts[0]: used for one, used in beside}}
    each = listed([f"{name} {units.percent(used)}" for name, used in uses.items()])
    what = (
        f"Spread the load of {tier} evenly over its hosts, if each host can do any of it (CPU used: {each})"
    )
    times = ground.now * found.busy * len(uses) / sum(uses.values())
    assumes = f"{SAME}; its hosts are the same, and each can do what {host} does"
    yield advise(first.kind, tier, what, ground.until(times, f"the CPU of all hosts of {tier}", assumes))


def _all_full(ground: Ground, beside: Sequence[tuple[Resource, float]]) -> Iterator[Advice]:
    """Where other hosts of the tier are saturated as well: what it brings to do the same for all of them."""
    first = ground.first.resource
    full = {one.key: one.hosts[0] for one, used in beside if used >= UTILISATION.value}
    if not full:
        return
    demands = tuple(one for one in ground.demands if one.resource.key not in full)
    more, gain = _more_cores(replace(ground, demands=demands), first.cores, {first.key, *full})
    hosts = listed(sorted({first.hosts[0], *full.values()}))
    what = f"Add CPUs to {hosts} of {first.tiers[0]}{_cores_words(first.cores, more, ' each')}"
    yield advise(ground.first.kind, first.tiers[0], what, gain)


def _allowed(resource: Resource) -> float | None:
    return mean(resource.columns["allowed"]) if "allowed" in resource.columns else None


def _more_cores(
    ground: Ground, cores: float | None, keys: Set[str] = frozenset()
) -> tuple[float | None, Gain]:
    """(the cores that carry the load until something else limits, twice as many where nothing does; gain).

    Args:
        ground: of the advice.
        cores: how many there are; None of what has no number of cores, or where that is not known.
        keys: of the pools that are to have more, where that is not the bottleneck alone.
    """
    bound = ground.until()
    if cores is None or ground.first.resource.type == "thread":
        return None, bound
    times = 1 + bound.ratio if bound.ratio else AT_LEAST
    more = math.ceil(cores * times - 1e-9) if cores >= 1 else round(cores * times, 2)
    target = ground.cpu_target(keys or {ground.first.resource.key})
    gain = ground.by(f"{target}={more:g}") if target is not None and more > cores else None
    return more if gain is not None or bound.ratio else None, gain or bound


def _cores_words(cores: float | None, more: float | None, each: str = "") -> str:
    """`` (2 cores now, 3 then)``."""
    if cores is None:
        return ""
    now = f"{cores:.3g} core" + "s" * (cores != 1)
    return f" ({now}{each} now)" if more is None else f" ({now}{each} now, {more:g} then)"


# ---- what is neither CPU nor disk ---------------------------------------------------------------


def _about_lock(ground: Ground, found: ShareMeasures) -> Iterator[Advice]:
    """The gain: the response without the wait for locks."""
    tier = next(iter(ground.first.resource.tiers), "")
    kind = ground.first.resource.instance
    named = f" (they wait for {kind})" if kind else ""
    what = (
        f"Shorten the transactions of {tier} that change the same rows, or spread them over more rows{named}"
    )
    assumes = f"no session waits for locks, which takes {units.percent(found.witness)} of the time now"
    waiting = max(ground.case.flows, key=lambda flow: flow.pressed * flow.going_on(tier))
    yield advise("lock", tier, what, _without(ground, found.witness, assumes, waiting.load.scenario))


def _about_dependency(ground: Ground, found: ShareMeasures) -> Iterator[Advice]:
    """The gain: the response without the wait for it."""
    name, scenario = ground.first.resource.instance, ground.first.resource.scenario
    what = f"Shorten the delay of {name}: {scenario} waits {units.seconds(found.each_s)} each time"
    assumes = f"that wait is removed; now {units.percent(found.used)} of {scenario}'s users are in it"
    yield advise("external", name, what, _without(ground, found.used, assumes))
    users = next((f.load.users for f in ground.case.flows if f.load.scenario == scenario), None)
    if users:
        more = Gain(None, None, "the other end limits how much runs at once")
        yield advise(
            "external", scenario, f"Or run more requests of {scenario} at once ({users:g} users now)", more
        )


def _without(ground: Ground, share: float | None, assumes: str, scenario: str | None = None) -> Gain:
    """Users who wait for something a share of their time come round more often without it.

    Of a ``scenario`` it is a share of what its operations take; else of all of its users' time, so that what
    they think is in the rest. How much a rest of a twentieth or less is, is not known that well.
    """
    left = max(0.0, 1 - share) if share is not None else 0.0
    if left < LITTLE.value:
        gain = ground.until()
        return gain if gain.ratio is None else replace(gain, assumes=f"{gain.assumes}; {assumes}")
    return ground.until(ground.rounds(scenario, left), "the rest of the operations' time", assumes)


def _about_memory(ground: Ground, found: ShareMeasures) -> Iterator[Advice]:
    resource = ground.first.resource
    place = next(iter(resource.tiers), resource.hosts[0])
    again = units.percent(found.witness)
    what = f"Give {place} more memory ({again} of its disk reads were of data evicted from memory before)"
    why = "only a run with more memory shows how much less is read"
    yield advise("memory", place, what, Gain(None, ground.until().limit, why))


def _about_network(ground: Ground, found: ShareMeasures) -> Iterator[Advice]:
    resource, gain = ground.first.resource, ground.until()
    now = units.percent(found.used)
    what = (
        f"Give {resource.hosts[0]} a faster interface than {resource.instance} ({now} of its speed is used)"
    )
    if gain.ratio is not None:
        speed = units.times((1 + gain.ratio) * ground.now * (found.used or NETWORK.value))
        what = f"{what[:-1]}; {speed} that speed for all of it)"
    yield advise("network", resource.hosts[0], what, gain)


def _about_pool(ground: Ground, found: ShareMeasures) -> Iterator[Advice]:
    tier = next(iter(ground.first.resource.tiers), "")
    refused = units.percent(found.witness)
    what = f"Allow {tier} more connections, or share fewer among the clients ({refused} were refused one)"
    if ground.first.resource.views:
        what = (
            f"Allow {tier} more {ground.first.resource.instance} ({refused} of the operations wait for one)"
        )
    yield advise("pool", tier, what, ground.until())


OF_SHARES: Mapping[str, Callable[[Ground, ShareMeasures], Iterator[Advice]]] = {
    "lock": _about_lock,
    "dependency": _about_dependency,
    "memory": _about_memory,
    "network": _about_network,
    "pool": _about_pool,
}
