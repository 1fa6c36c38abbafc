"""Did the bottleneck move? Two verdicts that name different resources say so; nothing less does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from pinchpoint.base import wording
from pinchpoint.comparison.confounders import Blamed
from pinchpoint.comparison.hosts import Places
from pinchpoint.comparison.loads import is_closed, planned_scenarios
from pinchpoint.comparison.sides import Run, Side, Sides
from pinchpoint.comparison.values import pair

_SURE = ("low", "medium", "high")
_NOBODY = {
    "not_reached": "nothing gave way in {label} at this load",
    "inconclusive": "what limits {label} could not be told",
    "invalid": "the run of {label} is no valid evidence",
}


@dataclass(frozen=True, slots=True)
class Movement:
    """From what to what.

    Attributes:
        base: what gives way first in the base, as its verdict names it; None where nobody can say.
        other: likewise.
        moved: None where either side names nothing.
        why: why it is None, one sentence, or what else must be known of the answer.
        foreseen: what the base's verdicts promised of taking its bottleneck away; None: nothing.
        second_step: what the other side's promise of taking its own away.
    """

    base: Mapping[str, Any] | None
    other: Mapping[str, Any] | None
    moved: bool | None
    why: str | None
    foreseen: Gain | None = None
    second_step: Gain | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """What taking a bottleneck away brings, by the verdicts' model.

    Attributes:
        gain_ratio: so much more throughput (0.38 = 38 %); the median of the runs.
        until: the resource that gives way then.
        assumes: what must stay as it is for that to hold.
        at_most: whether it is a bound. By one load level it is none: what is used at rest, and by loads that
            do not grow, is taken to grow with the rest, so that the next resource may last longer.
        scenario: whose throughput came with the other side; None: of no load of users, or of several.
        came_ratio: how much more of it there was, once the load had settled on both sides: as the verdict
            reckons.
    """

    gain_ratio: float
    until: Mapping[str, Any]
    assumes: str
    at_most: bool
    scenario: str | None = None
    came_ratio: float | None = None


def movement(sides: Sides, places: Places) -> Movement:
    """Compare what both sides' verdicts name: kind of resource, tier and role; not how it gives way."""
    base, no_base = _named(sides.base, "base", places)
    other, no_other = _named(sides.other, "other", places)
    gains = (
        _with_came(_gain(sides.base), sides) if base else None,
        _gain(sides.other) if other else None,
    )
    unknown = [why for why in (no_base, no_other) if why]
    if unknown or base is None or other is None:
        return Movement(base, other, None, "; ".join(unknown), *gains)
    first, second = Blamed.of(base, "base", places), Blamed.of(other, "other", places)
    if not same_resource(first, second):
        return Movement(base, other, True, None, *gains)
    note = None
    if first.tier != second.tier:
        most = f"{_who(first)} uses most of it in {sides.base.label}, {_who(second)} in {sides.other.label}"
        note = f"it is shared: {most}"
    return Movement(base, other, False, note, *gains)


def _gain(side: Side) -> Gain | None:
    """What its runs' verdicts say comes next; None where one of them does not know, or they disagree."""
    found = [run.verdict.get("next") for run in side.runs]
    known = [one for one in found if one and one.get("gain_ratio") is not None]
    things = {tuple(one.get(key) for key in ("tier", "resource", "role")) for one in known}
    if len(known) < len(found) or len(things) != 1:
        return None
    gain = median(float(one["gain_ratio"]) for one in known)
    assumes = str(known[0].get("assumes") or "")
    return Gain(gain, dict(known[0]), assumes, at_most=wording.is_bound(assumes))


def _with_came(gain: Gain | None, sides: Sides) -> Gain | None:
    """With what came of it: the throughput of those who wait for the farm; a schedule's does not grow."""
    planned = planned_scenarios(sides)
    waiting = [name for name in planned if is_closed(planned[name])]
    if gain is None or len(waiting) != 1:
        return gain
    base, other = ([run.settled_per_s.get(waiting[0]) for run in side.runs] for side in sides)
    found = pair(base, other, (sides.base.label, sides.other.label))
    if found.ratio is None:
        return gain
    return replace(gain, scenario=waiting[0], came_ratio=found.ratio - 1)


def same_resource(first: Blamed, second: Blamed) -> bool:
    """Whether two verdicts name one resource. Cores that tiers share are one, whoever uses most of them."""
    if first.family != second.family:
        return False
    if first.family == "cpu":
        return _uses(first, second.tiers) and _uses(second, first.tiers)
    return (first.tier, first.role) == (second.tier, second.role)


def _who(one: Blamed) -> str:
    return one.tier or "a tier that nobody measured"


def _uses(one: Blamed, tiers: frozenset[str]) -> bool:
    """Whether who uses most of some cores is one of these tiers; where nobody measured who, any that may."""
    return one.tier in tiers if one.tier else bool(one.tiers & tiers)


def _named(side: Side, name: str, places: Places) -> tuple[Mapping[str, Any] | None, str | None]:
    """What all runs of a side name, with the least of their confidences; else why there is no such thing."""
    blames = [run.verdict.get("bottleneck") for run in side.runs]
    known = [blame for blame in blames if blame]
    nobody = Counter(_nobody(run, side.label) for run in side.runs if run.verdict["outcome"] != "bottleneck")
    if nobody:
        each = (f"{why}{_in_runs(count, len(side.runs))}" for why, count in nobody.items())
        return (known[0] if known and len(known) == len(blames) else None), "; ".join(each)
    first = Blamed.of(known[0], name, places)
    if not all(same_resource(first, Blamed.of(blame, name, places)) for blame in known):
        return None, f"the runs of {side.label} name different resources"
    least = min((str(blame.get("confidence")) for blame in known), key=_SURE.index)
    return {**known[0], "confidence": least}, None


def _in_runs(count: int, runs: int) -> str:
    """Where only some runs of a side say so: the others may all name one resource."""
    return f" in {count} of its {runs} runs" if count < runs else ""


def _nobody(run: Run, label: str) -> str:
    return _NOBODY[str(run.verdict["outcome"])].format(label=label)
