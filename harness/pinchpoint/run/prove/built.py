"""Knobs of an embedded farm, turned by its supervisor, which puts them back by itself when nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.farm.live import embedded
from pinchpoint.plan import Farm


@dataclass(frozen=True, slots=True)
class BuiltKnob:
    """See ``knobs.Knob``.

    Attributes:
        farm: the farm.
        what: the resource in words.
        knob: ``disk``, ``cpu`` or ``delay``.
        name: ``tier.role`` of a disk, else the tier.
        ratio: what is left of its speed.
        cores: of ``cpu``, the cores' worth of CPU that the ratio is of.
        of: what the ratio is of: ``capacity``, or ``use``.
    """

    farm: Farm
    what: str
    knob: str
    name: str
    ratio: float
    cores: float | None = None
    of: Literal["capacity", "use"] = "capacity"

    def slower(self, for_s: float) -> None:
        """See ``knobs.Knob``."""
        farms = embedded()
        change = farms.Slower(self.knob, self.name, self.ratio, self.cores)
        farms.slow(self.farm.identity, change, for_s)

    def restore(self) -> None:
        """See ``knobs.Knob``."""
        embedded().slow(self.farm.identity, None)


def knob(
    farm: Farm,
    named: Mapping[str, Any],
    verdict: Mapping[str, Any],
    hosts: Mapping[str, Any],
    ratio: float,
    *,
    all_of_it: bool,
) -> BuiltKnob | str:
    """The knob of a resource, or why there is none; see ``knobs.knob_for``."""
    found = embedded().standing(farm)
    if found is None:
        return "the farm is not up any more"
    kind, tier = str(named["kind"]), str(named["tier"])
    if kind.startswith("disk"):
        return _disk(farm, f"{tier}.{named['role']}", found.emulated, ratio)
    if kind == "external":
        return _way(farm, tier, ratio)
    if missing := embedded().cpu_caps_missing():
        return f"the CPU of {tier} cannot be capped: {missing}"
    cores = _cores(farm, named, verdict, hosts, all_of_it=all_of_it)
    if cores is None:
        return f"how much CPU {tier} used was not measured"
    return BuiltKnob(
        farm, f"the CPU of {tier}", "cpu", tier, ratio, cores, of="capacity" if all_of_it else "use"
    )


def _disk(farm: Farm, name: str, emulated: Mapping[str, Any], ratio: float) -> BuiltKnob | str:
    if name not in emulated:
        return f"{name} is a plain folder: only an emulated disk can be made slower (root, Linux)"
    tier, _, role = name.partition(".")
    return BuiltKnob(farm, f"the {role} disk of {tier}", "disk", name, ratio)


def _way(farm: Farm, tier: str, ratio: float) -> BuiltKnob | str:
    if farm.embedded is None or tier not in farm.embedded.delays:
        return f"nothing of ours lies on the way to {tier} that could be made slower"
    return BuiltKnob(farm, f"the way to {tier}", "delay", tier, ratio)


def _cores(
    farm: Farm,
    named: Mapping[str, Any],
    verdict: Mapping[str, Any],
    hosts: Mapping[str, Any],
    *,
    all_of_it: bool,
) -> float | None:
    """Cores' worth of CPU that a tier may use, or did use; None where that is not known."""
    tier, about = str(named["tier"]), hosts.get(str(named["host"])) or {}
    quota = farm.embedded.cpus.get(tier) if farm.embedded else None
    may = quota or len(about.get("tier_cores") or ()) or None
    if all_of_it or may is None:
        return may
    rows = [row for row in verdict["cpus"] if row["tier"] == tier and row["of"] == "tier"]
    busy = rows[0]["busy_mean_ratio"] if rows else None
    return may * min(1.0, busy) if busy else None
