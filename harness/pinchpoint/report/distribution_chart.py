"""How long operations took: the share of them by latency, p50, p95 and p99 marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from pinchpoint.report.charts import PALETTE, SECONDS, Chart, Datasets, decades, digits, finished, svg_of
from pinchpoint.report.latency import Distribution
from pinchpoint.report.timeline import SHOW


def distribution_chart(scenario: str, kinds: Sequence[Distribution]) -> Chart:
    """How long the operations of one scenario took, on a logarithmic axis."""
    spec = _distribution(scenario, kinds)
    return Chart(f"latency-{scenario}", f"Latency of {scenario}", spec, svg_of(spec))


def _distribution(scenario: str, kinds: Sequence[Distribution]) -> dict[str, Any]:
    data = Datasets()
    names = [f"{each.kind} time" for each in kinds]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)])),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3),
    )
    bars, marks = _bars(names, kinds), _marks(names, kinds)
    edges = [edge for each in kinds for edge in each.bins]
    ticks = decades([edge.from_s for edge in edges] + [edge.to_s for edge in edges])
    axis = alt.Axis(
        title="latency (logarithmic)", labelExpr=SECONDS, grid=True, values=ticks, labelOverlap=True
    )
    x = alt.X("from:Q", scale=alt.Scale(type="log", nice=False), axis=axis)
    y = alt.Y("ratio:Q", stack=None, axis=alt.Axis(title="share of operations", format=".0%", tickCount=4))
    tips = [
        alt.Tooltip("name:N", title="time"),
        alt.Tooltip("range:N", title="latency"),
        alt.Tooltip("share:N", title="operations"),
    ]
    encoded = {"x": x, "x2": "to:Q", "y": y, "y2": alt.datum(0), "color": colour, "tooltip": tips}
    # The first kind is filled, the second drawn as an outline: where they agree, both still show.
    columns = [
        alt.Chart(data.named([bar for bar in bars if bar["name"] == name]))
        .mark_rect(filled=place == 0, opacity=0.45 if place == 0 else 1.0, strokeWidth=1.3)
        .encode(**encoded)
        for place, name in enumerate(names)
    ]
    rules = (
        alt.Chart(data.named(marks))
        .mark_rule(strokeDash=[4, 3], strokeWidth=1.4)
        .encode(x="at:Q", color=colour, tooltip=alt.Tooltip("told:N", title=scenario))
    )
    words = (
        alt.Chart(data.named([mark for mark in marks if mark["name"] == names[-1]]))
        .mark_text(dy=-6, fontSize=10, color="#333")
        .encode(x="at:Q", y=alt.value(0), text="word:N")
    )
    return finished(alt.layer(*columns, rules, words).properties(width=460, height=170), data)


def _bars(names: Sequence[str], kinds: Sequence[Distribution]) -> list[dict[str, Any]]:
    """A row a bin of each kind's histogram."""
    show = SHOW["latency"]
    return [
        {
            "name": name,
            "from": edge.from_s,
            "to": edge.to_s,
            "ratio": digits(edge.ratio),
            "range": f"{show(edge.from_s)} to {show(edge.to_s)}",
            "share": SHOW["ratio"](edge.ratio),
        }
        for name, each in zip(names, kinds, strict=True)
        for edge in each.bins
    ]


def _marks(names: Sequence[str], kinds: Sequence[Distribution]) -> list[dict[str, Any]]:
    """The percentiles of each kind, in words too."""
    return [
        {"name": name, "at": value, "word": word, "told": f"{word} {SHOW['latency'](value)}"}
        for name, each in zip(names, kinds, strict=True)
        for word, value in (("p50", each.p50_s), ("p95", each.p95_s), ("p99", each.p99_s))
    ]
