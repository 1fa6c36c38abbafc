"""Draws a run over time: a small chart per quantity with its limits and the periods at the limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from pinchpoint.analysis.thresholds import UTILISATION
from pinchpoint.base import units, wording
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject
from pinchpoint.data.inputs import disk_roles
from pinchpoint.data.queries import SamplePoint
from pinchpoint.data.timeaxis import Phase, TimeAxis
from pinchpoint.data.timeline import Panel, TimelineSeries
from pinchpoint.report.charts import (
    LABELS,
    LIMIT,
    PALETTE,
    SHOW,
    Chart,
    Datasets,
    LegendEntry,
    Spec,
    decades,
    digits,
    end,
    field,
    finished,
    layer,
    layered,
    svg_of,
)

FIRST = ("throughput", "latency", "errors", "cpu", "disk_write_latency", "disk_iops")
"""Panels on the first screen."""

_AXIS_WIDTH = 46  # the same for all panels, so that their plots begin at the same place
_WIDTH, _HEIGHT = 310, 110
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800)
_TICKS = 5
_REST = "#9aa3ad"
_MOST_RUNS = 1_000_000
_FAR = 4.0
"""A limit more than this many times above the data is named but not drawn, because it would flatten the
lines."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A horizontal line at the limit of a quantity."""

    value: float
    words: str


@dataclass(frozen=True, slots=True)
class Marks:
    """Limits and marked periods of a panel.

    Attributes:
        limits: horizontal lines.
        spans: begin and end of the marked periods, in seconds since the load began.
        words: legend text of the marked periods.
    """

    limits: tuple[Limit, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    words: str = ""


def marks_of(manifest: JsonObject, verdict: JsonObject, clock: TimeAxis) -> dict[str, Marks]:
    """Return panel -> limits, and the periods in which the bottleneck or a suspect was at its limit."""
    limits = {
        "cpu": [
            Limit(UTILISATION.value, f"limit {units.percent(UTILISATION.value)}"),
            *_of_servers(verdict, "cpu.busy_ratio"),
        ],
        "disk_write_latency": [
            *_latency_limits(verdict, "write_latency_mean_s"),
            *_of_servers(verdict, "disk.write_latency_s"),
        ],
        "disk_read_latency": [
            *_latency_limits(verdict, "read_latency_mean_s"),
            *_of_servers(verdict, "disk.read_latency_s"),
        ],
        "disk_iops": _declared(manifest),
        "latency": _objectives(verdict, "p95_s"),
        "throughput": _objectives(verdict, "throughput_per_s"),
    }
    first: JsonObject | None = verdict.get("bottleneck")
    blamed = [first] if first else verdict.get("candidates") or []
    spans: dict[str, list[tuple[float, float]]] = {}
    for each in blamed:
        for panel in _panels_of(str(each["kind"])):
            spans.setdefault(panel, []).extend(_spans(each, verdict, clock))
    words = "bottleneck at its limit" if first else "suspected resource at its limit"
    return {
        name: Marks(tuple(limits.get(name, ())), tuple(spans.get(name, ())), words)
        for name in {*limits, *spans}
    }


def _latency_limits(verdict: JsonObject, measured: str) -> list[Limit]:
    """Return a line for each distinct latency limit, with the roles it applies to."""
    roles = by_key(
        (row["latency_limit_s"], row["role"])
        for row in verdict.get("disks") or ()
        if row.get(measured) is not None and row.get("latency_limit_s")
    )
    return [
        Limit(value, f"limit {units.seconds(value)} ({', '.join(dict.fromkeys(roles[value]))})")
        for value in sorted(roles)
    ]


def _declared(manifest: JsonObject) -> list[Limit]:
    result = by_key(
        (disk.limits.iops, f"{disk.tier} {disk.role}")
        for disk in disk_roles(manifest)
        if disk.limits and disk.limits.iops
    )
    return [
        Limit(value, f"declared {units.iops(value)} ({', '.join(dict.fromkeys(result[value]))})")
        for value in sorted(result)
    ]


def _objectives(verdict: JsonObject, metric: str) -> list[Limit]:
    words = {"p95_s": "p95 objective", "throughput_per_s": "objective"}[metric]
    return [
        Limit(row["target"], f"{row['scenario']} {words} {units.of_metric(metric, row['target'])}")
        for row in verdict.get("objectives") or ()
        if row["metric"] == metric and row.get("scenario")
    ]


def _of_servers(verdict: JsonObject, metric: str) -> list[Limit]:
    return [
        Limit(
            row["target"], f"objective {units.of_metric(metric, row['target'])} ({wording.objective_of(row)})"
        )
        for row in verdict.get("objectives") or ()
        if row["metric"] == metric and not row["at_least"]
    ]


def _panels_of(kind: str) -> tuple[str, ...]:
    if kind.startswith("disk"):
        return ("disk_write_latency", "disk_read_latency", "disk_iops")
    if kind.startswith("cpu"):
        return ("cpu",)
    return {"generator": ("generator",), "contention": ("generator",)}.get(kind, ("latency",))


_WHO = ("kind", "tier", "host", "role")


def _spans(blame: JsonObject, verdict: JsonObject, clock: TimeAxis) -> Iterator[tuple[float, float]]:
    """Yield the periods in which a resource was at its limit; without a timeline, the whole analysed time."""
    result = [
        (row["from"], row["to"])
        for row in verdict.get("timeline") or ()
        if all(row.get(key) == blame.get(key) for key in _WHO)
    ]
    if not result and blame.get("window"):
        result = [(blame["window"][0], blame["window"][1])]
    for first, last in result:
        yield seconds_of(first) - clock.start_s, seconds_of(last) - clock.start_s


def panel_chart(panel: Panel, clock: TimeAxis, marks: Marks | None = None) -> Chart:
    """Draw one quantity over time."""
    spec, legend = _panel(panel, panel, clock, marks or Marks())
    return Chart(panel.name, panel.title, spec, _still(spec), tuple(legend))


def _still(spec: JsonObject) -> str:
    """Return the SVG without the last layer, which reacts to the pointer. That layer takes long to draw."""
    return svg_of({**spec, "layer": spec["layer"][:-1]})


def _panel(panel: Panel, whole: Panel, clock: TimeAxis, marks: Marks) -> tuple[Spec, list[LegendEntry]]:
    data = Datasets()
    legend = _legend(whole.series)
    panel, whole = _grouped(panel, legend), _grouped(whole, legend)
    highest = max((point.high for series in whole.series for point in series.points), default=1.0)
    drawn = [limit for limit in marks.limits if panel.axis == "ratio" or limit.value <= highest * _FAR]
    scale = _scale(whole, highest, drawn)
    layers = [
        *_phases(clock, data),
        *_at_limit(marks, clock, data),
        *_limits(drawn, data, scale),
        *_lines(panel, legend, clock, data, scale, whole),
        _hover(panel, clock, data),
    ]
    entries = list({entry.name: entry for entry in legend.values()}.values())
    if marks.limits and not drawn:
        entries.append(LegendEntry(f"{marks.limits[0].words}: above this chart", LIMIT, "limit"))
    entries += [LegendEntry(limit.words, LIMIT, "limit") for limit in drawn]
    if marks.spans:
        entries.append(LegendEntry(marks.words, LIMIT, "mark"))
    return finished(layered(layers, _WIDTH, _HEIGHT), data), entries


def _x(clock: TimeAxis) -> Spec:
    """Return the x axis in seconds.

    Its labels are the time of day, or in a comparison the time since measuring began.
    """
    length_s, zero_s = max(clock.length_s, 1.0), clock.start_s + clock.offset_s
    step_s = next((step for step in _STEPS_S if length_s / step <= _TICKS), _STEPS_S[-1])
    form = "%H:%M:%S" if step_s < 60 else "%H:%M" if step_s < 86400 else "%d %b"
    label = f"utcFormat(1000 * round(datum.value + {zero_s!r}), '{form}')"
    if clock.relative:
        unit, words = (1, "s") if length_s < 600 else (60, "min")
        label = f"format(round(datum.value + {zero_s!r}) / {unit}, '~g') + ' {words}'"
    first_s = -(-zero_s // step_s) * step_s - zero_s
    ticks = (first_s + at * step_s for at in range(_TICKS + 1))
    axis = {
        "title": None,
        "values": [round(tick, 3) for tick in ticks if tick <= length_s],
        "labelExpr": label,
        "labelOverlap": True,
        "labelFlush": True,
        "grid": True,
    }
    return field("t:Q", scale={"domain": [0, length_s], "nice": False}, axis=axis, title=None)


def _phases(clock: TimeAxis, data: Datasets) -> list[Spec]:
    """Return a layer that shades all phases except the measure phase."""
    rows = [
        {"from": begin, "to": ends}
        for phase in clock.phases
        if phase.name != "measure"
        and (begin := max(phase.from_s, 0.0)) < (ends := min(phase.to_s, clock.length_s))
    ]
    if not rows:
        return []
    return [layer(data.named(rows), "rect", _SPAN, color="#8a8a8a", opacity=0.16)]


_SPAN = {"x": field("from:Q"), "x2": end("to")}


def _at_limit(marks: Marks, clock: TimeAxis, data: Datasets) -> list[Spec]:
    """Return layers with a bar at the top of the chart and a light tint below it, for the marked periods."""
    rows = [
        {"from": max(begin, 0.0), "to": min(ends, clock.length_s)}
        for begin, ends in marks.spans
        if begin < clock.length_s and ends > 0
    ]
    if not rows:
        return []
    named, top = data.named(rows), {**_SPAN, "y": {"value": 0}}
    return [
        layer(named, "rect", {**top, "y2": {"value": "height"}}, color=LIMIT, opacity=0.06, clip=True),
        layer(named, "rect", {**top, "y2": {"value": 4}}, color=LIMIT, opacity=1, clip=True),
    ]


def _limits(limits: Sequence[Limit], data: Datasets, scale: Spec) -> list[Spec]:
    if not limits:
        return []
    rows = data.named([{"limit": limit.value} for limit in limits])
    at = {"y": field("limit:Q", scale=scale)}
    return [layer(rows, "rule", at, color=LIMIT, strokeDash=[6, 4], strokeWidth=1.2, clip=True)]


def _legend(lines: Sequence[TimelineSeries]) -> dict[str, LegendEntry]:
    """Return line -> colour and style.

    With more lines than colours, the smallest lines share one grey entry.
    """
    groups: dict[str, list[TimelineSeries]] = {}
    for place, line in enumerate(lines):
        stem = line.name.rpartition(" ")[0]
        paired = _begins_pair(lines, place) or (place > 0 and _begins_pair(lines, place - 1))
        groups.setdefault(stem if paired else line.name, []).append(line)
    ranked = sorted(groups, key=lambda name: -max(_highest(line) for line in groups[name]))
    kept = set(ranked if len(ranked) <= len(PALETTE) else ranked[: len(PALETTE) - 1])
    rest = LegendEntry(f"{len(groups) - len(kept)} others: mean, lowest to highest", _REST)
    colours = dict(zip((name for name in groups if name in kept), PALETTE, strict=False))
    own = {
        line.name: LegendEntry(line.name, colours[name], line.style)
        for name in groups
        if name in colours
        for line in groups[name]
    }
    others = {line.name: rest for line in lines if line.name not in own}
    return own | others | ({rest.name: rest} if others else {})


def _grouped(panel: Panel, legend: Mapping[str, LegendEntry]) -> Panel:
    """Return the panel with all lines of the grey entry merged, so that a page of 20 hosts stays small."""
    own = tuple(line for line in panel.series if legend[line.name].name == line.name)
    points = by_key(
        (point.t_s, point)
        for line in panel.series
        if legend[line.name].name != line.name
        for point in line.points
    )
    if not points:
        return replace(panel, series=own)
    rest = tuple(
        SamplePoint(
            t_s,
            fmean(each.mean for each in points[t_s]),
            min(each.low for each in points[t_s]),
            max(each.high for each in points[t_s]),
        )
        for t_s in sorted(points)
    )
    return replace(panel, series=(*own, TimelineSeries(list(legend)[-1], rest)))


def _begins_pair(lines: Sequence[TimelineSeries], place: int) -> bool:
    """Whether a solid line has its dashed partner next to it: p50 and p95, writes and reads."""
    if place + 1 == len(lines) or (lines[place].style, lines[place + 1].style) != ("solid", "dashed"):
        return False
    stem = lines[place].name.rpartition(" ")[0]
    return stem != "" and lines[place + 1].name.rpartition(" ")[0] == stem


def _highest(line: TimelineSeries) -> float:
    return max((point.mean for point in line.points), default=0.0)


def _lines(
    panel: Panel,
    legend: Mapping[str, LegendEntry],
    clock: TimeAxis,
    data: Datasets,
    scale: Spec,
    whole: Panel,
) -> list[Spec]:
    """Return the lines of a panel.

    The scale is that of ``whole``: the panel, or both sides of a comparison.
    """
    rows: list[dict[str, Any]] = []
    alone: list[dict[str, Any]] = []
    for place, series in enumerate(panel.series):
        for row, is_alone in _rows(series, place, clock):
            rows.append(row)
            if is_alone:
                alone.append(row)
    names = [line.name for line in whole.series]
    dashes = [[5, 3] if legend[name].style == "dashed" else [1, 0] for name in names]
    colours = [legend[name].colour for name in names]
    shared = {
        "x": _x(clock),
        "color": field("name:N", scale={"domain": names, "range": colours}, legend=None, sort=names),
    }
    y = field("v:Q", scale=scale, axis=_y_axis(whole))
    dash = field("name:N", scale={"domain": names, "range": dashes}, sort=names, legend=None)
    named = data.named(rows)
    specs = []
    if any("low" in row for row in rows):
        band = {**shared, "y": field("low:Q", scale=scale), "y2": end("high")}
        specs.append(layer(named, "area", band, opacity=0.14, tooltip=False, clip=True))
    line = {**shared, "y": y, "strokeDash": dash, "detail": field("run:N")}
    specs.append(layer(named, "line", line, strokeWidth=1.6, clip=True))
    if alone:  # a single point needs a mark, because a line needs two points
        points = {**shared, "y": y}
        specs.append(layer(data.named(alone), "point", points, filled=True, size=14, opacity=1))
    return specs


def _rows(series: TimelineSeries, place: int, clock: TimeAxis) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield a series as rows, each with whether the point has no neighbour.

    ``run`` increases at each gap, so that no line crosses a gap.
    """
    run = 0
    points = series.points
    band = any(point.low != point.high for point in points)
    for index, point in enumerate(points):
        after_gap = index > 0 and _gap(points[index - 1], point, clock.bucket_s)
        before_gap = index + 1 < len(points) and _gap(point, points[index + 1], clock.bucket_s)
        run += after_gap
        row: dict[str, Any] = {
            "t": point.t_s,
            "name": series.name,
            "v": digits(point.mean),
            "run": place * _MOST_RUNS + run,
        }
        if band:
            row |= {"low": digits(point.low), "high": digits(point.high)}
        yield row, (index == 0 or after_gap) and (index + 1 == len(points) or before_gap)


def _gap(before: SamplePoint, after: SamplePoint, step_s: float) -> bool:
    return after.t_s - before.t_s > step_s * 1.5


def _scale(panel: Panel, highest: float, limits: Iterable[Limit]) -> Spec:
    tops = [limit.value for limit in limits]
    if panel.logarithmic:
        low, *_, high = decades([*_means(panel), *tops])
        return {"type": "log", "domain": [low, high]}
    if panel.axis == "ratio" and panel.name in ("cpu", "generator"):
        return {"domain": [0, max(1.0, digits(highest))], "nice": False}
    return {"domain": [0, max([highest, *tops, 1e-9]) * 1.08], "nice": False}


def _means(panel: Panel) -> list[float]:
    return [point.mean for series in panel.series for point in series.points]


def _y_axis(panel: Panel) -> Spec:
    return {
        "title": None,
        "labelExpr": LABELS[panel.axis],
        "minExtent": _AXIS_WIDTH,
        "maxExtent": _AXIS_WIDTH,
        "labelOverlap": True,
        **({"values": decades(_means(panel))} if panel.logarithmic else {"tickCount": 4}),
    }


def _hover(panel: Panel, clock: TimeAxis, data: Datasets) -> Spec:
    """Return a column per bucket that lights up under the pointer and shows the time and all values.

    Vega-Lite's nearest point is not used, because its tooltips lose all fields that are not numbers.
    """
    show = SHOW[panel.axis]
    half = clock.bucket_s / 2
    moments: dict[float, dict[str, Any]] = {}
    for place, series in enumerate(panel.series):
        for point in series.points:
            t = point.t_s
            row = moments.setdefault(t, {"from": t - half, "to": t + half, "time": clock.shown(t)})
            row[f"s{place}"] = _shown(point, show)
    for row in moments.values():
        for place in range(len(panel.series)):
            row.setdefault(f"s{place}", units.NOT_MEASURED)
    tips = [field("time:N", title="time")]
    tips += [field(f"s{place}:N", title=series.name) for place, series in enumerate(panel.series)]
    pointed = f"pointed_{panel.name}"
    select = {"type": "point", "fields": ["from"], "on": "pointerover", "clear": "pointerout"}
    encoding = {
        **_SPAN,
        "opacity": {"condition": {"param": pointed, "value": 0.25, "empty": False}, "value": 0},
        "tooltip": tips,
    }
    columns = layer(data.named([moments[t] for t in sorted(moments)]), "rect", encoding, color="#777")
    return {**columns, "params": [{"name": pointed, "select": select}]}


def _shown(point: SamplePoint, show: Any) -> str:
    if math.isclose(point.low, point.high):
        return str(show(point.mean))
    return f"{show(point.mean)} ({show(point.low)} to {show(point.high)})"


def both_timelines(content: JsonObject) -> tuple[tuple[Chart, Chart], ...]:
    """Draw both sides of a comparison over time: a pair of charts per quantity, the base side first.

    Nothing is drawn if a side has no timeline.
    """
    sides = [content["timelines"][name] for name in ("base", "other")]
    if not all(sides):
        return ()
    begins = [side["first_s"] - side["step_s"] / 2 for side in sides]
    ends = [begin + side["points"] * side["step_s"] for begin, side in zip(begins, sides, strict=True)]
    from_s, length_s = min(begins), max(ends) - min(begins)
    kept = [{panel["name"]: _kept(panel, side, from_s) for panel in side["panels"]} for side in sides]
    clocks = [
        TimeAxis(
            from_s,
            length_s,
            tuple(Phase(name, low - from_s, high - from_s) for name, low, high in side["phases"]),
            side["step_s"],
            relative=True,
        )
        for side in sides
    ]
    pairs = []
    for name in dict.fromkeys(name for panels in kept for name in panels):
        whole = _together([panels[name] for panels in kept if name in panels])
        first, second = (
            _side_chart(panels.get(name) or replace(whole, series=()), whole, clock, content[side]["label"])
            for panels, clock, side in zip(kept, clocks, ("base", "other"), strict=True)
        )
        pairs.append((first, second))
    return tuple(pairs)


def _side_chart(panel: Panel, whole: Panel, clock: TimeAxis, label: str) -> Chart:
    spec, legend = _panel(panel, whole, clock, Marks())
    missing = "" if panel.series else " (not measured)"
    return Chart(
        f"{panel.name}-{label}", f"{whole.title}: {label}{missing}", spec, _still(spec), tuple(legend)
    )


def _kept(panel: JsonObject, side: JsonObject, from_s: float) -> Panel:
    """Return a panel read from comparison.json. Points without a value are left out."""
    series = [
        TimelineSeries(
            line["name"],
            tuple(
                SamplePoint(round(side["first_s"] + at * side["step_s"] - from_s, 3), value, value, value)
                for at, value in enumerate(line["values"])
                if value is not None and math.isfinite(value) and (value > 0 or not panel["logarithmic"])
            ),
            line["style"],
        )
        for line in panel["lines"]
    ]
    return Panel(panel["name"], panel["title"], panel["axis"], tuple(series), "", panel["logarithmic"])


def _together(panels: Sequence[Panel]) -> Panel:
    """Return a panel with the lines of both sides. Lines of the same name are joined."""
    every: dict[str, TimelineSeries] = {}
    for series in (series for panel in panels for series in panel.series):
        before = every.get(series.name)
        every[series.name] = replace(series, points=(*(before.points if before else ()), *series.points))
    whole = replace(panels[0], series=tuple(every.values()))
    positive = any(series.points for series in whole.series)
    return replace(whole, logarithmic=whole.logarithmic and positive)
