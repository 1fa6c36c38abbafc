"""What the script's lines say of the counters: classes with their types, and what they hold at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pinchpoint_collectors.common.powershell import Line
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.imports.perfmon_counters import Counter
from pinchpoint_collectors.windows.classes import Wanted, chosen, sql_instance
from pinchpoint_collectors.windows.counter_types import TYPES, CounterType, Raw

_STAMPS = 3
"""Timestamp_PerfTime, Timestamp_Sys100NS, Frequency_PerfTime: the first cells after the name."""


class Row(NamedTuple):
    """One instance at one moment; the stamps are those of ``Raw``, ``cells`` are in the class's order.

    A stamp that was not given is 0: no difference is told then.
    """

    perf_time: int
    sys_time: int
    perf_per_s: int
    cells: tuple[int | None, ...]


class Rows(NamedTuple):
    """One class at one moment.

    Attributes:
        utc: when it was read, 100 ns since 1601 by the machine's clock.
        by_name: instance -> what it had; ``""`` is the only one of a class without instances.
    """

    utc: int
    by_name: Mapping[str, Row]


class Column(NamedTuple):
    """Where a property is, and how it is to be read."""

    at: int
    base_at: int | None
    type: CounterType


@dataclass(frozen=True, slots=True)
class CounterClass:
    """One class of a machine.

    Attributes:
        name: without ``Win32_PerfRawData_``.
        wanted: what it was asked for.
        counters: its counters and what they become.
        errors: its totals of errors.
        sql_instance: the instance of SQL Server it is of (``""``: the default one); None: of none.
        unknown: properties whose type is none that is understood -> the type's number, as it was told.
    """

    name: str
    wanted: Wanted
    counters: Sequence[tuple[Column, Counter]]
    errors: Sequence[Column] = ()
    sql_instance: str | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)

    def raw(self, row: Row, column: Column) -> Raw | None:
        """A counter of an instance; None where the machine gave nothing for it."""
        value = row.cells[column.at]
        if value is None:
            return None
        base = None if column.base_at is None else row.cells[column.base_at]
        return Raw(value, base, row.perf_time, row.sys_time, row.perf_per_s)


def class_of(line: Line, wanted: Sequence[Wanted]) -> CounterClass | None:
    """The class that a line ``class`` tells of; None where its name only looks like one that was asked for.

    Raises:
        CollectorError: the line is none the script writes.
    """
    try:
        name = str(line["class"])
        asked = next(one for one in wanted if one.pattern == line["pattern"])
        columns, types = str(line["columns"]).split(","), str(line["types"]).split(",")
        numbers = dict(zip(columns, types, strict=True))
    except (KeyError, ValueError, StopIteration) as error:
        raise _strange(line) from error
    instance = sql_instance(asked, name)
    if instance is None and asked.pattern.startswith("MSSQL"):
        return None
    known = {
        one: TYPES[int(number)]
        for one, number in numbers.items()
        if number.isdecimal() and int(number) in TYPES
    }
    places = {one: at for at, one in enumerate(columns)}

    def column(one: str) -> Column:
        return Column(places[one], places.get(f"{one}_Base"), known[one])

    used = chosen(asked, {one: kind.number for one, kind in known.items()})
    asked_for = {*asked.counters, *asked.errors}
    return CounterClass(
        name=name,
        wanted=asked,
        counters=[(column(one), means) for one, means in used.items()],
        errors=[column(one) for one in asked.errors if one in known],
        sql_instance=instance,
        unknown={one: number for one, number in numbers.items() if one in asked_for and one not in known},
    )


def rows_of(line: Line, width: int) -> Rows:
    """What a line ``rows`` holds.

    Args:
        line: the line.
        width: how many columns its class has.

    Raises:
        CollectorError: the line is none the script writes.
    """
    try:
        found = {str(row[0]): _row(row, width) for row in line["rows"]}
        return Rows(int(line["utc"]), found)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise _strange(line) from error


def _row(row: Sequence[Any], width: int) -> Row:
    stamps, cells = row[1 : 1 + _STAMPS], row[1 + _STAMPS :]
    if len(cells) != width:
        raise ValueError(f"{len(cells)} values in a row of {width}")
    perf_time, sys_time, perf_per_s = (int(stamp or 0) for stamp in stamps)
    return Row(perf_time, sys_time, perf_per_s, tuple(None if cell is None else int(cell) for cell in cells))


def _strange(line: Line) -> CollectorError:
    return CollectorError(
        f"the machine answered with a line that is none of the script's ({str(dict(line))[:120]}); is "
        "something in between that changes what is sent?"
    )
