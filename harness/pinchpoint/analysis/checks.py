"""The four kinds of evidence for every resource: which hold, which do not, which are not known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.growth import why_not_shown, with_growth
from pinchpoint.analysis.resources.base import Resource, Suspicion
from pinchpoint.analysis.resources.kinds import KINDS, facts, suspect
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import CEILING, RISES, Threshold
from pinchpoint.analysis.verdict import Check, Fact

KIND = {"E2": RISES, "E3": CEILING}
"""Kind of evidence that only several load levels show -> its rule."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One resource with the checks it went through.

    Attributes:
        one: what speaks against it; without evidence where nothing does.
        used: how much of it is used, 0-1; None where that is not known.
        checks: one per kind of evidence, E1 to E4.
    """

    one: Suspicion
    used: float | None
    checks: tuple[Check, ...]


def look(case: Case, stage: Stage) -> tuple[Looked, ...]:
    """Every resource that was considered, the most used first; those whose use is not known come last."""
    found = [_looked(case, stage, resource) for resource in case.resources]
    return tuple(sorted(found, key=lambda one: -(-1.0 if one.used is None else one.used)))


def _looked(case: Case, stage: Stage, resource: Resource) -> Looked:
    known = next((one for one in case.found if one.resource.key == resource.key), None)
    one = known or suspect(resource, stage.rows, case.flows) or _innocent(case, stage, resource)
    if case.climb is not None and known is None:
        [one] = with_growth([one], case.climb)
    checks = (_saturation(one), *(_growth(one, case, kind) for kind in KIND), _witness(one))
    return Looked(one, one.found.use, tuple(checks))


def _innocent(case: Case, stage: Stage, resource: Resource) -> Suspicion:
    kind = KINDS[resource.type]
    return kind.innocent(resource, kind.measure(resource, stage.rows), case.flows)


def _saturation(one: Suspicion) -> Check:
    """E1: its use, or what stands in for it."""
    kind = KINDS[one.resource.type]
    room = None if "E1" in one.evidence else kind.room(one, one.found)
    if room is not None:
        return Check("E1", None if room.value is None else False, room)
    about = facts(one)
    fact = next((each for each in about if each.evidence == "E1"), next(iter(about), None))
    if fact is None or fact.value is None:
        return Check("E1", None, _unknown(one, "its use was not measured"))
    if "E1" not in one.evidence and fact.evidence == "E1" and _reached(fact):
        why = kind.excused(one.found)
        return Check("E1", False, replace(fact, fact=f"{fact.fact}, but {why}") if why else fact)
    return Check("E1", "E1" in one.evidence, fact)


def _growth(one: Suspicion, case: Case, kind: str) -> Check:
    """E2 and E3: from several levels only, and of what was measured at them."""
    rule = KIND[kind]
    grown = next((fact for fact in one.grown if fact.evidence == kind), None)
    if grown is not None:
        return Check(kind, True, grown)
    why = "only a load in steps can show it" if case.climb is None else why_not_shown(one, case.climb, kind)
    if why:
        return Check(kind, None, _unknown(one, why, rule))
    return Check(kind, False, _unknown(one, "not found at the load levels", rule))


def _witness(one: Suspicion) -> Check:
    """E4: what an independent source reports of it."""
    seen = tuple(KINDS[one.resource.type].witnesses(one, one.found))
    fact = next((each for each in seen if each.evidence == "E4"), next(iter(seen), None))
    if fact is None or fact.value is None:
        return Check("E4", None, _unknown(one, "no second source was available"))
    return Check("E4", "E4" in one.evidence or (fact.evidence == "E4" and _reached(fact)), fact)


def _reached(fact: Fact) -> bool:
    """Whether its figure reaches its threshold; False where one of the two is not known."""
    if fact.value is None or fact.threshold is None:
        return False
    below = fact.metric == "mem.available_ratio"
    return fact.value < fact.threshold if below else fact.value >= fact.threshold


def _unknown(one: Suspicion, why: str, rule: Threshold | None = None) -> Fact:
    host = one.resource.hosts[0] if one.resource.hosts else ""
    source, says = (rule.source, rule.says) if rule else (None, None)
    return Fact(why, "", None, host, one.resource.instance, "context", None, source, says)
