"""Computes what both sides' farms cost a month by the user's prices, and the throughput for that money.

No price is invented.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pinchpoint.base import wording
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.comparison.sides import Side, Sides
from pinchpoint.plan.prices import Prices

UNIT_OF_COST = 100.0
"""Throughput is given for this many units of the currency a month."""


@dataclass(frozen=True, slots=True)
class CostItem:
    """One thing that is paid for.

    Attributes:
        name: ``sql.log`` or a host, with what it is: ``sql.log (2 x azure/p30)``.
        per_month: of all of it; None: it has no price.
    """

    name: str
    per_month: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a farm.

    Attributes:
        currency: of the prices.
        per_month: the sum of what has a price.
        items: all disks and machines.
        unpriced: those without a price: the sum is without them.
    """

    currency: str
    per_month: float
    items: tuple[CostItem, ...]
    unpriced: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is without a price."""
        return not self.unpriced


def prices_of(manifest: JsonObject) -> Prices | None:
    """The prices that the run's farm.yaml gave; None if it gave none."""
    given = object_at(manifest, "farm").get("prices")
    return Prices.from_json(given) if given else None


def cost_of(manifest: JsonObject, prices: Prices) -> Cost:
    """The cost of a run's farm: every declared disk and every host, once.

    A host that only a collector knows is one as well, and a disk where it has a price: an embedded farm need
    not declare any.

    Args:
        manifest: manifest.json's content.
        prices: per month.
    """
    tiers = object_at(manifest, "farm", "tiers")
    items = (*_declared(tiers, prices), *_only_seen(manifest, tiers, prices))
    return Cost(
        currency=prices.currency,
        per_month=sum(one.per_month for one in items if one.per_month is not None),
        items=items,
        unpriced=tuple(one.name for one in items if one.per_month is None),
    )


def per_cost(per_s: float, cost: Cost | None) -> float | None:
    """Operations per second for each unit of the currency a month; None if not all has a price."""
    return per_s / cost.per_month if cost and cost.whole and cost.per_month else None


def _declared(tiers: JsonObject, prices: Prices) -> Iterator[CostItem]:
    paid: set[str] = set()
    for tier, spec in tiers.items():
        for name, host in object_at(spec, "hosts").items():
            if name not in paid:  # a host may be of several tiers
                paid.add(name)
                yield _machine(name, host or {}, prices)
            for role, disk in object_at(host, "disks").items():
                yield disk_cost(f"{tier}.{role}", disk or {}, prices)


def _only_seen(manifest: JsonObject, tiers: JsonObject, prices: Prices) -> Iterator[CostItem]:
    known = {name for spec in tiers.values() for name in object_at(spec, "hosts")}
    for name, facts in object_at(manifest, "hosts").items():
        tier = (facts or {}).get("tier")
        if not tier:
            continue
        if name not in known:
            yield _machine(name, {}, prices)
        declared = object_at(tiers, tier, "hosts", name, "disks")
        for target in (f"{tier}.{role}" for role in object_at(facts, "roles") if role not in declared):
            if target in prices.disks:
                yield disk_cost(target, {}, prices)


def _machine(name: str, host: JsonObject, prices: Prices) -> CostItem:
    machine = host.get("machine")
    price = prices.machines.get(machine or "", prices.machines.get(name))
    return CostItem(f"{name} ({machine})" if machine else name, price)


def disk_cost(target: str, disk: JsonObject, prices: Prices) -> CostItem:
    """The cost of one disk, such as ``sql.log``."""
    profile, count = disk.get("profile"), int(disk.get("stripes") or 1)
    times = f"{count} x " if count > 1 else ""
    each = prices.disks.get(profile or "")
    # A disk with a price of its own is priced as a whole, whatever it is made of.
    price = prices.disks.get(target) if each is None else each * count
    return CostItem(f"{target} ({times}{profile})" if profile else target, price)


@dataclass(frozen=True, slots=True)
class SideCost:
    """The cost of a side's farm.

    Attributes:
        cost: None if no prices are declared, or its runs' farms do not cost the same.
        why: why throughput cannot be held against it; None if it can.
    """

    cost: Cost | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of both sides."""

    base: SideCost
    other: SideCost

    @property
    def known(self) -> bool:
        """Whether any side has prices."""
        return bool(self.base.cost or self.other.cost)

    @property
    def currencies(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys(one.cost.currency for one in (self.base, self.other) if one.cost))

    @property
    def per(self) -> str:
        """``100 EUR a month``."""
        return f"{UNIT_OF_COST:g} {' or '.join(self.currencies)} a month"

    @property
    def why(self) -> str | None:
        """Why what is done for it cannot be compared, one sentence; None if it can be."""
        lines = [one.why for one in (self.base, self.other) if one.why]
        if not lines and len(self.currencies) > 1:
            return f"prices are in {wording.listed(list(self.currencies))}, which no rate holds together"
        return "; ".join(lines) or None

    @property
    def ratio(self) -> float | None:
        """How many times as much the other side costs; None if that is not known."""
        if self.why or not (self.base.cost and self.other.cost):
            return None
        return self.other.cost.per_month / self.base.cost.per_month

    def worth(self, side: str, per_s: float) -> float | None:
        """Operations per second for ``UNIT_OF_COST`` a month, of ``base`` or ``other``."""
        each = per_cost(per_s, getattr(self, side).cost)
        return None if each is None else each * UNIT_OF_COST


def costs_of(sides: Sides, prices: Prices | None = None) -> Costs:
    """The costs by the given prices, else by those in each farm.yaml."""
    return Costs(*(_side(side, prices) for side in sides))


def _side(side: Side, prices: Prices | None) -> SideCost:
    result = list(dict.fromkeys(_each(side, prices)))
    if len(result) > 1:
        return SideCost(None, f"the farms of {side.label}'s runs do not cost the same")
    cost = result[0]
    if cost is None:
        return SideCost(None, f"no prices are declared for {side.label}")
    if cost.unpriced:
        return SideCost(cost, f"of {side.label} no price is given for {wording.listed(list(cost.unpriced))}")
    return SideCost(cost, None if cost.per_month else f"{side.label} costs nothing by these prices")


def _each(side: Side, prices: Prices | None) -> Iterator[Cost | None]:
    for manifest in side.manifests:
        own = prices or prices_of(manifest)
        yield cost_of(manifest, own) if own else None
