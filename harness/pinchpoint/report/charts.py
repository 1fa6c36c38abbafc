"""Sets the style of all charts, converts Vega-Lite to SVG, and draws charts of latency, bursts and levels."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import vl_convert

from pinchpoint.base import units
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.text import one_line
from pinchpoint.data.latency import Distribution
from pinchpoint.data.timeline import Axis

# The palette of Okabe and Ito ("Color Universal Design", 2008) without yellow, which is invisible on white.
# Its colours differ for every kind of colour vision, and in lightness on a grey printer.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444", "#7a4fa3")

SECONDS = (
    "datum.value == 0 ? '0' : datum.value < 0.00099 ? format(datum.value * 1e6, '~g') + ' µs'"
    " : datum.value < 0.99 ? format(datum.value * 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' s'"
)

SHOW: Mapping[Axis, Callable[[float], str]] = {
    "rate": units.per_second,
    "latency": units.seconds,
    "ratio": units.percent,
}
_LETTER = 6.5
"""Estimated width of a letter in pixels. vl-convert does not know the font of the page and would cut
names."""
LABEL_LIMIT = 200
"""Largest width of a name in a legend, in pixels."""
LABELS: Mapping[Axis, str] = {
    "latency": SECONDS,
    "rate": "format(datum.value, '~s') + '/s'",
    "ratio": "format(datum.value, '.0%')",
}


_DIGITS = re.compile(r"((?<=[,MLHVCZ ])-?\d+\.\d)\d+(?=[,MLHVCZ\"])")
"""Digits of SVG coordinates beyond a tenth of a pixel, which is the visible precision."""
_NUMBERED = re.compile(r"(?<=[\"#])(?:clip|gradient_)\d+(?=[\")])")


LIMIT = "#c62828"
"""Colour of limit lines, and of the periods in which the bottleneck was at its limit."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """The meaning of one line or mark of a chart.

    Attributes:
        name: text of the entry.
        colour: colour of the line.
        style: line style; ``mark`` is a marked time range.
    """

    name: str
    colour: str
    style: Literal["solid", "dashed", "limit", "mark"] = "solid"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a specification and as a picture.

    Attributes:
        name: HTML id of the chart.
        title: heading of the chart, also read by screen readers.
        spec: Vega-Lite specification, drawn by the browser.
        svg: the same chart as SVG, for print and for browsers without scripts.
        legend: legend entries that the page writes below the chart; empty if the chart has its own legend.
    """

    name: str
    title: str
    spec: JsonObject
    svg: str
    legend: tuple[LegendEntry, ...] = ()


Spec = dict[str, Any]
"""Part of a Vega-Lite specification (reference: vega.github.io/vega-lite/docs)."""

_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal", "T": "temporal"}


def field(name: str, **more: Any) -> Spec:
    """Return an encoding channel. ``name`` is the key of a row and the letter of its type: ``value:Q``."""
    key, _, letter = name.rpartition(":")
    return {"field": key, "type": _TYPES[letter], **more}


def end(name: str) -> Spec:
    """Return the channel for the second end of a mark (``x2``, ``y2``). It has the type of the first end."""
    return {"field": name}


class Datasets(dict[str, list[JsonObject]]):
    """Named rows of a chart, which several layers can share."""

    def named(self, rows: Sequence[JsonObject]) -> Spec:
        """Add rows and return the reference by which a layer uses the rows."""
        name = f"rows{len(self)}"
        self[name] = list(rows)
        return {"name": name}


def layer(data: Spec, mark: str, encoding: JsonObject, **style: Any) -> Spec:
    """Return a layer that draws one mark for each row."""
    return {"data": data, "mark": {"type": mark, **style}, "encoding": dict(encoding)}


def layered(layers: Sequence[Spec], width: float, height: float) -> Spec:
    """Return a chart of layers, the lowest layer first. Width and height are in pixels."""
    return {"layer": list(layers), "width": width, "height": height}


def label_px(names: Iterable[str]) -> float:
    """Return the width in pixels of the longest name beside an axis."""
    return max(map(_letters, names)) * _LETTER


def _letters(name: str) -> int:
    """Return the width of a name in letters. East Asian characters and emoji count as two letters."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in name)


MOST_LETTERS = 30


def drawn_names(names: Sequence[str]) -> list[str]:
    """Return the user's names as a chart shows them: on one line, shortened and unique.

    Vega may cut a name within a character and then draws nothing, so the names are shortened here.
    """
    made: list[str] = []
    for at, name in enumerate(names, 1):
        plain = one_line(name) or "(no name)"
        short = plain if _letters(plain) <= MOST_LETTERS else f"{_cut(plain)}…"
        made.append(f"{short} ({at})" if short in made else short)
    return made


def _cut(name: str) -> str:
    while _letters(name) >= MOST_LETTERS:
        name = name[:-1]
    return name


def svg_of(spec: JsonObject) -> str:
    """Convert a specification to SVG without network access. The same specification gives the same SVG."""
    drawn: str = _DIGITS.sub(r"\1", vl_convert.vegalite_to_svg(dict(spec), allowed_base_urls=[]))
    # Vega numbers clip paths by a counter of the process, so the ids would differ each time. Ids must also be
    # unique within a page.
    numbers = {old: f"{at}" for at, old in enumerate(dict.fromkeys(_NUMBERED.findall(drawn)))}
    first = _NUMBERED.sub(lambda found: numbers[found[0]], drawn)
    own = hashlib.sha256(first.encode()).hexdigest()[:8]
    return _NUMBERED.sub(lambda found: f"c{own}-{numbers[found[0]]}", drawn)


_GREY = "#444"
_CONFIG = {
    "font": "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif",
    "background": "transparent",
    "axis": {
        "labelColor": _GREY,
        "titleColor": _GREY,
        "gridColor": "#e8e8e8",
        "domainColor": "#999",
        "tickColor": "#999",
    },
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": "#d0d0d0"},
    "title": {"anchor": "start", "fontSize": 13, "fontWeight": 600, "color": "#222", "offset": 4},
    "legend": {"labelColor": "#222", "labelFontSize": 11, "labelLimit": LABEL_LIMIT},
}


def over_depth(
    data: Datasets,
    rows: Sequence[JsonObject],
    key: str,
    colour: Spec,
    *,
    title: str,
    labels: str,
    size: tuple[float, float],
    line_s: float | None = None,
) -> Spec:
    """Return a chart of a figure over the queue depth (``outstanding`` of a row), both axes logarithmic.

    ``line_s`` draws a red line at this value.
    """
    depths = sorted({row["outstanding"] for row in rows})
    ticks = decades([row[key] for row in rows] + ([line_s] if line_s else []))
    y = field(
        f"{key}:Q",
        scale={"type": "log", "domain": [ticks[0], ticks[-1]]},
        axis={"title": title, "labelExpr": labels, "values": ticks, "labelOverlap": True},
    )
    x = field(
        "outstanding:Q",
        scale={"type": "log", "base": 2, "domain": [depths[0], depths[-1]]},
        axis={
            "title": "queue depth (outstanding I/Os)",
            "values": depths,
            "labelOverlap": True,
            "format": ",d",
        },
    )
    layers = line_and_points(data.named(rows), {"x": x, "y": y, "color": colour})
    if line_s:
        limit = data.named([{key: line_s}])
        layers.append(layer(limit, "rule", {"y": y}, color="#b00", strokeDash=[6, 4]))
    return layered(layers, *size)


def line_and_points(rows: Spec, encoding: JsonObject) -> list[Spec]:
    """Return layers that draw a line and a dot for each row."""
    return [layer(rows, "line", encoding), layer(rows, "point", encoding, filled=True, size=28)]


def finished(chart: Spec, data: Datasets) -> Spec:
    """Return a chart with fonts, colours and rows added."""
    return {**chart, "config": _CONFIG, "datasets": dict(data)}


def drawn(name: str, title: str, chart: Spec, data: Datasets, legend: Iterable[LegendEntry] = ()) -> Chart:
    """Return a finished chart with its SVG."""
    spec = finished(chart, data)
    return Chart(name, title, spec, svg_of(spec), tuple(legend))


ON_TOP: JsonObject = {"title": None, "orient": "top"}
"""Legend settings: above the chart, without a title."""


def coloured(key: str, names: Sequence[str], palette: Sequence[str] = PALETTE, **more: Any) -> Spec:
    """Return the colour channel that gives each name its own colour."""
    scale = {"domain": list(names), "range": palette[: len(names)]}
    return field(f"{key}:N", scale=scale, **more)


def beside_names(key: str, names: Sequence[str], **axis: Any) -> Spec:
    """Return the channel for rows with their full names beside the axis."""
    wide = label_px(names)
    return field(f"{key}:N", sort=names, axis={"title": None, "labelLimit": wide, "minExtent": wide, **axis})


def decades(values: Sequence[float]) -> list[float]:
    """Return axis ticks around positive values: powers of ten, and 2 and 5 between few powers."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    steps = (1.0, 2.0, 5.0) if high - low <= 2 else (1.0,)
    return [float(f"{step}e{power}") for power in range(low, high) for step in steps] + [float(f"1e{high}")]


def digits(value: float) -> float:
    """Round to four significant digits: more digits are not visible and would only enlarge the page."""
    return float(f"{value:.4g}")


def distribution_chart(scenario: str, kinds: Sequence[Distribution]) -> Chart:
    """Draw the distribution of the latencies of a scenario, on a logarithmic axis."""
    data = Datasets()
    names = [f"{each.kind} time" for each in kinds]
    colour = coloured("name", names, legend={**ON_TOP, "symbolType": "stroke", "symbolStrokeWidth": 3})
    bars, marks = _bins(names, kinds), _percentile_marks(names, kinds)
    edges = [edge for each in kinds for edge in each.bins]
    ticks = decades([edge.from_s for edge in edges] + [edge.to_s for edge in edges])
    axis = {
        "title": "latency (logarithmic)",
        "labelExpr": SECONDS,
        "grid": True,
        "values": ticks,
        "labelOverlap": True,
    }
    columns = {
        "x": field("from:Q", scale={"type": "log", "nice": False}, axis=axis),
        "x2": end("to"),
        "y": field(
            "ratio:Q", stack=None, axis={"title": "share of operations", "format": ".0%", "tickCount": 4}
        ),
        "y2": {"datum": 0},
        "color": colour,
        "tooltip": [
            field("name:N", title="time"),
            field("range:N", title="latency"),
            field("share:N", title="operations"),
        ],
    }
    rules = {"x": field("at:Q"), "color": colour, "tooltip": field("shown:N", title=scenario)}
    words = {"x": field("at:Q"), "y": {"value": 0}, "text": field("word:N")}
    layers = [
        # The first kind of time is filled and the second is an outline, so that both are visible where the
        # bars overlap.
        *(
            layer(
                data.named([bar for bar in bars if bar["name"] == name]),
                "rect",
                columns,
                filled=place == 0,
                opacity=0.45 if place == 0 else 1.0,
                strokeWidth=1.3,
            )
            for place, name in enumerate(names)
        ),
        layer(data.named(marks), "rule", rules, strokeDash=[4, 3], strokeWidth=1.4),
        layer(
            data.named([mark for mark in marks if mark["name"] == names[-1]]),
            "text",
            words,
            dy=-6,
            fontSize=10,
            color="#333",
        ),
    ]
    return drawn(f"latency-{scenario}", f"Latency of {scenario}", layered(layers, 460, 170), data)


def _bins(names: Sequence[str], kinds: Sequence[Distribution]) -> list[dict[str, Any]]:
    """Return a row for each bin of the histogram of each kind of time."""
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


def _percentile_marks(names: Sequence[str], kinds: Sequence[Distribution]) -> list[dict[str, Any]]:
    """Return a row for p50, p95 and p99 of each kind of time, with text."""
    return [
        {"name": name, "at": value, "word": word, "shown": f"{word} {SHOW['latency'](value)}"}
        for name, each in zip(names, kinds, strict=True)
        for word, value in (("p50", each.p50_s), ("p95", each.p95_s), ("p99", each.p99_s))
    ]


Burst = JsonObject
Rows = list[dict[str, Any]]

_WIDTH = 460
_TIMES_HEIGHT, _COUNTS_HEIGHT = 150, 90  # enough height for the labels of a decade of latencies
_TIMES = {"p50": "p50_s", "p99": "p99_s", "time to recover": "recovery_s"}
_COUNTS = {
    "offered": "offered",
    "done": "done",
    "dropped": "dropped",
    "waiting at its end": "backlog",
}
"""Legend text -> key of a burst."""


def burst_chart(scenario: str, bursts: Sequence[Burst]) -> Chart:
    """Draw the latency, the recovery time and the results of each burst of a scenario."""
    data = Datasets()
    both = {
        "vconcat": [_times(data, bursts), _counts(data, bursts)],
        "resolve": {"scale": {"color": "independent"}},
    }
    return drawn(f"bursts-{scenario}", f"Bursts of {scenario}", both, data)


def _times(data: Datasets, bursts: Sequence[Burst]) -> Spec:
    # A recovery within the first second is 0. A logarithmic axis cannot show 0.
    rows = _rows(bursts, _TIMES, SHOW["latency"], above=0.0)
    measured = [row["value"] for row in rows if row["value"] is not None]
    ticks = decades(measured) if measured else []
    y = field(
        "value:Q",
        scale={"type": "log", "nice": False},
        axis={"title": "seconds (logarithmic)", "labelExpr": SECONDS, "values": ticks},
    )
    return _by_burst(data, rows, y, coloured("name", [*_TIMES], legend=ON_TOP), "latency", _TIMES_HEIGHT)


def _counts(data: Datasets, bursts: Sequence[Burst]) -> Spec:
    rows = _rows(bursts, _COUNTS, lambda count: f"{count:,.0f}")
    y = field("value:Q", axis={"title": "operations", "tickCount": 4})
    return _by_burst(
        data, rows, y, coloured("name", [*_COUNTS], PALETTE[3:], legend=ON_TOP), "operations", _COUNTS_HEIGHT
    )


def _by_burst(data: Datasets, rows: Rows, y: Spec, colour: Spec, title: str, height: int) -> Spec:
    encoding: Spec = {
        # With many bursts, labels would overlap.
        "x": field("number:O", axis={"title": "burst", "labelAngle": 0, "labelOverlap": "greedy"}),
        "y": y,
        "color": colour,
        "tooltip": [field("name:N", title=title), field("shown:N", title="value")],
    }
    return {**layer(data.named(rows), "line", encoding, point=True), "width": _WIDTH, "height": height}


def _rows(
    bursts: Sequence[Burst], kinds: Mapping[str, str], show: Callable[[float], str], above: float = -1.0
) -> Rows:
    """Return a row per burst and kind.

    A value that was not measured or is not greater than ``above`` becomes null, which breaks the line.
    """
    rows: Rows = []
    for number, burst in enumerate(bursts, 1):
        for name, key in kinds.items():
            value = burst.get(key)
            if value is not None and value > above:
                rows.append({"number": number, "name": name, "value": value, "shown": show(value)})
            else:
                rows.append({"number": number, "name": name, "value": None})
    return rows


def level_chart(
    name: str,
    title: str,
    axis: Axis,
    unit: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    knee: float | None,
) -> Chart:
    """Draw a figure over the load levels, one line per scenario, and the knee as a red line."""
    data, key = Datasets(), name.rpartition("-")[2]  # screen readers read the key, too
    ticks: Spec = {"tickCount": 4}
    scale: Spec = {"zero": True}
    if axis == "latency":
        low, *_, high = ticks["values"] = decades([y for points in lines.values() for _, y in points])
        scale = {"type": "log", "domain": [low, high], "nice": False}
    colours = dict(zip(lines, PALETTE * len(lines), strict=False))
    y_axis = {"title": None, "labelExpr": LABELS[axis], "minExtent": 46, "maxExtent": 46, **ticks}
    encoding = {
        "x": field("load:Q", axis={"title": unit, "tickCount": 5}, scale={"zero": True}),
        "y": field(f"{key}:Q", scale=scale, axis=y_axis),
        "color": coloured("name", [*colours], [*colours.values()], legend=None),
    }
    tips = [field("shown:N", title="load"), field("value:N", title=title)]
    rows = data.named(
        [
            {
                "name": scenario,
                "load": load,
                key: figure,
                "shown": units.load_level(load, "users" if unit == "users" else "per_s"),
                "value": SHOW[axis](figure),
            }
            for scenario, points in lines.items()
            for load, figure in points
        ]
    )
    layers = [
        layer(rows, "line", encoding, strokeWidth=1.8),
        layer(rows, "point", {**encoding, "tooltip": tips}, filled=True, size=40),
    ]
    legend = [LegendEntry(scenario, colour) for scenario, colour in colours.items()]
    if knee is not None:
        at_knee = data.named([{"load": knee}])
        layers.insert(0, layer(at_knee, "rule", {"x": field("load:Q")}, color=LIMIT, strokeDash=[6, 4]))
        legend.append(LegendEntry("throughput stops following the load", LIMIT, "limit"))
    return drawn(name, title, layered(layers, 310, 130), data, legend)
