"""What advice stands on: the bottleneck, what would limit after it, and how a piece of advice is put."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from pinchpoint.analysis.capacity import SAME, Demand
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.model.applied import known_in
from pinchpoint.analysis.model.ask import Asked, ask
from pinchpoint.analysis.model.parts import Cores
from pinchpoint.analysis.model.prediction import Throughput
from pinchpoint.analysis.model.settings import read_settings
from pinchpoint.analysis.output import others, reach
from pinchpoint.analysis.resources.base import Suspicion
from pinchpoint.analysis.resources.kinds import limit_words, owner
from pinchpoint.analysis.thresholds import exceeds
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import wording
from pinchpoint.base.errors import InputError

NO_NEXT = "no other measured resource is used enough to say what would limit next"
NOTHING = 0.005
"""Gains below half a per cent are none."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What lifting a limit brings.

    Attributes:
        ratio: at most this much more throughput; None where that is not known.
        limit: what limits then, in words; None where that is not known.
        assumes: what must stay as it is, or why it is not known.
        asked: the scenario that gains most, where the model was asked; None: the ratio is a bound.
        set: what it was asked, as ``what-if`` is.
    """

    ratio: float | None
    limit: str | None
    assumes: str
    asked: Throughput | None = None
    set: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """The bottleneck, the demand of all resources, the smallest ceiling first, and the model to ask."""

    case: Case
    first: Suspicion
    demands: tuple[Demand, ...]
    asked: Asked

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
        """Up to this multiple of the throughput now nothing else limits; None where that is not known."""
        found = self.after
        return found[0].ceiling_ratio if found else None

    def _words(self, one: Demand) -> str:
        """What limits then; the host, too, where it is called as what limits now."""
        own = self.first.resource
        text = limit_words(one.resource, one.found)
        alike = own.whole is None and text == limit_words(own, self.first.found)
        return f"{text} ({owner(one.resource, one.found)[1]})" if alike else text

    def rounds(self, scenario: str | None, left: float) -> float:
        """How many times as often users come round whose operations take only ``left`` of what they take now.

        What they think stays.
        """
        flow = next((one for one in self.case.flows if one.load.scenario == scenario), None)
        takes_s, thinks_s = (flow.service.mean_s, flow.think_s) if flow and flow.service else (1.0, 0.0)
        return (takes_s + thinks_s) / (takes_s * left + thinks_s)

    @property
    def disk_target(self) -> str:
        """The disk that is the bottleneck as ``what-if`` calls it."""
        role = self.first.resource.roles[0]
        return f"{role.tier}.{role.role}"

    def cpu_target(self, keys: Set[str]) -> str | None:
        """Pools of cores as ``what-if`` calls them; None where it cannot change these alone."""
        pools = [part for part in self.asked.measured.parts if isinstance(part, Cores)]
        allowed = {tier for part in pools if part.allowance for tier in part.tiers}
        first, _ = owner(self.first.resource, self.first.found)
        for tier in sorted(self.first.resource.tiers, key=lambda one: one != first):
            meant = {one.key for one in pools if tier in one.tiers and one.allowance == (tier in allowed)}
            if meant == keys:
                return f"{tier}.cpu"
        return None

    def by(self, *given: str) -> Gain | None:
        """What ``what-if`` says of these settings; None where it has no answer."""
        try:
            settings = read_settings(given, known_in(self.asked.measured))
            found = ask(self.asked, settings) if self.asked.measured.seen else None
        except InputError:
            return None
        if found is None:
            return None
        one = max(found.scenarios, key=lambda each: each.ratio)
        then = found.binds_then
        limit = None if then.how == "nothing" else then.name
        return Gain(one.ratio - 1, limit, "; ".join(found.assumes), one, given)

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


def advise(
    kind: Kind,
    target: str,
    what: str,
    gain: Gain,
    source: Mapping[str, str] | None = None,
    text: str = "",
) -> Advice:
    """One piece of advice, with all of it as a sentence (``Add CPUs to search: up to +38 %; then ...``)."""
    text = text or _text(what, gain)
    if gain.asked is None:
        return Advice(kind, target, what, gain.ratio, gain.limit, gain.assumes, source, text)
    one = gain.asked
    return Advice(
        kind,
        target,
        what,
        gain.ratio,
        gain.limit,
        gain.assumes,
        source,
        text,
        set=gain.set,
        interval_ratio=(one.low_ratio - 1, one.high_ratio - 1),
        scenario=one.scenario,
    )


def _text(what: str, gain: Gain) -> str:
    if gain.ratio is None:
        return f"{what}. Gain: not known: {gain.assumes}."
    if gain.asked is not None:
        one = gain.asked
        more = wording.gains(one.ratio - 1, one.low_ratio - 1, one.high_ratio - 1)
        then = f"; then {gain.limit} limits" if gain.limit else "; then the whole requested load is done"
        return f"{what}: {more} of {one.scenario}{then} (what-if --set {' --set '.join(gain.set)})."
    if gain.ratio < NOTHING:
        by = f": {gain.limit} is saturated as well" if gain.limit else ""
        return f"{what}: alone it gains nothing{by}."
    then = f"; then {gain.limit} limits" if gain.limit else ""
    return f"{what}: {wording.up_to(gain.ratio, gain.assumes)}{then}."
