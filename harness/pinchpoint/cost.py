"""What a farm costs a month by the prices its user gave, and what that buys. No price is invented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.plan.prices import Prices

UNIT_OF_COST = 100.0
"""Throughput is told for so many units of the currency a month."""

OTHER = "other"
"""Where figures of a host or disk are set: in words, as which it then has no price."""
REPLACED = "replaced"
"""Where a host or disk is another one than the farm has: a price of its own is that of the one it has."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that is paid for.

    Attributes:
        name: ``sql.log`` or a host, with what it is: ``sql.log (2 x azure/p30)``.
        per_month: of all of it; None: it has no price.
    """

    name: str
    per_month: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a farm costs.

    Attributes:
        currency: of the prices.
        per_month: the sum of what has a price.
        items: all disks and machines.
        unpriced: those without a price: the sum is without them.
    """

    currency: str
    per_month: float
    items: tuple[Item, ...]
    unpriced: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is without a price."""
        return not self.unpriced


def prices_of(manifest: Mapping[str, Any]) -> Prices | None:
    """The prices that the run's farm.yaml gave; None where it gave none."""
    given = (manifest.get("farm") or {}).get("prices")
    return Prices.from_json(given) if given else None


def cost_of(manifest: Mapping[str, Any], prices: Prices) -> Cost:
    """What the farm of a run costs: every declared disk and every host, once.

    A host that only a collector knows is one as well, and a disk where it has a price: an embedded farm need
    not declare any.

    Args:
        manifest: manifest.json's content.
        prices: per month.
    """
    tiers = (manifest.get("farm") or {}).get("tiers") or {}
    items = (*_declared(tiers, prices), *_only_seen(manifest, tiers, prices))
    return Cost(
        currency=prices.currency,
        per_month=sum(one.per_month for one in items if one.per_month is not None),
        items=items,
        unpriced=tuple(one.name for one in items if one.per_month is None),
    )


def per_cost(per_s: float, cost: Cost | None) -> float | None:
    """Operations per second for each unit of the currency a month; None where not all has a price."""
    return per_s / cost.per_month if cost and cost.whole and cost.per_month else None


def _declared(tiers: Mapping[str, Any], prices: Prices) -> Iterator[Item]:
    paid: set[str] = set()
    for tier, spec in tiers.items():
        for name, host in ((spec or {}).get("hosts") or {}).items():
            if name not in paid:  # a host may be of several tiers
                paid.add(name)
                yield _machine(name, host or {}, prices)
            for role, disk in ((host or {}).get("disks") or {}).items():
                yield _disk(f"{tier}.{role}", disk or {}, prices)


def _only_seen(manifest: Mapping[str, Any], tiers: Mapping[str, Any], prices: Prices) -> Iterator[Item]:
    known = {name for spec in tiers.values() for name in (spec or {}).get("hosts") or {}}
    for name, facts in (manifest.get("hosts") or {}).items():
        tier = (facts or {}).get("tier")
        if not tier:
            continue
        if name not in known:
            yield _machine(name, {}, prices)
        declared = (((tiers.get(tier) or {}).get("hosts") or {}).get(name) or {}).get("disks") or {}
        for target in (f"{tier}.{role}" for role in facts.get("roles") or {} if role not in declared):
            if target in prices.disks:
                yield _disk(target, {}, prices)


def _machine(name: str, host: Mapping[str, Any], prices: Prices) -> Item:
    machine, other = host.get("machine"), host.get(OTHER)
    words = ", ".join(part for part in (machine, other) if part)
    of_type = prices.machines.get(machine or "")
    price = None if other else of_type if of_type is not None else _own(host, prices.machines.get(name))
    return Item(f"{name} ({words})" if words else name, price)


def _disk(target: str, disk: Mapping[str, Any], prices: Prices) -> Item:
    profile, count, other = disk.get("profile"), int(disk.get("stripes") or 1), disk.get(OTHER)
    times = f"{count} x " if count > 1 else ""
    words = f"{times}{profile}" if profile else str(other or "")
    each = prices.disks.get(profile or "")
    # A disk with a price of its own is priced as a whole, whatever it is made of.
    price = None if other else each * count if each is not None else _own(disk, prices.disks.get(target))
    return Item(f"{target} ({words})" if words else target, price)


def _own(thing: Mapping[str, Any], price: float | None) -> float | None:
    return None if thing.get(REPLACED) else price
