"""What differs between the runs' manifests: a pure function over two sets of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pinchpoint.comparison.facts import Area, Facts, Subject, facts_of
from pinchpoint.comparison.hosts import Place, Places

AREAS: tuple[str, ...] = get_args(Area)
"""What ``--factor`` may name."""

SAME_SIZE = 0.01
"""Sizes of memory within 1 % are the same: a kernel keeps a little more or less of it for itself (design)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the sides differ.

    Attributes:
        area: what kind of thing; see ``AREAS``.
        what: the fact's name; its ending is its unit.
        tier: the tier, None where it holds for the whole run.
        places: the hosts it holds for; empty where it holds for the tier or the whole run.
        role: the disk's role.
        base: the base's values, each once; empty: not recorded. More than one: its runs differ themselves.
        other: likewise.
    """

    area: Area
    what: str
    tier: str | None
    places: tuple[Place, ...]
    role: str | None
    base: tuple[Any, ...]
    other: tuple[Any, ...]

    @property
    def mixed(self) -> bool:
        """Whether the runs of one side differ among themselves."""
        return len(self.base) > 1 or len(self.other) > 1


def differences(
    base: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]], places: Places
) -> tuple[Difference, ...]:
    """Everything in which the manifests of the two sides differ, area by area.

    A host that no collector described is a difference of its own: what may differ there is not known.

    Args:
        base: the manifests of the base's runs.
        other: of the other side's.
        places: the hosts of both, paired.
    """
    ours = [facts_of(manifest, "base", places) for manifest in base]
    theirs = [facts_of(manifest, "other", places) for manifest in other]
    found = [one for place in places.all for one in _whole_host(place, ours, theirs)]
    apart = {place for one in found for place in one.places}
    for subject in dict.fromkeys(subject for facts in (*ours, *theirs) for subject in facts):
        values = _values(ours, subject), _values(theirs, subject)
        told = subject.place in apart and not subject.given
        if not told and not _same(subject.area, *values):
            places_of = (subject.place,) if subject.place else ()
            found.append(
                Difference(subject.area, subject.what, subject.tier, places_of, subject.role, *values)
            )
    return tuple(
        sorted(_merged(found), key=lambda one: (AREAS.index(one.area), one.tier or "", one.role or ""))
    )


def _whole_host(place: Place, ours: Sequence[Facts], theirs: Sequence[Facts]) -> Iterator[Difference]:
    """A host that one side lacks, or that no collector described on a side: said once, not fact by fact."""
    if place.base is None or place.other is None:
        sides = (tuple(name for name in (side,) if name) for side in (place.base, place.other))
        yield Difference("machine", "host", place.tier, (place,), None, *sides)
        return
    subject = Subject("machine", "inventory", place.tier, place)
    values = _values(ours, subject), _values(theirs, subject)
    if values != (("recorded",), ("recorded",)):
        yield Difference("machine", "inventory", place.tier, (place,), None, *values)


def _values(side: Sequence[Facts], subject: Subject) -> tuple[Any, ...]:
    """The distinct values of a side's runs; a run that did not record it counts as None beside others."""
    given = [facts.get(subject) for facts in side]
    values = tuple(dict.fromkeys(given))
    return () if values == (None,) else values


def _same(area: Area, base: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    if area == "memory":
        sizes = [value for value in (*base, *other) if isinstance(value, int | float)]
        if base and other and len(sizes) == len(base) + len(other):
            return max(sizes) - min(sizes) <= SAME_SIZE * max(sizes)
    return len(base) == len(other) == 1 and bool(base == other)


def _merged(found: Sequence[Difference]) -> list[Difference]:
    """The same difference on several hosts is one: hosts of one machine all tell of its CPU.

    It then is no longer one tier's, unless all of them are of that tier.
    """
    groups: dict[tuple[Any, ...], list[Difference]] = {}
    for one in found:
        key = (one.area, one.what, one.role, one.base, one.other)
        alone = (one.tier,) if one.role or not one.places else ()
        groups.setdefault((*key, *alone), []).append(one)
    merged = []
    for group in groups.values():
        first = group[0]
        tiers = {one.tier for one in group}
        places = tuple(place for one in group for place in one.places)
        tier = first.tier if len(tiers) == 1 else None
        merged.append(Difference(first.area, first.what, tier, places, first.role, first.base, first.other))
    return merged
