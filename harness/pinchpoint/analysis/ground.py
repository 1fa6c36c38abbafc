"""What advice stands on: the bottleneck, what would limit after it, and how a piece of advice is put."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinchpoint.analysis.capacity import SAME, Demand
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.output import others, reach
from pinchpoint.analysis.resources.base import Measures, Resource, Suspicion
from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.analysis.resources.kinds import owner
from pinchpoint.analysis.thresholds import exceeds
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import wording

NO_NEXT = "no other measured resource is used enough to say what would limit next"
NOTHING = 0.005
"""Gains below half a per cent are none."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What lifting a limit brings.

    Attributes:
        ratio: at most so much more throughput; None where that is not known.
        limit: what limits then, in words; None where that is not known.
        assumes: what must stay as it is, or why it is not known.
    """

    ratio: float | None
    limit: str | None
    assumes: str


@dataclass(frozen=True, slots=True)
class Ground:
    """The bottleneck, and the demand of all resources, the smallest ceiling first."""

    case: Case
    first: Suspicion
    demands: tuple[Demand, ...]

    @property
    def now(self) -> float:
        """The throughput at which the bottleneck is used up ÷ throughput now."""
        return reach(self.first, self.demands)

    @property
    def machine(self) -> Demand | None:
        """All disks together of the machine a disk is in, where its caps are known and hold for that disk.

        Caps that are exceeded already are those of another machine.
        """
        attached = {role.attached for role in self.first.resource.roles}
        for one in self.demands:
            same = one.resource.machine == self.first.resource.machine and not exceeds(one.use)
            if one.resource.whole and same and attached & {r.attached for r in one.resource.roles}:
                return one if one.resource.key != self.first.resource.key else None
        return None

    @property
    def after(self) -> tuple[Demand, ...]:
        """What would limit next, the smallest ceiling first; of a disk its machine, used much or little."""
        found = others(self.first, self.demands)
        machine = self.machine
        if machine is None or machine in found:
            return found
        return tuple(sorted((*found, machine), key=lambda one: one.ceiling_ratio))

    @property
    def need(self) -> float | None:
        """Up to so many times the throughput now nothing else limits; None where that is not known."""
        found = self.after
        return found[0].ceiling_ratio if found else None

    def _words(self, one: Demand) -> str:
        """What limits then; the host, too, where it is called as what limits now."""
        own = self.first.resource
        text = limit_words(one)
        same = own.whole is None and own.type == one.resource.type
        alike = same and text == f"{_thing(own)}{_of(own, self.first.found)}"
        return f"{text} ({owner(one.resource, one.found)[1]})" if alike else text

    def rounds(self, scenario: str | None, left: float) -> float:
        """How many times as often users come round whose operations take only ``left`` of what they take now.

        What they think stays.
        """
        flow = next((one for one in self.case.flows if one.load.scenario == scenario), None)
        takes_s, thinks_s = (flow.service.mean_s, flow.think_s) if flow and flow.service else (1.0, 0.0)
        return (takes_s + thinks_s) / (takes_s * left + thinks_s)

    def until(self, own: float | None = None, again: str = "", assumes: str = "") -> Gain:
        """The gain until something else limits, or ``again`` the same at ``own`` times the throughput now."""
        ends = [(one.ceiling_ratio, self._words(one), one.assumes) for one in self.after]
        if own is not None:
            ends.append((own, again, assumes or SAME))
        if not ends:
            return Gain(None, None, NO_NEXT)
        ratio, limit, said = min(ends, key=lambda end: end[0])
        return Gain(
            max(0.0, ratio / self.now - 1),
            limit,
            "; ".join(dict.fromkeys([said, assumes] if assumes else [said])),
        )


def limit_words(one: Demand) -> str:
    """A resource in the words of advice: ``the index disk of search``, ``the CPU of sql``."""
    resource = one.resource
    if resource.whole is not None:
        limits = resource.limits
        caps = limits_words(limits.iops, limits.bytes_per_s) if limits else ""
        return f"the machine {resource.hosts[0]} ({resource.instance}: {caps} for all its disks)"
    return f"{_thing(resource)}{_of(resource, one.found)}"


def _thing(resource: Resource) -> str:
    named = {
        "cpu": "the CPU",
        "allowance": "the CPU allowed",
        "thread": f"the thread {resource.instance.removeprefix('thread:')}",
        "disk": f"the {resource.role} disk",
        "network": f"the network interface {resource.instance}",
        "pool": f"the number of {resource.instance}",
    }
    return named[resource.type]


def _of(resource: Resource, found: Measures) -> str:
    tier, host = owner(resource, found)
    if resource.type == "cpu" and len(resource.tiers) > 1:
        return f" shared by {wording.listed(resource.tiers)}"
    return f" of {host if resource.type == 'network' else tier}"


def advise(
    kind: Kind,
    target: str,
    what: str,
    gain: Gain,
    source: Mapping[str, str] | None = None,
    text: str = "",
) -> Advice:
    """One piece of advice, with all of it as a sentence (``Add CPUs to search: up to +38 %; then ...``)."""
    return Advice(kind, target, what, gain.ratio, gain.limit, gain.assumes, source, text or _text(what, gain))


def _text(what: str, gain: Gain) -> str:
    if gain.ratio is None:
        return f"{what}. Gain: not known: {gain.assumes}."
    if gain.ratio < NOTHING:
        by = f": {gain.limit} is saturated as well" if gain.limit else ""
        return f"{what}: alone it gains nothing{by}."
    then = f"; then {gain.limit} limits" if gain.limit else ""
    return f"{what}: {wording.up_to(gain.ratio, gain.assumes)}{then}."
