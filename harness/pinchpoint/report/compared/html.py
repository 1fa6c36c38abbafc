"""The page of a comparison: one file, no script, no network."""

from __future__ import annotations

from markupsafe import Markup

from pinchpoint.report.compared.charts import ratio_chart, timeline_chart
from pinchpoint.report.compared.report import ComparisonReport
from pinchpoint.report.html import environment, policy, template_file

_LOOK = {True: "moved", False: "stayed", None: "inconclusive"}


def write(report: ComparisonReport) -> str:
    """The page."""
    content = report.content
    look = "invalid" if content["claim"] is None else _LOOK[content["bottleneck"]["moved"]]
    return (
        environment()
        .get_template("comparison.html.j2")
        .render(
            report=report,
            content=content,
            tables=report.tables,
            base=report.sides[0],
            other=report.sides[1],
            look=look,
            ratios=ratio_chart(content),
            timelines=timeline_chart(content),
            style=Markup(template_file("style.css")),  # noqa: S704 - our own file
            policy=policy([]),
        )
    )
