"""Writes the XLSX format: page one, and a sheet for each table and each chart. Numbers stay numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.text import one_line
from pinchpoint.data.timeline import Axis
from pinchpoint.report import fit
from pinchpoint.report.brief import Brief, Gathered, brief_of
from pinchpoint.report.charts import PALETTE
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.document import Plot
from pinchpoint.report.libraries import library
from pinchpoint.report.tables import Column, Table

_FORMATS: Mapping[Callable[[Any], str], tuple[str, str]] = {
    units.seconds: (" (s)", "0.000000"),
    units.per_second: (" (per s)", "#,##0.00"),
    units.percent: ("", "0.0 %"),
    units.times: (" (x)", "0.000"),
    units.bytes_: (" (bytes)", "#,##0"),
}
"""Formatter of a column -> suffix of its heading, and number format of its cells."""
_OF_AXIS: Mapping[Axis, tuple[str, str]] = {
    "rate": ("per second", "#,##0.00"),
    "latency": ("seconds", "0.000000"),
    "ratio": ("share", "0.0 %"),
}
_MOST_LETTERS = 32_000
"""Largest number of letters in a cell; XLSX allows 32,767."""
_SHEET_LETTERS = 31
_DAY_S = 86_400
_EPOCH = 25_569
"""Day number of 1 January 1970 in a spreadsheet."""
_WIDEST = 60
_A4 = 9
_LETTERS_PT, _LETTER_PT = 11.0, 5.25
"""Font size of a sheet, and width of a digit (the unit of column widths), in points."""
_ROW_PT, _TALLEST_PT = 15.0, 405.0


def write(report: Gathered, cover: Cover = PLAIN) -> bytes:
    """Return the workbook. The same input gives the same bytes."""
    xlsxwriter = library("xlsxwriter", "--format xlsx")
    brief = brief_of(report)
    buffer = io.BytesIO()
    plain = {"strings_to_formulas": False, "strings_to_numbers": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(buffer, {"in_memory": True, **plain})
    book.set_properties(
        {
            "title": one_line(cover.title or brief.title),
            "subject": brief.kind,
            "author": "Pinchpoint",
            "created": brief.made_at,
        }
    )
    sheets = _Sheets(book)
    sheets.first(brief, cover)
    main = [("", (brief.main,))] if brief.main is not None else []
    shown: set[str] = set()
    for _, tables in (*main, *brief.sections):
        for table in tables:
            if table.rows and table.name not in shown:
                shown.add(table.name)
                sheets.table(table)
    for plot in brief.plots:
        sheets.plot(plot)
    book.close()
    return buffer.getvalue()


class _Sheets:
    """The sheets of a workbook. Each sheet gets a unique name."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._names: set[str] = set()
        self._text = book.add_format({"text_wrap": True, "valign": "top"})
        self._bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        self._head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
        self._title = book.add_format({"bold": True, "font_size": 16})
        self._formats: dict[str, Any] = {}

    def _number(self, kind: str) -> Any:
        if kind not in self._formats:
            self._formats[kind] = self._book.add_format({"num_format": kind, "valign": "top"})
        return self._formats[kind]

    def _add(self, title: str) -> Any:
        """Add a sheet. Characters that are not allowed in its name are replaced."""
        wanted = re.sub(r"[\[\]:*?/\\']", " ", one_line(title)).strip() or "Sheet"
        name, number = wanted[:_SHEET_LETTERS].strip(), 1
        while name.lower() in self._names or name.lower() == "history":
            number += 1
            name = f"{wanted[: _SHEET_LETTERS - 4].strip()} {number}"
        self._names.add(name.lower())
        sheet = self._book.add_worksheet(name)
        sheet.set_landscape()
        sheet.set_paper(_A4)
        sheet.fit_to_pages(1, 0)  # prints one page wide
        return sheet

    def first(self, brief: Brief, cover: Cover) -> None:
        """Write the first sheet: a row per question, and the checks below."""
        sheet = self._add("Summary")
        sheet.set_column(0, 0, 28)
        sheet.set_column(1, 1, 90)
        sheet.hide_gridlines(2)
        tall = _Rows(sheet, (28, 90))
        row = 0
        if cover.logo is not None:
            picture = io.BytesIO(cover.logo.png())
            options = {"image_data": picture, "description": "Logo", **_size(cover.logo.png())}
            sheet.set_row(0, 76)
            sheet.insert_image(0, 0, "logo.png", options)
            row = 1
        self._write(sheet, row, 0, cover.title or brief.title, self._title)
        row += 2

        def line(name: str, text: str, form: Any, beside: Any) -> None:
            nonlocal row
            if name:
                self._write(sheet, row, 0, name, form)
            self._write(sheet, row, 1, text, beside)
            tall.set(row, (name, text))
            row += 1

        for each in brief.answers:
            answer = f"{each.said} ({each.small})" if each.small else each.said
            line(each.question, answer, self._bold, self._text)
        row += 1
        for at, fact in enumerate(brief.evidence):
            line("" if at else "Evidence", fact, self._head, self._text)
        if brief.checks:
            row += bool(brief.evidence)
            line("Check", "Result", self._head, self._head)
        for check in brief.checks:
            answer = check.state + (f": {check.message}" if check.message else "")
            line(check.name, answer, self._text, self._text)
        row += 1
        for at, warning in enumerate(brief.warnings):
            line("" if at else "Warnings", warning, self._head, self._text)

    def table(self, table: Table) -> None:
        """Write a sheet with a table in base units."""
        sheet = self._add(table.title)
        self._write(sheet, 0, 0, table.title, self._title)
        sheet.freeze_panes(3, 0)
        forms = [_FORMATS.get(column.show, ("", "")) for column in table.columns]
        heads = [column.title + unit for column, (unit, _) in zip(table.columns, forms, strict=True)]
        written = [heads]
        for place, head in enumerate(heads):
            self._write(sheet, 2, place, head, self._head)
        for at, row in enumerate(table.rows, 3):
            written.append(
                [
                    self._cell(sheet, (at, place), column, row, kind)
                    for place, (column, (_, kind)) in enumerate(zip(table.columns, forms, strict=True))
                ]
            )
        widths = [min(max(map(len, column)) + 4, _WIDEST) for column in zip(*written, strict=True)]
        tall = _Rows(sheet, widths)
        for place, width in enumerate(widths):
            sheet.set_column(place, place, width)
        for at, cells in enumerate(written, 2):
            tall.set(at, cells)
        if table.note:
            self._write(sheet, len(table.rows) + 4, 0, table.note, None)

    def _cell(
        self, sheet: Any, at: tuple[int, int], column: Column, row: Mapping[str, Any], kind: str
    ) -> str:
        value, shown = row.get(column.key), column.cell(row)
        if isinstance(value, int | float) and not isinstance(value, bool):
            sheet.write_number(*at, value, self._number(kind or "General"))
        else:
            self._write(sheet, *at, shown, self._text)
        return shown

    def plot(self, plot: Plot) -> None:
        """Write a sheet with a chart and its values: x, then a column per line."""
        sheet = self._add(plot.title)
        self._write(sheet, 0, 0, plot.title, self._title)
        unit, kind = _OF_AXIS[plot.axis] if not plot.bars else ("multiple", "0.000")
        if plot.bars:
            self._bars(sheet, plot, kind)
            return
        times, start_s = plot.start_s is not None, plot.start_s or 0.0
        name, form = ("time (UTC)", "yyyy-mm-dd hh:mm:ss") if times else (plot.x, "General")
        xs = {
            x: _EPOCH + (start_s + x) / _DAY_S if times else x
            for x in sorted({x for line in plot.lines for x, _ in line.points})
        }
        self._write(sheet, 2, 0, name, self._head)
        sheet.set_column(0, len(plot.lines), 20)
        for at, shown in enumerate(xs.values(), 3):
            sheet.write_number(at, 0, shown, self._number(form))
        places = {x: at for at, x in enumerate(xs, 3)}
        chart = self._book.add_chart({"type": "scatter", "subtype": "straight"})
        for number, line in enumerate(plot.lines, 1):
            self._write(sheet, 2, number, f"{line.name} ({unit})", self._head)
            for x, y in line.points:
                sheet.write_number(places[x], number, y, self._number(kind))
            if xs:
                chart.add_series(
                    {
                        "name": [sheet.get_name(), 2, number],
                        "categories": _cells(sheet, 0, len(xs)),
                        "values": _cells(sheet, number, len(xs)),
                        "line": {"color": PALETTE[(number - 1) % len(PALETTE)], "width": 1.5},
                    }
                )
        axis: dict[str, Any] = {"name": name, "num_format": "hh:mm:ss" if times else "General"}
        if times and len(xs) > 1:
            axis |= {"min": min(xs.values()), "max": max(xs.values())}
        self._place(sheet, chart, plot, {**axis, "major_gridlines": {"visible": False}}, unit, kind)

    def _bars(self, sheet: Any, plot: Plot, kind: str) -> None:
        sheet.set_column(0, 0, 44)
        for at, line in enumerate(plot.lines, 3):
            self._write(sheet, at, 0, line.name, self._text)
            sheet.write_number(at, 1, line.points[0][1], self._number(kind))
        chart = self._book.add_chart({"type": "bar"})
        names, values = (_cells(sheet, column, len(plot.lines)) for column in (0, 1))
        chart.add_series({"categories": names, "values": values, "fill": {"color": PALETTE[0]}})
        chart.set_legend({"none": True})
        self._place(sheet, chart, plot, {"name": plot.x or "multiple", "min": 0}, "", "General")

    def _place(self, sheet: Any, chart: Any, plot: Plot, x: Mapping[str, Any], unit: str, kind: str) -> None:
        chart.set_title({"name": plot.title, "overlay": False})
        chart.set_x_axis(dict(x))
        scale: dict[str, Any] = {"min": 0}
        if plot.logarithmic:
            low, high = plot.decades
            scale = {"log_base": 10, "min": low, "max": high, "crossing": "min"}
        chart.set_y_axis({"name": unit, "num_format": kind, **scale} if unit else {"reverse": True})
        chart.set_size({"width": 760, "height": 380})
        chart.show_blanks_as("gap")
        text = f"{plot.title}: {', '.join(one_line(line.name) for line in plot.lines)}."
        options = {"description": text[: _WIDEST * 4]}
        sheet.insert_chart(2, (1 if plot.bars else len(plot.lines)) + 2, chart, options)

    @staticmethod
    def _write(sheet: Any, row: int, column: int, text: str, form: Any) -> None:
        """Write text as a string, even if it looks like a formula, an address or a number."""
        sheet.write_string(row, column, one_line(text)[:_MOST_LETTERS], form)


def _cells(sheet: Any, column: int, count: int) -> list[Any]:
    """Return the cell range of a column, as a chart refers to it."""
    return [sheet.get_name(), 3, column, 2 + count, column]


class _Rows:
    """Row heights that fit the text. Some spreadsheet programs do not calculate them."""

    def __init__(self, sheet: Any, widths: Sequence[float]) -> None:
        self._sheet = sheet
        self._widths = [(width - 1) * _LETTER_PT for width in widths]

    def set(self, row: int, cells: Sequence[str]) -> None:
        """Set the height of a row to that of its longest cell."""
        most = max(
            fit.lines(one_line(cell)[:_MOST_LETTERS], _LETTERS_PT, width)
            for cell, width in zip(cells, self._widths, strict=True)
        )
        if most > 1:
            self._sheet.set_row(row, min(most * _ROW_PT, _TALLEST_PT))


def _size(png: bytes) -> Mapping[str, float]:
    """Return the scale that limits a picture to a height of 64 and a width of 190 pixels."""
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    scale = min(64 / height, 190 / width)
    return {"x_scale": scale, "y_scale": scale}
