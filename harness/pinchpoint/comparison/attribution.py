"""The bottleneck of each side, which differences could be the reason, and what may be claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from pinchpoint.base import wording
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject
from pinchpoint.comparison.differences import Difference
from pinchpoint.comparison.sides import ComparedRun, HostPair, HostPairs, Side, Sides
from pinchpoint.comparison.statistics import pair
from pinchpoint.comparison.work import ComparedWork, is_closed, planned_scenarios
from pinchpoint.plan.compare import NO_WORK

_FAMILIES = {"cpu_thread": "cpu"}

_ANYWHERE: Mapping[str, tuple[str, ...]] = {
    "generators": ("generator",),
    "network": ("external", "network", "pool"),
}
"""Families of resources that a difference of an area acts upon wherever they are."""

_NEAR: Mapping[str, tuple[str, ...]] = {
    # Sessions keep locks and connections while they wait for a disk or a core.
    "disks": ("disk", "lock", "pool"),
    "cpu": ("cpu", "lock", "pool"),
    "memory": ("memory", "disk"),
    "generators": (),
}
"""Families it acts upon in its own tier; an area that is not listed acts upon all of them there."""


@dataclass(frozen=True, slots=True)
class Blamed:
    """A resource that a verdict of either side names, or suspects where it names none.

    Attributes:
        family: ``disk``, ``cpu``, ``memory``, ``network``, ``lock``, ``pool``, ``external``, ``generator``.
        tier: the tier of the bottleneck; None without one.
        tiers: with it the tiers that share it.
        role: the disk's role.
        place: the host.
        kind: as in the verdict.
    """

    family: str
    tier: str | None
    tiers: frozenset[str] = field(compare=False)
    role: str | None
    place: HostPair | None
    kind: str = field(compare=False)

    @classmethod
    def of(cls, suspect: JsonObject, side: str, places: HostPairs) -> Blamed:
        """From a verdict's bottleneck or candidate."""
        tier, host = suspect.get("tier"), suspect.get("host")
        shared = suspect.get("shared_with") or ()
        return cls(
            family=family(str(suspect["kind"])),
            tier=tier,
            tiers=frozenset([*([tier] if tier else []), *shared]),
            role=suspect.get("role"),
            place=places.of(tier, host, side) if tier and host else None,
            kind=str(suspect["kind"]),
        )


@dataclass(frozen=True, slots=True)
class Confounder:
    """A difference that was not studied.

    Attributes:
        touches: the named resources that it may affect; empty: none.
        anything: a side names no bottleneck, so that any difference may matter.
    """

    difference: Difference
    touches: tuple[Blamed, ...]
    anything: bool = False

    @property
    def matters(self) -> bool:
        """Whether it weakens the claim."""
        return bool(self.touches) or self.anything


def family(kind: str) -> str:
    """A verdict's kind -> what sort of resource it is: all kinds of disk trouble are a disk's."""
    return "disk" if kind.startswith("disk_") else _FAMILIES.get(kind, kind)


def blamed_of(sides: Sides, places: HostPairs) -> tuple[Blamed, ...]:
    """The resources both sides' verdicts name; of a verdict that names none, its candidates."""
    result: dict[Blamed, None] = {}
    for name, side in sides.named:
        for verdict in side.verdicts:
            named = [verdict["bottleneck"]] if verdict.get("bottleneck") else verdict.get("candidates") or ()
            for suspect in named:
                result.setdefault(Blamed.of(suspect, name, places))
    return tuple(result)


def all_name_bottleneck(sides: Sides) -> bool:
    """Whether every run's verdict names the bottleneck."""
    return all(verdict.get("bottleneck") for side in sides for verdict in side.verdicts)


def confounders(
    differences: Sequence[Difference], blamed: Sequence[Blamed], *, named: bool
) -> tuple[Confounder, ...]:
    """Each difference, with the blamed resources it touches; those that touch any come first.

    Args:
        differences: the differences that are not what is studied.
        blamed: the resources of both verdicts.
        named: whether every verdict names one; where one does not, what matters there is not known.
    """
    each = [
        Confounder(
            one,
            tuple(resource for resource in blamed if touches(one, resource)),
            anything=not named and _acts(one),
        )
        for one in differences
    ]
    return tuple(sorted(each, key=lambda one: not one.matters))


def touches(difference: Difference, resource: Blamed) -> bool:
    """Whether a difference may act upon a resource (a value of our own).

    The work that was asked for acts upon everything; hardware upon what is made of it; a database's settings
    upon all its tier does; who watched, and a seed or a machine's identity alone, upon nothing.
    """
    if not _acts(difference):
        return False
    if difference.area in ("plan", "content", "versions"):
        return True
    if resource.family in _ANYWHERE.get(difference.area, ()):
        return True
    reached = _NEAR.get(difference.area)
    if difference.role and resource.role and difference.role != resource.role:
        return False
    if difference.area == "memory" and resource.role == "log":
        return False  # more memory means fewer reads; a log is only written
    return _near(difference, resource) and (reached is None or resource.family in reached)


def _acts(difference: Difference) -> bool:
    """Whether it is of a kind that can change what a farm does at all."""
    if difference.area == "plan" and difference.what.partition(".")[0] in NO_WORK:
        return False
    return difference.area != "collectors" and (difference.area, difference.what) not in {
        ("plan", "seed"),
        ("plan", "objectives"),
        ("machine", "machine_id"),
        ("machine", "clock_source"),
        ("content", "corpus"),
    }


def _near(difference: Difference, resource: Blamed) -> bool:
    """Whether it holds for the resource's tier, or for one that shares the resource."""
    tiers = {place.tier for place in difference.places} or ({difference.tier} if difference.tier else set())
    if not tiers or not resource.tiers:
        return True
    if not tiers & resource.tiers:
        return False
    own = [place for place in difference.places if place.tier == resource.tier]
    if own and resource.place and len(resource.tiers) == 1:
        return resource.place in own  # another host of its tier is another resource
    return True


_SURE = ("low", "medium", "high")
_NO_BOTTLENECK = {
    "not_reached": "{label} reached no limit at this load",
    "inconclusive": "the verdict of {label} is inconclusive",
    "invalid": "the run of {label} is invalid",
}


@dataclass(frozen=True, slots=True)
class BottleneckMove:
    """From what to what.

    Attributes:
        base: the bottleneck of the base, as its verdict names it; None if unknown.
        other: likewise.
        moved: None if either side names nothing.
        why: why it is None, one sentence, or what else must be known of the answer.
        foreseen: what the base's verdicts promised of taking its bottleneck away; None: nothing.
        second_step: what the other side's promise of taking its own away.
    """

    base: JsonObject | None
    other: JsonObject | None
    moved: bool | None
    why: str | None
    foreseen: ForeseenGain | None = None
    second_step: ForeseenGain | None = None


@dataclass(frozen=True, slots=True)
class ForeseenGain:
    """The gain from removing a bottleneck, as the verdicts' model predicts it.

    Attributes:
        gain_ratio: the gain in throughput (0.38 = 38 %); the median of the runs.
        until: the resource that is the next bottleneck.
        assumes: what must stay as it is for that to hold.
        at_most: whether it is a bound. By one load level it is none: what is used at rest, and by loads that
            do not grow, is taken to grow with the rest, so that the next resource may last longer.
        scenario: whose throughput came with the other side; None: of no load of users, or of several.
        came_ratio: how much more of it there was, once the load had settled on both sides: as the verdict
            reckons.
    """

    gain_ratio: float
    until: JsonObject
    assumes: str
    at_most: bool
    scenario: str | None = None
    came_ratio: float | None = None


def bottleneck_move(sides: Sides, places: HostPairs) -> BottleneckMove:
    """Compare what both sides' verdicts name: kind of resource, tier and role; not the kind of limit."""
    base, no_base = _named(sides.base, "base", places)
    other, no_other = _named(sides.other, "other", places)
    gains = (
        _with_came(_gain(sides.base), sides) if base else None,
        _gain(sides.other) if other else None,
    )
    unknown = [why for why in (no_base, no_other) if why]
    if unknown or base is None or other is None:
        return BottleneckMove(base, other, None, "; ".join(unknown), *gains)
    first, second = Blamed.of(base, "base", places), Blamed.of(other, "other", places)
    if not same_resource(first, second):
        return BottleneckMove(base, other, True, None, *gains)
    note = None
    if first.tier != second.tier:
        most = f"{_who(first)} in {sides.base.label}, {_who(second)} in {sides.other.label}"
        note = f"it is shared; its largest user: {most}"
    return BottleneckMove(base, other, False, note, *gains)


def _gain(side: Side) -> ForeseenGain | None:
    """The gain that its runs' verdicts predict; None if one of them has none, or if they disagree."""
    result = [run.verdict.get("next") for run in side.runs]
    known = [one for one in result if one and one.get("gain_ratio") is not None]
    things = {tuple(one.get(key) for key in ("tier", "resource", "role")) for one in known}
    if len(known) < len(result) or len(things) != 1:
        return None
    gain = median(float(one["gain_ratio"]) for one in known)
    assumes = str(known[0].get("assumes") or "")
    return ForeseenGain(gain, dict(known[0]), assumes, at_most=wording.is_bound(known[0]))


def _with_came(gain: ForeseenGain | None, sides: Sides) -> ForeseenGain | None:
    """The predicted gain with the measured one: throughput of closed loads only, as a schedule is fixed."""
    planned = planned_scenarios(sides)
    waiting = [name for name in planned if is_closed(planned[name])]
    if gain is None or len(waiting) != 1:
        return gain
    base, other = ([run.settled_per_s.get(waiting[0]) for run in side.runs] for side in sides)
    result = pair(base, other, sides.labels)
    if result.ratio is None:
        return gain
    return replace(gain, scenario=waiting[0], came_ratio=result.ratio - 1)


def same_resource(first: Blamed, second: Blamed) -> bool:
    """Whether two verdicts name one resource. Cores that tiers share are one, whoever uses most of them."""
    if first.family != second.family:
        return False
    if first.family == "cpu":
        return _uses(first, second.tiers) and _uses(second, first.tiers)
    return (first.tier, first.role) == (second.tier, second.role)


def _who(blamed: Blamed) -> str:
    return blamed.tier or "a tier that was not measured"


def _uses(blamed: Blamed, tiers: frozenset[str]) -> bool:
    """Whether who uses most of some cores is one of these tiers; if that was not measured, any that may."""
    return blamed.tier in tiers if blamed.tier else bool(blamed.tiers & tiers)


def _named(side: Side, name: str, places: HostPairs) -> tuple[JsonObject | None, str | None]:
    """The bottleneck that the runs of a side name, with the lowest confidence; else why there is none.

    A minority of inconclusive runs whose only candidate is that resource does not contradict the others: the
    confidence is low then.
    """
    known = [blame for run in side.runs if (blame := run.verdict.get("bottleneck"))]
    silent = [run for run in side.runs if run.verdict["outcome"] != "bottleneck"]
    resources = [Blamed.of(blame, name, places) for blame in known]
    if known and all(same_resource(resources[0], one) for one in resources):
        if not silent:
            least = min((str(blame.get("confidence")) for blame in known), key=_SURE.index)
            return {**known[0], "confidence": least}, None
        suspected = [_only_candidate(run, name, places) for run in silent]
        agree = all(one is not None and same_resource(resources[0], one) for one in suspected)
        if agree and len(silent) * 2 < len(side.runs):
            return {**known[0], "confidence": _SURE[0]}, None
    if silent:
        reasons = Counter(
            _NO_BOTTLENECK[str(run.verdict["outcome"])].format(label=side.label) for run in silent
        )
        each = (f"{why}{_in_runs(count, len(side.runs))}" for why, count in reasons.items())
        return (known[0] if known and len(known) == len(side.runs) else None), "; ".join(each)
    return None, f"the runs of {side.label} name different resources"


def _only_candidate(run: ComparedRun, name: str, places: HostPairs) -> Blamed | None:
    """The resource that an inconclusive run suspects; None if there is not exactly one."""
    candidates = list(run.verdict.get("candidates") or ())
    if run.verdict["outcome"] != "inconclusive" or len(candidates) != 1:
        return None
    return Blamed.of(candidates[0], name, places)


def _in_runs(count: int, runs: int) -> str:
    """Where only some runs of a side say so: the others may all name one resource."""
    return f" in {count} of its {runs} runs" if count < runs else ""


Kind = Literal["caused_by", "associated_with"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The conclusion, and why it is not stronger.

    Attributes:
        kind: None: nothing is claimed, as a run is no valid evidence.
        because: what it rests on, or what weakens it; sentences without an end.
    """

    kind: Kind | None
    because: tuple[str, ...]


def claim(
    sides: Sides,
    factors: Sequence[str],
    studied: Sequence[Difference],
    value: Sequence[Confounder],
    work: Sequence[ComparedWork],
) -> Claim:
    """The factor is the cause only where nothing else that touches a blamed resource differs.

    Args:
        sides: both sides' runs.
        factors: the areas that are studied.
        studied: the differences in them.
        value: all other differences.
        work: what was done; other work weakens the claim as well.
    """
    invalid = tuple(_invalid(sides))
    if invalid:
        return Claim(None, invalid)
    against = []
    if not factors:
        against.append("no factor was named (--factor)")
    missing = [name for name in factors if not any(one.area == name for one in studied)]
    against += [f"the sides do not differ in {name}" for name in missing]
    if sides.same_runs:
        against.append("the same run is on both sides")
    areas: dict[str, None] = dict.fromkeys(one.difference.area for one in value if one.matters)
    if areas:
        against.append(
            f"the sides also differ in {wording.listed(list(areas))}, which may affect the bottleneck"
        )
    unlike = [one.name for one in work if one.unlike]
    if unlike:
        against.append(f"the sides did not do the same work ({', '.join(unlike)})")
    if against:
        return Claim("associated_with", tuple(against))
    that = " that can affect the bottleneck" if value else ""
    return Claim("caused_by", (f"nothing else differs{that}",))


def _invalid(sides: Sides) -> Iterator[str]:
    """The runs that are no evidence, those with the same reason together; figures of a reason may differ."""
    runs = [run for side in sides for run in side.runs]
    reasons = by_key(
        ((blame["kind"], *(str(each["metric"]) for each in blame["evidence"])), run)
        for run in runs
        if not run.is_evidence
        for blame in (run.verdict["bottleneck"],)
    )
    for those in reasons.values():
        why = wording.why_invalid(those[0].verdict["bottleneck"])
        if len(those) == 1:
            yield f"{those[0].directory} is invalid: {why}"
        else:
            yield f"{len(those)} of {len(runs)} runs are invalid, same reason: {why}"
