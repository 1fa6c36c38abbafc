"""Builds the page of a trend: a chart per figure, and its changes of level below the chart."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.report.charts import LABELS, PALETTE, Chart, Datasets, drawn, field, layer, layered
from pinchpoint.report.document import PlainReport, ReportPart
from pinchpoint.report.tables import Column, Table, columns
from pinchpoint.report.trend import NOTHING, figure, lone_words, zero_words
from pinchpoint.trend.trend import FigureTrend, Trend


def document(trend: Trend) -> PlainReport:
    """Build the report of a trend."""
    lone = (f"{one}: an outlier" for one in lone_words(trend))
    zero = (
        f"{figure(line.key)}: {zero_words(line.zero_since)}: worse" for line in trend.lines if line.zero_since
    )
    worse = ", ".join(map(_worse, trend.worse))
    return PlainReport(
        title=(f"Trend of {trend.plan}", "", ""),
        kind="Trend",
        summary=wording.Summary(
            (f"Worse: {worse}." if worse else "No figure became worse.") if trend.lines else NOTHING
        ),
        parts=tuple(
            ReportPart(
                f"line-{number}",
                wording.capitalised(figure(line.key)),
                (chart(line),),
                (_changes(line, number),),
            )
            for number, line in enumerate(trend.lines)
        ),
        content=trend.to_json(),
        notes=(*zero, *lone, *trend.warnings, *(f"not counted: {one}" for one in trend.left_out)),
    )


def _worse(line: FigureTrend) -> str:
    """Return a figure that became worse, with both levels.

    Example: ``throughput of orders on dev (201/s → 160/s)``.
    """
    last = next((change for change in reversed(line.changes) if change.call == "worse"), line.drift)
    if last is None:
        return figure(line.key)
    levels = (units.of_metric(line.key.metric, value) for value in (last.before_value, last.after_value))
    return f"{figure(line.key)} ({' → '.join(levels)})"


def _changes(line: FigureTrend, number: int) -> Table:
    return Table(
        f"changes-{number}",
        "Changes of level",
        columns(
            "first: from run",
            Column("started", "since", lambda stamp: str(day_and_time(stamp))),
            "call: change",
            "ratio: new level / old level",
            Column("ci95", "95 % interval", _interval, "not known"),
        ),
        [asdict(one) for one in (*line.changes, *((line.drift,) if line.drift else ()))],
        note="In the chart: dots are runs, the line is the level, a dashed line is a change.",
        empty=f"{wording.capitalised(line.why_not or 'no change of level')}.",
    )


def _interval(ends: tuple[float, float]) -> str:
    return " to ".join(map(units.percent, ends))


def chart(line: FigureTrend) -> Chart:
    """Draw the value of each run over time, with the levels and the changes of level."""
    rows: list[dict[str, Any]] = [
        {"started": entry.started, "value": entry.value, "level": _level(line, place)}
        for place, entry in enumerate(line.entries)
    ]
    data = Datasets()
    runs, x = data.named(rows), field("started:T", axis={"title": None}, scale={"type": "utc"})
    axis = {
        "title": None,
        "tickCount": 5,
        "labelExpr": LABELS["rate" if line.key.metric.endswith("_per_s") else "latency"],
    }
    value = {"x": x, "y": field("value:Q", axis=axis, scale={"zero": True})}
    level = {"x": x, "y": field("level:Q")}
    layers = [
        layer(runs, "point", value, filled=True, size=45, color=PALETTE[0]),
        layer(runs, "line", level, interpolate="step-after", color=PALETTE[1], strokeWidth=1.6),
    ]
    if line.changes:
        changes = data.named([{"at": one.started} for one in line.changes])
        layers.append(layer(changes, "rule", {"x": field("at:T")}, strokeDash=[4, 3], color="#666"))
    name = "-".join((line.key.farm, line.key.about, line.key.metric))
    return drawn(name, wording.capitalised(figure(line.key)), layered(layers, 760, 180), data)


def _level(line: FigureTrend, place: int) -> float:
    """Return the median of the level that a run belongs to."""
    level = line.changes[0].before_value if line.changes else line.level
    for change in line.changes:
        if place >= change.at:
            level = change.after_value
    return level
