"""Draws the charts of a report for the formats that show charts as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.base.groups import by_key
from pinchpoint.data.latency import Distribution
from pinchpoint.report.brief import Gathered, level_plots
from pinchpoint.report.charts import Chart, burst_chart, distribution_chart, level_chart
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.comparison_tables import figure_name
from pinchpoint.report.ratio_chart import ratio_chart
from pinchpoint.report.report import Report
from pinchpoint.report.timeline_chart import FIRST, both_timelines, marks_of, panel_chart

_BESIDE = 6
"""Largest number of charts beside the evidence; they fit on one page."""


def charts_of(report: Gathered) -> tuple[list[Chart], list[Chart]]:
    """Return two lists: the charts beside the evidence, and all other charts."""
    match report:
        case Report():
            panels = panel_charts(report)
            first = [panels.pop(name) for name in FIRST if name in panels]
            return first, [
                *panels.values(),
                *step_charts(report),
                *(chart for chart, _ in latency_charts(report)),
                *burst_charts(report),
            ]
        case ComparisonReport():
            ratios = ratios_of(report)
            pairs = [chart for pair in both_timelines(report.content) for chart in pair]
            return pairs[:_BESIDE], [*([ratios] if ratios else []), *pairs[_BESIDE:]]
    charts = [chart for part in report.parts for chart in part.charts]
    return charts[:_BESIDE], charts[_BESIDE:]


def panel_charts(report: Report) -> dict[str, Chart]:
    """Return panel name -> chart, for each panel with values."""
    marks = marks_of(report.run.manifest, report.verdict, report.clock)
    return {
        panel.name: panel_chart(panel, report.clock, marks.get(panel.name))
        for panel in report.panels
        if panel.series
    }


def step_charts(report: Report) -> list[Chart]:
    """Return charts of throughput and p95 over the load levels; empty if the load has no levels."""
    knee = (report.verdict.get("knee") or {}).get("level")
    return [
        level_chart(
            one.name, one.title, one.axis, one.x, {line.name: line.points for line in one.lines}, knee
        )
        for one in level_plots(report)
    ]


def latency_charts(report: Report) -> list[tuple[Chart, list[Distribution]]]:
    """Return for each scenario a chart of its latency distributions, with the distributions."""
    by_scenario = by_key((each.scenario, each) for each in report.distributions)
    return [(distribution_chart(scenario, kinds), kinds) for scenario, kinds in by_scenario.items()]


def burst_charts(report: Report) -> list[Chart]:
    """Return a chart for each scenario with bursts."""
    scenarios: Mapping[str, Mapping[str, Any]] = report.verdict.get("scenarios") or {}
    return [
        burst_chart(name, figures["bursts"]) for name, figures in scenarios.items() if figures.get("bursts")
    ]


def ratios_of(report: ComparisonReport) -> Chart | None:
    """Draw the ratio (other side ÷ base side) of each change. Return None if no ratio can be drawn."""
    base, other = report.sides
    named = [{**one, "name": figure_name(one)} for one in report.content["changes"]]
    return ratio_chart(base.label, other.label, named)
