"""The rules of resources other than CPU and disk: each is judged by a table of figures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.resources.base import Resource, ResourceKind, ShareMeasures, Suspicion, compared
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import OWN_USE, Threshold, at_least
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.data.series import mean

OF_OPERATIONS = "operations.service"
"""Facts that are derived from the number of operations and their times."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the figures by which a shared resource is judged.

    Attributes:
        of: the figure among what was measured.
        says: a sentence with ``{}`` for it.
        metric: the series it rests on.
        limit: what it is compared with.
        evidence: the kind of evidence it is where it reaches its limit.
        required: whether nothing speaks against the resource where it does not.
        excuses: whether nothing speaks against the resource where it does.
        below: whether values below the limit are good.
        instance: of the series.
        host: likewise; None: the first that the resource is on.
        show: how it is written.
    """

    of: Callable[[ShareMeasures], float | None]
    says: str
    metric: str
    limit: Threshold
    evidence: Literal["E1", "E4", "context"] = "context"
    required: bool = False
    excuses: bool = False
    below: bool = False
    instance: str = ""
    host: str | None = None
    show: Callable[[float | None], str] = units.percent

    def reached(self, measures: ShareMeasures) -> bool:
        """Whether it was measured and reaches its limit."""
        value = self.of(measures)
        if value is None:
            return False
        return value < self.limit.value if self.below else value >= self.limit.value


class Shared(ResourceKind[ShareMeasures]):
    """A kind of resource that is neither CPU nor disk.

    Attributes:
        called: its name, with ``{instance}``, ``{host}`` and ``{where}`` (`` of the sql tier (sql1)``).
        shown: what shows its saturation, with ``{used}``, ``{witness}``, ``{each_s}`` and ``{scenario}``.
        relieved: what would relieve it.
    """

    called: str
    shown: str
    relieved: str
    grows = False

    def measure(self, resource: Resource, rows: Rows) -> ShareMeasures:
        """The mean of each of its columns."""
        figures = {name: mean(column[rows]) for name, column in resource.columns.items()}
        return ShareMeasures(**{"used": None, "witness": None, **figures})

    @abstractmethod
    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """The figures that judge it, the strongest first."""

    def waited_for(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> bool:
        """Whether whoever waits for it, if anybody does, presses the farm."""
        return any(flow.pressed and flow.share(tier) > 0 for flow in flows for tier in resource.tiers)

    def name(self, resource: Resource, measures: ShareMeasures) -> str:
        """In plain words."""
        tier, host = next(iter(resource.tiers), ""), next(iter(resource.hosts), "")
        where = f" of the {tier} tier ({host})" if tier else ""
        return self.called.format(where=where, host=host, instance=resource.instance)

    def proof(self, suspicion: Suspicion, measures: ShareMeasures) -> str:
        """The figure that shows that it is saturated, in words."""
        used, witness, each_s = units.percent(measures.used), units.percent(measures.witness), measures.each_s
        return self.shown.format(
            used=used, witness=witness, each_s=units.seconds(each_s), scenario=suspicion.resource.scenario
        )

    def excused(self, measures: ShareMeasures) -> str:
        """A reason why it is not the bottleneck: it is busy itself, or no operation waits for it."""
        if at_least(measures.own, OWN_USE):
            return f"the called tier is busy itself ({units.percent(measures.own)} used)"
        return "no scenario waited there for long"

    def relief(self, resource: Resource) -> str:
        """The change that would relieve it."""
        return self.relieved.format(instance=resource.instance)

    def judge(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> Suspicion | None:
        """E1 from its use, E4 from a second source; nothing unless all requirements are met."""
        figures = self.figures(resource)
        held = all(one.reached(measures) for one in figures if one.required)
        excused = any(one.reached(measures) for one in figures if one.excuses)
        if excused or not held or not self.waited_for(resource, measures, flows):
            return None
        evidence = frozenset(one.evidence for one in figures if one.reached(measures)) - {"context"}
        return Suspicion(resource, self.kind, evidence, measures) if evidence else None

    def facts(self, suspicion: Suspicion, measures: ShareMeasures) -> Iterator[Fact]:
        """The evidence as sentences, the strongest first; what was not measured is left out."""
        return _facts(self.figures(suspicion.resource), suspicion.resource, measures)

    def witnesses(self, suspicion: Suspicion, measures: ShareMeasures) -> Iterator[Fact]:
        """The evidence from a second source."""
        others = (each for each in self.figures(suspicion.resource)[1:] if each.evidence != "context")
        return _facts(others, suspicion.resource, measures)


def _facts(figures: Iterable[Figure], resource: Resource, measures: ShareMeasures) -> Iterator[Fact]:
    for one in figures:
        value = one.of(measures)
        if value is None:
            continue
        host = next(iter(resource.hosts), "") if one.host is None else one.host
        of_load = one.metric.startswith("operations.")
        place = ("", resource.scenario) if of_load else (host, one.instance)
        evidence = one.evidence if one.required or one.reached(measures) else "context"
        yield compared(one.says.format(one.show(value)), one.metric, value, place, evidence, one.limit)
