"""Collects the inputs of advice: the bottleneck, the next limits, and the model that computes gains."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pinchpoint.analysis.capacity import Demand
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.model.applied import known_in
from pinchpoint.analysis.model.parts import CoresPart
from pinchpoint.analysis.model.prediction import ModelledRun, predict_change
from pinchpoint.analysis.model.settings import read_settings
from pinchpoint.analysis.output import others, reach
from pinchpoint.analysis.resources.base import Suspicion
from pinchpoint.analysis.resources.gain import SAME, Gain
from pinchpoint.analysis.resources.kinds import limit_words, owner
from pinchpoint.analysis.thresholds import exceeds
from pinchpoint.base.errors import InputError

NO_NEXT = "no other measured resource is used enough to say what would limit next"


@dataclass(frozen=True, slots=True)
class AdviceInputs:
    """The bottleneck, the demands of all resources (smallest ceiling first), and the model for gains."""

    case: Case
    first: Suspicion
    demands: tuple[Demand, ...]
    modelled: ModelledRun

    @property
    def now(self) -> float:
        """The throughput at which the bottleneck is saturated ÷ throughput now."""
        return reach(self.first, self.demands)

    @property
    def machine(self) -> Demand | None:
        """The demand for the limit that all disks of the bottleneck's machine share; None if not applicable.

        If the measured I/O exceeds the machine's limits, they are the limits of another machine.
        """
        attached = {role.attached for role in self.first.resource.roles}
        for one in self.demands:
            same = one.resource.machine == self.first.resource.machine and not exceeds(one.use)
            if one.resource.whole and same and attached & {r.attached for r in one.resource.roles}:
                return one if one.resource.key != self.first.resource.key else None
        return None

    @property
    def after(self) -> tuple[Demand, ...]:
        """The next bottlenecks, smallest ceiling first; for a disk also its machine, at any utilisation."""
        demands = others(self.first, self.demands)
        machine = self.machine
        if machine is None or machine in demands:
            return demands
        return tuple(sorted((*demands, machine), key=lambda one: one.ceiling_ratio))

    @property
    def need(self) -> float | None:
        """The multiple of the present throughput up to which no other resource limits; None if unknown."""
        result = self.after
        return result[0].ceiling_ratio if result else None

    def _words(self, demand: Demand) -> str:
        """The next bottleneck in words, with its host if the present bottleneck has the same name."""
        own = self.first.resource
        text = limit_words(demand.resource, demand.found)
        same_words = own.whole is None and text == limit_words(own, self.first.found)
        return f"{text} ({owner(demand.resource, demand.found)[1]})" if same_words else text

    def rounds(self, scenario: str | None, left: float) -> float:
        """How much faster users cycle if their operations take the share ``left`` of their present time.

        Think time stays the same.
        """
        flow = next((one for one in self.case.flows if one.load.scenario == scenario), None)
        takes_s, thinks_s = (flow.service.mean_s, flow.think_s) if flow and flow.service else (1.0, 0.0)
        return (takes_s + thinks_s) / (takes_s * left + thinks_s)

    @property
    def disk_target(self) -> str:
        """The ``what-if`` name of the bottleneck's disk."""
        role = self.first.resource.roles[0]
        return f"{role.tier}.{role.role}"

    def cpu_target(self, keys: Set[str]) -> str | None:
        """The ``what-if`` name of the CPU whose pools of cores are exactly ``keys``; None without a name."""
        pools = [part for part in self.modelled.measured.parts if isinstance(part, CoresPart)]
        allowed = {tier for part in pools if part.allowance for tier in part.tiers}
        first, _ = owner(self.first.resource, self.first.found)
        for tier in sorted(self.first.resource.tiers, key=lambda one: one != first):
            meant = {one.key for one in pools if tier in one.tiers and one.allowance == (tier in allowed)}
            if meant == keys:
                return f"{tier}.cpu"
        return None

    def by(self, *given: str) -> Gain | None:
        """The gain that ``what-if`` predicts for these settings; None without a prediction."""
        try:
            settings = read_settings(given, known_in(self.modelled.measured))
            result = predict_change(self.modelled, settings) if self.modelled.measured.seen else None
        except InputError:
            return None
        if result is None:
            return None
        one = max(result.scenarios, key=lambda each: each.ratio)
        then = result.binds_then
        limit = None if then.how == "nothing" else then.name
        return Gain(one.ratio - 1, limit, "; ".join(result.assumes), throughput=one, set=given)

    def asked_for(self, *given: str) -> Gain:
        """The gain that ``what-if`` predicts for these settings, or the reason why none can be predicted."""
        return self.by(*given) or self.unknown("the model has no part for it in this run")

    def unknown(self, why: str) -> Gain:
        """A gain that cannot be predicted, with the reason, and the next bottleneck if known."""
        return Gain(None, self.until().limit, why)

    def until(self, own: float | None = None, again: str = "", assumes: str = "") -> Gain:
        """The gain until the next bottleneck limits throughput.

        ``own`` is the ceiling of the improved resource itself as a multiple of the present throughput,
        ``again`` its name, and ``assumes`` the conditions of the gain.
        """
        ends = [(one.ceiling_ratio, self._words(one), one.assumes, one.levels > 1) for one in self.after]
        if own is not None:
            ends.append((own, again, assumes or SAME, True))
        if not ends:
            return Gain(None, None, NO_NEXT)
        ratio, limit, answer, bound = min(ends, key=lambda end: end[0])
        return Gain(
            max(0.0, ratio / self.now - 1),
            limit,
            "; ".join(dict.fromkeys([answer, assumes] if assumes else [answer])),
            bound,
        )
