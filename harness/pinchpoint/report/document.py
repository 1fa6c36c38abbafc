"""Defines the content of a report of anything except a run or a comparison of runs, for all formats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.base.groups import by_key
from pinchpoint.base.wording import Summary
from pinchpoint.data.timeline import Axis
from pinchpoint.report.charts import Chart
from pinchpoint.report.tables import Table


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer on the first page.

    Attributes:
        question: text of the question.
        text: short answer.
        more: further sentences; "" if there are none.
        small: assumptions of the answer; "" if there are none.
    """

    question: str
    text: str
    more: str = ""
    small: str = ""

    @property
    def said(self) -> str:
        """Return the answer and its further sentences as one text."""
        ended = self.text if not self.more or self.text.endswith((".", ":", "!", "?")) else f"{self.text}."
        return f"{ended} {self.more}".strip()


@dataclass(frozen=True, slots=True)
class TestCase:
    """A check whose result a CI pipeline shows as one test case.

    Attributes:
        group: kind of check.
        name: name of the check, the same in every run.
        state: ``skipped`` means that there is no result, ``error`` that the run is not valid evidence.
        message: the result as text.
    """

    group: str
    name: str
    state: Literal["passed", "failed", "skipped", "error"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line of a plot, or one bar. The points are (x, y) in base units."""

    name: str
    points: tuple[tuple[float, float], ...]


def plot_lines(points: Iterable[tuple[str, float | None, float | None]]) -> tuple[PlotLine, ...]:
    """Group points (name, x, y) to lines, in the order of their first points.

    Points without a value are left out.
    """
    lines = by_key((name, (float(x), float(y))) for name, x, y in points if x is not None and y is not None)
    return tuple(PlotLine(name, tuple(each)) for name, each in lines.items())


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart as numbers, for documents that draw their own charts.

    Attributes:
        name: key of the chart.
        title: heading of the chart.
        axis: quantity of y.
        x: title of the x axis.
        lines: lines in the order of the legend.
        start_s: UTC second of x = 0, if x is a time; None if x is not a time.
        bars: whether each line is drawn as one bar.
        logarithmic: whether the y axis is logarithmic.
    """

    name: str
    title: str
    axis: Axis
    x: str
    lines: tuple[PlotLine, ...]
    start_s: float | None = None
    bars: bool = False
    logarithmic: bool = False

    @property
    def decades(self) -> tuple[float, float]:
        """Return the ends of a logarithmic axis: powers of ten below the smallest and above the largest y."""
        values = [math.log10(y) for line in self.lines for _, y in line.points]
        low = math.floor(min(values))
        return 10.0**low, 10.0 ** max(math.ceil(max(values)), low + 1)


@dataclass(frozen=True, slots=True)
class ReportPart:
    """Charts and tables under one heading.

    Attributes:
        name: HTML anchor of the part.
        title: heading of the part.
    """

    name: str
    title: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainReport:
    """The content of a report, such as of a probe or a trend, independent of the format.

    Attributes:
        title: two names and the word between them. The last two strings may be "".
        kind: subject of the report, such as ``Storage probe``.
        summary: summary in a few sentences.
        parts: further parts, in reading order.
        content: content of report.json.
        at: UTC time of the subject; None if there are several times.
        more: further sentence after the summary; "" if there is none.
        notes: remarks and warnings.
        reasons: sentences that explain how limits were found; only the page shows them.
        facts: name and value of facts about the measurement; only the page shows them.
        answers: answers on the first page that replace the usual ones.
        checks: results of all checks.
        plots: charts as numbers.
    """

    title: tuple[str, str, str]
    kind: str
    summary: Summary
    parts: tuple[ReportPart, ...]
    content: Mapping[str, Any]
    at: str | None = None
    more: str = ""
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    facts: tuple[tuple[str, Any], ...] = ()
    answers: tuple[Answer, ...] = ()
    checks: tuple[TestCase, ...] = ()
    plots: tuple[Plot, ...] = ()
