"""Step 7 as a whole: headroom, the next bottlenecks, advice, and the demand of the load on each resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pinchpoint.analysis.advice import advice_on_candidates, advice_on_generator, find_advice
from pinchpoint.analysis.capacity import demand_table, demands_of, loads_of, of_its_loads
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.headroom import find_headroom
from pinchpoint.analysis.output import following, reach
from pinchpoint.analysis.resources.base import Suspicion
from pinchpoint.analysis.resources.kinds import KINDS
from pinchpoint.analysis.verdict import Advice, Headroom, Next, Outcome, Suspect
from pinchpoint.base.wording import listed

_Ahead = TypeVar("_Ahead", Next, Advice)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The verdict's part that looks ahead; its fields are those of ``Verdict``."""

    next: Next | None
    then: Next | None
    headroom_ratio: float | None
    headroom: Headroom
    advice: tuple[Advice, ...]
    demand: tuple[Mapping[str, Any], ...]


def look_ahead(
    case: Case, outcome: Outcome, candidates: Sequence[Suspect] = (), blocking: Sequence[Gate] = ()
) -> Outlook:
    """What follows from a conclusion.

    Args:
        case: what was judged.
        outcome: what was concluded: a bottleneck is the first that was found.
        candidates: where no one was named, those who may be it.
        blocking: the gates that make the run invalid.
    """
    everything = demands = demands_of(case)
    first = case.found[0] if outcome == "bottleneck" else None
    if first is not None:
        demands = of_its_loads(first.resource, everything, case.flows)
    now = 1.0 if first is None else reach(first, demands)
    ahead = following(first, demands)[:2] if outcome in {"bottleneck", "not_reached"} else ()
    ahead = tuple(_with_room(one, case, first, now) for one in ahead)
    room = find_headroom(case, outcome, first, demands)
    advice = advice_on_generator(blocking) if blocking else advice_on_candidates(candidates, case)
    if first is not None:
        advice = tuple(_with_room(one, case, first, now) for one in find_advice(case, demands))
    return Outlook(
        next=ahead[0] if ahead else None,
        then=ahead[1] if len(ahead) > 1 else None,
        headroom_ratio=room.ratio,
        headroom=room,
        advice=advice,
        demand=demand_table(everything),
    )


def _with_room(one: _Ahead, case: Case, first: Suspicion | None, now: float) -> _Ahead:
    """Its gain also assumes room on resources that were not measured: the next limit may be one of them."""
    if one.gain_ratio is None:
        return one
    unknown = list(_unknown_room(case, first, (1 + one.gain_ratio) * now))
    return replace(one, assumes=f"{one.assumes}; room for it on {listed(unknown)}") if unknown else one


def _unknown_room(case: Case, first: Suspicion | None, times: float) -> Iterator[str]:
    """What must have room, with why it is not known whether it has.

    Args:
        case: what was judged.
        first: what limits now; only what carries its loads is meant. None: all of it.
        times: throughput then ÷ throughput now.
    """
    own = loads_of(first.resource, case.flows) if first is not None else None
    for one in case.resources if case.stage is not None else ():
        others = first is None or one.key != first.resource.key
        if case.stage is not None and others and (own is None or own & loads_of(one, case.flows)):
            yield from filter(None, [KINDS[one.type].room_unknown(one, case.stage.rows, times)])
