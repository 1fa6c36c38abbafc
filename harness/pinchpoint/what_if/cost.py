"""What a farm costs a month by prices its user gave, and what throughput that buys. None is invented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pinchpoint.plan.prices import Prices
from pinchpoint.what_if.settings import Setting

__all__ = ["Cost", "Item", "Prices", "cost_of", "cost_with", "per_cost", "prices_of"]


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

    Args:
        manifest: manifest.json's content.
        prices: per month.
    """
    items = tuple(_items((manifest.get("farm") or {}).get("tiers") or {}, prices))
    return Cost(
        currency=prices.currency,
        per_month=sum(one.per_month for one in items if one.per_month is not None),
        items=items,
        unpriced=tuple(one.name for one in items if one.per_month is None),
    )


def cost_with(manifest: Mapping[str, Any], settings: Sequence[Setting], prices: Prices) -> Cost:
    """What the same farm costs with everything set."""
    tiers = deepcopy((manifest.get("farm") or {}).get("tiers") or {})
    for one in sorted(settings, key=lambda one: one.what == "stripes"):
        tier, _, role = one.target.partition(".")
        for host in (tiers.get(tier) or {}).get("hosts", {}).values():
            _set(host, role, one)
    return cost_of({"farm": {"tiers": tiers}}, prices)


def per_cost(per_s: float, cost: Cost | None) -> float | None:
    """Operations per second for each unit of the currency a month; None where not all has a price."""
    return per_s / cost.per_month if cost and cost.whole and cost.per_month else None


OTHER = "other"
"""Where a host's or disk's figures are set, it is another one than the one that has a price of its own."""


def _set(host: dict[str, Any], role: str, one: Setting) -> None:
    if one.what == "machine":
        host["machine"] = one.value
    elif one.what == "cores":
        host[OTHER] = f"{one.text} cores"
    disk = (host.get("disks") or {}).get(role)
    if disk is None:
        return
    if one.what == "profile":
        disk.clear()
        disk |= {"profile": one.value, "stripes": 1}
    elif one.what == "stripes":
        disk["stripes"] = int(one.number)
    elif one.what in {"iops", "bytes_per_s", "latency_s"}:
        disk.pop("profile", None)
        disk[OTHER] = f"{one.name.rpartition('.')[2]} {one.text}"


def _items(tiers: Mapping[str, Any], prices: Prices) -> Iterator[Item]:
    paid: set[str] = set()
    for tier, spec in tiers.items():
        for name, host in ((spec or {}).get("hosts") or {}).items():
            if name not in paid:  # a host may be of several tiers
                paid.add(name)
                yield _machine(name, host or {}, prices)
            for role, disk in ((host or {}).get("disks") or {}).items():
                yield _disk(f"{tier}.{role}", disk or {}, prices)


def _machine(name: str, host: Mapping[str, Any], prices: Prices) -> Item:
    machine, other = host.get("machine"), host.get(OTHER)
    words = ", ".join(part for part in (machine, other) if part)
    price = None if other else prices.machines.get(machine or "", prices.machines.get(name))
    return Item(f"{name} ({words})" if words else name, price)


def _disk(target: str, disk: Mapping[str, Any], prices: Prices) -> Item:
    profile, count, other = disk.get("profile"), int(disk.get("stripes") or 1), disk.get(OTHER)
    times = f"{count} x " if count > 1 else ""
    words = f"{times}{profile}" if profile else str(other or "")
    each = prices.disks.get(profile) if profile else None if other else prices.disks.get(target)
    # A disk with a price of its own is priced as a whole, whatever it is made of.
    per_month = each * (count if profile else 1) if each is not None else None
    return Item(f"{target} ({words})" if words else target, per_month)
