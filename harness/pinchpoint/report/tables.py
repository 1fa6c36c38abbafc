"""Defines tables of a report: raw values in base units, and the text of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.text import aligned, fitted, one_line, width
from pinchpoint.data.timeaxis import day_and_time, shown_offset_s

Row = Mapping[str, Any]
"""Column key -> raw value in base units; ``None`` means not measured."""


def text(value: Any) -> str:
    """Return a value without a unit as text. Whole numbers get separators, and lists are joined."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(text(item) for item in value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        key: key of the value in each row.
        title: heading of the column.
        show: formats a value that is not ``None``.
        absent: text of a missing value (``None``); never 0.
        numeric: whether the column is right-aligned.
    """

    key: str
    title: str
    show: Callable[[Any], str] = text
    absent: str = units.NOT_MEASURED
    numeric: bool = False

    def cell(self, row: Row) -> str:
        """Return the text of this column for a row."""
        value = row.get(self.key)
        return self.absent if value is None else self.show(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A named table. HTML, Markdown and JSON use the same record.

    Attributes:
        name: key of the table in report.json.
        title: heading of the table.
        columns: columns in order.
        rows: rows in order.
        note: one or two sentences that say how the values were calculated.
        empty: sentence shown if there are no rows; "": the table is left out.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    empty: str = "Nothing to show."

    def cells(self) -> list[list[str]]:
        """Return the texts of all rows."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]


def right_of(columns: Sequence[Column]) -> list[int]:
    """Return the indexes of the right-aligned columns."""
    return [at for at, column in enumerate(columns) if column.numeric]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: tables by name under one heading.

    Attributes:
        name: HTML anchor of the section.
        title: heading of the section.
        tables: names of the tables, in reading order.
    """

    name: str
    title: str
    tables: tuple[str, ...]


_UNITS: Mapping[str, Callable[[Any], str]] = {
    "bytes_per_s": lambda value: units.of_metric("_bytes_per_s", value),
    "per_s": units.per_second,
    "ratio": units.percent,
    "bytes": units.bytes_,
    "s": units.seconds,
    "times": units.times,
    "interval": units.interval,
    "number": text,
    "whole": lambda value: f"{value:,.0f}",
    "p": lambda p: f"{p:.2g}" if p >= 0.0001 else "< .0001",
}
"""Unit -> formatter of its values. The unit of a column is the ending of its key, or a word after the key."""


def columns(*specs: str | Column) -> tuple[Column, ...]:
    """Return columns from texts ``"KEY [UNIT]: TITLE | ABSENT"``.

    The default title is the key, and the default unit is the ending of the key.

    Examples: ``"host"``, ``"p95_s: p95"``, ``"dropped number: dropped | -"``, ``"ratio times: ratio |
    none"``.
    """
    return tuple(one if isinstance(one, Column) else _column(one) for one in specs)


def _column(spec: str) -> Column:
    head, _, rest = spec.partition(": ")
    key, _, unit = head.partition(" ")
    title, bar, absent = rest.partition(" |")
    unit = unit or next((one for one in _UNITS if f"_{key}".endswith(f"_{one}")), "")
    show = _UNITS.get(unit)
    return Column(
        key,
        title or key,
        show or text,
        absent.removeprefix(" ") if bar else units.NOT_MEASURED,
        numeric=show is not None,
    )


def number(
    key: str, title: str, show: Callable[[Any], str] = text, absent: str = units.NOT_MEASURED
) -> Column:
    """Return a numeric column with a title from the user, or with its own formatter."""
    return Column(key, title, show, absent, numeric=True)


def measured_s(manifest: Row) -> float | None:
    """Return the length of the measure phase in seconds; ``None`` if it is missing or did not end."""
    spans = [phase for phase in manifest.get("phases") or () if phase["name"] == "measure"]
    if not spans or not spans[-1].get("to"):
        return None
    return seconds_of(spans[-1]["to"]) - seconds_of(spans[0]["from"])


def run_header(manifest: Row, verdict: Row) -> tuple[str, ...]:
    """Return name, time, duration and validity of a run: ``("demo on dev", ..., "valid")``."""
    name, farm = manifest.get("name") or "run", (manifest.get("farm") or {}).get("name")
    begins = next((phase["from"] for phase in manifest.get("phases") or ()), manifest.get("started"))
    lasted = measured_s(manifest)
    return (
        str(name) if farm in (None, name) else f"{name} on {farm}",
        day_and_time(begins, shown_offset_s(manifest)) or "start not recorded",
        "not measured to the end" if lasted is None else f"measured for {units.span(lasted)}",
        validity(manifest, verdict),
    )


def validity(manifest: Row, verdict: Row) -> str:
    """Return ``valid``, ``not valid``, or the reason why the run is not complete."""
    if verdict.get("outcome") == "invalid":
        return "not valid"
    state = str(manifest.get("state") or "finished")
    return {"finished": "valid", "running": "incomplete"}.get(state, state)


def grid(
    table: Table, keys: Sequence[str] = (), less: Sequence[str] | None = (), indent: str = ""
) -> Iterator[str]:
    """Yield the lines of a table with the chosen columns, in the width of the terminal. No name is cut.

    Args:
        table: table to show.
        keys: keys of the chosen columns in order; empty: all columns.
        less: keys of columns to leave out one after the other until the table fits; None: no limit of width.
        indent: text at the start of each line.

    If the table is still too wide, the name of each row is on a line of its own.
    """
    chosen = [column for key in keys for column in table.columns if column.key == key] or list(table.columns)
    room = width() - len(indent)
    for dropped in (*(less or ()), None):
        rows = [[column.title for column in chosen]]
        rows += [[one_line(column.cell(row)) for column in chosen] for row in table.rows]
        lines = list(aligned(rows, right_of(chosen)))
        if max(map(len, lines)) <= room or dropped is None:
            break
        chosen = [column for column in chosen if column.key != dropped]
    if less is None:
        yield from (f"{indent}{line}" for line in lines)
    else:
        yield from fitted(rows, right_of(chosen), indent)
