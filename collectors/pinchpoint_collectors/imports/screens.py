"""Reads tables that programs print repeatedly on a screen, without times: a line of names, then rows.

``_TABLES`` defines each table: the names of its columns, and their metrics. A reading ends when the names, or
a name in it, are repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import KIB
from pinchpoint_collectors.imports.text import LastLine
from pinchpoint_collectors.imports.times import numbered_s
from pinchpoint_collectors.record import Sample

_WIDE = re.compile(r"\s{2,}|\t")
"""Separator of cells in a table whose names have spaces."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Control characters that clear the screen before each reading."""
_FIGURE = re.compile(r"(?P<number>[\d.,]+)(?P<unit>%|m|[kKMGT]?i?B?)")
_MILLI = "m"


@dataclass(frozen=True, slots=True)
class Column:
    """A metric from columns: value x scale + offset; of several columns their sum.

    Attributes:
        metric: name of the metric.
        names: names of the columns.
        scale: factor to base units.
        offset: value added after scaling.
        weight: for a mean over operations, the columns with operations per second.
    """

    metric: str
    names: tuple[str, ...]
    scale: float = 1.0
    offset: float = 0.0
    weight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a program prints.

    Attributes:
        says: name of the program.
        name: column with the name of a row.
        columns: used columns.
        of_hosts: whether rows are machines or containers; otherwise they are disks.
        os: operating system of the machine.
        wide: whether names have spaces, so that cells are two spaces apart.
        counts: columns that count since the start, of which the increase is used.
        is_iostat: whether the first reading covers the time since the start of the machine; it is left out
            then.
    """

    says: str
    name: str
    columns: Sequence[Column]
    of_hosts: bool = False
    os: str | None = None
    wide: bool = False
    counts: frozenset[str] = field(default_factory=frozenset)
    is_iostat: bool = False


_RATES = (
    Column("disk.reads_per_s", ("r/s",)),
    Column("disk.writes_per_s", ("w/s",)),
    Column("disk.read_bytes_per_s", ("kr/s",), KIB),
    Column("disk.write_bytes_per_s", ("kw/s",), KIB),
)
_BUSY = Column("disk.busy_ratio", ("%b",), 0.01)
_BOTH = ("r/s", "w/s")
_TABLES = (
    Table(
        "iostat -xn of Solaris",
        "device",
        (
            *_RATES,
            Column("disk.outstanding", ("wait", "actv")),
            Column("disk.transfer_latency_s", ("wsvc_t", "asvc_t"), 0.001, weight=_BOTH),
            _BUSY,
        ),
        os="Solaris",
        is_iostat=True,
    ),
    Table(
        "iostat -x of Solaris",
        "device",
        (
            *_RATES,
            Column("disk.outstanding", ("wait", "actv")),
            Column("disk.transfer_latency_s", ("svc_t",), 0.001, weight=_BOTH),
            _BUSY,
        ),
        os="Solaris",
        is_iostat=True,
    ),
    Table(
        "iostat -x of FreeBSD",
        "device",
        (
            *_RATES,
            Column("disk.read_latency_s", ("ms/r",), 0.001, weight=("r/s",)),
            Column("disk.write_latency_s", ("ms/w",), 0.001, weight=("w/s",)),
            Column("disk.outstanding", ("qlen",)),
            _BUSY,
        ),
        os="FreeBSD",
        is_iostat=True,
    ),
    Table(
        "iostat -x of older FreeBSD",
        "device",
        (
            *_RATES,
            Column("disk.transfer_latency_s", ("svc_t",), 0.001, weight=_BOTH),
            Column("disk.outstanding", ("qlen",)),
            _BUSY,
        ),
        os="FreeBSD",
        is_iostat=True,
    ),
    Table(
        "vmstat -d",
        "disk",
        (
            Column("disk.read_latency_s", ("read_ms",), 0.001, weight=("reads",)),
            Column("disk.write_latency_s", ("write_ms",), 0.001, weight=("writes",)),
            Column("disk.outstanding", ("cur",)),
        ),
        os="Linux",
        counts=frozenset({"reads", "read_ms", "writes", "write_ms"}),
    ),
    Table(
        "docker stats",
        "NAME",
        (
            Column("cpu.used_cores", ("CPU %",), 0.01),
            Column("mem.available_ratio", ("MEM %",), -0.01, 1.0),
        ),
        of_hosts=True,
        wide=True,
    ),
    Table(
        "kubectl top nodes",
        "NAME",
        (
            Column("cpu.busy_ratio", ("CPU%",), 0.01),
            Column("mem.available_ratio", ("MEMORY%",), -0.01, 1.0),
        ),
        of_hosts=True,
    ),
    Table(
        "kubectl top pods",
        "NAME",
        (Column("cpu.used_cores", ("CPU(cores)",)),),
        of_hosts=True,
    ),
)
"""All tables. The first one whose columns all exist is used."""
_OF_VMSTAT = ["total", "merged", "sectors", "ms", "total", "merged", "sectors", "ms", "cur", "sec"]
_PLAIN_NAMES = [
    "disk",
    *(f"{way}{of}" for way in ("read", "write") for of in ("s", "_merged", "_sectors", "_ms")),
    "cur",
    "sec",
]
"""Second line of names of vmstat -d, and the full names of its columns."""


class Screens:
    """Import format ``screen``."""

    name = "screen"
    says = f"tables without times, again and again: {', '.join(each.says for each in _TABLES)}"

    def recognises(self, head: str) -> bool:
        """Return whether one of the first lines has the names of a table."""
        return any(_table_of(line) for line in _plain(head).splitlines()[:_BEGIN])

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per figure and reading (see ``Format.read``)."""
        table, readings = _readings(lines, facts)
        if table is None:
            raise ForeignFileError(f"no line of names of a known table; known: {self.says}")
        if table.is_iostat:
            readings = readings[1:]
            facts.note("the first report covers the time since boot and was ignored")
        start_s, every_s = numbered_s(settings, facts)
        before: dict[str, Mapping[str, float]] = {}
        for number, rows in enumerate(readings):
            at_ns = round((start_s + number * every_s) * 1e9)
            for name, row in rows.items():
                host = name if table.of_hosts else ""
                facts.facts(host).update({"os": table.os} if table.os else {})
                values = _increased(table, before.get(name, {}), row)
                for metric, value, weight in _values(table, values, every_s):
                    of_process = metric == "cpu.used_cores"
                    instance = f"process:{name}" if of_process else "" if table.of_hosts else name
                    yield Sample(at_ns, every_s, host, metric, instance, value, weight)
            before = dict(rows)


_BEGIN = 10
"""Number of lines within which the line of names must be."""
Row = Mapping[str, float]


def _plain(text: str) -> str:
    return _CONTROL.sub("", text)


def _columns(line: str, *, wide: bool) -> list[str]:
    words = [word for word in (_WIDE.split(line.strip()) if wide else line.split()) if word]
    return _PLAIN_NAMES if words == _OF_VMSTAT else words


def _table_of(line: str) -> Table | None:
    """Return the table whose names a line has; None for any other line."""
    for table in _TABLES:
        names = set(_columns(line, wide=table.wide))
        if table.name in names and all(names.issuperset(each.names) for each in table.columns):
            return table
    return None


def _readings(lines: Iterable[str], facts: FileFacts) -> tuple[Table | None, list[dict[str, Row]]]:
    """Yield the table and name -> column -> value of each reading."""
    table: Table | None = None
    columns: list[str] = []
    readings: list[dict[str, Row]] = []
    last = LastLine(facts)
    for line, text in last.lines(map(_plain, lines)):
        if (known := _table_of(text)) is not None:
            table, columns = known, _columns(text, wide=known.wide)
            readings.append({})
        elif table is not None and (words := _columns(text, wide=table.wide)):
            if len(words) != len(columns):
                if any(word[:1].isdigit() for word in words):
                    last.damaged(ForeignFileError(_WRONG.format(len(words), len(columns)), line))
                continue
            cells = dict(zip(columns, words, strict=True))
            name = cells[table.name]
            if name in readings[-1]:
                readings.append({})
            readings[-1][name] = {key: value for key in cells if (value := _figure(cells[key])) is not None}
    return table, [each for each in readings if each]


_WRONG = "found {} cells; allowed: {}, one for each name above; remove the line, or record again"


def _figure(text: str) -> float | None:
    """Return the value of a cell, with CPUs in thousandths converted; None if it is no number."""
    match = _FIGURE.fullmatch(text)
    if match is None:
        return None
    try:
        value = numerals.strict(match["number"].replace(",", "."))
    except ValueError:
        return None
    return value / 1000 if match["unit"] == _MILLI else value


def _increased(table: Table, before: Row, row: Row) -> Row:
    """Return the figures of a reading. For counts it is the increase, if that is known."""
    more = {name: row[name] - before[name] for name in table.counts if name in row and name in before}
    kept = {name: value for name, value in row.items() if name not in table.counts}
    return {**kept, **{name: value for name, value in more.items() if value >= 0}}


def _values(table: Table, row: Row, every_s: float) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield metric, value and weight of a row. Without operations there is no mean."""
    for column in table.columns:
        if not all(name in row for name in (*column.names, *column.weight)):
            continue
        value, count = (sum(row[name] for name in names) for names in (column.names, column.weight))
        if table.counts and column.weight:
            value = value / count if count else 0.0
        weight = (count if table.counts else count * every_s) if column.weight else None
        yield column.metric, None if weight == 0 else value * column.scale + column.offset, weight
