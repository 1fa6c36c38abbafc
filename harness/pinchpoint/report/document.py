"""A report of anything except a run or a comparison of runs, for every format."""

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
    """One answer of page one.

    Attributes:
        question: the question.
        text: the answer.
        more: further sentences; "" without any.
        small: its assumptions; "" without any.
    """

    question: str
    text: str
    more: str = ""
    small: str = ""

    @property
    def said(self) -> str:
        """The answer and its further sentences."""
        ended = self.text if not self.more or self.text.endswith((".", ":", "!", "?")) else f"{self.text}."
        return f"{ended} {self.more}".strip()


@dataclass(frozen=True, slots=True)
class TestCase:
    """A result that a pipeline shows as one test case.

    Attributes:
        group: the kind of check.
        name: the same from run to run.
        state: ``skipped``: without a result; ``error``: the judged run is no evidence.
        message: the finding.
    """

    group: str
    name: str
    state: Literal["passed", "failed", "skipped", "error"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line of a plot, or one bar: (x, y) in base units."""

    name: str
    points: tuple[tuple[float, float], ...]


def plot_lines(points: Iterable[tuple[str, float | None, float | None]]) -> tuple[PlotLine, ...]:
    """The lines of (name, x, y), in the order of their first point, without unmeasured values."""
    lines = by_key((name, (float(x), float(y))) for name, x, y in points if x is not None and y is not None)
    return tuple(PlotLine(name, tuple(each)) for name, each in lines.items())


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart as figures, for documents that draw their own charts.

    Attributes:
        name: its key.
        title: its heading.
        axis: the quantity of y.
        x: what x is.
        lines: in the legend's order.
        start_s: UTC second of x = 0, if x is a time of day.
        bars: each line is one bar.
        logarithmic: whether the axis of y is.
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
        """The ends of a logarithmic axis: powers of ten below the smallest and above the largest value."""
        values = [math.log10(y) for line in self.lines for _, y in line.points]
        low = math.floor(min(values))
        return 10.0**low, 10.0 ** max(math.ceil(max(values)), low + 1)


@dataclass(frozen=True, slots=True)
class ReportPart:
    """Charts and tables under one heading.

    Attributes:
        name: its anchor on the page.
        title: its heading.
    """

    name: str
    title: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainReport:
    """The content of a probe, two probes or a trend, independent of the format.

    Attributes:
        title: two names and the word between them; or the last two are "".
        kind: what is reported.
        summary: its summary, in a few sentences.
        parts: the rest, in reading order.
        content: report.json.
        at: its UTC time; None if it covers several.
        more: a further sentence of the summary; "" without one.
        notes: notes for the reader.
        reasons: how limits were found; only on the page.
        facts: how it was measured; only on the page.
        answers: answers of page one beyond the above.
        checks: passed and failed checks.
        plots: its charts as figures.
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
