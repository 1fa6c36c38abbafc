"""Writes the Markdown format: the report as text for a ticket, a wiki or a mail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pinchpoint.base.text import escaped_bytes, one_line
from pinchpoint.report.brief import Gathered, brief_of
from pinchpoint.report.comparison import SECTIONS as COMPARED_SECTIONS
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.html import environment
from pinchpoint.report.report import SECTIONS, Report
from pinchpoint.report.tables import Section, Table


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """Return the document as Markdown. It has no charts; their values are in report.json."""
    brief = brief_of(report)
    sections: Iterable[tuple[str, list[Table]]] = ()
    match report:
        case Report():
            sections = _filled(SECTIONS, report.tables)
        case ComparisonReport():
            rest = {name: table for name, table in report.tables.items() if name != "judged"}
            sections = _filled(COMPARED_SECTIONS, rest)  # the declared figures are already shown above
        case _:
            brief = replace(brief, main=None)  # the full tables follow below
    made = environment(page=False)
    made.filters |= {"line": escaped, "block": _block}
    template = made.get_template("report.md.j2")
    title, kind = cover.title or brief.title, type(report).__name__
    return template.render(report=report, brief=brief, title=title, kind=kind, sections=sections)


def _filled(sections: Iterable[Section], tables: Mapping[str, Table]) -> Iterator[tuple[str, list[Table]]]:
    """Yield the title and the tables of each section that has content."""
    for section in sections:
        shown = [tables[name] for name in section.tables if name in tables]
        if any(table.rows or table.empty for table in shown):
            yield section.title, shown


def _block(text: str, language: str, indent: str = "") -> str:
    """Return a code block. Its fence is longer than any sequence of backticks in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join(indent + line for line in (f"{fence}{language}", *text.splitlines(), fence))


def escaped(text: str) -> str:
    """Return text on one line with Markdown and HTML escaped. Commands are shown as code."""
    parts = re.split(r"(`pinchpoint [^`|]*`)", one_line(escaped_bytes(text)))
    return "".join(
        part if at % 2 else re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", part) for at, part in enumerate(parts)
    )
