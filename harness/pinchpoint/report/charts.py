"""Charts, from series to Vega-Lite: one specification serves the page and, as SVG, paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from pinchpoint.report.clock import Clock
from pinchpoint.report.latency import Distribution
from pinchpoint.report.recorded import Point
from pinchpoint.report.timeline import SHOW, Axis, Panel, Series

# Okabe and Ito's palette ("Color Universal Design", 2008) without its yellow, which vanishes on white:
# told apart with any colour vision, and by lightness on a grey printer.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444", "#7a4fa3")

_SECONDS = (
    "datum.value == 0 ? '0' : datum.value < 0.00099 ? format(datum.value * 1e6, '~g') + ' µs'"
    " : datum.value < 0.99 ? format(datum.value * 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' s'"
)
LABELS: Mapping[Axis, str] = {
    "latency": _SECONDS,
    "rate": "format(datum.value, '~s') + '/s'",
    "ratio": "format(datum.value, '.0%')",
}
_AXIS_WIDTH = 62  # the same for every panel, so that their plots start at the same place
_WIDTH = 780
_HEIGHT = 118
_LOG_HEIGHT = 150  # a decade needs room for its labels


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart.

    Attributes:
        name: its id on the page.
        title: its heading, also read out by screen readers.
        spec: Vega-Lite, for the browser.
        svg: the same as a picture, for paper and for browsers without scripts.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    svg: str


def timeline_chart(panels: Sequence[Panel], clock: Clock) -> Chart | None:
    """All panels under each other on one time axis, phases shaded; ``None`` when there is nothing to draw."""
    drawn = [panel for panel in panels if panel.series]
    if not drawn:
        return None
    title = "Timeline: load, latency and the tiers' key metrics"
    return Chart(
        "timeline", title, _stack(drawn, clock, hover=True), svg_of(_stack(drawn, clock, hover=False))
    )


def distribution_chart(scenario: str, kinds: Sequence[Distribution]) -> Chart:
    """How long the operations of one scenario took, on a logarithmic axis."""
    spec = _distribution(scenario, kinds)
    return Chart(f"latency-{scenario}", f"Latency of {scenario}", spec, svg_of(spec))


def burst_chart(scenario: str, bursts: Sequence[Mapping[str, Any]]) -> Chart:
    """Each burst of a scenario: what latency it met, what waited at its end, how long it took to recover."""
    spec = _bursts(bursts)
    return Chart(f"bursts-{scenario}", f"Bursts of {scenario}", spec, svg_of(spec))


class Datasets(dict[str, list[Mapping[str, Any]]]):
    """The rows behind a chart, by name: Altair copies what it is given over and over; names are cheap."""

    def named(self, rows: Sequence[Mapping[str, Any]]) -> alt.NamedData:
        """What a chart refers to them by."""
        name = f"rows{len(self)}"
        self[name] = list(rows)
        return alt.NamedData(name=name)


def svg_of(spec: Mapping[str, Any]) -> str:
    """A specification as a picture; nothing is loaded for it."""
    drawn: str = vl_convert.vegalite_to_svg(dict(spec), allowed_base_urls=[])
    return drawn


def _stack(panels: Sequence[Panel], clock: Clock, *, hover: bool) -> dict[str, Any]:
    data = Datasets()
    rows = [
        _panel(panel, clock, data, hover=hover, first=place == 0, last=place == len(panels) - 1)
        for place, panel in enumerate(panels)
    ]
    return finished(
        alt.vconcat(*rows, spacing=14).resolve_scale(color="independent", strokeDash="independent"), data
    )


def finished(
    chart: alt.VConcatChart | alt.HConcatChart | alt.LayerChart | alt.FacetChart, data: Datasets
) -> dict[str, Any]:
    """A chart as the specification that is drawn: fonts, colours, the rows behind it."""
    configured = (
        chart.configure(font="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif", background="white")
        .configure_axis(
            labelColor="#444", titleColor="#444", gridColor="#e8e8e8", domainColor="#999", tickColor="#999"
        )
        .configure_view(stroke="#d0d0d0")
        .configure_title(anchor="start", fontSize=13, fontWeight=600, color="#222", offset=4)
        .configure_legend(labelColor="#222", labelFontSize=11, labelLimit=200)
    )
    spec: dict[str, Any] = configured.to_dict()
    spec["datasets"] = dict(data)
    del spec["$schema"]  # an address nobody needs to visit
    return spec


def _panel(
    panel: Panel, clock: Clock, data: Datasets, *, hover: bool, first: bool, last: bool
) -> alt.LayerChart | alt.FacetChart:
    x = alt.X(
        "t:Q",
        scale=alt.Scale(domain=[0, max(clock.length_s, 1.0)], nice=False),
        axis=alt.Axis(
            title="seconds since the load began" if last else None, labels=last, tickCount=12, grid=True
        ),
    )
    layers: list[Any] = [*_phases(clock, data, named=first), *_lines(panel, clock, data, x)]
    if hover:
        layers.append(_hover(panel, clock, data))
    return alt.layer(*layers).properties(
        width=_WIDTH,
        height=_LOG_HEIGHT if panel.logarithmic else _HEIGHT,
        title=alt.TitleParams(panel.title, frame="group"),
    )


def _phases(clock: Clock, data: Datasets, *, named: bool) -> list[alt.Chart]:
    """Everything that is not the measure phase is shaded; the first panel also names the phases."""
    rows = [
        {"from": phase.from_s, "to": min(phase.to_s, clock.length_s), "name": phase.name.replace("_", "-")}
        for phase in clock.phases
        if phase.to_s > phase.from_s
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
        x="from:Q", y=alt.value(0), text="name:N"
    )
    return [shade, words]


def _lines(panel: Panel, clock: Clock, data: Datasets, x: alt.X) -> list[alt.Chart]:
    rows = [row for place, series in enumerate(panel.series) for row in _rows(series, place, clock)]
    names = [series.name for series in panel.series]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=_colours(panel.series)),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3),
        sort=names,
    )
    base = alt.Chart(data.named(rows)).encode(x=x, color=colour)
    y = alt.Y("v:Q", scale=_scale(panel), axis=_y_axis(panel))
    found = []
    if clock.bucket_s > 1 and any(row["low"] != row["high"] for row in rows):
        found.append(base.mark_area(opacity=0.16, tooltip=False).encode(y=alt.Y("low:Q"), y2="high:Q"))
    dashes = [[5, 3] if series.style == "dashed" else [1, 0] for series in panel.series]
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=dashes), sort=names)
    found.append(base.mark_line(strokeWidth=1.7, clip=True).encode(y=y, strokeDash=dash, detail="run:N"))
    alone = [row for row in rows if row["alone"]]
    if alone:  # a line needs two points
        found.append(
            base.mark_point(filled=True, size=14, opacity=1).encode(y=y).properties(data=data.named(alone))
        )
    return found


def _rows(series: Series, place: int, clock: Clock) -> list[dict[str, Any]]:
    """A series as rows; ``run`` counts up where buckets are missing, so that no line crosses a gap."""
    rows: list[dict[str, Any]] = []
    run = 0
    points = series.points
    for index, point in enumerate(points):
        after_gap = index > 0 and _gap(points[index - 1], point, clock)
        before_gap = index + 1 < len(points) and _gap(point, points[index + 1], clock)
        run += after_gap
        alone = (index == 0 or after_gap) and (index + 1 == len(points) or before_gap)
        rows.append(
            {
                "t": point.t_s,
                "name": series.name,
                "v": _digits(point.mean),
                "low": _digits(point.low),
                "high": _digits(point.high),
                "run": f"{place}.{run}",
                "alone": alone,
            }
        )
    return rows


def _gap(before: Point, after: Point, clock: Clock) -> bool:
    return after.t_s - before.t_s > clock.bucket_s * 1.5


def _digits(value: float) -> float:
    """Four digits: more cannot be seen, and would only make the page bigger."""
    return float(f"{value:.4g}")


def _colours(series: Sequence[Series]) -> list[str]:
    """One colour a line; a dashed line directly after a solid one is its partner and shares its colour."""
    partner = {f"{line.name.split(' p')[0]}" for line in series if " p" in line.name}
    if len(partner) * 2 == len(series):
        return [PALETTE[place // 2 % len(PALETTE)] for place in range(len(series))]
    return [PALETTE[place % len(PALETTE)] for place in range(len(series))]


def _scale(panel: Panel) -> alt.Scale:
    if panel.logarithmic:
        low, *_, high = _decades(panel)
        return alt.Scale(type="log", domain=[low, high])
    if panel.axis == "ratio":
        highest = max((point.high for series in panel.series for point in series.points), default=1.0)
        return alt.Scale(domain=[0, max(1.0, _digits(highest))] if highest > 0.5 else [0, 0.5], nice=True)
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


def decades(values: Sequence[float]) -> list[float]:
    """Ticks that enclose positive values: powers of ten, with 2 and 5 between them where these are few."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    steps = (1.0, 2.0, 5.0) if high - low <= 2 else (1.0,)
    return [float(f"{step}e{power}") for power in range(low, high) for step in steps] + [float(f"1e{high}")]


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
    tips = [alt.Tooltip("t:Q", title="seconds since the load began"), alt.Tooltip("utc:N", title="UTC")]
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


def _told(point: Point, show: Any) -> str:
    if math.isclose(point.low, point.high):
        return str(show(point.mean))
    return f"{show(point.mean)} ({show(point.low)} to {show(point.high)})"


def _distribution(scenario: str, kinds: Sequence[Distribution]) -> dict[str, Any]:
    data = Datasets()
    names = [f"{each.kind} time" for each in kinds]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)])),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3),
    )
    show = SHOW["latency"]
    bars = [
        {
            "name": name,
            "from": edge.from_s,
            "to": edge.to_s,
            "ratio": _digits(edge.ratio),
            "range": f"{show(edge.from_s)} to {show(edge.to_s)}",
            "share": SHOW["ratio"](edge.ratio),
        }
        for name, each in zip(names, kinds, strict=True)
        for edge in each.bins
    ]
    marks = [
        {"name": name, "at": value, "word": word, "told": f"{word} {show(value)}"}
        for name, each in zip(names, kinds, strict=True)
        for word, value in (("p50", each.p50_s), ("p95", each.p95_s), ("p99", each.p99_s))
    ]
    edges = [edge for each in kinds for edge in each.bins]
    ticks = decades([edge.from_s for edge in edges] + [edge.to_s for edge in edges])
    axis = alt.Axis(
        title="latency (logarithmic)", labelExpr=_SECONDS, grid=True, values=ticks, labelOverlap=True
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
    axis = alt.Axis(title="seconds (logarithmic)", labelExpr=_SECONDS, values=ticks)
    lines = (
        alt.Chart(data.named(latencies))
        .mark_line(point=True)
        .encode(
            x=x,
            y=alt.Y("value:Q", scale=alt.Scale(type="log", nice=False), axis=axis),
            color=colour,
            tooltip=[alt.Tooltip("name:N", title="latency"), alt.Tooltip("told:N", title="value")],
        )
        .properties(width=460, height=_LOG_HEIGHT)
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
        .properties(width=460, height=_HEIGHT // 2)
    )
    return finished(alt.vconcat(lines, bars), data)
