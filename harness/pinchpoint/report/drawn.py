"""The charts of a report as pictures, in reading order, for formats that hold pictures."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.report.brief import Gathered
from pinchpoint.report.charts import Chart, burst_chart, distribution_chart, level_charts
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.comparison_tables import figure_name
from pinchpoint.report.ratio_chart import ratio_chart
from pinchpoint.report.report import Report
from pinchpoint.report.timeline_chart import FIRST, both_timelines, marks_of, panel_chart

_BESIDE = 6
"""Charts beside the evidence: they have room on one page."""


def charts_of(report: Gathered) -> tuple[list[Chart], list[Chart]]:
    """The charts that belong beside the evidence, and all others."""
    match report:
        case Report():
            marks = marks_of(report.run.manifest, report.verdict, report.clock)
            panels = {
                panel.name: panel_chart(panel, report.clock, marks.get(panel.name))
                for panel in report.panels
                if panel.series
            }
            first = [panels.pop(name) for name in FIRST if name in panels]
            return first, [*panels.values(), *_of_load(report)]
        case ComparisonReport():
            labels = [side.label for side in report.sides]
            named = [{**one, "name": figure_name(one)} for one in report.content["changes"]]
            ratios = ratio_chart(labels[0], labels[1], named)
            pairs = [chart for pair in both_timelines(report.content) for chart in pair]
            return pairs[:_BESIDE], [*([ratios] if ratios else []), *pairs[_BESIDE:]]
    charts = [chart for part in report.parts for chart in part.charts]
    return charts[:_BESIDE], charts[_BESIDE:]


def _of_load(report: Report) -> Iterator[Chart]:
    verdict = report.verdict
    yield from level_charts(verdict.get("levels") or (), (verdict.get("knee") or {}).get("level"))
    for scenario in dict.fromkeys(each.scenario for each in report.distributions):
        yield distribution_chart(scenario, [one for one in report.distributions if one.scenario == scenario])
    for name, figures in (verdict.get("scenarios") or {}).items():
        if figures.get("bursts"):
            yield burst_chart(name, figures["bursts"])
