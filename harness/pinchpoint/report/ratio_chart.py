"""Draws the figures of two sides as ratios, each with its interval and its verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pinchpoint.base.objects import JsonObject
from pinchpoint.report.charts import (
    ON_TOP,
    Chart,
    Datasets,
    Spec,
    coloured,
    drawn,
    end,
    field,
    layer,
    layered,
)

CALLS: Mapping[str, str] = {
    "better": "#009e73",
    "worse": "#d55e00",
    "changed": "#0072b2",
    "equivalent": "#444444",
    "inconclusive": "#9aa3ad",
    "higher or lower": "#7a4fa3",
    "no clear change": "#9aa3ad",
}
"""Colour of each verdict about a ratio; each verdict also has a shape. The last two are for figures that were
not declared."""
_SHAPES = ("triangle-up", "triangle-down", "diamond", "square", "circle", "diamond", "circle")
_CLEAR = frozenset({"better", "worse", "changed", "higher or lower"})
_ROW = 36
_BAND = 14
_WIDTH = 310  # the width of a phone
_WIDEST = 1e3  # values outside this range are drawn at the edge


def ratio_chart(base: str, other: str, changes: Iterable[JsonObject]) -> Chart | None:
    """Draw the ratio (other ÷ base) of every figure that has an interval; None if no figure has one."""
    rows = [_ratio_row(one) for one in changes if one["ci95"] and one["ratio"]]
    if not rows:
        return None
    rows.sort(key=lambda row: (not row["declared"], row["call"] not in _CLEAR, -abs(math.log(row["ratio"]))))
    return _ratios(f"{other} ÷ {base}", rows)


def _ratio_row(one: JsonObject) -> dict[str, Any]:
    low, high = (min(max(end, 1 / _WIDEST), _WIDEST) for end in one["ci95"])
    margin = one["margin_ratio"] or 1.0
    return {
        "name": one["name"],
        "ratio": min(max(one["ratio"], 1 / _WIDEST), _WIDEST),
        "low": low,
        "high": high,
        "call": one["call"] or ("higher or lower" if low > 1 or high < 1 else "no clear change"),
        "declared": one["declared"],
        "same_low": 1 / margin,
        "same_high": margin,
    }


def _ratios(title: str, rows: Sequence[JsonObject]) -> Chart:
    data = Datasets()
    ends = [row[key] for row in rows for key in ("low", "high", "same_low", "same_high")]
    domain = [min(*ends, 0.9) / 1.05, max(*ends, 1.1) * 1.05]
    y = field("name:N", sort=[row["name"] for row in rows], axis=None)  # names are drawn above the lines
    scale = {"type": "log", "domain": domain, "nice": False}
    axis = {"title": "ratio (logarithmic)", "values": _ticks(*domain), "format": "~g", "grid": True}

    def x(key: str) -> Spec:
        return field(f"{key}:Q", scale=scale, axis=axis)

    calls = [call for call in CALLS if any(row["call"] == call for row in rows)]
    colours, shapes = [CALLS[call] for call in calls], [_SHAPES[list(CALLS).index(call)] for call in calls]
    legend = {**ON_TOP, "symbolType": "square", "columns": 3, "columnPadding": 24}
    colour = coloured("call", calls, colours, legend=legend)
    named = data.named(rows)
    same = {"x": x("same_low"), "x2": end("same_high"), "y": y}
    declared = {"transform": [{"filter": "datum.declared"}]}
    interval = {"x": x("low"), "x2": end("high"), "y": y, "color": colour}
    above = {"x": {"value": 2}, "y": y, "text": field("name:N"), "color": {"value": "#444"}}
    point = {"x": x("ratio"), "y": y, "color": colour, "shape": coloured("call", calls, shapes, legend=None)}
    layers = [
        {**layer(named, "bar", same, color="#e8e8e8", height=_BAND), **declared},
        layer(data.named([{"one": 1}]), "rule", {"x": x("one")}, color="#777"),
        layer(named, "rule", interval, strokeWidth=2),
        layer(named, "point", point, filled=True, size=70, opacity=1),
        layer(named, "text", above, align="left", dy=-12, fontSize=11),
    ]
    return drawn("ratios", title, layered(layers, _WIDTH, _ROW * len(rows)), data)


def _ticks(low: float, high: float) -> list[float]:
    """Return round ratios within the range, including 1."""
    every = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
    every += [0.8, 0.9, 1.1, 1.25] if high / low < 4 else []
    return sorted(tick for tick in every if low <= tick <= high)
