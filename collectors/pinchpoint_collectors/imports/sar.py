"""Reads text output of ``sar``, live or from a daily file (``sar -A -f FILE``).

A table begins with the time of the last reading and its names; its rows have the values of ``sadf -j``. Rows
have only the time of day, and the first line has the date. Rows after ``Average:`` are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports import sadf
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import TEXT, Fields, Reported, note_machine, text_block
from pinchpoint_collectors.imports.text import DayClock, LastLine, cells, number
from pinchpoint_collectors.record import Sample

_ROW = re.compile(r"(?P<clock>\d{1,2}:\d\d:\d\d(?: [AP]M)?)\s+(?P<rest>\S.*)")
_RESTART, _OF_TASKS = "RESTART", "Command"
_TABLES: Mapping[str, tuple[str, ...]] = {
    "%idle": ("cpu-load",),
    "runq-sz": ("queue",),
    "kbmemfree": ("memory",),
    "pswpin/s": ("swap-pages",),
    "majflt/s": ("paging",),
    "await": ("disk",),
    "rxkB/s": ("network", "net-dev"),
    "rxbyt/s": ("network", "net-dev"),
    "rxerr/s": ("network", "net-edev"),
    "oseg/s": ("network", "net-tcp"),
    "estres/s": ("network", "net-etcp"),
    "getatt/s": ("network", "net-nfs"),
    "%scpu": ("psi", "psi-cpu"),
    "%sio": ("psi", "psi-io"),
    "%smem": ("psi", "psi-mem"),
}
"""Column that only one table has -> path of its rows in JSON."""
_LISTS = frozenset({"cpu-load", "disk", "net-dev", "net-edev"})
_NAMES = {
    "CPU": "cpu",
    "DEV": "disk-device",
    "IFACE": "iface",
    "%util": "util-percent",
    "%memused": "memused-percent",
    "%ifutil": "ifutil-percent",
    "%scpu": "some_avg",
    "%sio": "some_avg",
    "%smem": "some_avg",
}
"""Columns whose JSON name differs by more than % and /s."""
_TEXTS = frozenset({"cpu", "disk-device", "iface"})


class Sar:
    """Import format ``sar``."""

    name = "sar"
    says = "sar's text (sar -A -f FILE, or sar -A 5 720)"

    def recognises(self, head: str) -> bool:
        """Return whether the start has sysstat's first line, and rows with a time, not of tasks."""
        if not TEXT.match(head):
            return False
        rows = filter(None, map(_ROW.fullmatch, map(str.strip, head.splitlines())))
        headers = [words for row in rows if _is_header(words := row["rest"].split())]
        return bool(headers) and not any(words[-1] == _OF_TASKS for words in headers)

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        day: _Day | None = None
        last = LastLine(facts)
        tables: dict[str, bool] = {}
        for line, text in last.lines(lines):
            if begin := TEXT.match(text):
                day = _Day(text_block(begin), settings, facts, tables)
            elif day is not None and (row := _ROW.fullmatch(text.strip())):
                yield from last.kept(day.samples(row["clock"], row["rest"].split(), line))
        refuse_unused(tables)


def refuse_unused(tables: Mapping[str, bool]) -> None:
    """Raises ``ForeignFileError`` if none of these tables (columns -> whether they are used) is used."""
    if tables and not any(tables.values()):
        raise ForeignFileError(
            f"Pinchpoint uses none of its tables ({'; '.join(tables)}); record CPU, memory, disks and "
            "network: sar -A"
        )


def is_used(columns: Iterable[str]) -> bool:
    """Return whether a table with these columns is used."""
    return bool(_where(columns))


def reported(
    row: Mapping[str, str], machine: Fields, interval_s: float, line: int, facts: FileFacts
) -> Iterator[Reported]:
    """Yield the values of a row.

    Args:
        row: column -> cell.
        machine: block of JSON of the machine.
        interval_s: seconds that the row covers.
        line: line of the row.
        facts: receives facts (see ``record.FileFacts``).

    Raises:
        ForeignFileError: a cell is no number.
    """
    content: Any = _fields(row, line)
    for name in reversed(_where(row)):
        content = {name: [content] if name in _LISTS else content}
    yield from sadf.values(content, machine, interval_s, facts)


def _where(names: Iterable[str]) -> tuple[str, ...]:
    """Return the path of a table's rows in JSON; empty for a table that is not used."""
    return next((where for name, where in _TABLES.items() if name in names), ())


def _is_header(words: Sequence[str]) -> bool:
    return not _is_number(words[-1]) and 2 * sum(not _is_number(word) for word in words) > len(words)


def _is_number(word: str) -> bool:
    try:
        numerals.strict(word.replace(",", "."))
    except ValueError:
        return False
    return True


class _Day:
    """The lines after one first line: one machine and day, table by table.

    Args:
        machine: block of JSON from the first line.
        settings: user's options (see ``record.Settings``).
        found: receives facts (see ``record.FileFacts``).
        tables: receives the columns of each table, and whether they are used.
    """

    def __init__(
        self, machine: Mapping[str, Any], settings: Settings, facts: FileFacts, tables: dict[str, bool]
    ) -> None:
        self._machine = machine
        self._tables = tables
        self._host = note_machine(machine, facts)
        self._settings = settings
        self._found = facts
        self._columns: tuple[str, ...] = ()
        self._clocks: dict[tuple[str, ...], DayClock] = {}
        self._readings: dict[tuple[str, ...], tuple[float, float]] = {}
        """Table -> UTC seconds of its last two readings."""

    def samples(self, clock: str, words: Sequence[str], line: int) -> Iterator[Sample]:
        """Return the samples of one line. Raises ``ForeignFileError``."""
        if _RESTART in words:
            self._columns = ()
            self._readings.clear()
        elif _is_header(words):
            self._columns = tuple(words) if _where(words) else ()
            self._tables[" ".join(words)] = bool(self._columns)
            if self._columns:
                time_s = self._utc_s(clock, line)
                self._readings[self._columns] = (time_s, time_s)
        elif self._columns:
            row = cells(self._columns, words, line)
            before_s, last_s = self._readings[self._columns]
            time_s = self._utc_s(clock, line)
            if time_s != last_s:
                before_s = last_s
                self._readings[self._columns] = before_s, time_s
            if time_s > before_s:
                interval_s, at_ns = time_s - before_s, round(time_s * 1e9)
                for metric, instance, value, weight in reported(
                    row, self._machine, interval_s, line, self._found
                ):
                    yield Sample(at_ns, interval_s, self._host, metric, instance, value, weight)

    def _utc_s(self, clock: str, line: int) -> float:
        new = DayClock(self._machine["date"], self._settings, self._found)
        return self._clocks.setdefault(self._columns, new).utc_s(clock, line)


def _fields(row: Mapping[str, str], line: int) -> Fields:
    """Return a row as in JSON."""
    named = {
        _NAMES.get(column) or column.lstrip("%").removeprefix("kb").removesuffix("/s"): (column, cell)
        for column, cell in row.items()
    }
    return {
        name: cell if name in _TEXTS else number(cell, column, line) for name, (column, cell) in named.items()
    }
