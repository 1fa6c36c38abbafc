"""The verdict in one or two plain sentences, and the experiment that would decide where it could not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pinchpoint.analysis.blame import owner, strangers, unwatched
from pinchpoint.analysis.confidence import Trust
from pinchpoint.analysis.facts import held_words, named_cores, share_words, shift_words
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.measures import CpuMeasures, DiskMeasures
from pinchpoint.analysis.resources.base import GENERATOR, ShareMeasures
from pinchpoint.analysis.resources.kinds import SHARED
from pinchpoint.analysis.signature import Suspicion
from pinchpoint.analysis.slowness import write_and_flush_s
from pinchpoint.analysis.verdict import Next, Suspect
from pinchpoint.base import units
from pinchpoint.base.wording import capitalised, listed

HALF = 0.5
LONGER = "Measure for at least a minute at the same load."


def bottleneck_words(one: Suspicion, trust: Trust, runner_up: Suspicion | None, *, in_bursts: bool) -> str:
    """What gives way, the number that shows it, who shares it, how sure that is."""
    when = "In the bursts, " if in_bursts else ""
    first = capitalised(f"{when}{thing(one)} gives way first: {_proof(one)}.")
    sure = f"Confidence is {trust.level}"
    if runner_up is not None:
        return f"{first} {sure}, because {thing(runner_up)} is used up as well."
    return f"{first} {sure}."


def thing(one: Suspicion) -> str:
    """The resource in plain words: ``the log disk of the sql tier (sql1)``."""
    resource = one.resource
    tier, host = owner(one.resource, one.found)
    if isinstance(one.found, ShareMeasures):
        return SHARED[resource.type].name(resource)
    if resource.type == "disk":
        whole = f"the limit of the machine {host} for all its disks together ({resource.instance})"
        return (
            whole
            if resource.whole
            else f"the {resource.role} disk of the {tier} tier ({host}, {resource.instance})"
        )
    if resource.type == "thread":
        thread = resource.instance.removeprefix("thread:")
        return f"one thread of the {tier} tier ({thread} on {host})"
    if resource.type == "allowance":
        return f"the CPU that the {tier} tier is allowed ({host})"
    if len(resource.tiers) > 1:
        return f"the shared host's CPU ({host})"
    return f"the CPU of the {tier} tier ({', '.join(resource.hosts)})"


def _proof(one: Suspicion) -> str:
    if isinstance(one.found, DiskMeasures):
        return _disk_proof(one, one.found)
    if isinstance(one.found, ShareMeasures):
        return SHARED[one.resource.type].proof(one.resource, one.found)
    busy = units.percent(one.found.busy)
    if one.resource.type == "thread":
        pool = units.percent(one.found.pool)
        return f"it used {busy} of one core and cannot use another; the cores were {pool} busy"
    if one.resource.type == "allowance":
        return f"it used {busy} of that while the cores had room"
    text = (
        f"{named_cores(one.resource)} {'was' if one.resource.cores == 1 else 'were'} busy {busy} of the time"
    )
    return text + _sharing(one, one.found) if len(one.resource.tiers) > 1 else text


def _sharing(one: Suspicion, found: CpuMeasures) -> str:
    tier, _ = owner(one.resource, one.found)
    others = listed([other for other in one.resource.tiers if other != tier])
    share = found.uses.get(tier or "")
    if share is None:
        return f"; it is shared by {listed(one.resource.tiers)}, and who uses most was not measured"
    if share > HALF:
        return f"; most of it ({units.percent(share)}) is used by {tier}, which shares it with {others}"
    own = found.uses.get(GENERATOR, 0.0)
    if own > share:
        most = f"; the load generator uses the largest part of it ({units.percent(own)})"
        return f"{most}, then {tier} ({units.percent(share)}), which shares it with {others}"
    return f"; {tier} uses the largest part of it ({units.percent(share)}) and shares it with {others}"


def _disk_proof(one: Suspicion, found: DiskMeasures) -> str:
    whole = one.resource.whole is not None
    others = [] if whole else [f"{role.tier} {role.role}" for role in one.resource.roles[1:]]
    also = f" (the device also serves {listed(others)})" if others else ""
    way = "read" if (found.reads_ratio or 0.0) > HALF else "write"
    each = units.seconds(found.read_s if way == "read" else write_and_flush_s(one.resource, found))
    state = one.disk
    waiting = f"{units.percent(state.wait_ratio)} of the time of {state.waiting}" if state else ""
    cap = held_words(one.resource, found)
    if state is not None and state.near_cap:
        limits = "limit" if whole else "declared limit" if one.resource.baseline is None else "burst's limit"
        cap = share_words(found, f"its {limits}")
    rate = units.per_second(found.io)
    proofs = {
        "disk_cap": cap,
        "disk_burst_exhausted": f"its {shift_words(one.resource)}, as when burst credits run out",
        "disk_warm_up": f"its {shift_words(one.resource)}: it was still warming up",
        "disk_device": f"it does {rate} at {each} a {way}{_no_more(found)}",
        "disk_concurrency": f"its reads take {waiting} because too few are issued at once; it could do more",
        "disk_latency": f"a {way} there takes {each}, {waiting}, though no limit of it is near",
    }
    return proofs[one.kind] + also


def _no_more(found: DiskMeasures) -> str:
    """That more outstanding I/O gets no more done, where that was seen."""
    if found.moves["io"].stays or found.outstanding is None:
        return ", and no more however many wait"
    return f" with {units.count(found.outstanding)} outstanding, as unevenly as a device does"


def invalid_words(gates: Sequence[Gate]) -> str:
    """Why a run is no evidence, and what to do."""
    why, remedy = gates[0].fact.fact, gates[0].remedy
    if gates[0].contention is not None:
        why = f"{gates[0].contention.words()}, and {why}"
    return f"This run says nothing about the farm: {why}. {capitalised(remedy)}, and run again."


def not_reached_words(flows: Sequence[Flow], rates: dict[str, float], following: Next | None) -> str:
    """Nothing gave way: what was served, and what was used most."""
    served = listed(
        [f"{units.per_second(rates[f.load.scenario])} of {f.load.scenario}" for f in flows if f.ok]
    )
    text = f"Nothing gave way at this load: the farm served {served}, and its limit is above that."
    if following is None:
        return text
    used = units.percent(following.utilisation_ratio)
    return f"{text} The most used part was {_part(following)}, at {used}."


def _part(one: Next) -> str:
    """What would give way next, in plain words."""
    if one.resource == "disk" and one.role is None:
        return f"all disks of {one.host} together ({one.instance})"
    if one.resource in OTHERS:
        return _other(one)
    if one.tier is None:  # cores that tiers share, of which none's use was measured
        return f"the shared host's CPU ({one.host})"
    part = f"the {one.role} disk" if one.resource == "disk" else "the CPU"
    return f"{part} of the {one.tier} tier ({one.host})"


def inconclusive_words(why: str, candidates: Sequence[Suspect]) -> str:
    """What is not known, and what is."""
    text = f"What limits the farm cannot be told from this run: {why}."
    if not candidates:
        return text
    names = [_place(candidate) for candidate in candidates]
    return f"{text} {'The candidates are' if len(names) > 1 else 'A candidate is'} {listed(names)}."


OTHERS: Mapping[str, str] = {
    "thread": "one thread of {tier} ({instance} on {host})",
    "memory": "the memory of {host}",
    "network": "the interface {instance} of {host}",
    "lock": "locks of {tier} ({instance})",
    "pool": "the {instance} of {host}",
    "dependency": "the way to {instance}",
}
"""What a candidate that is neither CPU nor disk is called."""


def _other(one: Suspect | Next) -> str:
    instance = one.instance.removeprefix("thread:")
    return OTHERS[one.resource].format(host=one.host, tier=one.tier, instance=instance)


def _place(candidate: Suspect) -> str:
    if candidate.resource == "disk" and candidate.role is None:
        return f"all disks of {candidate.host} together ({candidate.instance})"
    if candidate.resource == "disk":
        return f"the {candidate.role} disk of {candidate.tier}"
    if candidate.resource in OTHERS:
        return _other(candidate)
    unknown = " (not measured)" if all(fact.value is None for fact in candidate.evidence) else ""
    return f"the CPU of {candidate.host}{unknown}"


def experiment(flows: Sequence[Flow], found: Sequence[Suspicion]) -> str:
    """The one experiment that would decide most."""
    if found:
        return _of_suspects(found)
    native = next((flow for flow in flows if flow.load.native), None)
    if native is not None:
        return (
            f"Let the farm's servers be watched while {native.load.scenario} goes on (collect, under tiers): "
            "the processors of those that crawl and index, the disks of the index, of the crawl database and "
            "of its log."
        )
    closed = next((flow for flow in flows if flow.pressed and not flow.missed and flow.load.users), None)
    if closed is not None:
        users = closed.load.users or 0
        return (
            f"Double the users of {closed.load.scenario} ({users:g} to {2 * users:g}): if throughput rises, "
            "the farm's limit was not reached; if only the times rise, a lock, a pool or a dependency that "
            "is not watched holds it."
        )
    slow = next((flow for flow in flows if flow.pressed), None)
    if slow is not None:
        return (
            f"Run {slow.load.scenario} alone, and again at half its load: if its times stay the same, "
            "they are its own; if they fall, something that is not watched is used up."
        )
    return LONGER


def _of_suspects(found: Sequence[Suspicion]) -> str:
    """What would tell two suspects apart, or one from chance."""
    first = found[0]
    if first.demoted and len(found) == 1:
        relief = capitalised(_relief(first))
        return f"{relief} and repeat: if throughput rises, {thing(first)} was the limit."
    if strangers(first.resource, first.found) is not None:
        host, unseen = first.resource.hosts[0], unwatched(first)
        if unseen:
            return f"Watch the processes of {listed(list(unseen))} on {host}, and run the same plan again."
        return f"End the programs on {host} that are not the farm's, and run the same plan again."
    if len(found) > 1:
        return (
            f"Relieve {thing(first)} alone ({_relief(first)}) and repeat: if throughput rises, "
            f"that was the limit; if it stays, it is {thing(found[1])}."
        )
    return f"{LONGER} If it still comes and goes, {_relief(first)} and see whether throughput rises."


def _relief(one: Suspicion) -> str:
    reliefs = {
        "disk": "use a larger machine" if one.resource.whole else "put it on a faster disk",
        "thread": "run it on a faster core, or as several processes",
        "allowance": "allow it more CPU",
        **{type_: kind.relief for type_, kind in SHARED.items()},
    }
    if one.resource.type in reliefs:
        return reliefs[one.resource.type]
    return (
        "give the tier a machine or core of its own" if len(one.resource.tiers) > 1 else "give it more cores"
    )
