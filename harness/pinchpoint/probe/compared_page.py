"""The page of two probes beside each other: one file, no script, no network."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from pinchpoint.base import units
from pinchpoint.probe import compared
from pinchpoint.probe.charts import MARGIN
from pinchpoint.probe.compare import ProbeComparison
from pinchpoint.report.charts import PALETTE, Chart
from pinchpoint.report.html import environment, policy, template_file

_WIDTH = 460
_CALLS = ("better", "worse", "equivalent", "inconclusive")
_MOST = 64
"""More cells than that make no chart: the table has them all."""


def compared_page(found: ProbeComparison) -> str:
    """Summary, ratios as a chart, cells, what moved, what else differs."""
    text = files("pinchpoint.probe").joinpath("compared.html.j2").read_text(encoding="utf-8")
    return (
        environment()
        .from_string(text)
        .render(
            found=found,
            chart=ratios(found),
            tables=[compared.table(found), compared.moved_table(found)],
            style=Markup(template_file("style.css")),  # noqa: S704 - our own file
            policy=policy([]),
        )
    )


def ratios(found: ProbeComparison) -> Chart | None:
    """How many times as fast each cell is, on a scale of ratios, with its interval where there is one."""
    rows: list[dict[str, Any]] = [
        {
            "name": one.cell,
            "ratio": one.ratio,
            "low": one.ci95[0] if one.ci95 else one.ratio,
            "high": one.ci95[1] if one.ci95 else one.ratio,
            "call": one.call,
            "told": units.times(one.ratio),
        }
        for one in found.changes
        if one.ratio
    ]
    if not rows or len(rows) > _MOST:
        return None
    y = alt.Y("name:N", sort=[row["name"] for row in rows], axis=alt.Axis(title=None, labelLimit=260))
    scale = alt.Scale(type="log", nice=True)
    title = alt.Axis(title=f"{found.labels[1]} ÷ {found.labels[0]}", tickCount=6)
    colour = alt.Color(
        "call:N",
        scale=alt.Scale(domain=list(_CALLS), range=list(PALETTE[: len(_CALLS)])),
        legend=alt.Legend(title=None),
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    line = (
        alt.Chart(alt.InlineData(values=[{"x": 1}]))
        .mark_rule(color="#888", strokeDash=[4, 4])
        .encode(x=alt.X("x:Q", scale=scale))
    )
    rules = base.mark_rule().encode(x=alt.X("low:Q", scale=scale, axis=title), x2="high:Q", color=colour)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("ratio:Q", scale=scale), color=colour
    )
    words = base.mark_text(align="left", dx=8, fontSize=10).encode(
        x=alt.X("high:Q", scale=scale), text="told:N"
    )
    layered = (line + rules + points + words).properties(width=_WIDTH, height=18 * len(rows))
    spec = layered.configure(padding=MARGIN).to_dict()
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return Chart("ratios", "How many times as fast", spec, svg)
