"""Knobs of a farm that is not ours: the commands its farm.yaml allows by name, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.plan import CPU, ENDPOINT, Allowed, Farm
from pinchpoint.run.prove import leftover
from pinchpoint.run.prove.commands import run

_WAYS = {"cpu": CPU, "cpu_thread": CPU, "external": ENDPOINT}
"""What of its tier a kind is about, where it is no disk."""


@dataclass(frozen=True, slots=True)
class AllowedKnob:
    """See ``knobs.Knob``.

    Attributes:
        farm: the farm.
        name: as in farm.yaml's ``prove``.
        allowed: its commands.
    """

    farm: Farm
    name: str
    allowed: Allowed

    @property
    def what(self) -> str:
        """The resource in words."""
        return self.name

    @property
    def of(self) -> Literal["capacity", "use"]:
        """See ``knobs.Knob``."""
        return "capacity"

    @property
    def ratio(self) -> float:
        """What is left of its speed: as the user says."""
        return 1.0 - self.allowed.by_ratio

    def slower(self, for_s: float) -> None:
        """See ``knobs.Knob``; nothing ends it by itself, so that it is written down first."""
        del for_s
        leftover.note(self.farm.identity, self.name, self.allowed)
        run(f"prove.{self.name}.slower", self.allowed.slower, self.allowed.timeout_s)

    def restore(self) -> None:
        """See ``knobs.Knob``."""
        run(f"prove.{self.name}.restore", self.allowed.restore, self.allowed.timeout_s)
        leftover.forget(self.farm.identity)


def knob(farm: Farm, named: Mapping[str, Any]) -> AllowedKnob | str:
    """The knob of a resource, or that it is not allowed."""
    kind, tier = str(named["kind"]), str(named["tier"])
    part = named.get("role") if kind.startswith("disk") else _WAYS.get(kind)
    if part is None:
        return f"a farm that is not ours can be made slower in its disks, CPU and ways; this is {kind}"
    name = f"{tier}.{part}"
    if name not in farm.prove:
        return f"the farm does not allow it: its farm.yaml has no prove.{name} (slower, restore, by)"
    return AllowedKnob(farm, name, farm.prove[name])
