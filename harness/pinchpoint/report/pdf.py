"""Writes the PDF format: page one, the evidence with its charts, and an appendix with everything else."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.text import one_line
from pinchpoint.report import fit
from pinchpoint.report.brief import Brief, Gathered, brief_of
from pinchpoint.report.charts import Chart
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.drawn import charts_of
from pinchpoint.report.html import template_file
from pinchpoint.report.libraries import library
from pinchpoint.report.tables import Table, columns
from pinchpoint_collectors.common.counts import counted

_HEADING = 110
"""Largest number of letters in the title above the first page."""
_LONGEST = 24
"""Number of letters from which a word may be broken."""
_MOST_LETTERS = 2_000
"""Largest number of letters in a cell."""
_UPRIGHT_PT, _ACROSS_PT = 490.0, 735.0
"""Text width of a page in portrait and in landscape format, in points."""
_WIDEST_PT = 320.0
_MOST_ROWS = 200
"""Largest number of rows of a table. The XLSX workbook has all rows."""
_MOST_EVIDENCE, _MOST_WARNINGS = 12, 8
_MOST_COLUMNS = 8
"""A table with more columns gets a smaller font."""


def write(report: Gathered, cover: Cover = PLAIN) -> bytes:
    """Return the PDF, tagged for screen readers (PDF/UA-1). The same input gives the same bytes."""
    typst = library("typst", "--format pdf")
    brief = brief_of(report)
    first, rest = charts_of(report)
    content = json.dumps(_content(brief, cover, first, rest), ensure_ascii=False)
    return _compiled(typst, content, brief.made_at.replace(tzinfo=UTC))


def _compiled(typst: Any, content: str, at: datetime) -> bytes:
    """Compile the PDF.

    Letters that no installed font has are replaced by question marks, and a note says so.
    """
    missing: set[str] = set()
    while True:
        shown = "".join("?" if missing and _writing(each) in missing else each for each in content)
        try:
            made: bytes = typst.compile(
                template_file("report.typ").encode(),
                format="pdf",
                sys_inputs={"data": shown, "letters": "missing" if missing else ""},
                pdf_standards=["ua-1"],
                timestamp=at,
            )
        except typst.TypstError as error:
            match = _NO_FONT.search(str(error))
            letters = _ESCAPED.sub(lambda one: chr(int(one[1], 16)), match[1]) if match else ""
            new = {_writing(each) for each in letters} - missing - {""}
            if not new:
                first_line = str(error).splitlines()[0]
                raise InputError(f"--format pdf: the page cannot be set: {first_line}") from error
            missing |= new
        else:
            return made


_NO_FONT = re.compile(r'the text `"(.+?)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-f]+)\}")


def _writing(letter: str) -> str:
    """Return the group of letters that a font has as a whole: a script or a category of signs.

    ASCII letters return "".
    """
    if letter.isascii():
        return ""
    category = unicodedata.category(letter)
    return unicodedata.name(letter, category).partition(" ")[0] if category.startswith("L") else category


def _content(brief: Brief, cover: Cover, first: list[Chart], rest: list[Chart]) -> JsonObject:
    """Return the content for the template. It contains text only, no markup."""
    logo = cover.logo
    return {
        "title": _text(cover.title or brief.title),
        "heading": _text(fit.shortened(one_line(cover.title or brief.title), _HEADING)),
        "kind": brief.kind,
        "subject": _text(brief.title),
        "decision": brief.decision,
        "logo": None if logo is None else {"kind": logo.kind, "data": list(logo.data)},
        "answers": [
            {
                "question": each.question,
                "text": _text(each.text),
                "more": _text(each.more),
                "small": _text(each.small),
            }
            for each in brief.answers
        ],
        "main": None if brief.main is None else _table(brief.main, _UPRIGHT_PT),
        "evidence": [_text(fact) for fact in brief.evidence[:_MOST_EVIDENCE]],
        "warnings": [_text(warning) for warning in brief.warnings[:_MOST_WARNINGS]],
        "checks": _table(_checks(brief)) if brief.checks else None,
        "first": [_chart(chart) for chart in first],
        "rest": [_chart(chart) for chart in rest],
        "sections": [
            {"title": title, "tables": [_table(table) for table in tables]}
            for title, tables in brief.sections
        ],
    }


def _checks(brief: Brief) -> Table:
    shown = columns("name: check", "state: result", "message: found")
    return Table("checks", "Checks", shown, [asdict(one) for one in brief.checks])


def _table(table: Table, room_pt: float = _ACROSS_PT) -> JsonObject:
    size = 7.0 if len(table.columns) > _MOST_COLUMNS else 8.0
    cells = table.cells()[:_MOST_ROWS]
    heads = [column.title for column in table.columns]
    rows = [[_text(cell) for cell in row] for row in cells]
    more = len(table.rows) - len(rows)
    note = (
        f"In the workbook (--format xlsx): {counted(more, 'more row')}. {table.note}" if more else table.note
    )
    return {
        "title": _text(table.title),
        "heads": [_text(head) for head in heads],
        "right": [column.numeric for column in table.columns],
        "widths": fit.widths(
            [*zip(heads, *cells, strict=True)],
            size,
            room_pt,
            edge_pt=9,
            longest=_LONGEST,
            most_pt=_WIDEST_PT,
            filled=False,
        ),
        "size": size,
        "rows": rows,
        "note": _text(note),
    }


def _chart(chart: Chart) -> JsonObject:
    names = ", ".join(entry.name for entry in chart.legend)
    return {
        "title": _text(chart.title),
        "svg": chart.svg,
        "said": one_line(f"Chart: {chart.title}" + (f" ({names})" if names else "")),
        "legend": [
            {"name": _text(entry.name), "colour": entry.colour, "style": entry.style}
            for entry in chart.legend
        ],
    }


def _text(text: str) -> str:
    """Return text on one line. Long words can be broken, and letters that no font can have are replaced."""
    answer = one_line(text)
    answer = answer if len(answer) <= _MOST_LETTERS else f"{answer[:_MOST_LETTERS]}…"
    shown = "".join("\ufffd" if unicodedata.category(each) in ("Cn", "Co") else each for each in answer)
    return re.sub(rf"\S{{{_LONGEST},}}", _broken, shown)


def _broken(value: re.Match[str]) -> str:
    return "\u200b".join(re.findall(r".{1,8}", value[0]))
