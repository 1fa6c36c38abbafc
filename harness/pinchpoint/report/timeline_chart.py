"""A run over time, or two beside each other: panels under each other on one time axis, phases shaded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from pinchpoint.data.recorded import SamplePoint
from pinchpoint.data.timeaxis import Clock, day_and_time
from pinchpoint.data.timeline import Panel, TimelineSeries
from pinchpoint.report.charts import (
    LABEL_LIMIT,
    LABELS,
    PALETTE,
    SHOW,
    Chart,
    Datasets,
    decades,
    digits,
    finished,
    svg_of,
)
from pinchpoint_collectors.common.times import utc

_AXIS_WIDTH = 62  # the same for every panel, so that their plots start at the same place
_WIDTH = 780
_NARROW, _LETTER = 390, 6  # a narrow window's chart, and a letter of a phase's name in it
_HEIGHT = 118
_LONG_S = 3 * 3600
_STEPS_S = (1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800)
_TICKS = 14
_LOG_HEIGHT = 150  # a decade needs room for its labels
_HALF_WIDTH, _HALF_HEIGHT = 370, 105
_LEGEND = 150
_LEGEND_MORE = 30  # of it, for a font that is wider on the page than in the drawing


def timeline_chart(panels: Sequence[Panel], clock: Clock) -> Chart | None:
    """All panels under each other on one time axis, phases shaded; ``None`` when there is nothing to draw."""
    drawn = [panel for panel in panels if panel.series]
    if not drawn:
        return None
    spec = _stack(drawn, clock)
    return Chart("timeline", "Timeline: load, latency and the tiers' key metrics", spec, svg_of(_still(spec)))


def _stack(panels: Sequence[Panel], clock: Clock) -> dict[str, Any]:
    data = Datasets()
    rows = [
        _panel(panel, clock, data, first=place == 0, last=place == len(panels) - 1)
        for place, panel in enumerate(panels)
    ]
    return finished(
        alt.vconcat(*rows, spacing=14).resolve_scale(color="independent", strokeDash="independent"), data
    )


def _still(stack: Mapping[str, Any]) -> dict[str, Any]:
    """The stack without what answers a pointer, each panel's last layer: building it anew takes seconds."""
    panels = [{**panel, "layer": panel["layer"][:-1]} for panel in stack["vconcat"]]
    return {**{key: value for key, value in stack.items() if key != "params"}, "vconcat": panels}


Span = tuple[str, float, float]
"""A phase's name, begin and end on the time axis."""


def _panel(
    panel: Panel, clock: Clock, data: Datasets, *, first: bool, last: bool
) -> alt.LayerChart | alt.FacetChart:
    window = 0.0, max(clock.length_s, 1.0)
    x = _time(window, _time_axis(clock, last=last))
    spans = [(phase.name, phase.from_s, phase.to_s) for phase in clock.phases]
    lines = _lines(panel, panel, clock.bucket_s, data, x)
    layers = (*_phases(spans, window, _NARROW, data, named=first), *lines, _hover(panel, clock, data))
    return alt.layer(*layers).properties(
        width=_WIDTH,
        height=_LOG_HEIGHT if panel.logarithmic else _HEIGHT,
        title=alt.TitleParams(panel.title, frame="group"),
    )


def _time(window: tuple[float, float], axis: alt.Axis) -> alt.X:
    return alt.X("t:Q", scale=alt.Scale(domain=list(window), nice=False), axis=axis)


def _time_axis(clock: Clock, *, last: bool) -> alt.Axis:
    """Seconds; of what went on for hours these, or halves of one. Only the lowest panel's is labelled."""
    since = f"since the {'recording' if clock.alone else 'load'} began"
    if clock.length_s <= _LONG_S:
        return alt.Axis(title=f"seconds {since}" if last else None, labels=last, tickCount=12, grid=True)
    step_s = next((each for each in _STEPS_S if clock.length_s / each <= _TICKS), _STEPS_S[-1])
    ticks = [float(at) for at in range(0, math.floor(clock.length_s) + 1, step_s)]
    at = day_and_time(utc(round(clock.start_s * 1e9)))
    return alt.Axis(
        title=f"hours {since}, at {at}" if last else None,
        labels=last,
        labelExpr="datum.value / 3600",
        values=ticks,
        grid=True,
    )


def _phases(
    spans: Iterable[Span], window: tuple[float, float], width: int, data: Datasets, *, named: bool
) -> list[alt.Chart]:
    """Everything that is not the measure phase is shaded; the first panel also names the phases."""
    letter_s = (window[1] - window[0]) * _LETTER / width
    rows = [
        {
            "from": (from_s := max(begin, window[0])),
            "to": (to_s := min(end, window[1])),
            "name": name,
            # One that its phase has no room for would lie over the next one's.
            "shown": name.replace("_", "-") if to_s - from_s >= len(name) * letter_s else "",
        }
        for name, begin, end in spans
        if min(end, window[1]) > max(begin, window[0])
    ]
    if not rows:
        return []
    base = alt.Chart(data.named(rows))
    shade = (
        base.transform_filter("datum.name != 'measure'")
        .mark_rect(color="#8a8a8a", opacity=0.16)
        .encode(x=alt.X("from:Q"), x2="to:Q")
    )
    if not named:
        return [shade]
    words = base.mark_text(align="left", dx=4, dy=8, color="#666", fontSize=10).encode(
        x="from:Q", y=alt.value(0), text="shown:N"
    )
    return [shade, words]


def _lines(panel: Panel, whole: Panel, step_s: float, data: Datasets, x: alt.X) -> list[alt.Chart]:
    """The lines of a panel, in the colours and on the scale of ``whole``: itself, or both sides together."""
    rows = [row for place, series in enumerate(panel.series) for row in _rows(series, place, step_s)]
    names = [series.name for series in whole.series]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=_colours(whole.series)),
        legend=alt.Legend(
            title=None,
            symbolType="stroke",
            symbolStrokeWidth=3,
            labelLimit=LABEL_LIMIT if whole is panel else _LEGEND,
        ),
        sort=names,
    )
    base = alt.Chart(data.named(rows)).encode(x=x, color=colour)
    y = alt.Y("v:Q", scale=_scale(whole, fixed=whole is not panel), axis=_y_axis(whole))
    found = []
    if step_s > 1 and any(row["low"] != row["high"] for row in rows):
        found.append(base.mark_area(opacity=0.16, tooltip=False).encode(y=alt.Y("low:Q"), y2="high:Q"))
    dashes = [[5, 3] if series.style == "dashed" else [1, 0] for series in whole.series]
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=dashes), sort=names)
    found.append(base.mark_line(strokeWidth=1.7, clip=True).encode(y=y, strokeDash=dash, detail="run:N"))
    alone = [row for row in rows if row["alone"]]
    if alone:  # a line needs two points
        found.append(
            base.mark_point(filled=True, size=14, opacity=1).encode(y=y).properties(data=data.named(alone))
        )
    return found


def _rows(series: TimelineSeries, place: int, step_s: float) -> list[dict[str, Any]]:
    """A series as rows; ``run`` counts up where buckets are missing, so that no line crosses a gap."""
    rows: list[dict[str, Any]] = []
    run = 0
    points = series.points
    for index, point in enumerate(points):
        after_gap = index > 0 and _gap(points[index - 1], point, step_s)
        before_gap = index + 1 < len(points) and _gap(point, points[index + 1], step_s)
        run += after_gap
        alone = (index == 0 or after_gap) and (index + 1 == len(points) or before_gap)
        rows.append(
            {
                "t": point.t_s,
                "name": series.name,
                "v": digits(point.mean),
                "low": digits(point.low),
                "high": digits(point.high),
                "run": f"{place}.{run}",
                "alone": alone,
            }
        )
    return rows


def _gap(before: SamplePoint, after: SamplePoint, step_s: float) -> bool:
    return after.t_s - before.t_s > step_s * 1.5


def _colours(series: Sequence[TimelineSeries]) -> list[str]:
    """One colour a line; a dashed line directly after a solid one (p95 after p50) shares its colour."""
    colours: list[str] = []
    taken = 0
    for place, line in enumerate(series):
        partner = line.style == "dashed" and " p" in line.name and place > 0
        taken += not (partner and series[place - 1].style == "solid")
        colours.append(PALETTE[(taken - 1) % len(PALETTE)])
    return colours


def _scale(panel: Panel, *, fixed: bool) -> alt.Scale:
    if panel.logarithmic:
        low, *_, high = _decades(panel)
        return alt.Scale(type="log", domain=[low, high])
    highest = max((point.high for series in panel.series for point in series.points), default=1.0)
    if fixed:  # both sides have one
        return alt.Scale(domain=[0, max(highest, 1e-9) * 1.05], nice=True)
    if panel.axis == "ratio":
        return alt.Scale(domain=[0, max(1.0, digits(highest))] if highest > 0.5 else [0, 0.5], nice=True)
    return alt.Scale(zero=True, nice=True)


def _y_axis(panel: Panel) -> alt.Axis:
    ticks = {"values": _decades(panel)} if panel.logarithmic else {"tickCount": 4}
    return alt.Axis(
        title=None,
        labelExpr=LABELS[panel.axis],
        minExtent=_AXIS_WIDTH,
        maxExtent=_AXIS_WIDTH,
        labelOverlap=True,
        **ticks,
    )


def _decades(panel: Panel) -> list[float]:
    return decades([point.mean for series in panel.series for point in series.points])


def _hover(panel: Panel, clock: Clock, data: Datasets) -> alt.Chart:
    """A column per bucket that lights up under the pointer and tells every line's value and the UTC time.

    Columns, not Vega-Lite's nearest point: its tooltips lose every field that is no number.
    """
    show = SHOW[panel.axis]
    half = clock.bucket_s / 2
    moments: dict[float, dict[str, Any]] = {}
    for place, series in enumerate(panel.series):
        for point in series.points:
            t = point.t_s
            row = moments.setdefault(t, {"t": t, "from": t - half, "to": t + half, "utc": clock.utc(t)})
            row[f"s{place}"] = _told(point, show)
    for row in moments.values():
        for place in range(len(panel.series)):
            row.setdefault(f"s{place}", "not measured")
    since = f"seconds since the {'recording' if clock.alone else 'load'} began"
    tips = [alt.Tooltip("t:Q", title=since), alt.Tooltip("utc:N", title="UTC")]
    tips += [alt.Tooltip(f"s{place}:N", title=series.name) for place, series in enumerate(panel.series)]
    pointed = alt.selection_point(
        name=f"pointed_{panel.name}", fields=["t"], on="pointerover", clear="pointerout", empty=False
    )
    columns: alt.Chart = (
        alt.Chart(data.named([moments[t] for t in sorted(moments)]))
        .mark_rect(color="#333")
        .encode(
            x=alt.X("from:Q"),
            x2="to:Q",
            opacity=alt.condition(pointed, alt.value(0.18), alt.value(0)),
            tooltip=tips,
        )
        .add_params(pointed)
    )
    return columns


def _told(point: SamplePoint, show: Any) -> str:
    if math.isclose(point.low, point.high):
        return str(show(point.mean))
    return f"{show(point.mean)} ({show(point.low)} to {show(point.high)})"


def both_timelines(content: Mapping[str, Any]) -> Chart | None:
    """Both sides of a comparison over time, base on the left; ``None`` where one of them kept none."""
    sides = [content["timelines"][name] for name in ("base", "other")]
    if not all(sides):
        return None
    kept = [{panel["name"]: _kept(panel, side) for panel in side["panels"]} for side in sides]
    names = dict.fromkeys(name for panels in kept for name in panels)
    if not names:
        return None
    data = Datasets()
    begins = [side["first_s"] - side["step_s"] / 2 for side in sides]
    ends = [begin + side["points"] * side["step_s"] for begin, side in zip(begins, sides, strict=True)]
    window = min(begins), max(ends)
    labels = [content[name]["label"] for name in ("base", "other")]
    rows = []
    for place, name in enumerate(names):
        first, last = place == 0, place == len(names) - 1
        title = "seconds since measuring began" if last else None
        x = _time(window, alt.Axis(title=title, labels=last, tickCount=8))
        panels = [of_side.get(name) for of_side in kept]
        whole = _together([panel for panel in panels if panel])
        halves = [
            alt.layer(
                *_phases(side["phases"], window, _HALF_WIDTH, data, named=first),
                *_lines(panel or replace(whole, series=()), whole, side["step_s"], data, x),
            ).properties(
                width=_HALF_WIDTH,
                height=_HALF_HEIGHT,
                title=alt.TitleParams(
                    f"{label}: {whole.title.split(' (')[0]}{'' if panel else ' (not measured)'}",
                    frame="group",
                    limit=_HALF_WIDTH + 40,
                ),
            )
            for side, panel, label in zip(sides, panels, labels, strict=True)
        ]
        rows.append(alt.hconcat(*halves, spacing=16).resolve_scale(color="shared", strokeDash="shared"))
    stack = alt.vconcat(
        *rows, spacing=12, padding={"left": 5, "top": 5, "bottom": 5, "right": _LEGEND_MORE}
    ).resolve_scale(color="independent", strokeDash="independent")
    spec = finished(stack, data)
    title = "Both sides over time, 0 s is where measuring begins; the first run of each side"
    return Chart("timelines", title, spec, svg_of(spec))


def _kept(panel: Mapping[str, Any], side: Mapping[str, Any]) -> Panel:
    """A panel as comparison.json has it; a value for each point of time, null where nothing was measured."""
    series = [
        TimelineSeries(
            line["name"],
            tuple(
                SamplePoint(round(side["first_s"] + at * side["step_s"], 3), value, value, value)
                for at, value in enumerate(line["values"])
                if value is not None and math.isfinite(value) and (value > 0 or not panel["logarithmic"])
            ),
            line["style"],
        )
        for line in panel["lines"]
    ]
    return Panel(panel["name"], panel["title"], panel["axis"], tuple(series), "", panel["logarithmic"])


def _together(panels: Sequence[Panel]) -> Panel:
    """The lines of both sides, those of one name as one."""
    every: dict[str, TimelineSeries] = {}
    for series in (series for panel in panels for series in panel.series):
        before = every.get(series.name)
        every[series.name] = replace(series, points=(*(before.points if before else ()), *series.points))
    whole = replace(panels[0], series=tuple(every.values()))
    positive = any(series.points for series in whole.series)
    return replace(whole, logarithmic=whole.logarithmic and positive)
