"""What makes one resource of a farm slower, and puts it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pinchpoint.plan import Farm
from pinchpoint.run.prove import allowed, built

RATIO = 0.75
"""What is left of its speed: a fall of throughput by a quarter stands out of what windows of some seconds
differ by, and no farm is harmed (design value)."""

NO_KNOB: Mapping[str, str] = {
    "lock": "a lock is held as long as its transaction takes: nothing of it can be made slower by itself",
    "memory": "less memory does not make a farm slower in proportion to anything the model knows",
    "pool": "a limit of connections cannot be changed while they are in use",
    "network": "the speed of a network interface is not ours to change",
    "generator": "the load generator is no part of the farm",
    "contention": "other processes on the load generator's machine are no part of the farm",
}
"""Kinds that cannot be proved on a farm of our own, and why."""


class Knob(Protocol):
    """One resource that can be made slower."""

    @property
    def what(self) -> str:
        """The resource in words: ``the CPU of sql``."""
        ...

    @property
    def ratio(self) -> float:
        """What is left of its speed then."""
        ...

    @property
    def of(self) -> Literal["capacity", "use"]:
        """What that is a share of: of all it can do, or of what was used of it until then."""
        ...

    def slower(self, for_s: float) -> None:
        """Make it slower, for that many seconds at most. Raises FarmUnavailable."""
        ...

    def restore(self) -> None:
        """Put it back; harmless where nothing was changed. Raises FarmUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no knob.

    Attributes:
        result: ``not_allowed`` by the user, or ``not_supported``.
        why: a sentence.
    """

    result: Literal["not_allowed", "not_supported"]
    why: str


def knob_for(
    farm: Farm,
    named: Mapping[str, Any],
    verdict: Mapping[str, Any],
    hosts: Mapping[str, Any],
    *,
    all_of_it: bool,
) -> Knob | Refused:
    """The knob of a resource that a verdict names.

    Args:
        farm: whose.
        named: one of the verdict's suspects, as in verdict.json.
        verdict: the verdict, for how much of it was used.
        hosts: the manifest's inventory.
        all_of_it: whether of all that it can do so much is to be left, else of what was used of it: a
            suspect is to feel it, a resource with room is not.
    """
    if not named.get("tier") and named["kind"] == "cpu":
        return Refused("not_supported", "which tier uses the shared cores was not measured")
    if not named.get("tier"):
        return Refused("not_supported", "what the verdict names lies outside of the farm")
    if str(named["kind"]).startswith("disk") and not named.get("role"):
        return Refused("not_supported", "it is a limit of all of a machine's disks together")
    if farm.embedded is None:
        found = allowed.knob(farm, named)
        return found if not isinstance(found, str) else Refused("not_allowed", found)
    why = NO_KNOB.get(str(named["kind"]))
    knob = why or built.knob(farm, named, verdict, hosts, RATIO, all_of_it=all_of_it)
    return knob if not isinstance(knob, str) else Refused("not_supported", knob)
