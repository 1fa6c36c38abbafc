"""A trend as one page that needs no network: a chart per figure, the changes beside it."""

from __future__ import annotations

import html
from typing import Any

import altair as alt

from pinchpoint.base import units
from pinchpoint.report.charts import LABELS, PALETTE, Datasets, finished, svg_of
from pinchpoint.trend.text import NOTHING, figure, lone_words, zero_words
from pinchpoint.trend.trend import Line, Trend

_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2em;max-width:62em;color:#222}"
    "h2{font-size:1.05em;margin:1.6em 0 .3em}td,th{padding:.25em .8em;text-align:left;"
    "border-bottom:1px solid #ddd}.worse{color:#b00020;font-weight:600}.better{color:#00694c;font-weight:600}"
    "svg{max-width:100%;height:auto}table{display:block;overflow-x:auto}*{overflow-wrap:anywhere}"
    "@media(max-width:640px){body{margin:1em .8em}td,th{padding:.25em .4em}}"
)


def page(trend: Trend) -> str:
    """The whole page."""
    title = f"Trend of {html.escape(trend.plan)}"
    lone = (f"{one}: far from the runs before and after, and in no level" for one in lone_words(trend))
    notes = [*lone, *trend.warnings, *(f"not counted: {one}" for one in trend.left_out)]
    said = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    parts = "".join(map(_part, trend.lines)) or f"<p>{html.escape(NOTHING)}</p>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style>"
        f"<h1>{title}</h1>{parts}{f'<ul>{said}</ul>' if said else ''}</html>\n"
    )


def _part(line: Line) -> str:
    state = html.escape(line.why_not or ("" if line.changes else "no change of level"))
    zero = (
        f'<p class="worse">{html.escape(zero_words(line.zero_since))}: worse</p>' if line.zero_since else ""
    )
    rows = "".join(
        f"<tr><td>{html.escape(one.started)}</td><td>{html.escape(one.first)}</td>"
        f'<td class="{one.call}">{one.call}</td>'
        f"<td>{units.percent(one.ratio)}</td><td>{_span(one.ci95)}</td></tr>"
        for one in (*line.changes, *([line.drift] if line.drift else []))
    )
    head = "<tr><th>since</th><th>run</th><th>now</th><th>of before</th><th>95 % interval</th></tr>"
    table = f"<table>{head}{rows}</table>" if rows else f"<p>{state}</p>"
    return f"<h2>{html.escape(figure(line.key))}</h2>{chart(line)}{table}{zero}"


def _span(ci95: tuple[float, float] | None) -> str:
    return "not known" if ci95 is None else f"{units.percent(ci95[0])} to {units.percent(ci95[1])}"


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
