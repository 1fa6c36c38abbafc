"""What samples alone come to, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from pinchpoint.analysis.alone.observed import PAGED, Observed
from pinchpoint.analysis.alone.stretches import PLATEAU
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import utc

UNKNOWN = "no operation was recorded, so nobody knows who waited, and how much"


def named_words(one: Observed) -> str:
    """The one resource that was used up while all others had room."""
    thing = thing_words(one)
    return (
        f"{thing[0].upper()}{thing[1:]} gives way first: it was {short_words(one)}. All else that was "
        f"recorded had room. Confidence is low: {UNKNOWN}."
    )


def nothing_words(observed: Sequence[Observed]) -> str:
    """Nothing was over its limit."""
    text = (
        "Nothing that was recorded was used up: no CPU, disk, memory or interface was at its limit for "
        f"{units.seconds(PLATEAU.value)} or longer."
    )
    cpus = [one for one in observed if one.subject.kind == "cpu" and one.used is not None]
    most = max(cpus, key=lambda one: one.used or 0.0, default=None)
    if most is not None:
        text += (
            f" The most used CPU was that of {most.subject.host}, at {units.percent(most.used)} on average."
        )
    return f"{text} Whether anybody waited for something else is not known: no operation was recorded."


def cannot_tell(why: str, candidates: Sequence[Observed]) -> str:
    """Nobody is named; who may be it is."""
    text = f"What limits the farm cannot be told from these samples alone: {why}."
    told = [f"{thing_words(one)} ({short_words(one)})" for one in candidates]
    who = "candidate is" if len(told) == 1 else "candidates are"
    return f"{text} The {who} {listed(told)}." if told else text


def why_nobody(used_up: Sequence[Observed], unknown: Sequence[Observed]) -> str:
    """Why no single resource is named: of several, of one beside what was not measured, of one alone."""
    if len(used_up) > 1:
        return f"{len(used_up)} resources were used up, and {UNKNOWN}"
    if used_up and not unknown and not used_up[0].demoted:
        return f"{thing_words(used_up[0])} was used up, and nothing else was recorded"
    missing = listed([thing_words(one) for one in unknown[:3]])
    if used_up and used_up[0].demoted:
        return f"{thing_words(used_up[0])} was {_state(used_up[0])}, but {used_up[0].demoted}"
    seen = f"{thing_words(used_up[0])} was used up" if used_up else "nothing that was measured was used up"
    return f"{seen}, but {missing} {'was' if len(unknown) == 1 else 'were'} not measured"


def thing_words(one: Observed) -> str:
    """The resource in plain words."""
    subject = one.subject
    if subject.resource == "disk" and subject.role == subject.instance:
        return f"disk {subject.instance} of {subject.host}"
    device = f", {subject.instance}" if subject.instance else ""
    named = {
        "cpu": f"the CPU of {subject.host}",
        "memory": f"the {'paging' if _is_paging(one) else 'memory'} of {subject.host}",
        "network": f"the network interface {subject.instance} of {subject.host}",
        "dependency": f"what the crawler of {subject.host} fetches from",
        "disk": f"the {subject.role} disk of the {subject.tier} tier ({subject.host}{device})",
    }
    return named[subject.resource]


def _is_paging(one: Observed) -> bool:
    """Whether it is memory of which nobody recorded whether it was paging."""
    return one.facts[0].metric == PAGED


def short_words(one: Observed) -> str:
    """How long it was at its limit, and when for longest."""
    if not one.measured:
        return "not measured"
    if not one.stretches:
        return f"never {_state(one)}"
    share = units.percent(one.over_s / one.measured_s)
    begin, end = (utc(round(at)) for at in (one.stretches[0].from_s, one.stretches[0].to_s))
    until = end[11:16] if begin[:10] == end[:10] else f"{end[:10]} {end[11:16]}"
    return (
        f"{_state(one)} for {units.seconds(one.over_s)}, {share} of the time, for longest from {begin[:10]} "
        f"{begin[11:16]} to {until} UTC"
    )


def _state(one: Observed) -> str:
    """What being at its limit means."""
    limit = one.subject.limit.value
    states = {
        "cpu": f"{units.percent(limit)} busy or more",
        "disk_latency": f"slower than {units.seconds(limit)}",
        "disk_cap": f"at {units.percent(limit)} of its declared limit or more",
        "memory": f"left with less than {units.percent(limit)} while paging",
        "network": f"at {units.percent(limit)} of its speed or more",
        "external": f"waited for by more than {units.percent(limit)} of its threads",
    }
    return states[one.subject.kind]


def experiment_words(candidates: Sequence[Observed]) -> str:
    """What would decide."""
    unknown = [one for one in candidates if not one.measured]
    sizeless = [
        one.subject.host for one in unknown if one.subject.resource == "memory" and not _is_paging(one)
    ]
    if sizeless:
        return f"Say how much memory {sizeless[0]} has (--memory {sizeless[0]}=SIZE), and import again."
    if unknown:
        return f"Record {listed([thing_words(one) for one in unknown])} as well, over the same time of day."
    roleless = [one.subject for one in candidates if one.demoted and one.subject.role == one.subject.instance]
    if roleless:
        disk = f"{roleless[0].host}:{roleless[0].instance}"
        return (
            f"Say what the disk is for (--disk {disk}=sql.log, or a farm.yaml with --farm), and import again."
        )
    load = (
        "run a load of known size in steps and import such a log into it (--into): where throughput stays "
        "while the load rises, what is used up then is the limit."
    )
    disk_ = next((one for one in candidates if one.subject.resource == "disk"), None)
    if disk_ is None:
        return load[0].upper() + load[1:]
    return (
        f"Record how long the database waits for {thing_words(disk_)} (commit times, its own waits such as "
        f"WRITELOG) over the same hours, or {load}"
    )
