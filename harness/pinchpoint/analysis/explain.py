"""Explains a verdict: the considered resources, why the bottleneck was named, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pinchpoint.analysis.capacity import demands_of
from pinchpoint.analysis.case import Case, by_all_levels
from pinchpoint.analysis.cause import Rank, rank, suspects
from pinchpoint.analysis.conclusion import Conclusion
from pinchpoint.analysis.confidence import RESAMPLES
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.growth import why_not_shown, with_growth
from pinchpoint.analysis.output import LEAST_USED, others
from pinchpoint.analysis.resources.base import Resource, Suspicion
from pinchpoint.analysis.resources.kinds import KINDS, facts, kind_of, place, resource_name, suspect
from pinchpoint.analysis.sample_counts import counted
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import CEILING, RISES, Threshold
from pinchpoint.analysis.verdict import Check, Considered, Explanation, Fact
from pinchpoint.base import units
from pinchpoint.base.wording import PROVES, listed

KIND = {"E2": RISES, "E3": CEILING}
"""Kind of evidence that needs several load levels -> its rule."""


@dataclass(frozen=True, slots=True)
class ConsideredResource:
    """One considered resource with its checks.

    Attributes:
        one: the evidence against the resource; ``one.evidence`` is empty if there is none.
        checks: one per kind of evidence, E1 to E4.
    """

    one: Suspicion
    checks: tuple[Check, ...]


def considered_resources(case: Case, stage: Stage) -> tuple[ConsideredResource, ...]:
    """Every considered resource, the most used first; resources with an unknown utilisation come last."""
    result = [_considered(case, stage, resource) for resource in case.resources]
    return tuple(
        sorted(result, key=lambda each: -(-1.0 if each.one.found.use is None else each.one.found.use))
    )


def _considered(case: Case, stage: Stage, resource: Resource) -> ConsideredResource:
    known = next((one for one in case.found if one.resource.key == resource.key), None)
    one = known or suspect(resource, stage.rows, case.flows) or _innocent(case, stage, resource)
    if case.climb is not None and known is None:
        [one] = with_growth([one], case.climb)
    checks = (_saturation(one), *(_growth(one, case, kind) for kind in KIND), _witness(one))
    return ConsideredResource(one, checks)


def _innocent(case: Case, stage: Stage, resource: Resource) -> Suspicion:
    kind = KINDS[resource.type]
    return kind.innocent(resource, kind.measure(resource, stage.rows), case.flows)


def _saturation(suspicion: Suspicion) -> Check:
    """E1: the utilisation of a resource, or the measure that replaces the utilisation."""
    kind = KINDS[suspicion.resource.type]
    room = None if "E1" in suspicion.evidence else kind.room(suspicion, suspicion.found)
    if room is not None:
        return Check("E1", None if room.value is None else False, room)
    about = facts(suspicion)
    fact = next((each for each in about if each.evidence == "E1"), next(iter(about), None))
    if fact is None or fact.value is None:
        return Check("E1", None, _unknown(suspicion, "its use was not measured"))
    if "E1" not in suspicion.evidence and fact.evidence == "E1" and _reached(fact):
        why = kind.excused(suspicion.found)
        return Check("E1", False, replace(fact, fact=f"{fact.fact}, but {why}") if why else fact)
    return Check("E1", "E1" in suspicion.evidence, fact)


def _growth(suspicion: Suspicion, case: Case, kind: str) -> Check:
    """E2 or E3, with its figures; unknown without several load levels."""
    rule = KIND[kind]
    grown = next((fact for fact in suspicion.grown if fact.evidence == kind), None)
    if grown is not None:
        return Check(kind, True, grown)
    why = (
        "only a load in steps can show it"
        if case.climb is None
        else why_not_shown(suspicion, case.climb, kind)
    )
    if why:
        return Check(kind, None, _unknown(suspicion, why, rule))
    return Check(kind, False, _unknown(suspicion, "not found at the load levels", rule))


def _witness(suspicion: Suspicion) -> Check:
    """E4: what an independent source reports about a resource."""
    seen = tuple(KINDS[suspicion.resource.type].witnesses(suspicion, suspicion.found))
    fact = next((each for each in seen if each.evidence == "E4"), next(iter(seen), None))
    if fact is None or fact.value is None:
        return Check("E4", None, _unknown(suspicion, "no second source was available"))
    return Check("E4", "E4" in suspicion.evidence or (fact.evidence == "E4" and _reached(fact)), fact)


def _reached(fact: Fact) -> bool:
    """Whether a fact's value reaches the fact's threshold; False if the value or the threshold is unknown."""
    if fact.value is None or fact.threshold is None:
        return False
    below = fact.metric == "mem.available_ratio"
    return fact.value < fact.threshold if below else fact.value >= fact.threshold


def _unknown(suspicion: Suspicion, why: str, rule: Threshold | None = None) -> Fact:
    host = suspicion.resource.hosts[0] if suspicion.resource.hosts else ""
    source, says = (rule.source, rule.says) if rule else (None, None)
    return Fact(why, "", None, host, suspicion.resource.instance, "context", None, source, says)


def explain(case: Case, concluded: Conclusion) -> Explanation:
    """The explanation of a conclusion, from the same tables and rules as the conclusion.

    Args:
        case: the judged case.
        concluded: the conclusion from ``case``.
    """
    gates = tuple(_gate(gate, case, concluded) for gate in case.gates)
    if case.stage is None:
        return Explanation(gates, (), (), ())
    considered = considered_resources(case, case.stage)
    return Explanation(
        gates=gates,
        considered=tuple(_row(case, each, concluded) for each in considered),
        reasons=tuple(_reasons(case, concluded)),
        would_change=tuple(_would_change(case, case.stage, considered, concluded)),
    )


def _gate(gate: Gate, case: Case, concluded: Conclusion) -> Check:
    """The check of a gate, with the reason if the failed gate does not invalidate the run."""
    fact = counted(gate.fact, case)
    if not gate.held and gate.excusable and gate not in concluded.blocking:
        fact = replace(fact, fact=f"{fact.fact}; the farm may have caused this, so the run is valid")
    return Check("gate", gate.held, fact)


def _row(case: Case, considered: ConsideredResource, concluded: Conclusion) -> Considered:
    one = considered.one
    return Considered(
        name=resource_name(one),
        kind=one.kind if _suspected(one) else None,
        **place(one.resource, one.found),
        used_ratio=one.found.use,
        checks=tuple(replace(each, fact=counted(each.fact, case)) for each in considered.checks),
        why=_why(case, considered, concluded),
    )


def _suspected(suspicion: Suspicion) -> bool:
    """Whether a resource is saturated or waited for; a queue that grows with the load does not suffice."""
    return bool(suspicion.evidence & {"E1", "E4"})


def _why(case: Case, considered: ConsideredResource, concluded: Conclusion) -> str:
    """Why a considered resource is, or is not, the bottleneck."""
    one, keys = considered.one, [other.resource.key for other in case.found]
    if one.resource.key in keys[1:]:
        return f"ranks after {resource_name(case.found[0])}: {ahead(case.found[0], one)}"
    if one.resource.key in keys:
        if concluded.blocking:
            return "it would be the bottleneck if the run were valid"
        return "it ranks first, but cannot be named" if concluded.why else "the bottleneck"
    if _suspected(one):
        return _why_not(case, one)
    return "utilisation not known" if considered.checks[0].holds is None else "not saturated"


def _why_not(case: Case, suspicion: Suspicion) -> str:
    """Why a resource with evidence against it is not a suspect."""
    if kind_of(suspicion).yields:
        return "named only if CPU, memory and disks are below their limits, and they are not"
    if kind_of(suspicion).explained(suspicion, case.found):
        return "the machine's limit for all its disks explains this disk's latency"
    return "no work waited for it"


AHEAD: Mapping[str, Callable[[Suspicion, Suspicion], str]] = {
    "waited_for": lambda _, other: f"no work is known to wait for {resource_name(other)}",
    "memory": lambda _, other: (
        f"{resource_name(other)} may be busy with data that is read again because memory is too small"
    ),
    "kinds": lambda one, other: f"{_kinds(one)} for it, {_kinds(other)} for the other",
    "used_up": lambda _, other: f"{resource_name(other)} is slow but not saturated",
    "exact": lambda _one, _other: "it is exactly at its declared limit or quota",
    "depth": lambda _, other: (
        f"it is called by the other tier, and requests that wait for it occupy {resource_name(other)}"
    ),
    "disk": lambda _one, _other: "of a disk and a CPU of the same tier, the disk delays the CPU",
    "key": lambda _one, _other: "the evidence for both is the same; the first by name is listed",
}
"""Field of the rank -> why one suspect comes before the other."""


def ahead(suspicion: Suspicion, other: Suspicion) -> str:
    """Why one suspect, and not the other, is named as the cause."""
    pairs = zip(Rank._fields, rank(suspicion), rank(other), strict=True)
    field = next((name for name, mine, its in pairs if mine != its), "key")
    return AHEAD[field](suspicion, other)


def _kinds(suspicion: Suspicion) -> str:
    return listed([PROVES[each] for each in sorted(suspicion.evidence)])


def _reasons(case: Case, concluded: Conclusion) -> Iterator[str]:
    sure = concluded.sure
    if concluded.blocking:
        yield from (gate.fact.fact for gate in concluded.blocking)
        yield "the run therefore measured the load generator, not the farm"
        return
    if not case.found:
        yield "no resource was saturated or waited for"
    if concluded.why and sure is None:
        yield concluded.why
        return
    if not case.found:
        yield f"no scenario had to wait for the farm: {_load_limit(case)} limited the load"
        return
    first = case.found[0]
    yield f"{resource_name(first)}: {_kinds(first)}"
    yield from (f"ranked before {resource_name(other)}: {ahead(first, other)}" for other in case.found[1:])
    if sure is not None:
        share = units.percent(sure.stable_ratio)
        yield (
            f"{share} of {RESAMPLES} resamples of the measured time (block bootstrap) name the same resource"
        )
        if concluded.why:
            yield f"but it cannot be named: {concluded.why}"
        else:
            yield from (f"why the confidence is not higher: {why}" for why in sure.why_not_more)


def _load_limit(case: Case) -> str:
    """What limited the offered load: the schedule, or the users' think time."""
    kinds = sorted({flow.load.scheduled for flow in case.flows}, reverse=True)
    return listed(["the schedule" if scheduled else "how long users think" for scheduled in kinds])


def _would_change(
    case: Case, stage: Stage, considered: tuple[ConsideredResource, ...], concluded: Conclusion
) -> Iterator[str]:
    """Sentences about facts and actions that would change the answer."""
    if concluded.blocking:
        yield from (f"for a valid run: {gate.remedy}" for gate in concluded.blocking)
        return
    sure = concluded.sure
    if not case.found or (concluded.why and sure is None):
        if not case.found:
            yield from _nearest(case, considered)
        if concluded.experiment:
            yield concluded.experiment
        return
    first = case.found[0]
    yield _without(case, stage, first)
    named = sure.named if sure else {}
    names = {one.one.resource.key: resource_name(one.one) for one in considered}
    for key, count in sorted(named.items(), key=lambda item: -item[1]):
        if key != first.resource.key:
            who = names[key] if key else "nothing"
            yield f"{units.percent(count / RESAMPLES)} of the bootstrap resamples name {who}"


def _nearest(case: Case, considered: tuple[ConsideredResource, ...]) -> Iterator[str]:
    """A sentence about the resource nearest to its limit, and the load at which it would be saturated.

    Computed by the headroom's model, which does not cover memory and resources that only add latency.
    """
    loaded = others(None, demands_of(case))
    if not loaded:
        least = units.percent(LEAST_USED)
        yield f"a larger load; how much larger is not known: it takes less than {least} of every known limit"
    near = [demand for demand in loaded if demand.ceiling_ratio > 1]
    if not near:
        return
    demand = min(near, key=lambda each: each.ceiling_ratio)
    name = next(resource_name(one.one) for one in considered if one.one.resource.key == demand.resource.key)
    load = "this load with the same mix"
    if demand.each_s is not None:
        load = f"the load of {next(iter(demand.ceilings_per_s))}, all else unchanged"
    yield f"at {units.count(demand.ceiling_ratio)} times {load}, {name} would be saturated"


def _without(case: Case, stage: Stage, first: Suspicion) -> str:
    """A sentence about the bottleneck that would be named without the first one."""
    rest = [one for one in case.resources if one.key != first.resource.key]
    result = by_all_levels(suspects(rest, stage.rows, case.flows), case.climb)
    following = next((one for one in result if not one.not_waited_for), None)
    if following is None:
        return f"without {resource_name(first)} no resource would be the bottleneck"
    return f"without {resource_name(first)} the bottleneck would be {resource_name(following)}"
