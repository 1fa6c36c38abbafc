"""The pictures of a comparison: ratios with their intervals, and both sides over time, aligned on phase."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from pinchpoint.report.charts import LABELS, PALETTE, Chart, Datasets, decades, finished, svg_of

CALLS: Mapping[str, str] = {
    "better": "#009e73",
    "worse": "#d55e00",
    "changed": "#0072b2",
    "equivalent": "#444444",
    "inconclusive": "#9aa3ad",
    "not judged": "#c6ccd2",
}
"""What each call is drawn in; the shape says it as well."""
_SHAPES = ("triangle-up", "triangle-down", "diamond", "square", "circle", "cross")
_ROW = 24
_LETTER = 6.5  # the drawing does not know the page's font, and would cut names off
_WIDTH = 620
_HALF_WIDTH = 370
_LEGEND = 150
_LEGEND_MORE = 30  # of it, for a font that is wider on the page than in the drawing
_HEIGHT = 105
_AXIS = 58
_WIDEST = 1e3  # what lies further out is drawn at the edge


def ratio_chart(content: Mapping[str, Any]) -> Chart | None:
    """Every figure with an interval: other ÷ base, 1 in the middle; ``None`` when there is none."""
    rows = [_ratio_row(one) for one in content["changes"] if one["ci95"] and one["ratio"]]
    if not rows:
        return None
    rows.sort(key=lambda row: not row["declared"])
    title = f"How many times as much in {content['other']['label']} as in {content['base']['label']}"
    spec = _ratios(rows)
    return Chart("ratios", title, spec, svg_of(spec))


def _ratio_row(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = (min(max(end, 1 / _WIDEST), _WIDEST) for end in one["ci95"])
    margin = one["margin_ratio"] or 1.0
    return {
        "name": one["name"],
        "ratio": min(max(one["ratio"], 1 / _WIDEST), _WIDEST),
        "low": low,
        "high": high,
        "call": one["call"] or "not judged",
        "declared": one["declared"],
        "same_low": 1 / margin,
        "same_high": margin,
    }


def _ratios(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data = Datasets()
    named = data.named(rows)
    names = [row["name"] for row in rows]
    wide = max(map(len, names)) * _LETTER
    ends = [row[key] for row in rows for key in ("low", "high", "same_low", "same_high")]
    domain = [min(*ends, 0.9) / 1.05, max(*ends, 1.1) * 1.05]
    y = alt.Y("name:N", sort=names, axis=alt.Axis(title=None, labelLimit=wide, minExtent=wide, ticks=False))
    scale = alt.Scale(type="log", domain=domain, nice=False)
    axis = alt.Axis(title="other ÷ base (logarithmic)", values=_ticks(*domain), format="~g", grid=True)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    calls = [call for call in CALLS if any(row["call"] == call for row in rows)]
    colour = alt.Color(
        "call:N",
        scale=alt.Scale(domain=calls, range=[CALLS[call] for call in calls]),
        legend=alt.Legend(title=None, orient="top", symbolType="square"),
    )
    shape = alt.Shape(
        "call:N",
        scale=alt.Scale(domain=calls, range=[_SHAPES[list(CALLS).index(call)] for call in calls]),
        legend=None,
    )
    base = alt.Chart(named)
    judged = base.transform_filter("datum.declared")
    layers = (
        judged.mark_bar(color="#e8e8e8", height=_ROW - 4).encode(x=x("same_low"), x2="same_high:Q", y=y),
        alt.Chart(data.named([{"one": 1}])).mark_rule(color="#777").encode(x=x("one")),
        base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q", y=y, color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x("ratio"), y=y, color=colour, shape=shape),
    )
    return finished(alt.layer(*layers).properties(width=_WIDTH, height=_ROW * len(rows)), data)


def _ticks(low: float, high: float) -> list[float]:
    """Round ratios within the domain, 1 among them."""
    every = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
    every += [0.8, 0.9, 1.1, 1.25] if high / low < 4 else []
    return sorted(tick for tick in every if low <= tick <= high)


def timeline_chart(content: Mapping[str, Any]) -> Chart | None:
    """Both sides over time, base on the left; ``None`` where one of them kept none."""
    sides = [content["timelines"][name] for name in ("base", "other")]
    if not all(sides):
        return None
    names = dict.fromkeys(panel["name"] for side in sides for panel in side["panels"])
    if not names:
        return None
    data = Datasets()
    window = min(_from(side) for side in sides), max(_to(side) for side in sides)
    labels = [content[name]["label"] for name in ("base", "other")]
    rows = [
        _pair(name, sides, labels, window, data, first=place == 0, last=place == len(names) - 1)
        for place, name in enumerate(names)
    ]
    title = "Both sides over time, 0 s is where measuring begins; the first run of each side"
    stack = alt.vconcat(
        *rows, spacing=12, padding={"left": 5, "top": 5, "bottom": 5, "right": _LEGEND_MORE}
    ).resolve_scale(color="independent", strokeDash="independent")
    spec = finished(stack, data)
    return Chart("timelines", title, spec, svg_of(spec))


def _from(side: Mapping[str, Any]) -> float:
    return float(side["first_s"] - side["step_s"] / 2)


def _to(side: Mapping[str, Any]) -> float:
    return float(_from(side) + side["points"] * side["step_s"])


def _pair(
    name: str,
    sides: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    window: tuple[float, float],
    data: Datasets,
    *,
    first: bool,
    last: bool,
) -> alt.HConcatChart:
    """One quantity on both sides, on one scale."""
    panels = [next((one for one in side["panels"] if one["name"] == name), None) for side in sides]
    known = next(panel for panel in panels if panel)
    lines = list(
        dict.fromkeys((line["name"], line["style"]) for panel in panels if panel for line in panel["lines"])
    )
    y = _y(known, [value for panel in panels if panel for value in _values(panel)])
    charts = []
    for side, panel, label in zip(sides, panels, labels, strict=True):
        title = known["title"].split(" (")[0]
        shown = f"{label}: {title}" if panel else f"{label}: {title} (not measured)"
        layers = [
            *_phases(side, window, data, named=first),
            _lines(side, panel, lines, window, y, data, last=last),
        ]
        charts.append(
            alt.layer(*layers).properties(
                width=_HALF_WIDTH,
                height=_HEIGHT,
                title=alt.TitleParams(shown, frame="group", limit=_HALF_WIDTH + 40),
            )
        )
    both: alt.HConcatChart = alt.hconcat(*charts, spacing=16).resolve_scale(
        color="shared", strokeDash="shared"
    )
    return both


def _values(panel: Mapping[str, Any]) -> Iterator[float]:
    yield from (value for line in panel["lines"] for value in line["values"] if value is not None)


def _y(panel: Mapping[str, Any], values: Sequence[float]) -> alt.Y:
    positive = [value for value in values if value > 0]
    ticks: dict[str, Any] = {"tickCount": 4}
    scale = alt.Scale(domain=[0, max([*positive, 1e-9]) * 1.05], nice=True)
    if panel["logarithmic"] and positive:
        at = decades(positive)
        scale, ticks = alt.Scale(type="log", domain=[at[0], at[-1]]), {"values": at}
    axis = alt.Axis(
        title=None,
        labelExpr=LABELS[panel["axis"]],
        minExtent=_AXIS,
        maxExtent=_AXIS,
        labelOverlap=True,
        **ticks,
    )
    return alt.Y("v:Q", scale=scale, axis=axis)


def _lines(
    side: Mapping[str, Any],
    panel: Mapping[str, Any] | None,
    lines: Sequence[tuple[str, str]],
    window: tuple[float, float],
    y: alt.Y,
    data: Datasets,
    *,
    last: bool,
) -> alt.Chart:
    rows = list(_points(side, panel["lines"], logarithmic=panel["logarithmic"])) if panel else []
    names = [name for name, _ in lines]
    title = "seconds since measuring began" if last else None
    x = alt.X(
        "t:Q",
        scale=alt.Scale(domain=list(window), nice=False),
        axis=alt.Axis(title=title, labels=last, tickCount=8),
    )
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=_colours(lines)),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, labelLimit=_LEGEND),
        sort=names,
    )
    dashes = [[5, 3] if style == "dashed" else [1, 0] for _, style in lines]
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=dashes), sort=names)
    chart: alt.Chart = (
        alt.Chart(data.named(rows))
        .mark_line(strokeWidth=1.5, clip=True, point=alt.OverlayMarkDef(size=6, filled=True))
        .encode(x=x, y=y, color=colour, strokeDash=dash, detail="run:N")
    )
    return chart


def _colours(lines: Sequence[tuple[str, str]]) -> list[str]:
    """A dashed line directly after a solid one (p95 after p50) shares its colour."""
    colours: list[str] = []
    taken = 0
    for place, (name, style) in enumerate(lines):
        partner = style == "dashed" and " p" in name and place > 0 and lines[place - 1][1] == "solid"
        taken += not partner
        colours.append(PALETTE[(taken - 1) % len(PALETTE)])
    return colours


def _points(
    side: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], *, logarithmic: bool
) -> Iterator[dict[str, Any]]:
    """One row a point; ``run`` counts up where one is missing, so that no line crosses a gap."""
    for place, line in enumerate(lines):
        run = 0
        for at, value in enumerate(line["values"]):
            if value is None or (logarithmic and value <= 0) or not math.isfinite(value):
                run += 1
                continue
            t = side["first_s"] + at * side["step_s"]
            yield {"t": round(t, 3), "v": value, "name": line["name"], "run": f"{place}.{run}"}


def _phases(
    side: Mapping[str, Any], window: tuple[float, float], data: Datasets, *, named: bool
) -> list[alt.Chart]:
    """What is not measured is shaded."""
    rows = [
        {"from": max(begin, window[0]), "to": min(end, window[1]), "name": name.replace("_", "-")}
        for name, begin, end in side["phases"]
        if name != "measure" and min(end, window[1]) > max(begin, window[0])
    ]
    if not rows:
        return []
    base = alt.Chart(data.named(rows))
    shade = base.mark_rect(color="#8a8a8a", opacity=0.16).encode(x=alt.X("from:Q"), x2="to:Q")
    words = base.mark_text(align="left", dx=4, dy=8, color="#666", fontSize=10).encode(
        x="from:Q", y=alt.value(0), text="name:N"
    )
    return [shade, words] if named else [shade]
