"""A report of anything but a run or a comparison of runs, as every format shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.report.charts import Chart
from pinchpoint.report.tables import Table


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
    """What a probe, two probes or a trend say, before it is written in any format.

    Attributes:
        title: two names and the word between them; or the last two are "".
        kind: what is reported.
        headline: what it says, in a few sentences.
        parts: the rest, in reading order.
        content: report.json.
        at: the instant it is of, UTC; None where it is of several.
        more: a sentence that goes with the headline; "" without one.
        notes: what a reader must know.
        reasons: how limits were found; on the page alone.
        facts: how it was measured; on the page alone.
    """

    title: tuple[str, str, str]
    kind: str
    headline: str
    parts: tuple[ReportPart, ...]
    content: Mapping[str, Any]
    at: str | None = None
    more: str = ""
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    facts: tuple[tuple[str, Any], ...] = ()
