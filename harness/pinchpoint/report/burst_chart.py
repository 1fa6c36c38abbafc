"""Bursts one by one: the latency each met, how long it took to recover, what came, was done and waited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from pinchpoint.report.charts import PALETTE, SECONDS, Chart, Datasets, decades, finished, svg_of
from pinchpoint.report.timeline import SHOW

Burst = Mapping[str, Any]
Rows = list[dict[str, Any]]

_WIDTH = 460
_TIMES_HEIGHT, _COUNTS_HEIGHT = 150, 90  # a decade of latencies needs room for its labels
_TIMES = {"p50": "p50_s", "p99": "p99_s", "time to recover": "recovery_s"}
_COUNTS = {
    "offered": "offered",
    "done": "done",
    "dropped": "dropped",
    "waiting at its end": "backlog",
}
"""What a legend says -> the key of a burst."""


def burst_chart(scenario: str, bursts: Sequence[Burst]) -> Chart:
    """Each burst of a scenario: what latency it met, how long it took to recover, what became of it."""
    data = Datasets()
    # Labels of many bursts would lie on one another.
    axis = alt.Axis(title="burst", labelAngle=0, labelOverlap="greedy")
    x = alt.X("number:O", axis=axis)
    both = alt.vconcat(_times(data, x, bursts), _counts(data, x, bursts))
    spec = finished(both.resolve_scale(color="independent"), data)
    return Chart(f"bursts-{scenario}", f"Bursts of {scenario}", spec, svg_of(spec))


def _times(data: Datasets, x: alt.X, bursts: Sequence[Burst]) -> alt.Chart:
    # A recovery within the first second is 0, which no logarithmic axis holds.
    rows = _rows(bursts, _TIMES, SHOW["latency"], above=0.0)
    shown = [row["value"] for row in rows if row["value"] is not None]
    ticks = decades(shown) if shown else []
    axis = alt.Axis(title="seconds (logarithmic)", labelExpr=SECONDS, values=ticks)
    y = alt.Y("value:Q", scale=alt.Scale(type="log", nice=False), axis=axis)
    chart: alt.Chart = (
        alt.Chart(data.named(rows))
        .mark_line(point=True)
        .encode(x=x, y=y, color=_colour(_TIMES, PALETTE), tooltip=_tooltip("latency"))
        .properties(width=_WIDTH, height=_TIMES_HEIGHT)
    )
    return chart


def _counts(data: Datasets, x: alt.X, bursts: Sequence[Burst]) -> alt.Chart:
    rows = _rows(bursts, _COUNTS, lambda count: f"{count:,.0f}")
    chart: alt.Chart = (
        alt.Chart(data.named(rows))
        .mark_line(point=True)
        .encode(
            x=x,
            y=alt.Y("value:Q", axis=alt.Axis(title="operations", tickCount=4)),
            color=_colour(_COUNTS, PALETTE[3:]),
            tooltip=_tooltip("operations"),
        )
        .properties(width=_WIDTH, height=_COUNTS_HEIGHT)
    )
    return chart


def _rows(
    bursts: Sequence[Burst], kinds: Mapping[str, str], show: Callable[[float], str], above: float = -1.0
) -> Rows:
    """A row per burst and kind: null, which breaks the line, where it was not measured or not ``above``."""
    rows: Rows = []
    for number, burst in enumerate(bursts, 1):
        for name, key in kinds.items():
            value = burst.get(key)
            if value is not None and value > above:
                rows.append({"number": number, "name": name, "value": value, "told": show(value)})
            else:
                rows.append({"number": number, "name": name, "value": None})
    return rows


def _colour(kinds: Mapping[str, str], palette: Sequence[str]) -> alt.Color:
    scale = alt.Scale(domain=list(kinds), range=list(palette[: len(kinds)]))
    return alt.Color("name:N", scale=scale, legend=alt.Legend(title=None, orient="top"))


def _tooltip(title: str) -> list[alt.Tooltip]:
    return [alt.Tooltip("name:N", title=title), alt.Tooltip("told:N", title="value")]
