"""Computes the outlook of the verdict (step 7): headroom, next bottlenecks, advice, and the load's demands.

Each advice names measured figures; disk and machine types come from the catalogue with their source. The gain
comes from the model (``model``) or, without a fitting setting, from the ceilings (``capacity``). Headroom is
throughput at the objectives ÷ throughput now - 1; it is measured by load levels, else calculated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pinchpoint.analysis.advice_inputs import AdviceInputs
from pinchpoint.analysis.capacity import Demand, demand_row, demands_of, loads_of, of_its_loads
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.cause import of_one_tier
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.levels import highest_held, never_words
from pinchpoint.analysis.model.prediction import ModelledRun
from pinchpoint.analysis.objectives import PERCENTILES, objective_table
from pinchpoint.analysis.output import LEAST_USED, following, others, reach
from pinchpoint.analysis.resources.base import Suspicion
from pinchpoint.analysis.resources.gain import Gain, advise
from pinchpoint.analysis.resources.kinds import KINDS, LIMIT_MODES, kind_of, limit_words
from pinchpoint.analysis.thresholds import OWN_USE
from pinchpoint.analysis.verdict import Advice, Bottleneck, Headroom, Kind, Next, Outcome
from pinchpoint.base import units
from pinchpoint.base.wording import capitalised, listed

_Ahead = TypeVar("_Ahead", Next, Advice)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forward-looking fields of the verdict, with the same names."""

    next: Next | None
    then: Next | None
    headroom_ratio: float | None
    headroom: Headroom
    advice: tuple[Advice, ...]
    demand: tuple[Mapping[str, Any], ...]


def look_ahead(
    case: Case, outcome: Outcome, candidates: Sequence[Bottleneck] = (), blocking: Sequence[Gate] = ()
) -> Outlook:
    """Headroom, the next bottleneck and advice that follow from a conclusion.

    Args:
        case: the judged case.
        outcome: the outcome of the conclusion; for ``bottleneck`` the first suspect is the bottleneck.
        candidates: possible bottlenecks if none is named.
        blocking: the gates that make the run invalid.
    """
    everything = demands = demands_of(case)
    first = case.found[0] if outcome == "bottleneck" else None
    if first is not None:
        demands = of_its_loads(first.resource, everything, case.flows)
    now = 1.0 if first is None else reach(first, demands)
    beyond = [one for one in demands if first is None or not _shares_its_limit(first, one)]
    ahead = following(first, beyond)[:2] if outcome in {"bottleneck", "not_reached"} else ()
    ahead = tuple(_with_room(one, case, first, now) for one in ahead)
    room = find_headroom(case, outcome, first, demands)
    advice = tuple(_on_generator(blocking) if blocking else ())
    if first is not None:
        basis = AdviceInputs(case, first, demands, ModelledRun(case, ""))
        result = kind_of(first).advise(basis, first.found)
        advice = tuple(_with_room(one, case, first, now) for one in result)
    elif not blocking:  # advice on the measurements that are missing for the candidates
        advice = tuple(
            one for each in candidates for one in KINDS[each.resource].advise_on(each, case.inputs)
        )
    return Outlook(
        next=ahead[0] if ahead else None,
        then=ahead[1] if len(ahead) > 1 else None,
        headroom_ratio=room.ratio,
        headroom=room,
        advice=advice,
        demand=tuple(map(demand_row, everything)),
    )


def _shares_its_limit(first: Suspicion, demand: Demand) -> bool:
    """Whether a resource is the bottleneck's resource on another host, and has little room as well."""
    return demand.use >= OWN_USE.value and of_one_tier(first.resource, demand.resource)


def _with_room(ahead: _Ahead, case: Case, first: Suspicion | None, now: float) -> _Ahead:
    """The prediction, with the assumption that unmeasured resources have headroom."""
    if ahead.gain_ratio is None:
        return ahead
    unknown = list(_unknown_room(case, first, (1 + ahead.gain_ratio) * now))
    return replace(ahead, assumes=f"{ahead.assumes}; room for it on {listed(unknown)}") if unknown else ahead


def _unknown_room(case: Case, first: Suspicion | None, times: float) -> Iterator[str]:
    """Resources that need headroom for a gain and whose headroom is unknown, each with the reason.

    Args:
        case: the judged case.
        first: the bottleneck; only resources with the same loads count. None: all resources count.
        times: throughput after the gain ÷ throughput now.
    """
    own = loads_of(first.resource, case.flows) if first is not None else None
    for one in case.resources if case.stage is not None else ():
        others = first is None or one.key != first.resource.key
        if case.stage is not None and others and (own is None or own & loads_of(one, case.flows)):
            yield from filter(None, [KINDS[one.type].room_unknown(one, case.stage.rows, times)])


def _on_generator(gates: Sequence[Gate]) -> Iterator[Advice]:
    """Advice that makes an invalid run valid."""
    gain = Gain(None, None, "this run is invalid")
    remedies = dict.fromkeys(gate.remedy for gate in gates)
    kind: Kind = "generator" if gates[0].contention is None else "contention"
    for what in map(capitalised, remedies):
        yield advise(kind, "generator", what, gain, text=f"{what}, and run again.")


QUEUE = "times grow as 1 ÷ (1 - use) of what they use most, as those of a queue that is served at random do"


def find_headroom(
    case: Case, outcome: Outcome, first: Suspicion | None, demands: Sequence[Demand]
) -> Headroom:
    """The headroom of this load, with how it was found.

    Args:
        case: the judged case.
        outcome: the conclusion of the case.
        first: the bottleneck; None if none was named.
        demands: the demands of all resources, the smallest ceiling first.
    """
    if outcome == "invalid":
        return _unknown("this run is invalid")
    held = _of_levels(case)
    if held is not None:
        return held
    missed = _missed(case)
    if missed:
        return _unknown(
            f"an objective of {missed} is missed at this load; a load in steps shows the highest "
            "load at which all are met"
        )
    if outcome == "inconclusive":
        return _unknown("no bottleneck was found")
    endless = _endless(first) if first is not None else ""
    if endless:
        return _unknown(endless)
    return _of_model(case, first, demands)


def _endless(first: Suspicion) -> str:
    """Why the bottleneck's ceiling cannot be computed from its utilisation; "" if it can."""
    if first.outrun:
        return f"throughput went on rising while the bottleneck was saturated: {first.outrun}"
    if LIMIT_MODES[first.kind] == "time":
        return "latency, not utilisation, limits throughput"
    return ""


def _unknown(why: str) -> Headroom:
    return Headroom(None, "unknown", None, None, None, why)


def _now(case: Case, scenario: str) -> float | None:
    return case.now_per_s().get(scenario)


def _of_levels(case: Case) -> Headroom | None:
    """The headroom of a load in steps that missed its objectives: last level that met them ÷ judged level."""
    if case.climb is None:
        return None
    for scenario, result in highest_held(case.climb.rows_of_levels, case.inputs.objectives).items():
        now, level = _now(case, scenario), result["level"]
        if result["all_held"] or now is None:
            continue
        if level is None:
            first = units.load_level(case.climb.levels[0].amount, result["unit"])
            own = (row for row in case.climb.rows_of_levels if row["scenario"] == scenario)
            if next(own)["objectives_met"] is None:
                return _unknown(
                    f"the objectives of {scenario} were met at no level: that rate was never reached"
                )
            return _unknown(f"the objectives of {scenario} were met at no level: try a load below {first}")
        done = result["throughput_per_s"]
        words = units.load_level(level, result["unit"])
        return Headroom(
            ratio=max(0.0, done / now - 1),
            how="levels",
            scenario=scenario,
            now_per_s=now,
            objectives_per_s=done,
            why=f"the objectives of {scenario} were met up to {words}, with {units.per_second(done)} done"
            f"{never_words(result)}; {units.per_second(now)} are done in the judged part",
        )
    return None


def _missed(case: Case) -> str:
    climbed = {level.scenario for level in case.climb.levels} if case.climb else set()
    rows = (row for row in objective_table(case.inputs) if row["scenario"] not in climbed)
    return next((str(row["scenario"]) for row in rows if row["met"] is False), "")


def _of_model(case: Case, first: Suspicion | None, demands: Sequence[Demand]) -> Headroom:
    """The headroom up to the first ceiling, or up to the load at which latencies reach their objective."""
    if first is not None:
        own = next((one for one in demands if one.resource.key == first.resource.key), None)
        room, scenario = reach(first, demands), _one_scenario(case)
        if own is None or room <= 1.0 or (case.climb is not None and case.knee.found):
            now = _now(case, scenario) if scenario else None
            return Headroom(0.0, "model", scenario, now, now, "the bottleneck is at its limit")
    else:
        open_ = others(None, demands)
        if not open_:
            share = units.percent(LEAST_USED)
            return _unknown(f"no resource with a known limit is used {share} or more")
        own = open_[0]
        room = max(1.0, own.ceiling_ratio)
    return _until(case, own, room, (own, *others(first, demands)))


def _one_scenario(case: Case) -> str | None:
    if case.climb is not None:
        return case.climb.levels[0].scenario
    return case.flows[0].load.scenario if len(case.flows) == 1 else None


def _until(case: Case, own: Demand, room: float, demands: Sequence[Demand]) -> Headroom:
    """The headroom until ``own`` is saturated, or until a modelled latency reaches its objective."""
    bound: Mapping[str, Any] | None = None
    for row in objective_table(case.inputs):
        there = (one for one in demands if row["scenario"] in loads_of(one.resource, case.flows))
        most = next(there, None)
        if row["metric"] in PERCENTILES and row["met"] and most is not None:
            reached = _at_target(most, row["value"], row["target"])
            if reached < room:
                own, room, bound = most, reached, row
    scenario = _one_scenario(case)
    now = _now(case, scenario) if scenario else None
    why = f"until {limit_words(own.resource, own.found)} is saturated"
    if bound is not None:
        metric = bound["metric"].removesuffix("_s")
        why = f"until the {metric} of {bound['scenario']} reaches {units.seconds(bound['target'])}"
    return Headroom(
        ratio=room - 1,
        how="model",
        scenario=scenario,
        now_per_s=now,
        objectives_per_s=None if now is None else now * room,
        why=why,
        assumes=f"{own.assumes}; {QUEUE}" if bound is not None else own.assumes,
    )


def _at_target(own: Demand, value: float, target: float) -> float:
    """The throughput at which a latency reaches its target ÷ throughput now.

    ``R(1 - U) / (1 - U') = target`` with ``U' = b + (U - b) k``. R is the latency and U the utilisation now,
    b the utilisation without this load, and k the result.
    """
    if own.use >= 1 or own.use <= own.base:
        return 1.0
    use = 1 - value / target * (1 - own.use)
    return max(1.0, (use - own.base) / (own.use - own.base))
