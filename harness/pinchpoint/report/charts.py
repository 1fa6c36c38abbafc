"""What charts share (colours, fonts, axes, from Vega-Lite to SVG); the charts of latency and of bursts."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import vl_convert
from altair.utils import schemapi

from pinchpoint.base import units
from pinchpoint.base.text import one_line
from pinchpoint.data.latency import Distribution
from pinchpoint.data.timeline import Axis

# Drawing a chart finds what is wrong with it. Altair's check of each part takes a third of a page's time.
schemapi.disable_debug_mode()

# Okabe and Ito's palette ("Color Universal Design", 2008) without its yellow, which vanishes on white:
# distinguished with any colour vision, and by lightness on a grey printer.
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
"""Pixels of a letter: the drawing does not know the page's font, and would cut names off."""
LABEL_LIMIT = 200
"""Pixels of a line's name in a legend."""
LABELS: Mapping[Axis, str] = {
    "latency": SECONDS,
    "rate": "format(datum.value, '~s') + '/s'",
    "ratio": "format(datum.value, '.0%')",
}


_DIGITS = re.compile(r"((?<=[,MLHVCZ ])-?\d+\.\d)\d+(?=[,MLHVCZ\"])")
"""Coordinates: a tenth of a pixel is drawn, more cannot be seen."""
_NUMBERED = re.compile(r"(?<=[\"#])(?:clip|gradient_)\d+(?=[\")])")


LIMIT = "#c62828"
"""Limit lines, and the time in which the bottleneck was at its limit."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """What one line or mark of a chart is.

    Attributes:
        name: in words.
        colour: of the line.
        style: how it is drawn; ``mark``: a span of time.
    """

    name: str
    colour: str
    style: Literal["solid", "dashed", "limit", "mark"] = "solid"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart.

    Attributes:
        name: its id on the page.
        title: its heading, also read out by screen readers.
        spec: Vega-Lite, for the browser.
        svg: the same as a picture, for paper and for browsers without scripts.
        legend: its lines, where the page writes the legend below it.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    svg: str
    legend: tuple[LegendEntry, ...] = ()


class Datasets(dict[str, list[Mapping[str, Any]]]):
    """The rows behind a chart, by name: Altair copies what it is given over and over; names are cheap."""

    def named(self, rows: Sequence[Mapping[str, Any]]) -> alt.NamedData:
        """What a chart refers to them by."""
        name = f"rows{len(self)}"
        self[name] = list(rows)
        return alt.NamedData(name=name)


def label_px(names: Iterable[str]) -> float:
    """The room that the longest of the names beside an axis needs."""
    return max(map(_letters, names)) * _LETTER


def _letters(name: str) -> int:
    """Letters of usual width: those of East Asia and pictures are two wide."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in name)


MOST_LETTERS = 30


def drawn_names(names: Sequence[str]) -> list[str]:
    """Names of a user's as a chart can hold them: each one line, not too long, none like another.

    What Vega shortens itself it may cut within a character, and then draws nothing at all.
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


def svg_of(spec: Mapping[str, Any]) -> str:
    """A specification as a picture, the same each time; nothing is loaded for it."""
    drawn: str = _DIGITS.sub(r"\1", vl_convert.vegalite_to_svg(dict(spec), allowed_base_urls=[]))
    # Vega numbers clips by a counter of the process; on a page each must have a name of its own.
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


def finished(
    chart: alt.VConcatChart | alt.HConcatChart | alt.LayerChart | alt.FacetChart, data: Datasets
) -> dict[str, Any]:
    """A chart as the specification that is drawn: fonts, colours, the rows behind it."""
    # Drawing it finds what is wrong with it as well; to validate a run of twenty hosts takes seconds.
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["config"] = _CONFIG
    spec["datasets"] = dict(data)
    del spec["$schema"]  # an address that need not be visited
    return spec


def decades(values: Sequence[float]) -> list[float]:
    """Ticks that enclose positive values: powers of ten, with 2 and 5 between them where these are few."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    steps = (1.0, 2.0, 5.0) if high - low <= 2 else (1.0,)
    return [float(f"{step}e{power}") for power in range(low, high) for step in steps] + [float(f"1e{high}")]


def digits(value: float) -> float:
    """Four digits: more cannot be seen, and would only make the page bigger."""
    return float(f"{value:.4g}")


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
    bars, marks = _bins(names, kinds), _percentile_marks(names, kinds)
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


def _bins(names: Sequence[str], kinds: Sequence[Distribution]) -> list[dict[str, Any]]:
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


def _percentile_marks(names: Sequence[str], kinds: Sequence[Distribution]) -> list[dict[str, Any]]:
    """The percentiles of each kind, in words too."""
    return [
        {"name": name, "at": value, "word": word, "told": f"{word} {SHOW['latency'](value)}"}
        for name, each in zip(names, kinds, strict=True)
        for word, value in (("p50", each.p50_s), ("p95", each.p95_s), ("p99", each.p99_s))
    ]


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


def level_charts(levels: Sequence[Mapping[str, Any]], knee: float | None) -> list[Chart]:
    """Throughput and p95 over the load of a climb in steps, a line per scenario; the knee as a red line."""
    scenarios = list(dict.fromkeys(str(level["scenario"]) for level in levels))
    rows = [
        {
            "name": level["scenario"],
            "load": level["level"],
            "throughput": level["throughput_per_s"],
            "p95": level["response_p95_s"] if level["response_p95_s"] is not None else level["service_p95_s"],
            "shown": units.load_level(level["level"], level["unit"]),
        }
        for level in levels
    ]
    if len({row["load"] for row in rows}) < 2:
        return []
    unit = "users" if levels[0]["unit"] == "users" else "offered per second"
    found: tuple[tuple[str, str, Axis], ...] = (
        ("throughput", "Throughput by load", "rate"),
        ("p95", "p95 by load", "latency"),
    )
    return [
        _level_chart(scenarios, [row for row in rows if row[key]], key, title, axis, unit, knee)
        for key, title, axis in found
        if any(row[key] for row in rows)
    ]


def _level_chart(
    scenarios: Sequence[str], rows: Rows, key: str, title: str, axis: Axis, unit: str, knee: float | None
) -> Chart:
    data = Datasets()
    ticks: dict[str, Any] = {"tickCount": 4}
    scale = alt.Scale(zero=True)
    if axis == "latency":
        low, *_, high = ticks["values"] = decades([row[key] for row in rows])
        scale = alt.Scale(type="log", domain=[low, high], nice=False)
    colours = dict(zip(scenarios, PALETTE * len(scenarios), strict=False))
    x = alt.X("load:Q", axis=alt.Axis(title=unit, tickCount=5), scale=alt.Scale(zero=True))
    y_axis = alt.Axis(title=None, labelExpr=LABELS[axis], minExtent=46, maxExtent=46, **ticks)
    domain_of = alt.Scale(domain=list(colours), range=list(colours.values()))
    shown = [{**row, "value": SHOW[axis](row[key])} for row in rows]
    tips = [alt.Tooltip("shown:N", title="load"), alt.Tooltip("value:N", title=title)]
    base = alt.Chart(data.named(shown)).encode(
        x=x,
        y=alt.Y(f"{key}:Q", scale=scale, axis=y_axis),
        color=alt.Color("name:N", legend=None, scale=domain_of),
    )
    layers = [base.mark_line(strokeWidth=1.8), base.mark_point(filled=True, size=40).encode(tooltip=tips)]
    if knee is not None:
        layers.insert(
            0,
            alt.Chart(data.named([{"load": knee}]))
            .mark_rule(color=LIMIT, strokeDash=[6, 4])
            .encode(x="load:Q"),
        )
    legend = [LegendEntry(name, colour) for name, colour in colours.items()]
    legend += [LegendEntry("throughput stops following the load", LIMIT, "limit")] if knee is not None else []
    spec = finished(alt.layer(*layers).properties(width=310, height=130), data)
    return Chart(f"levels-{key}", title, spec, svg_of(spec), tuple(legend))
