"""Bursts one by one: the latency each met, how long it took to recover, what waited at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pinchpoint.report.charts import PALETTE, SECONDS, Chart, Datasets, decades, finished, svg_of
from pinchpoint.report.timeline import SHOW

_WIDTH = 460
_HEIGHTS = 150, 59  # of the latencies, where a decade needs room for its labels, and of what waited


def burst_chart(scenario: str, bursts: Sequence[Mapping[str, Any]]) -> Chart:
    """Each burst of a scenario: what latency it met, what waited at its end, how long it took to recover."""
    spec = _bursts(bursts)
    return Chart(f"bursts-{scenario}", f"Bursts of {scenario}", spec, svg_of(spec))


def _bursts(bursts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data = Datasets()
    x = alt.X("number:O", axis=alt.Axis(title="burst", labelAngle=0))
    latencies = [
        {"number": number, "name": name, "value": burst[key], "told": SHOW["latency"](burst[key])}
        for number, burst in enumerate(bursts, 1)
        for name, key in (("p50", "p50_s"), ("p99", "p99_s"), ("time to recover", "recovery_s"))
        if burst.get(key)  # a recovery within the first second is 0, which no logarithmic axis holds
    ]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=["p50", "p99", "time to recover"], range=list(PALETTE[:3])),
        legend=alt.Legend(title=None, orient="top"),
    )
    ticks = decades([row["value"] for row in latencies]) if latencies else []
    axis = alt.Axis(title="seconds (logarithmic)", labelExpr=SECONDS, values=ticks)
    lines = (
        alt.Chart(data.named(latencies))
        .mark_line(point=True)
        .encode(
            x=x,
            y=alt.Y("value:Q", scale=alt.Scale(type="log", nice=False), axis=axis),
            color=colour,
            tooltip=[alt.Tooltip("name:N", title="latency"), alt.Tooltip("told:N", title="value")],
        )
        .properties(width=_WIDTH, height=_HEIGHTS[0])
    )
    waiting = [
        {"number": number, "value": burst["backlog"]}
        for number, burst in enumerate(bursts, 1)
        if burst.get("backlog") is not None
    ]
    bars = (
        alt.Chart(data.named(waiting))
        .mark_bar(color=PALETTE[4])
        .encode(x=x, y=alt.Y("value:Q", axis=alt.Axis(title="waiting at its end", tickCount=3)))
        .properties(width=_WIDTH, height=_HEIGHTS[1])
    )
    return finished(alt.vconcat(lines, bars), data)
