"""What a run's farm would cost with what is set (``pinchpoint.cost``: what it costs as it is)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from pinchpoint.cost import OTHER, REPLACED, UNIT_OF_COST, Cost, cost_of, per_cost, prices_of
from pinchpoint.plan.prices import Prices
from pinchpoint.what_if.settings import Setting

__all__ = ["UNIT_OF_COST", "Cost", "Prices", "cost_of", "cost_with", "per_cost", "prices_of"]


def cost_with(manifest: Mapping[str, Any], settings: Sequence[Setting], prices: Prices) -> Cost:
    """What the same farm costs with everything set, also on what farm.yaml does not declare."""
    tiers = deepcopy((manifest.get("farm") or {}).get("tiers") or {})
    seen = manifest.get("hosts") or {}
    of_a_type = {one.target for one in settings if one.what == "profile"}
    for one in sorted(settings, key=lambda one: (one.what == "stripes", one.name)):
        if one.what == "latency_s" and one.target in of_a_type:
            continue  # no catalogue tells it: a P30 of which it is told is a P30
        tier, _, role = one.target.partition(".")
        for host in _hosts(tiers, seen, tier, role):
            _set(host, role, one)
    return cost_of({"farm": {"tiers": tiers}, "hosts": seen}, prices)


def _hosts(tiers: dict[str, Any], seen: Mapping[str, Any], tier: str, role: str) -> Iterator[dict[str, Any]]:
    """A tier's hosts as farm.yaml has them, and those, and disks, that only a collector knows."""
    there = {name: facts for name, facts in seen.items() if (facts or {}).get("tier") == tier}
    if tier not in tiers and not there:
        return  # a scenario
    hosts = tiers.setdefault(tier, {}).setdefault("hosts", {})
    for name in dict.fromkeys([*hosts, *there]):
        host = hosts.setdefault(name, {})
        if role in (there.get(name, {}).get("roles") or {}):
            host.setdefault("disks", {}).setdefault(role, {})
        yield host


def _set(host: dict[str, Any], role: str, one: Setting) -> None:
    if one.what == "machine":
        host |= {"machine": one.value, REPLACED: True}
    elif one.what == "cores":
        host[OTHER] = f"{one.text} cores"
    disk = (host.get("disks") or {}).get(role)
    if disk is None:
        return
    if one.what == "profile":
        disk.clear()
        disk |= {"profile": one.value, "stripes": 1, REPLACED: True}
    elif one.what == "stripes":
        disk |= {"stripes": int(one.number), REPLACED: True}
    elif one.what in {"iops", "bytes_per_s", "latency_s"}:
        disk.pop("profile", None)
        words = f"{one.name.rpartition('.')[2]} {one.text}"
        disk[OTHER] = f"{disk[OTHER]}, {words}" if OTHER in disk else words
