"""The chain behind a verdict: what was considered, why the winner won, what would change the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pinchpoint.analysis.blame import YIELDING, Rank, owner, rank, suspects
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.checks import Looked, look
from pinchpoint.analysis.confidence import RESAMPLES, Trust
from pinchpoint.analysis.flows import pressed_words
from pinchpoint.analysis.measures import settle
from pinchpoint.analysis.series import Key, each_core
from pinchpoint.analysis.signature import Suspicion
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.summary import thing
from pinchpoint.analysis.verdict import Check, Considered, Explanation, Fact
from pinchpoint.report import units
from pinchpoint.report.words import listed


def explain(case: Case, sure: Trust | None) -> Explanation:
    """Everything the answer rests on, from the same tables and rules as the answer itself.

    Args:
        case: what was judged.
        sure: how sure the answer is; None where nobody was named.
    """
    gates = tuple(Check("gate", gate.held, counted(gate.fact, case)) for gate in case.gates)
    if case.stage is None:
        return Explanation(gates, (), (), ())
    looked = look(case, case.stage)
    return Explanation(
        gates=gates,
        considered=tuple(_row(case, each) for each in looked),
        reasons=tuple(_reasons(case, sure)),
        would_change=tuple(_changes(case, case.stage, looked, sure)),
    )


def counted(fact: Fact, case: Case) -> Fact:
    """The fact with how many samples it rests on, or how many operations where it is about these.

    Hosts of one machine read the same: it is told of the first of them that did.
    """
    machines = {host.machine for host in case.inputs.hosts if host.name == fact.host}
    hosts = [host.name for host in case.inputs.hosts if host.machine in machines]
    each = (_counted(replace(fact, host=name), case) for name in dict.fromkeys([fact.host, *hosts]))
    return next((one for one in each if one.samples), fact)


def _counted(fact: Fact, case: Case) -> Fact:
    samples = case.inputs.samples
    if fact.host and fact.instance is not None:
        keys = [Key(fact.host, fact.metric, each) for each in each_core(fact.instance)]
    else:
        keys = [key for key in samples.keys(fact.metric) if _about(fact, key)]
    found = [samples.series(*key) for key in keys]
    counts = [series.measured for series in found if series is not None]
    if counts:
        return replace(fact, samples=sum(counts))
    if len(keys) > 1 and fact.instance:  # no core was measured by itself: it was told by the machine's own
        return _counted(replace(fact, instance=""), case)
    whole = not fact.metric.partition(".")[2] or fact.metric.startswith("operations.")
    return replace(fact, samples=sum(flow.finished for flow in case.flows)) if whole and fact.metric else fact


def _about(fact: Fact, key: Key) -> bool:
    return fact.host in {key.host, ""} and fact.instance in {key.instance, None}


def _row(case: Case, looked: Looked) -> Considered:
    one = looked.one
    tier, host = owner(one.resource, one.found)
    return Considered(
        name=thing(one),
        kind=one.kind if _suspected(one) else None,
        tier=tier,
        host=host,
        resource=one.resource.type,
        instance=one.resource.instance,
        role=one.resource.role,
        used_ratio=looked.used,
        checks=tuple(replace(each, fact=counted(each.fact, case)) for each in looked.checks),
        why=_why(case, looked),
    )


def _suspected(one: Suspicion) -> bool:
    """Whether it is used up or waited for: that what waits for it grows with the load is not enough."""
    return bool(one.evidence & {"E1", "E4"})


def _why(case: Case, looked: Looked) -> str:
    """Why it is, or is not, the answer."""
    one = looked.one
    first = case.found[0] if case.found else None
    if first is not None and one.resource.key == first.resource.key:
        return "comes first"
    if first is not None and any(one.resource.key == other.resource.key for other in case.found):
        return f"comes after {thing(first)}: {ahead(first, one)}"
    if _suspected(one) and one.kind in YIELDING:
        return "named only where CPU, memory and disks have room, and they have none"
    if _suspected(one):
        return "nobody was seen to wait for it"
    saturation = looked.checks[0]
    if saturation.holds is None:
        return "its use is not known"
    return "not used up"


AHEAD: Mapping[str, Callable[[Suspicion, Suspicion], str]] = {
    "waited_for": lambda _, other: f"nothing is known to wait for {thing(other)}",
    "memory": lambda _, other: f"{thing(other)} reads for want of memory",
    "kinds": lambda one, other: f"{_kinds(one)} speak against it, {_kinds(other)} against the other",
    "used_up": lambda _, other: f"{thing(other)} has room left, it only takes time",
    "exact": lambda _one, _other: "it stands exactly at its declared limit, or at its quota",
    "depth": lambda _, other: f"it lies deeper on the call path, and what waits for it fills {thing(other)}",
    "disk": lambda _one, _other: "of a disk and a CPU at one depth, the disk is what makes the other wait",
    "key": lambda _one, _other: "nothing tells the two apart",
}
"""Field of the rank -> why the one comes before the other."""


def ahead(one: Suspicion, other: Suspicion) -> str:
    """Why the one is taken for the cause rather than the other."""
    pairs = zip(Rank._fields, rank(one), rank(other), strict=True)
    field = next((name for name, mine, its in pairs if mine != its), "key")
    return AHEAD[field](one, other)


def _kinds(one: Suspicion) -> str:
    return listed(sorted(one.evidence))


def _reasons(case: Case, sure: Trust | None) -> Iterator[str]:
    if not case.found:
        pressed = pressed_words(case.flows)
        yield "no resource shows that it is used up (E1) or waited for (E4)"
        yield (
            f"{pressed} all the same"
            if pressed
            else "no scenario had to wait for the farm: the schedule set the pace"
        )
        return
    first = case.found[0]
    yield f"{thing(first)}: {_kinds(first)} hold"
    yield from (f"before {thing(other)}: {ahead(first, other)}" for other in case.found[1:])
    if sure is not None:
        share = units.percent(sure.stable_ratio)
        yield f"{share} of {RESAMPLES} resamples of the measured time (block bootstrap) name it too"
        yield from (f"no more confidence: {why}" for why in sure.why_not_more)


def _changes(case: Case, stage: Stage, looked: tuple[Looked, ...], sure: Trust | None) -> Iterator[str]:
    if not case.found:
        yield from _nearest(looked)
        return
    first = case.found[0]
    yield from _margins(next(one for one in looked if one.one.resource.key == first.resource.key))
    yield _without(case, stage, first)
    yield from _undeclared(case, stage, first)
    named = sure.named if sure else {}
    names = {one.one.resource.key: thing(one.one) for one in looked}
    for key, count in sorted(named.items(), key=lambda item: -item[1]):
        if key != first.resource.key:
            who = names[key] if key else "nothing"
            yield f"{units.percent(count / RESAMPLES)} of the resamples name {who}"


def _nearest(looked: tuple[Looked, ...]) -> Iterator[str]:
    """What is nearest to its limit, and at how much more of the load it would be there."""
    for one in looked:
        limit = one.checks[0].fact.threshold
        if one.used and limit and one.used < limit <= 1:
            times = limit / one.used
            yield f"at {times:.3g} times this load, operations alike, {thing(one.one)} would be used up"
            return


def _margins(first: Looked) -> Iterator[str]:
    """What its evidence would have to be to hold no more."""
    for check in first.checks:
        fact = check.fact
        if check.holds and fact.rule:
            yield f"{check.evidence} would not hold if this did not: {fact.rule} (now: {fact.fact})"


def _without(case: Case, stage: Stage, first: Suspicion) -> str:
    """Who would be named if the winner were not there."""
    rest = tuple(one for one in case.resources if one.key != first.resource.key)
    following = next((one for one in suspects(rest, stage.rows, case.flows) if not one.demoted), None)
    if following is None:
        return f"were {thing(first)} not looked at, nothing else would be named"
    return f"were {thing(first)} not looked at, {thing(following)} would be named ({following.kind})"


def _undeclared(case: Case, stage: Stage, first: Suspicion) -> Iterator[str]:
    """Whether the answer hangs on what was declared."""
    if not any(one.limits for one in case.resources):
        return
    bare = settle((replace(one, limits=None) for one in case.resources), stage.rows)
    found = next(iter(suspects(bare, stage.rows, case.flows)), None)
    if found is None:
        yield "without the declared limits of disks nothing would be named"
    elif (found.resource.key, found.kind) == (first.resource.key, first.kind):
        yield "without the declared limits of disks the answer would be the same"
    else:
        yield f"without the declared limits of disks it would be {thing(found)} ({found.kind})"
