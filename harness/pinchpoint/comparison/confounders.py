"""Which differences beside the studied one could be the reason: those that touch a blamed resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pinchpoint.comparison.hosts import Place, Places
from pinchpoint.comparison.manifests import Difference
from pinchpoint.comparison.sides import Sides
from pinchpoint.plan.compare import NO_WORK

_FAMILIES = {"cpu_thread": "cpu"}

_ANYWHERE: Mapping[str, tuple[str, ...]] = {
    "generators": ("generator",),
    "network": ("external", "network", "pool"),
}
"""Families of resources that a difference of an area acts upon wherever they are."""

_NEAR: Mapping[str, tuple[str, ...]] = {
    # Locks and connections are held while a disk or a core is waited for.
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
        tier: the tier it is blamed on; None for what belongs to none.
        tiers: with it the tiers that share it.
        role: the disk's role.
        place: the host.
        kind: as in the verdict.
    """

    family: str
    tier: str | None
    tiers: frozenset[str] = field(compare=False)
    role: str | None
    place: Place | None
    kind: str = field(compare=False)

    @classmethod
    def of(cls, suspect: Mapping[str, Any], side: str, places: Places) -> Blamed:
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
        touches: the blamed resources it may act upon; empty: none.
        anything: a side blames nobody, so that any difference may matter.
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


def blamed_of(sides: Sides, places: Places) -> tuple[Blamed, ...]:
    """The resources both sides' verdicts name; of a verdict that names none, its candidates."""
    found: dict[Blamed, None] = {}
    for name, side in (("base", sides.base), ("other", sides.other)):
        for verdict in side.verdicts:
            named = [verdict["bottleneck"]] if verdict.get("bottleneck") else verdict.get("candidates") or ()
            for suspect in named:
                found.setdefault(Blamed.of(suspect, name, places))
    return tuple(found)


def everyone_names(sides: Sides) -> bool:
    """Whether every run's verdict names what gives way first."""
    return all(verdict.get("bottleneck") for side in sides for verdict in side.verdicts)


def confounders(
    found: Sequence[Difference], blamed: Sequence[Blamed], *, named: bool
) -> tuple[Confounder, ...]:
    """Each difference, with the blamed resources it touches; those that touch any come first.

    Args:
        found: the differences that are not what is studied.
        blamed: the resources of both verdicts.
        named: whether every verdict names one; where one does not, what matters there is not known.
    """
    each = [
        Confounder(
            one,
            tuple(resource for resource in blamed if touches(one, resource)),
            anything=not named and _acts(one),
        )
        for one in found
    ]
    return tuple(sorted(each, key=lambda one: not one.matters))


def touches(one: Difference, resource: Blamed) -> bool:
    """Whether a difference may act upon a resource (design: METHOD 4.1 leaves the list open).

    The work that was asked for acts upon everything; hardware upon what is made of it; a database's settings
    upon all its tier does; who watched, and a seed or a machine's identity alone, upon nothing.
    """
    if not _acts(one):
        return False
    if one.area in ("plan", "content", "versions"):
        return True
    if resource.family in _ANYWHERE.get(one.area, ()):
        return True
    reached = _NEAR.get(one.area)
    if one.role and resource.role and one.role != resource.role:
        return False
    if one.area == "memory" and resource.role == "log":
        return False  # more memory means fewer reads; a log is only written
    return _near(one, resource) and (reached is None or resource.family in reached)


def _acts(one: Difference) -> bool:
    """Whether it is of a kind that can change what a farm does at all."""
    if one.area == "plan" and one.what.partition(".")[0] in NO_WORK:
        return False
    return one.area != "collectors" and (one.area, one.what) not in {
        ("plan", "seed"),
        ("plan", "objectives"),
        ("machine", "machine_id"),
        ("machine", "clock_source"),
        ("content", "corpus"),
    }


def _near(one: Difference, resource: Blamed) -> bool:
    """Whether it holds for the resource's tier, or for one that shares the resource."""
    tiers = {place.tier for place in one.places} or ({one.tier} if one.tier else set())
    if not tiers or not resource.tiers:
        return True
    if not tiers & resource.tiers:
        return False
    own = [place for place in one.places if place.tier == resource.tier]
    if own and resource.place and len(resource.tiers) == 1:
        return resource.place in own  # another host of its tier is another resource
    return True
