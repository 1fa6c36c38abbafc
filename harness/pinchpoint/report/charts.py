"""What charts share: colours, fonts, axes. One Vega-Lite specification serves the page and, as SVG, paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from pinchpoint.report.timeline import Axis

# Okabe and Ito's palette ("Color Universal Design", 2008) without its yellow, which vanishes on white:
# told apart with any colour vision, and by lightness on a grey printer.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444", "#7a4fa3")

SECONDS = (
    "datum.value == 0 ? '0' : datum.value < 0.00099 ? format(datum.value * 1e6, '~g') + ' µs'"
    " : datum.value < 0.99 ? format(datum.value * 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' s'"
)
LABELS: Mapping[Axis, str] = {
    "latency": SECONDS,
    "rate": "format(datum.value, '~s') + '/s'",
    "ratio": "format(datum.value, '.0%')",
}


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
    # Drawing it finds what is wrong with it as well; to validate a run of twenty hosts takes seconds.
    spec: dict[str, Any] = configured.to_dict(validate=False)
    spec["datasets"] = dict(data)
    del spec["$schema"]  # an address nobody needs to visit
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
