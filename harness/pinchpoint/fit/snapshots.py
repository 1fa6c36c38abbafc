"""Reads snapshots of a server's counters, and computes the difference of two snapshots."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.fit.counters import CounterStep

CAPTURED = "captured_at"
"""The column with the time of a snapshot."""
_NOW = "CONVERT(varchar(33), SYSUTCDATETIME(), 126)"
"""SQL Server's time as text, because export tools write dates in a local format."""


@dataclass(frozen=True, slots=True)
class TableKind:
    """A table of statistics that a plan can be fitted to.

    Attributes:
        name: the name of the table on the server.
        columns: required columns, which also identify the table.
        key: columns that identify a row.
        counters: columns that only grow; some versions lack some of them.
        export: the SQL statement that exports the table.
        means: other columns with numbers.
    """

    name: str
    columns: frozenset[str]
    key: tuple[str, ...]
    counters: tuple[str, ...]
    export: str
    means: tuple[str, ...] = ()


STATEMENTS = TableKind(
    "pg_stat_statements",
    frozenset({"queryid", "query", "calls", "rows", "wal_bytes", "shared_blks_hit", "shared_blks_read"}),
    ("userid", "dbid", "queryid", "toplevel"),
    ("calls", "rows", "wal_bytes", "wal_fpi", "shared_blks_hit", "shared_blks_read", "temp_blks_written"),
    "SELECT now() AS captured_at, * FROM pg_stat_statements "
    "WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())",
)
DATABASE = TableKind(
    "pg_stat_database",
    frozenset({"datname", "xact_commit", "xact_rollback", "blks_read"}),
    ("datid",),
    ("xact_commit", "xact_rollback", "blks_read", "temp_bytes"),
    "SELECT now() AS captured_at, * FROM pg_stat_database WHERE datname = current_database()",
)
IO = TableKind(
    "pg_stat_io",
    frozenset({"backend_type", "object", "context", "reads", "writes"}),
    ("backend_type", "object", "context"),
    ("reads", "read_bytes", "read_time", "writes", "write_bytes", "write_time"),
    "SELECT now() AS captured_at, * FROM pg_stat_io",
    ("op_bytes",),
)
WAL = TableKind(
    "pg_stat_wal",
    frozenset({"wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full"}),
    (),
    ("wal_records", "wal_fpi", "wal_bytes", "wal_write", "wal_write_time"),
    "SELECT now() AS captured_at, * FROM pg_stat_wal",
)
FILES = TableKind(
    "dm_io_virtual_file_stats",
    frozenset({"type_desc", "num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"}),
    ("database_id", "file_id"),
    (
        *("num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"),
        *("io_stall_read_ms", "io_stall_write_ms"),
    ),
    f"SELECT {_NOW} AS captured_at, f.type_desc, s.* "  # noqa: S608 -- a constant of ours
    "FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) s JOIN sys.database_files f ON f.file_id = s.file_id",
)
WAITS = TableKind(
    "dm_os_wait_stats",
    frozenset({"wait_type", "waiting_tasks_count", "wait_time_ms", "signal_wait_time_ms"}),
    ("wait_type",),
    ("waiting_tasks_count", "wait_time_ms", "signal_wait_time_ms"),
    f"SELECT {_NOW} AS captured_at, wait_type, waiting_tasks_count, "  # noqa: S608 -- likewise
    "wait_time_ms, "
    "signal_wait_time_ms FROM sys.dm_os_wait_stats WHERE waiting_tasks_count > 0",
)
QUERY_STORE = TableKind(
    "Query Store",
    frozenset(
        {
            "query_sql_text",
            "count_executions",
            "avg_rowcount",
            "avg_logical_io_reads",
            "start_time",
            "end_time",
        }
    ),
    (),
    (),
    "SELECT t.query_sql_text, r.count_executions, r.avg_rowcount, r.avg_log_bytes_used, "
    "r.avg_logical_io_reads, r.avg_physical_io_reads, r.avg_tempdb_space_used, "
    "CONVERT(varchar(34), i.start_time, 127) AS start_time, "
    "CONVERT(varchar(34), i.end_time, 127) AS end_time "
    "FROM sys.query_store_runtime_stats r JOIN sys.query_store_runtime_stats_interval i "
    "ON i.runtime_stats_interval_id = r.runtime_stats_interval_id "
    "JOIN sys.query_store_plan p ON p.plan_id = r.plan_id "
    "JOIN sys.query_store_query q ON q.query_id = p.query_id "
    "JOIN sys.query_store_query_text t ON t.query_text_id = q.query_text_id",
    (
        *("count_executions", "avg_rowcount", "avg_log_bytes_used", "avg_logical_io_reads"),
        *("avg_physical_io_reads", "avg_tempdb_space_used"),
    ),
)
KINDS = (STATEMENTS, DATABASE, IO, WAL, FILES, WAITS, QUERY_STORE)


Row = Mapping[str, str]
Key = tuple[str, ...]
"""The values of a row's key columns."""
_HEAD_BYTES = 65_536
_LONGEST_FIELD = 2**28
"""Longest field of a CSV file in characters, because statements may be long."""
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_TIMES = (CAPTURED, "start_time", "end_time")
_SINCE = ("stats_since", "stats_reset")
"""Columns with the start time of a row's counters; in pg_stat_statements since PostgreSQL 17."""


@dataclass(frozen=True, slots=True)
class CounterSnapshot:
    """One table at one time; the Query Store covers a period.

    Attributes:
        kind: the table.
        source: the source, in words.
        rows: the rows, as text.
        whole: whether the last line is terminated; if not, its last figure may lack digits.
    """

    kind: TableKind
    source: str
    rows: Sequence[Row]
    whole: bool = True

    @property
    def at_s(self) -> float:
        """The time of the snapshot, UTC seconds. Raises InputError."""
        return seconds(self.rows[0].get(CAPTURED, ""), f"{self.source}: {CAPTURED}")


@dataclass(frozen=True, slots=True)
class CounterChange:
    """The changes between two snapshots of a table.

    Attributes:
        kind: the table.
        began_s, ended_s: times of the two snapshots, UTC seconds.
        rows: the rows that grew, with the later text columns and the increases of the counters.
        sources: the sources of both snapshots, in words.
        columns: the columns that the table has in this version of the server.
        notes: notes for the reader, as sentences.
    """

    kind: TableKind
    began_s: float
    ended_s: float
    rows: Sequence[Row]
    sources: str
    columns: frozenset[str]
    notes: tuple[str, ...] = ()

    @property
    def length_s(self) -> float:
        """Seconds between ``began_s`` and ``ended_s``."""
        return self.ended_s - self.began_s


def read_csv(path: Path) -> CounterSnapshot | None:
    """Read the table in a CSV file; None if it is none of ``KINDS``.

    Raises:
        InputError: the file cannot be read or is empty, or a cell does not fit its column (``FILE:LINE:
            ...``).
    """
    try:
        with path.open("rb") as file:
            head = decoded(file.read(_HEAD_BYTES)).partition("\n")[0]
            delimiter = max(",;\t", key=head.count)
            names = [name.strip().strip('"').lower() for name in head.split(delimiter)]
            kind = next((each for each in KINDS if each.columns <= set(names)), None)
            if kind is None:
                return None  # another format, and the file may be large: the caller tries other formats
            file.seek(0)
            text = decoded(file.read())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        next(reader)
        lines = [(reader.line_num, _plain(cells, delimiter)) for cells in reader if not _is_rule(cells)]
        rows = list(_rows(path, kind, names, lines))
    except csv.Error as error:
        raise InputError(
            f"{path}:{reader.line_num}: is no CSV: {error}; export it again, as CSV with a header"
        ) from error
    if not rows:
        raise InputError(f"{path}: {kind.name} without a row; export it where there is load: {kind.export}")
    return CounterSnapshot(kind, path.name, rows, text.endswith(("\n", "\r")))


def decoded(content: bytes) -> str:
    """Decode text in the encodings of Management Studio and psql; invalid bytes are replaced."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _is_rule(cells: Sequence[str]) -> bool:
    """Whether a line is empty, or is the rule that sqlcmd prints below the column names."""
    return not any(cells) or all(cell and not cell.strip("- ") for cell in cells)


def _plain(cells: list[str], delimiter: str) -> list[str]:
    """Replace decimal commas by points, in files whose delimiter is a semicolon."""
    if delimiter != ";":
        return cells
    return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]


def _rows(
    path: Path, kind: TableKind, names: Sequence[str], lines: Iterable[tuple[int, list[str]]]
) -> Iterator[Row]:
    """The rows with all cells checked; an error names the line of the wrong cell."""
    if kind is not QUERY_STORE and CAPTURED not in names:
        raise InputError(f"{path}: no column {CAPTURED}: its time is not known; {kind.export}")
    for line, cells in lines:
        if len(cells) != len(names):
            raise InputError(
                f"{path}:{line}: found {len(cells)} cells; allowed: {len(names)}, as the header has; "
                "export it as CSV whose texts are in quotation marks"
            )
        row = dict(zip(names, cells, strict=True))
        for name in (*kind.counters, *kind.means):
            _check_number(row, name, f"{path}:{line}")
        for name in _TIMES:
            if name in row:
                seconds(row[name], f"{path}:{line}: {name}")
        yield row


def _check_number(row: Row, name: str, place: str) -> None:
    try:
        number(row, name)
    except ValueError as error:
        raise InputError(
            f"{place}: {name}: found {row[name]!r}; allowed: a number such as 1250 or 12.5, or nothing"
        ) from error


def changes(snapshots: Iterable[CounterSnapshot]) -> dict[TableKind, CounterChange]:
    """The changes of each table from the first to the last snapshot. Raises InputError."""
    result: dict[TableKind, CounterChange] = {}
    by_kind: dict[str, list[CounterSnapshot]] = {}
    for each in snapshots:
        by_kind.setdefault(each.kind.name, []).append(each)
    for several in by_kind.values():
        kind = several[0].kind
        names = ", ".join(dict.fromkeys(each.source for each in several))
        if kind is QUERY_STORE:
            result[kind] = _query_store(several, names)
        elif len(several) == 1:
            raise InputError(
                f"{names}: 1 snapshot of {kind.name}; needed: two, of before and after a busy time: "
                f"{kind.export}"
            )
        else:
            result[kind] = _added(sorted(several, key=lambda each: each.at_s), names)
    return result


def _added(snapshots: Sequence[CounterSnapshot], names: str) -> CounterChange:
    """The increase over all snapshots, step by step, so that a reset loses one step at most."""
    kind, first, last = snapshots[0].kind, snapshots[0], snapshots[-1]
    if last.at_s <= first.at_s:
        raise InputError(f"{names}: all are of the same time; needed: one before and one after a busy time")
    totals: dict[Key, dict[str, float]] = {}
    latest: dict[Key, Row] = {}
    reset = set()
    for before, after in itertools.pairwise(snapshots):
        known, now = _by_key(before), _by_key(after)
        if known.keys().isdisjoint(now):
            raise InputError(
                f"{before.source}, {after.source}: no row of {kind.name} is in both: they are of two "
                "servers, or all was forgotten between; take two of one server, around a busy time"
            )
        for key, row in now.items():
            step = CounterStep(known.get(key, Counters({}, before.at_s)), row)
            grown = step.all_grown(kind.counters)
            if grown is None:
                # after a reset, the value is the increase since
                grown = {name: row.number(name) for name in kind.counters}
                reset.add(key)
            total = totals.setdefault(key, dict.fromkeys(kind.counters, 0.0))
            for name, value in grown.items():
                total[name] += value
            latest[key] = row.row
    rows = [
        {**latest[key], **{name: repr(value) for name, value in total.items()}}
        for key, total in totals.items()
        if any(total.values())
    ]
    if not rows:
        raise InputError(f"{names}: nothing changed between them; take them around a busy time")
    columns = frozenset.intersection(*(frozenset(each.rows[0]) for each in snapshots))
    notes = (*_cut_off(snapshots), *_resets(names, len(reset), len(totals)))
    return CounterChange(kind, first.at_s, last.at_s, rows, names, columns, notes)


def _cut_off(snapshots: Iterable[CounterSnapshot]) -> Iterator[str]:
    for each in snapshots:
        if not each.whole:
            yield f"{each.source} ends within a line: its last figure may lack digits; export it again"


def _resets(names: str, reset: int, rows: int) -> Iterator[str]:
    if reset:
        yield (
            f"{names}: counters of {reset} of {rows} rows were reset, or went back as after a restart; of "
            "these only what was counted since is in here, so that their rates are too low: take two "
            "snapshots with none between"
        )


def _query_store(several: Sequence[CounterSnapshot], names: str) -> CounterChange:
    rows = _once(several)
    spans = [_span(row, names) for row in rows]
    began_s, ended_s = min(start for start, _ in spans), max(end for _, end in spans)
    if ended_s <= began_s:
        raise InputError(f"{names}: its intervals end before they begin; {QUERY_STORE.export}")
    columns = frozenset.intersection(*(frozenset(each.rows[0]) for each in several))
    notes = list(_cut_off(several))
    if len(rows) < sum(len(each.rows) for each in several):
        notes.append(f"{names}: intervals that several of them have are counted once")
    return CounterChange(QUERY_STORE, began_s, ended_s, rows, names, columns, tuple(notes))


def _once(several: Sequence[CounterSnapshot]) -> list[Row]:
    """All rows; if two exports of one database share intervals, those of the later export.

    Exports do not name their database. Two exports with an identical row are of the same database.
    """
    result: list[Row] = []
    taken: list[tuple[set[frozenset[tuple[str, str]]], set[tuple[float, float]]]] = []
    for each in sorted(several, key=_how_late, reverse=True):
        rows = {frozenset(row.items()) for row in each.rows}
        there = {span for others, spans in taken if not others.isdisjoint(rows) for span in spans}
        result += [row for row in each.rows if _span(row, each.source) not in there]
        taken.append((rows, {_span(row, each.source) for row in each.rows}))
    return result


def _how_late(export: CounterSnapshot) -> tuple[float, float]:
    """(end of the last interval, executions), to sort exports, as the last interval may be incomplete."""
    ended_s = max(_span(row, export.source)[1] for row in export.rows)
    return ended_s, sum(number(row, "count_executions") for row in export.rows)


def _span(row: Row, source: str) -> tuple[float, float]:
    """Start and end of an interval, UTC seconds."""
    return seconds(row["start_time"], source), seconds(row["end_time"], source)


def _by_key(snapshot: CounterSnapshot) -> dict[Key, Counters]:
    """The counters of a snapshot by row key; rows with the same key are added up."""
    rows: dict[Key, Row] = {}
    for row in snapshot.rows:
        key = tuple(row.get(name, "") for name in snapshot.kind.key)
        before = rows.get(key)
        rows[key] = row if before is None else _together(before, row, snapshot.kind)
    return {key: Counters(row, snapshot.at_s) for key, row in rows.items()}


def _together(row: Row, other: Row, kind: TableKind) -> Row:
    """Add two rows with the same key; their start times are dropped, because they differ."""
    counters = {name: repr(number(row, name) + number(other, name)) for name in kind.counters}
    return {name: text for name, text in other.items() if name not in _SINCE} | counters


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a row at the time of its snapshot; implements ``Reading``."""

    row: Row
    at_s: float

    def number(self, name: str) -> float:
        """The value of a counter; 0 if the column is empty."""
        return number(self.row, name)

    def goes_on_from(self, earlier: Counters) -> bool:
        """Whether the server reports no reset, as a reset counter may have passed its old value."""
        times = (
            [_time(each.row.get(name, ""), name) for each in (earlier, self)]
            for name in _SINCE
            if name in earlier.row
        )
        return all(after is None or after == before for before, after in times)


def _time(text: str, name: str) -> float | None:
    """A time that the server reports; None if the cell is empty."""
    shown = text.strip()
    return seconds(shown, name) if shown and shown.upper() != "NULL" else None


def number(row: Row, name: str) -> float:
    """A column as a number; 0 if empty, because the counter has not counted. Raises ValueError."""
    text = row.get(name, "").strip()
    result = float(text) if text and text.upper() != "NULL" else 0.0
    if not 0 <= result < math.inf:
        raise ValueError(text)
    return result


def seconds(text: str, place: str) -> float:
    """A time as UTC seconds. Raises InputError."""
    shown = text.strip().replace(" +", "+").replace(" -", "-")
    if "." in shown:  # SQL Server writes seven decimals, Python reads six
        head, _, tail = shown.partition(".")
        digits = len(tail) - len(tail.lstrip("0123456789"))
        shown = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    try:
        moment = datetime.fromisoformat(shown)
    except ValueError as error:
        raise InputError(
            f"{place}: found {text!r}; allowed: a time such as 2026-11-21 20:15:00+00:00 (add the column: "
            "SELECT now() AS captured_at, *)"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
