"""What would change the answer: another load, another farm, other figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.analysis.blame import suspects
from pinchpoint.analysis.capacity import Demand, demands_of
from pinchpoint.analysis.case import Case, by_all_levels
from pinchpoint.analysis.checks import Looked
from pinchpoint.analysis.conclusion import Conclusion
from pinchpoint.analysis.confidence import RESAMPLES
from pinchpoint.analysis.output import LEAST_USED, others
from pinchpoint.analysis.resources.base import DiskMeasures, DiskState, Suspicion
from pinchpoint.analysis.resources.disk.facts import shift_words
from pinchpoint.analysis.resources.disk.measures import settle
from pinchpoint.analysis.resources.kinds import KINDS, facts, thing
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import (
    BY_SIZE,
    DISK_SHIFT,
    REGULATOR_FLAT,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
)
from pinchpoint.analysis.verdict import Check, Fact
from pinchpoint.base import units


def would_change(
    case: Case, stage: Stage, looked: tuple[Looked, ...], concluded: Conclusion
) -> Iterator[str]:
    """What would change the answer, a sentence each.

    Args:
        case: what was judged.
        stage: of it the load level that was.
        looked: every resource that was considered.
        concluded: what it came to.
    """
    if concluded.blocking:
        yield from (f"valid evidence takes another run: {gate.remedy}" for gate in concluded.blocking)
        return
    sure = concluded.sure
    if not case.found or (concluded.why and sure is None):
        if not case.found:
            yield from _nearest(case, looked)
        if concluded.experiment:
            yield concluded.experiment
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


# ---- another load -------------------------------------------------------------------------------


def _nearest(case: Case, looked: tuple[Looked, ...]) -> Iterator[str]:
    """What is nearest to its limit, and at how much more of the load it would be there.

    By the same model as headroom: of memory, or of what merely takes time, more load does not tell that.
    """
    loaded = others(None, demands_of(case))
    if not loaded:
        least = units.percent(LEAST_USED)
        yield f"a larger load, how much larger is not known: of no known limit does this one take {least}"
    near = [(_times(demand), demand) for demand in loaded if _times(demand) > 1]
    if not near:
        return
    times, demand = min(near, key=lambda each: each[0])
    name = next(thing(one.one) for one in looked if one.one.resource.key == demand.resource.key)
    load = "this load, operations alike"
    if demand.each_s is not None:
        load = f"the load of {next(iter(demand.ceilings_per_s))}, all else alike"
    yield f"at {units.count(times)} times {load}, {name} would be used up"


def _times(demand: Demand) -> float:
    """At how many times the load it is called used up, which is before nothing is left of it."""
    limit = KINDS[demand.resource.type].limit
    return demand.ceiling_ratio * (limit.value - demand.base) / (1 - demand.base)


# ---- another farm, or another farm.yaml ---------------------------------------------------------


def _without(case: Case, stage: Stage, first: Suspicion) -> str:
    """Who would be named if the winner were not there."""
    rest = [one for one in case.resources if one.key != first.resource.key]
    found = by_all_levels(suspects(rest, stage.rows, case.flows), case.climb)
    following = next((one for one in found if not one.demoted), None)
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
    found = next(iter(by_all_levels(suspects(bare, stage.rows, case.flows), climb)), None)
    if found is None:
        yield "without the declared limits of disks nothing would be named"
    elif (found.resource.key, found.kind) == (first.resource.key, first.kind):
        yield "without the declared limits of disks the answer would be the same"
    else:
        yield f"without the declared limits of disks it would be {thing(found)} ({found.kind})"


# ---- other figures ------------------------------------------------------------------------------


def _margins(first: Looked) -> Iterator[str]:
    """One sentence per kind of evidence that holds: on which rule it hangs, or on which several."""
    for check in first.checks:
        grounds = tuple(dict.fromkeys(_grounds(first.one, check))) if check.holds else ()
        if len(grounds) == 1:
            yield f"{check.evidence} would not hold if this did not: {grounds[0]}"
        elif grounds:
            yield f"{check.evidence} would not hold if none of these did: {'; '.join(grounds)}"


def _grounds(one: Suspicion, check: Check) -> Iterator[str]:
    """Each of them alone is enough for that kind of evidence."""
    if check.evidence == "E1" and one.disk is not None and isinstance(one.found, DiskMeasures):
        yield from _of_disk(one, one.found, one.disk)
        return
    told: tuple[Fact, ...] = (check.fact,)
    if check.evidence == "E4":
        told = tuple(fact for fact in facts(one) if fact.evidence == "E4" and fact.rule) or told
    by_rule: dict[str, str] = {}
    for fact in told:
        if fact.rule:
            by_rule.setdefault(fact.rule, fact.fact)
    yield from (f"{rule} (now: {text})" for rule, text in by_rule.items())


def _of_disk(one: Suspicion, found: DiskMeasures, state: DiskState) -> Iterator[str]:
    """In the order of ``evidence.disk_evidence``: whichever of these holds, it is used up."""
    if state.occupied and state.near_cap:
        yield f"{UTILISATION.says} (now: {units.percent(state.used)} of the declared limit)"
    if state.occupied and state.regulated:
        held = found.moves[found.held or found.binding]
        rule = REGULATOR_FLAT if held.flat else BY_SIZE
        yield f"{rule.says} (now: {units.percent(held.spread)} of spread)"
    if state.occupied and state.device:
        count = units.count(found.outstanding or 0.0)
        yield f"{WAITING_IO.says}, and more of them get no more done (now: {count})"
    if state.fell or state.rose:
        yield f"{DISK_SHIFT.says} (now: {shift_words(one.resource)})"
    if state.late or state.concurrency:
        share = units.percent(state.wait_ratio)
        yield f"{WAIT_SHARE.says} (now: {share} of the time of {state.waiting}'s operations)"
