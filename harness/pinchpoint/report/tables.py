"""The tables of a report: raw values in base units, and how each column is written for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.text import aligned, fitted, one_line, width
from pinchpoint.data.timeaxis import day_and_time, shown_offset_s

Row = Mapping[str, Any]
"""Raw values by column key, base units; ``None`` means not measured."""


def text(value: Any) -> str:
    """A value that carries no unit: names as they are, whole numbers with separators, lists joined."""
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
        key: the key of the value in each row.
        title: what people read above it.
        show: writes a value that is not ``None``.
        absent: what stands where the value is ``None``; never 0.
        numeric: whether the column is set flush right.
    """

    key: str
    title: str
    show: Callable[[Any], str] = text
    absent: str = units.NOT_MEASURED
    numeric: bool = False

    def cell(self, row: Row) -> str:
        """The text of this column in ``row``."""
        value = row.get(self.key)
        return self.absent if value is None else self.show(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A named table: the same record behind the page, Markdown and JSON.

    Attributes:
        name: its key in report.json.
        title: its heading.
        columns: in order.
        rows: in order.
        note: one or two sentences that say how the figures were reached.
        empty: the sentence that stands in its place when there are no rows; "": it is left out then.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    empty: str = "Nothing to show."

    def cells(self) -> list[list[str]]:
        """All rows as people read them."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]


def right_of(columns: Sequence[Column]) -> list[int]:
    """Which columns are set flush right."""
    return [at for at, column in enumerate(columns) if column.numeric]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: tables by name under one heading.

    Attributes:
        name: its anchor on the page.
        title: its heading.
        tables: names, in reading order.
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
"""The ending of a key, or the word behind it -> how its figures are written; any other word: it has none."""


def columns(*specs: str | Column) -> tuple[Column, ...]:
    """Columns as ``"KEY [UNIT]: TITLE | ABSENT"``: the title is the key, the unit that of its ending.

    ``"host"``, ``"p95_s: p95"``, ``"dropped number: dropped | -"``, ``"ratio times: ratio | none"``.
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
    """A column of figures whose title is a user's, or which the table writes in its own way."""
    return Column(key, title, show, absent, numeric=True)


def measured_s(manifest: Row) -> float | None:
    """How long the measure phase lasted; ``None`` where the run has none, or did not end it."""
    spans = [phase for phase in manifest.get("phases") or () if phase["name"] == "measure"]
    if not spans or not spans[-1].get("to"):
        return None
    return seconds_of(spans[-1]["to"]) - seconds_of(spans[0]["from"])


def run_header(manifest: Row, verdict: Row) -> tuple[str, ...]:
    """Name, time, duration and validity of a run: ``("demo on dev", ..., "valid")``."""
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
    """``valid``, ``not valid``, or why the run is not complete."""
    if verdict.get("outcome") == "invalid":
        return "not valid"
    state = str(manifest.get("state") or "finished")
    return {"finished": "valid", "running": "incomplete"}.get(state, state)


def grid(
    table: Table, keys: Sequence[str] = (), less: Sequence[str] | None = (), indent: str = ""
) -> Iterator[str]:
    """The chosen columns (all, where none is chosen) within the terminal's width; no name is cut.

    Args:
        table: the table.
        keys: of its columns, in their order.
        less: the columns that are left out, one after the other, where not all fit; None: as wide as it is.
        indent: what each line begins with.

    A table that is still too wide has each row's name on a line of its own.
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
