"""A trend as one page that needs no network: a chart per figure, the changes beside it."""

from __future__ import annotations

from typing import Any

import altair as alt

from pinchpoint.report.charts import LABELS, PALETTE, Datasets, finished, svg_of
from pinchpoint.report.html import environment
from pinchpoint.trend.text import NOTHING, figure, lone_words, zero_words
from pinchpoint.trend.trend import Line, Trend


def page(trend: Trend) -> str:
    """The whole page."""
    lone = (f"{one}: far from the runs before and after, and in no level" for one in lone_words(trend))
    return (
        environment()
        .get_template("trend.html.j2")
        .render(
            trend=trend,
            notes=[*lone, *trend.warnings, *(f"not counted: {one}" for one in trend.left_out)],
            nothing=NOTHING,
            figure=figure,
            zero_words=zero_words,
            chart=chart,
        )
    )


def chart(line: Line) -> str:
    """Every run's value over time as SVG, with the levels and where they changed."""
    rows: list[dict[str, Any]] = [
        {"started": entry.started, "value": entry.value, "level": _level(line, place)}
        for place, entry in enumerate(line.entries)
    ]
    data = Datasets()
    base = alt.Chart(data.named(rows)).encode(
        x=alt.X("started:T", axis=alt.Axis(title=None), scale=alt.Scale(type="utc"))
    )
    y = alt.Axis(
        title=None, tickCount=5, labelExpr=LABELS["rate" if line.key.metric.endswith("_per_s") else "latency"]
    )
    levels = base.mark_line(interpolate="step-after", color=PALETTE[1], strokeWidth=1.6).encode(y="level:Q")
    points = base.mark_point(filled=True, size=45, color=PALETTE[0]).encode(
        y=alt.Y("value:Q", axis=y, scale=alt.Scale(zero=True))
    )
    rules = (
        alt.Chart(data.named([{"at": one.started} for one in line.changes]))
        .mark_rule(strokeDash=[4, 3], color="#666")
        .encode(x="at:T")
    )
    layers = [points, levels, rules] if line.changes else [points, levels]
    return svg_of(finished(alt.layer(*layers).properties(width=760, height=180), data))


def _level(line: Line, place: int) -> float:
    """The median of the level that a run belongs to."""
    level = line.changes[0].before_value if line.changes else line.level
    for change in line.changes:
        if place >= change.at:
            level = change.after_value
    return level
