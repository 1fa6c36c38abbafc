"""The chain behind a verdict: what was considered, why the winner won, what would change the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from pinchpoint.analysis.blame import YIELDING, Rank, owner, rank, suspects, throttled
from pinchpoint.analysis.capacity import Demand, demands_of
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.checks import Looked, look
from pinchpoint.analysis.conclusion import Conclusion
from pinchpoint.analysis.confidence import RESAMPLES
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.growth import with_growth
from pinchpoint.analysis.inputs import Inputs
from pinchpoint.analysis.margins import margins
from pinchpoint.analysis.measures import settle
from pinchpoint.analysis.output import LEAST_USED, others
from pinchpoint.analysis.resources import Resource, ResourceType
from pinchpoint.analysis.series import Key, each_core
from pinchpoint.analysis.signature import Suspicion
from pinchpoint.analysis.stages import Rows, Stage
from pinchpoint.analysis.summary import thing
from pinchpoint.analysis.thresholds import CONNECTIONS, THREAD_BUSY, UTILISATION, Threshold
from pinchpoint.analysis.traffic import Traffic
from pinchpoint.analysis.verdict import Check, Considered, Explanation, Fact
from pinchpoint.report import units
from pinchpoint.report.words import listed

OF_LEVELS = ("E2", "E3")
"""Evidence that several levels give."""
FULL: Mapping[ResourceType, Threshold] = {"thread": THREAD_BUSY, "pool": CONNECTIONS}
"""From when on a resource is called used up; all others from ``UTILISATION`` on."""


def explain(case: Case, concluded: Conclusion) -> Explanation:
    """Everything the answer rests on, from the same tables and rules as the answer itself.

    Args:
        case: what was judged.
        concluded: what it came to.
    """
    gates = tuple(_gate(gate, case, concluded) for gate in case.gates)
    if case.stage is None:
        return Explanation(gates, (), (), ())
    looked = look(case, case.stage)
    return Explanation(
        gates=gates,
        considered=tuple(_row(case, each, concluded) for each in looked),
        reasons=tuple(_reasons(case, concluded)),
        would_change=tuple(_changes(case, case.stage, looked, concluded)),
    )


def _gate(gate: Gate, case: Case, concluded: Conclusion) -> Check:
    """One that did not hold and does not invalidate the run says why."""
    fact = counted(gate.fact, case)
    if not gate.held and gate.excusable and gate not in concluded.blocking:
        fact = replace(fact, fact=f"{fact.fact}, which may be the farm's doing: the run stays valid")
    return Check("gate", gate.held, fact)


def counted(fact: Fact, case: Case) -> Fact:
    """The fact with how many samples it rests on, or how many operations where it is about these.

    Hosts of one machine read the same: it is told of the first of them that did.
    """
    machines = {host.machine for host in case.inputs.hosts if host.name == fact.host}
    hosts = [host.name for host in case.inputs.hosts if host.machine in machines]
    each = (replace(fact, host=name) for name in dict.fromkeys([fact.host, *hosts]))
    counts = ((one, _count(one, case)) for one in each)
    return next((replace(one, samples=count) for one, count in counts if count), fact)


def _count(fact: Fact, case: Case) -> int:
    """Over the part that is judged; what several levels say of a resource rests on all of them."""
    if fact.evidence not in OF_LEVELS or case.climb is None:
        return _count_in(fact, case.inputs, None if case.stage is None else case.stage.rows)
    step_s = case.inputs.window.step_s
    parts = (case.inputs.during(level.window(step_s)) for level in case.climb.levels)
    return sum(_count_in(fact, part, None) for part in parts)


def _count_in(fact: Fact, inputs: Inputs, rows: Rows | None) -> int:
    """How many samples, or operations, a fact rests on in a part of the run.

    Args:
        fact: what is told.
        inputs: that part.
        rows: its steps that are judged; None: all of them. Of the generator, and of operations, it is all.
    """
    if not fact.metric.partition(".")[2] or fact.metric.startswith("operations."):
        return sum(flow.count for flow in _operations(fact, inputs)) if fact.metric else 0
    samples = inputs.samples
    if fact.host and fact.instance is not None:
        keys = [Key(fact.host, fact.metric, each) for each in each_core(fact.instance)]
    else:
        keys = [key for key in samples.keys(fact.metric) if _about(fact, key)]
    found = [series for series in (samples.series(*key) for key in keys) if series is not None]
    if found:
        judged = rows is not None and not fact.metric.startswith("generator.")
        counts = [int(series.counts[rows].sum()) for series in found] if judged else []
        return sum(counts) or sum(series.measured for series in found)  # of long intervals, the middle counts
    if len(keys) > 1 and fact.instance:  # no core was measured by itself: it was told by the machine's own
        return _count_in(replace(fact, instance=""), inputs, rows)
    return 0


def _operations(fact: Fact, inputs: Inputs) -> list[Traffic]:
    """Those of the scenario it is about, else of all."""
    names = [load.scenario for load in inputs.loads]
    own = [fact.instance] if not fact.host and fact.instance in names else names
    return [inputs.traffic.of(name).whole() for name in own if name is not None]


def _about(fact: Fact, key: Key) -> bool:
    return fact.host in {key.host, ""} and fact.instance in {key.instance, None}


def _row(case: Case, looked: Looked, concluded: Conclusion) -> Considered:
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
        why=_why(case, looked, concluded),
    )


def _suspected(one: Suspicion) -> bool:
    """Whether it is used up or waited for: that what waits for it grows with the load is not enough."""
    return bool(one.evidence & {"E1", "E4"})


def _why(case: Case, looked: Looked, concluded: Conclusion) -> str:
    """Why it is, or is not, the answer."""
    one, keys = looked.one, [other.resource.key for other in case.found]
    if one.resource.key in keys[1:]:
        return f"comes after {thing(case.found[0])}: {ahead(case.found[0], one)}"
    if one.resource.key in keys:
        yet = ", and cannot be named all the same" if concluded.why else ""
        return "would come first, were the run valid evidence" if concluded.blocking else f"comes first{yet}"
    if _suspected(one):
        return _why_not(case, one)
    return "its use is not known" if looked.checks[0].holds is None else "not used up"


def _why_not(case: Case, one: Suspicion) -> str:
    """Why one that something speaks against is not taken for a suspect."""
    if one.kind in YIELDING:
        return "named only where CPU, memory and disks have room, and they have none"
    if throttled(one, case.found):
        return "what is seen of it is its machine's doing, which stands at the limit of all its disks"
    return "nobody was seen to wait for it"


AHEAD: Mapping[str, Callable[[Suspicion, Suspicion], str]] = {
    "waited_for": lambda _, other: f"nothing is known to wait for {thing(other)}",
    "memory": lambda _, other: (
        f"what is read again for want of memory may be what {thing(other)} is busy with"
    ),
    "kinds": lambda one, other: f"{_kinds(one)} against it, {_kinds(other)} against the other",
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


def _reasons(case: Case, concluded: Conclusion) -> Iterator[str]:
    sure = concluded.sure
    if concluded.blocking:
        yield from (gate.fact.fact for gate in concluded.blocking)
        yield "so the run shows what the load generator could do, and nothing of the farm"
        return
    if concluded.why and not case.found:
        yield "no resource shows that it is used up (E1) or waited for (E4)"
    if concluded.why and sure is None:
        yield concluded.why
        return
    if not case.found:
        yield "no resource shows that it is used up (E1) or waited for (E4)"
        yield f"no scenario had to wait for the farm: {_pace(case)} set the pace"
        return
    first = case.found[0]
    yield f"{thing(first)}: {_kinds(first)} {'holds' if len(first.evidence) == 1 else 'hold'}"
    yield from (f"before {thing(other)}: {ahead(first, other)}" for other in case.found[1:])
    if sure is not None:
        share = units.percent(sure.stable_ratio)
        yield f"{share} of {RESAMPLES} resamples of the measured time (block bootstrap) name it too"
        nobody = [f"it cannot be named all the same: {concluded.why}"] if concluded.why else []
        yield from nobody or (f"no more confidence: {why}" for why in sure.why_not_more)


def _pace(case: Case) -> str:
    """What decided how much was asked of the farm."""
    schedules = {"the schedule" if flow.load.scheduled else "how long its users think" for flow in case.flows}
    return listed(sorted(schedules, reverse=True))


def _changes(case: Case, stage: Stage, looked: tuple[Looked, ...], concluded: Conclusion) -> Iterator[str]:
    if concluded.blocking:
        yield from (f"valid evidence takes another run: {gate.remedy}" for gate in concluded.blocking)
        return
    sure = concluded.sure
    if not case.found or (concluded.why and sure is None):
        yield from _nearest(case, looked) if not case.found else ()
        yield from [concluded.experiment] if concluded.experiment else []
        return
    first = case.found[0]
    yield from margins(next(one for one in looked if one.one.resource.key == first.resource.key))
    yield _without(case, stage, first)
    yield from _undeclared(case, stage, first)
    named = sure.named if sure else {}
    names = {one.one.resource.key: thing(one.one) for one in looked}
    for key, count in sorted(named.items(), key=lambda item: -item[1]):
        if key != first.resource.key:
            who = names[key] if key else "nothing"
            yield f"{units.percent(count / RESAMPLES)} of the resamples name {who}"


def _nearest(case: Case, looked: tuple[Looked, ...]) -> Iterator[str]:
    """What is nearest to its limit, and at how much more of the load it would be there.

    By the same model as headroom: of memory, or of what merely takes time, more load does not tell that.
    """
    loaded = others(None, demands_of(case))
    if not loaded:
        least = units.percent(LEAST_USED)
        yield f"a larger load, how much so is not known: of nothing whose limit is known it takes {least}"
    near = {demand.resource.key: (_times(demand), demand) for demand in loaded}
    near = {key: each for key, each in near.items() if each[0] > 1}
    if not near:
        return
    key = min(near, key=lambda each: near[each][0])
    times, demand = near[key]
    name = next(thing(one.one) for one in looked if one.one.resource.key == key)
    load = "this load, operations alike"
    if demand.each_s is not None:
        load = f"the load of {next(iter(demand.ceilings_per_s))}, all else alike"
    yield f"at {units.count(times)} times {load}, {name} would be used up"


def _times(demand: Demand) -> float:
    """At how many times the load it is called used up, which is before nothing is left of it."""
    limit = FULL.get(demand.resource.type, UTILISATION).value
    return demand.ceiling_ratio * (limit - demand.base) / (1 - demand.base)


def _found_in(case: Case, stage: Stage, resources: Iterable[Resource]) -> tuple[Suspicion, ...]:
    """What speaks against whom, were these all there are: as ``case.build_case`` finds it."""
    found = suspects(resources, stage.rows, case.flows)
    if case.climb is None:
        return found
    return tuple(sorted(with_growth(found, case.climb), key=rank, reverse=True))


def _without(case: Case, stage: Stage, first: Suspicion) -> str:
    """Who would be named if the winner were not there."""
    rest = [one for one in case.resources if one.key != first.resource.key]
    following = next((one for one in _found_in(case, stage, rest) if not one.demoted), None)
    if following is None:
        return f"were {thing(first)} not looked at, nothing else would be named"
    return f"were {thing(first)} not looked at, {thing(following)} would be named ({following.kind})"


def _undeclared(case: Case, stage: Stage, first: Suspicion) -> Iterator[str]:
    """Whether the answer hangs on what was declared."""
    if not any(one.limits for one in case.resources):
        return
    bare = settle((replace(one, limits=None) for one in case.resources), stage.rows)
    climb = case.climb
    if climb is not None:
        climb = replace(climb, resources=[replace(one, limits=None) for one in climb.resources])
    found = next(iter(_found_in(replace(case, climb=climb), stage, bare)), None)
    if found is None:
        yield "without the declared limits of disks nothing would be named"
    elif (found.resource.key, found.kind) == (first.resource.key, first.kind):
        yield "without the declared limits of disks the answer would be the same"
    else:
        yield f"without the declared limits of disks it would be {thing(found)} ({found.kind})"
