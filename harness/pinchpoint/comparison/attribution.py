"""Compares the bottlenecks of both sides and decides which differences can explain the change."""

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
"""Area -> resource families that a difference in the area affects on every tier."""

_NEAR: Mapping[str, tuple[str, ...]] = {
    # Sessions keep locks and connections while they wait for a disk or a core.
    "disks": ("disk", "lock", "pool"),
    "cpu": ("cpu", "lock", "pool"),
    "memory": ("memory", "disk"),
    "generators": (),
}
"""Area -> resource families that a difference in the area affects on its own tier; no entry means all
families."""


@dataclass(frozen=True, slots=True)
class Blamed:
    """A resource that a verdict names as the bottleneck, or as a candidate if the verdict is inconclusive.

    Attributes:
        family: the resource family: ``disk``, ``cpu``, ``memory``, ``network``, ``lock``, ``pool``,
            ``external`` or ``generator``.
        tier: the tier of the bottleneck; None if the verdict names no tier.
        tiers: the tier and all tiers that share the resource with it.
        role: the role of the disk; None for other resources.
        place: the pair of hosts that the resource belongs to; None if the verdict names no tier or no host.
        kind: the kind of bottleneck in the verdict, such as ``disk_latency``.
    """

    family: str
    tier: str | None
    tiers: frozenset[str] = field(compare=False)
    role: str | None
    place: HostPair | None
    kind: str = field(compare=False)

    @classmethod
    def of(cls, suspect: JsonObject, side: str, places: HostPairs) -> Blamed:
        """The resource of a verdict's bottleneck or candidate entry."""
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
        touches: the named resources that the difference can affect; empty if there are none.
        anything: True if a run's verdict names no bottleneck, so that the difference may affect the unknown
            one.
    """

    difference: Difference
    touches: tuple[Blamed, ...]
    anything: bool = False

    @property
    def matters(self) -> bool:
        """Whether the difference weakens the claim."""
        return bool(self.touches) or self.anything


def family(kind: str) -> str:
    """The resource family of a verdict's kind; all kinds of disk bottleneck are the family ``disk``."""
    return "disk" if kind.startswith("disk_") else _FAMILIES.get(kind, kind)


def blamed_of(sides: Sides, places: HostPairs) -> tuple[Blamed, ...]:
    """The resources that the verdicts of both sides name: the bottleneck, or the candidates without one."""
    result: dict[Blamed, None] = {}
    for name, side in sides.named:
        for verdict in side.verdicts:
            named = [verdict["bottleneck"]] if verdict.get("bottleneck") else verdict.get("candidates") or ()
            for suspect in named:
                result.setdefault(Blamed.of(suspect, name, places))
    return tuple(result)


def all_name_bottleneck(sides: Sides) -> bool:
    """Whether every run's verdict names a bottleneck."""
    return all(verdict.get("bottleneck") for side in sides for verdict in side.verdicts)


def confounders(
    differences: Sequence[Difference], blamed: Sequence[Blamed], *, named: bool
) -> tuple[Confounder, ...]:
    """The differences with the resources that each can affect; differences that weaken the claim come first.

    Args:
        differences: the differences that are not studied.
        blamed: the resources that the verdicts of both sides name.
        named: whether every verdict names a bottleneck; if not, every difference that can affect a farm
            weakens the claim.
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
    """Whether a difference can affect a resource, by rules of the project and not by measurement.

    A difference in the plan, the content or the versions affects every resource. A hardware difference
    affects the families that depend on the hardware. A database setting affects all resources of its tier.
    Collectors, seeds and machine ids affect nothing.
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
        return False  # more memory means fewer reads, but a log disk is only written
    return _near(difference, resource) and (reached is None or resource.family in reached)


def _acts(difference: Difference) -> bool:
    """Whether a difference is of a kind that can change the farm's performance."""
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
    """Whether a difference applies to the tier of a resource, or to a tier that shares the resource."""
    tiers = {place.tier for place in difference.places} or ({difference.tier} if difference.tier else set())
    if not tiers or not resource.tiers:
        return True
    if not tiers & resource.tiers:
        return False
    own = [place for place in difference.places if place.tier == resource.tier]
    if own and resource.place and len(resource.tiers) == 1:
        return resource.place in own  # another host of the same tier is another resource
    return True


_SURE = ("low", "medium", "high")
_NO_BOTTLENECK = {
    "not_reached": "{label} reached no limit at this load",
    "inconclusive": "the verdict of {label} is inconclusive",
    "invalid": "the run of {label} is invalid",
}


@dataclass(frozen=True, slots=True)
class BottleneckMove:
    """The bottleneck of each side, and whether the bottleneck moved.

    Attributes:
        base: the bottleneck that the verdicts of the base name; None if unknown.
        other: the bottleneck that the verdicts of the other side name; None if unknown.
        moved: whether the bottleneck moved; None if a side names no bottleneck.
        why: why ``moved`` is None, or a note about a shared resource; one sentence or None.
        foreseen: the gain that the base's verdicts predict from removing its bottleneck; None if they predict
            none.
        second_step: the gain that the other side's verdicts predict from removing its bottleneck; None if
            they predict none.
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
        gain_ratio: the gain in throughput (0.38 = 38 %), the median of the runs.
        until: the next bottleneck, which limits the gain.
        assumes: what must stay the same for the prediction to hold.
        at_most: whether the gain is an upper bound. A prediction from one load level is not a bound: the
            model scales idle use and fixed loads with the load, so the next resource may saturate later.
        scenario: the scenario whose throughput is compared; None unless exactly one scenario has a closed
            load.
        came_ratio: the measured change in throughput (0.38 = 38 %), from the steady part of the runs; None if
            not known.
    """

    gain_ratio: float
    until: JsonObject
    assumes: str
    at_most: bool
    scenario: str | None = None
    came_ratio: float | None = None


def bottleneck_move(sides: Sides, places: HostPairs) -> BottleneckMove:
    """Compare the bottlenecks of both sides by resource family, tier and role, not by the kind of limit."""
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
    """The gain that the verdicts of a side predict; None if a run predicts none or the runs disagree."""
    result = [run.verdict.get("next") for run in side.runs]
    known = [one for one in result if one and one.get("gain_ratio") is not None]
    things = {tuple(one.get(key) for key in ("tier", "resource", "role")) for one in known}
    if len(known) < len(result) or len(things) != 1:
        return None
    gain = median(float(one["gain_ratio"]) for one in known)
    assumes = str(known[0].get("assumes") or "")
    return ForeseenGain(gain, dict(known[0]), assumes, at_most=wording.is_bound(known[0]))


def _with_came(gain: ForeseenGain | None, sides: Sides) -> ForeseenGain | None:
    """Add the measured gain to the predicted one, if exactly one scenario has a closed load.

    A scheduled load has a fixed rate, so its throughput shows no gain.
    """
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
    """Whether two verdicts name the same resource. Cores that tiers share are one resource."""
    if first.family != second.family:
        return False
    if first.family == "cpu":
        return _uses(first, second.tiers) and _uses(second, first.tiers)
    return (first.tier, first.role) == (second.tier, second.role)


def _who(blamed: Blamed) -> str:
    return blamed.tier or "a tier that was not measured"


def _uses(blamed: Blamed, tiers: frozenset[str]) -> bool:
    """Whether the tier that uses most of some cores is one of ``tiers``.

    If the largest user was not measured, any tier that shares the cores counts.
    """
    return blamed.tier in tiers if blamed.tier else bool(blamed.tiers & tiers)


def _named(side: Side, name: str, places: HostPairs) -> tuple[JsonObject | None, str | None]:
    """The bottleneck that the runs of a side name, with the lowest confidence; else the reason for none.

    A minority of inconclusive runs may have the resource as their only candidate. Such runs do not contradict
    the others, but the confidence is then low.
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
    """The only candidate of an inconclusive run; None if the run has no or several candidates."""
    candidates = list(run.verdict.get("candidates") or ())
    if run.verdict["outcome"] != "inconclusive" or len(candidates) != 1:
        return None
    return Blamed.of(candidates[0], name, places)


def _in_runs(count: int, runs: int) -> str:
    """``in 2 of its 5 runs``; empty if the reason applies to every run of the side."""
    return f" in {count} of its {runs} runs" if count < runs else ""


Kind = Literal["caused_by", "associated_with"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The conclusion about the cause, and its reasons.

    Attributes:
        kind: the strength of the claim; None if a run is not valid evidence.
        because: what supports the claim, or what weakens it; sentences without a full stop.
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
    """Decide whether the studied factors caused the change or are only associated with it.

    The claim is ``caused_by`` only if no other difference can affect a named resource.

    Args:
        sides: the runs of both sides.
        factors: the areas that are studied.
        studied: the differences in the studied areas.
        value: all other differences.
        work: the completed work of both sides; unequal work weakens the claim.
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
    """One sentence for each reason that makes runs invalid.

    Runs with the same reason are counted together.
    """
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
