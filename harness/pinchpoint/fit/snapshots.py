"""Tables of statistics, exported as CSV or read from a server, and what changed between two of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pinchpoint.errors import InputError

Row = Mapping[str, str]
CAPTURED = "captured_at"
"""The column that says when a snapshot was taken."""


@dataclass(frozen=True, slots=True)
class TableKind:
    """A table of statistics that can be fitted.

    Attributes:
        name: its name on the server.
        columns: the columns by which it is known, and without which it is no use.
        key: the columns that name a row.
        counters: the columns that only grow.
        export: the statement that exports it.
    """

    name: str
    columns: frozenset[str]
    key: tuple[str, ...]
    counters: tuple[str, ...]
    export: str


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
    frozenset({"backend_type", "object", "context", "writes", "write_bytes"}),
    ("backend_type", "object", "context"),
    ("writes", "write_bytes"),
    "SELECT now() AS captured_at, * FROM pg_stat_io",
)
WAL = TableKind(
    "pg_stat_wal",
    frozenset({"wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full"}),
    (),
    ("wal_records", "wal_fpi", "wal_bytes"),
    "SELECT now() AS captured_at, * FROM pg_stat_wal",
)
FILES = TableKind(
    "dm_io_virtual_file_stats",
    frozenset({"type_desc", "num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"}),
    ("database_id", "file_id"),
    ("num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"),
    "SELECT SYSUTCDATETIME() AS captured_at, f.type_desc, s.* "
    "FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) s JOIN sys.database_files f ON f.file_id = s.file_id",
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
    "r.avg_logical_io_reads, r.avg_physical_io_reads, r.avg_tempdb_space_used, i.start_time, i.end_time "
    "FROM sys.query_store_runtime_stats r JOIN sys.query_store_runtime_stats_interval i "
    "ON i.runtime_stats_interval_id = r.runtime_stats_interval_id "
    "JOIN sys.query_store_plan p ON p.plan_id = r.plan_id "
    "JOIN sys.query_store_query q ON q.query_id = p.query_id "
    "JOIN sys.query_store_query_text t ON t.query_text_id = q.query_text_id",
)
KINDS = (STATEMENTS, DATABASE, IO, WAL, FILES, QUERY_STORE)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One table at one time; of the Query Store, over one.

    Attributes:
        kind: which table.
        source: where it came from, for people.
        rows: its rows, as text.
    """

    kind: TableKind
    source: str
    rows: Sequence[Row]

    @property
    def at_s(self) -> float:
        """When it was taken, UTC seconds. Raises ``InputError``."""
        return seconds(self.rows[0].get(CAPTURED, ""), f"{self.source}: {CAPTURED}")


@dataclass(frozen=True, slots=True)
class Change:
    """What changed between two snapshots of a table.

    Attributes:
        kind: which table.
        began_s, ended_s: when they were taken, UTC seconds.
        rows: rows that grew: their text columns as in the later one, their counters as what was added.
        sources: where both came from.
    """

    kind: TableKind
    began_s: float
    ended_s: float
    rows: Sequence[Row]
    sources: str

    @property
    def length_s(self) -> float:
        """The time between them."""
        return self.ended_s - self.began_s


def read_csv(path: Path) -> Snapshot | None:
    """The table a CSV file holds; None where it is none of ``KINDS``. Raises ``InputError``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = {str(name).strip().lower() for name in reader.fieldnames or ()}
            kind = next((each for each in KINDS if each.columns <= names), None)
            if kind is None:
                return None
            rows = [{str(key).strip().lower(): value or "" for key, value in row.items()} for row in reader]
    except (UnicodeDecodeError, csv.Error):
        return None  # other formats have encodings of their own: who asked will try them
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not rows:
        raise InputError(f"{path}: {kind.name} without a row; export it where there is load: {kind.export}")
    return Snapshot(kind, path.name, rows)


def changes(snapshots: Iterable[Snapshot]) -> dict[TableKind, Change]:
    """What changed, table by table. Raises ``InputError`` where a table is not there exactly twice."""
    found: dict[TableKind, Change] = {}
    by_kind: dict[str, list[Snapshot]] = {}
    for each in snapshots:
        by_kind.setdefault(each.kind.name, []).append(each)
    for several in by_kind.values():
        kind = several[0].kind
        names = ", ".join(dict.fromkeys(each.source for each in several))
        if kind is QUERY_STORE:
            found[kind] = _query_store(several, names)
        elif len(several) != 2:
            raise InputError(
                f"{names}: {len(several)} snapshot(s) of {kind.name}; needed: two, of before and after a "
                f"busy time: {kind.export}"
            )
        else:
            before, after = sorted(several, key=lambda each: each.at_s)
            found[kind] = _between(before, after, names)
    return found


def _between(before: Snapshot, after: Snapshot, names: str) -> Change:
    kind = before.kind
    if after.at_s <= before.at_s:
        raise InputError(f"{names}: both are of the same time; needed: one before and one after a busy time")
    known = {_key(row, kind): row for row in before.rows}
    rows = []
    for row in after.rows:
        earlier = known.get(_key(row, kind), {})
        grown = {name: number(row, name) - number(earlier, name) for name in kind.counters}
        if any(value < 0 for value in grown.values()):  # reset meanwhile: what is there was added since
            grown = {name: number(row, name) for name in kind.counters}
        if any(grown.values()):
            rows.append({**row, **{name: repr(value) for name, value in grown.items()}})
    if not rows:
        raise InputError(f"{names}: nothing changed between them; take them around a busy time")
    return Change(kind, before.at_s, after.at_s, rows, names)


def _query_store(several: Sequence[Snapshot], names: str) -> Change:
    rows = [row for each in several for row in each.rows]
    starts = [seconds(row["start_time"], f"{names}: start_time") for row in rows]
    ends = [seconds(row["end_time"], f"{names}: end_time") for row in rows]
    return Change(QUERY_STORE, min(starts), max(ends), rows, names)


def _key(row: Row, kind: TableKind) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in kind.key)


def number(row: Row, name: str) -> float:
    """A column as a number; 0 where it is empty: a counter that has not counted. Raises ``InputError``."""
    text = row.get(name, "")
    try:
        return float(text) if text and text.upper() != "NULL" else 0.0
    except ValueError as error:
        raise InputError(f"column {name}: found {text!r}; allowed: a number") from error


def seconds(text: str, place: str) -> float:
    """A time as UTC seconds. Raises ``InputError``."""
    shown = text.strip().replace(" +", "+").replace(" -", "-")
    if "." in shown:  # SQL Server writes seven digits
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
