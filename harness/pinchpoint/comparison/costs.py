"""Computes the monthly cost of both sides' farms from the user's prices, and the throughput per cost.

Without a price the cost is unknown; the project has no prices of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pinchpoint.base import wording
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.comparison.sides import Side, Sides
from pinchpoint.plan.prices import Prices

UNIT_OF_COST = 100.0
"""Throughput is given for this number of currency units a month."""


@dataclass(frozen=True, slots=True)
class CostItem:
    """One disk or machine of a farm, with its price.

    Attributes:
        name: the disk (``sql.log``) or the host, with its profile or machine type: ``sql.log (2 x
            azure/p30)``.
        per_month: the price of the whole item, currency units a month; None if it has no price.
    """

    name: str
    per_month: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The monthly cost of a farm.

    Attributes:
        currency: the currency of the prices.
        per_month: the sum of all items with a price, currency units a month.
        items: all disks and machines of the farm.
        unpriced: names of the items without a price, which the sum does not include.
    """

    currency: str
    per_month: float
    items: tuple[CostItem, ...]
    unpriced: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every item has a price."""
        return not self.unpriced


def prices_of(manifest: JsonObject) -> Prices | None:
    """The prices in the run's farm.yaml; None if there are none."""
    given = object_at(manifest, "farm").get("prices")
    return Prices.from_json(given) if given else None


def cost_of(manifest: JsonObject, prices: Prices) -> Cost:
    """The cost of a run's farm: each declared disk and each host counts once.

    A host that only a collector reports counts as well, and so does such a disk if it has a price: an
    embedded farm need not declare hosts or disks.

    Args:
        manifest: the content of manifest.json.
        prices: prices of disks and machines, currency units a month.
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
    """Operations per second per currency unit a month; None unless every item has a price."""
    return per_s / cost.per_month if cost and cost.whole and cost.per_month else None


def _declared(tiers: JsonObject, prices: Prices) -> Iterator[CostItem]:
    paid: set[str] = set()
    for tier, spec in tiers.items():
        for name, host in object_at(spec, "hosts").items():
            if name not in paid:  # a host may belong to several tiers
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
    # A price for this disk covers all its stripes; a price for a profile covers one stripe.
    price = prices.disks.get(target) if each is None else each * count
    return CostItem(f"{target} ({times}{profile})" if profile else target, price)


@dataclass(frozen=True, slots=True)
class SideCost:
    """The cost of one side's farm.

    Attributes:
        cost: the cost; None if no prices are declared, or if the farms of the side's runs have different
            costs.
        why: why throughput per cost cannot be computed; None if it can.
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
        """Whether a side has prices."""
        return bool(self.base.cost or self.other.cost)

    @property
    def currencies(self) -> tuple[str, ...]:
        """The currencies of both sides, without duplicates."""
        return tuple(dict.fromkeys(one.cost.currency for one in (self.base, self.other) if one.cost))

    @property
    def per(self) -> str:
        """The unit of cost in words: ``100 EUR a month``."""
        return f"{UNIT_OF_COST:g} {' or '.join(self.currencies)} a month"

    @property
    def why(self) -> str | None:
        """Why the throughput per cost of the sides cannot be compared, one sentence; None if it can."""
        lines = [one.why for one in (self.base, self.other) if one.why]
        if not lines and len(self.currencies) > 1:
            return f"prices are in {wording.listed(list(self.currencies))}, which no rate holds together"
        return "; ".join(lines) or None

    @property
    def ratio(self) -> float | None:
        """Cost of the other side ÷ cost of the base; None if not known."""
        if self.why or not (self.base.cost and self.other.cost):
            return None
        return self.other.cost.per_month / self.base.cost.per_month

    def worth(self, side: str, per_s: float) -> float | None:
        """Operations per second for ``UNIT_OF_COST`` a month, for side ``base`` or ``other``."""
        each = per_cost(per_s, getattr(self, side).cost)
        return None if each is None else each * UNIT_OF_COST


def costs_of(sides: Sides, prices: Prices | None = None) -> Costs:
    """The costs by the given prices, else by the prices in each farm.yaml."""
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
