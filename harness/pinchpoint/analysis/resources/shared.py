"""Rules of resources other than CPU and disk: a table of figures judges each of them."""

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
"""Metric of facts that are derived from the number of operations and their times."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure that judges a shared resource.

    Attributes:
        of: function from the measurements to the value of the figure; None: not measured.
        says: sentence with ``{}`` for the value.
        metric: the series behind the figure.
        limit: threshold for the value.
        evidence: kind of evidence if the figure reaches its limit.
        required: whether there is no evidence at all unless the figure reaches its limit.
        excuses: whether there is no evidence at all if the figure reaches its limit.
        below: whether the figure reaches its limit by falling below it.
        instance: instance of the series.
        host: host of the series; None: the first host of the resource.
        show: formatter of the value.
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
        """Whether the figure was measured and reaches its limit."""
        value = self.of(measures)
        if value is None:
            return False
        return value < self.limit.value if self.below else value >= self.limit.value


class Shared(ResourceKind[ShareMeasures]):
    """A kind of resource that is neither CPU nor disk, judged by a table of figures.

    Attributes:
        called: name, with the placeholders ``{instance}``, ``{host}`` and ``{where}`` (`` of the sql tier
            (sql1)``).
        shown: sentence that shows the saturation, with the placeholders ``{used}``, ``{witness}``,
            ``{each_s}`` and ``{scenario}``.
        relieved: change that would relieve the resource, in words.
    """

    called: str
    shown: str
    relieved: str
    grows = False

    def measure(self, resource: Resource, rows: Rows) -> ShareMeasures:
        """The mean of each column of the resource over these rows."""
        figures = {name: mean(column[rows]) for name, column in resource.columns.items()}
        return ShareMeasures(**{"used": None, "witness": None, **figures})

    @abstractmethod
    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """The figures that judge the resource, the strongest first."""

    def waited_for(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> bool:
        """Whether a pressed scenario spends time at the tiers of the resource."""
        return any(flow.pressed and flow.share(tier) > 0 for flow in flows for tier in resource.tiers)

    def name(self, resource: Resource, measures: ShareMeasures) -> str:
        """Name of the resource in plain words."""
        tier, host = next(iter(resource.tiers), ""), next(iter(resource.hosts), "")
        where = f" of the {tier} tier ({host})" if tier else ""
        return self.called.format(where=where, host=host, instance=resource.instance)

    def proof(self, suspicion: Suspicion, measures: ShareMeasures) -> str:
        """The figure that shows the saturation, in words."""
        used, witness, each_s = units.percent(measures.used), units.percent(measures.witness), measures.each_s
        return self.shown.format(
            used=used, witness=witness, each_s=units.seconds(each_s), scenario=suspicion.resource.scenario
        )

    def excused(self, measures: ShareMeasures) -> str:
        """Why the resource is no bottleneck: its tier is busy itself, or no operation waits for it."""
        if at_least(measures.own, OWN_USE):
            return f"the called tier is busy itself ({units.percent(measures.own)} used)"
        return "no scenario waited there for long"

    def relief(self, resource: Resource) -> str:
        """The change that would relieve the resource, in words."""
        return self.relieved.format(instance=resource.instance)

    def judge(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> Suspicion | None:
        """E1 from utilisation, E4 from a second source; None unless all requirements are met."""
        figures = self.figures(resource)
        held = all(one.reached(measures) for one in figures if one.required)
        excused = any(one.reached(measures) for one in figures if one.excuses)
        if excused or not held or not self.waited_for(resource, measures, flows):
            return None
        evidence = frozenset(one.evidence for one in figures if one.reached(measures)) - {"context"}
        return Suspicion(resource, self.kind, evidence, measures) if evidence else None

    def facts(self, suspicion: Suspicion, measures: ShareMeasures) -> Iterator[Fact]:
        """The evidence as sentences, the strongest first. Figures that were not measured are left out."""
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
