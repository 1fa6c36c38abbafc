"""Which host of one side answers to which of the other: they need not have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """A host's place in the farm, on both sides.

    Attributes:
        tier: its tier.
        base: the host's name in the base, None where the base has no such host.
        other: likewise.
    """

    tier: str
    base: str | None
    other: str | None

    @property
    def name(self) -> str:
        """``sql1``, or ``devsql1 / prodsql1`` where the names differ."""
        return " / ".join(dict.fromkeys(name for name in (self.base, self.other) if name))


@dataclass(frozen=True, slots=True)
class Places:
    """The hosts of both sides, paired: those of one name first, the others by their order in their tier."""

    all: tuple[Place, ...]

    def of(self, tier: str, host: str, side: str) -> Place:
        """The place of a host of one side (``base`` or ``other``); a host nobody knew has one of its own."""
        for place in self.all:
            if place.tier == tier and getattr(place, side) == host:
                return place
        return Place(tier, host, None) if side == "base" else Place(tier, None, host)

    def short(self, place: Place) -> str:
        """``sql``, or ``sql.sql1`` where its tier has several hosts."""
        alone = sum(one.tier == place.tier for one in self.all) <= 1
        return place.tier if alone else f"{place.tier}.{place.name.replace(' / ', '/')}"


def pair_hosts(base: Mapping[str, Any], other: Mapping[str, Any]) -> Places:
    """Pair the hosts of two manifests, tier by tier."""
    first, second = tiers_of(base), tiers_of(other)
    places = []
    for tier in dict.fromkeys([*first, *second]):
        ours, theirs = first.get(tier, []), second.get(tier, [])
        common = [host for host in ours if host in theirs]
        places += [Place(tier, host, host) for host in common]
        rest = ([host for host in hosts if host not in common] for hosts in (ours, theirs))
        places += [Place(tier, left, right) for left, right in zip_longest(*rest)]
    return Places(tuple(places))


def tiers_of(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """Tier -> its hosts: those declared, then those only a collector knows."""
    tiers: dict[str, list[str]] = {}
    for tier, spec in ((manifest.get("farm") or {}).get("tiers") or {}).items():
        tiers.setdefault(tier, []).extend((spec or {}).get("hosts") or {})
    known = {host for hosts in tiers.values() for host in hosts}
    for host, facts in (manifest.get("hosts") or {}).items():
        if host not in known and facts.get("tier"):
            tiers.setdefault(str(facts["tier"]), []).append(host)
    return tiers
