"""What both sides' farms cost a month, and whether what they do may be held against that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pinchpoint.base import wording
from pinchpoint.comparison.sides import Side, Sides
from pinchpoint.cost import UNIT_OF_COST, Cost, cost_of, per_cost, prices_of
from pinchpoint.plan.prices import Prices


@dataclass(frozen=True, slots=True)
class SideCost:
    """What a side's farm costs.

    Attributes:
        cost: None where no prices are declared, or its runs' farms do not cost the same.
        why: why throughput cannot be held against it; None where it can.
    """

    cost: Cost | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Costs:
    """Of both sides."""

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
        """Why what is done for it cannot be compared, one sentence; None where it can be."""
        said = [one.why for one in (self.base, self.other) if one.why]
        if not said and len(self.currencies) > 1:
            return f"prices are in {wording.listed(list(self.currencies))}, which no rate holds together"
        return "; ".join(said) or None

    @property
    def ratio(self) -> float | None:
        """How many times as much the other side costs; None where that is not known."""
        if self.why or not (self.base.cost and self.other.cost):
            return None
        return self.other.cost.per_month / self.base.cost.per_month

    def worth(self, side: str, per_s: float) -> float | None:
        """Operations per second for ``UNIT_OF_COST`` a month, of ``base`` or ``other``."""
        each = per_cost(per_s, getattr(self, side).cost)
        return None if each is None else each * UNIT_OF_COST


def costs_of(sides: Sides, prices: Prices | None = None) -> Costs:
    """By given prices, else by those in each farm's own farm.yaml."""
    return Costs(*(_side(side, prices) for side in sides))


def _side(side: Side, prices: Prices | None) -> SideCost:
    found = list(dict.fromkeys(_each(side, prices)))
    if len(found) > 1:
        return SideCost(None, f"the farms of {side.label}'s runs do not cost the same")
    cost = found[0]
    if cost is None:
        return SideCost(None, f"no prices are declared for {side.label}")
    if cost.unpriced:
        return SideCost(cost, f"of {side.label} no price is given for {wording.listed(list(cost.unpriced))}")
    return SideCost(cost, None if cost.per_month else f"{side.label} costs nothing by these prices")


def _each(side: Side, prices: Prices | None) -> Iterator[Cost | None]:
    for manifest in side.manifests:
        own = prices or prices_of(manifest)
        yield cost_of(manifest, own) if own else None
