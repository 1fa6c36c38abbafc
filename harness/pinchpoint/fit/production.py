"""A production server's statistics as figures and as the work its statements do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pinchpoint.errors import InputError
from pinchpoint.fit.figures import (
    LOG_BYTES_PER_WRITE,
    LOG_WRITE_BYTES,
    PAGE_READS_PER_OPERATION,
    READS_PER_S,
    READS_PER_WRITE,
    ROWS_PER_WRITE,
    TEMP_BYTES_PER_OPERATION,
    WRITES_PER_S,
    Figure,
    Figures,
)
from pinchpoint.fit.snapshots import (
    DATABASE,
    FILES,
    IO,
    QUERY_STORE,
    STATEMENTS,
    WAL,
    Change,
    TableKind,
    number,
)
from pinchpoint.fit.statements import (
    COMMITS,
    PAGE_BYTES,
    READING,
    WRITING,
    Kind,
    Statement,
    Sum,
    by_kind,
)

COMMIT_LOG_BYTES = 40.0
"""A commit's record, as PostgreSQL 18 was measured to write it."""


@dataclass(frozen=True, slots=True)
class Production:
    """What is known of a production server.

    Attributes:
        figures: by name.
        sums: what statements of each kind came to, in ``length_s``.
        writes: transactions that wrote in that time.
        began_s, ended_s: that time, UTC seconds.
        sources: where it comes from.
    """

    figures: Figures
    sums: Mapping[Kind, Sum]
    writes: float
    began_s: float
    ended_s: float
    sources: str

    @property
    def length_s(self) -> float:
        """How long the time was."""
        return self.ended_s - self.began_s


def production(changes: Mapping[TableKind, Change]) -> Production:
    """The figures of all tables together. Raises ``InputError`` where none tells of statements."""
    change = changes.get(STATEMENTS) or changes.get(QUERY_STORE)
    if change is None:
        raise InputError(
            "no statistics of statements among the sources; needed: two snapshots of pg_stat_statements "
            f"({STATEMENTS.export}), or one of the Query Store ({QUERY_STORE.export})"
        )
    statements = [
        _of_postgresql(row) if change.kind is STATEMENTS else _of_sql_server(row) for row in change.rows
    ]
    sums = by_kind(statements)
    writes, why = _writes(statements, sums, changes.get(DATABASE))
    figures = _of_statements(sums, writes, why, change)
    if writes:
        figures[LOG_BYTES_PER_WRITE] = _log_bytes(sums, writes, change, changes.get(WAL))
    figures |= _of_files(changes)
    return Production(figures, sums, writes, change.began_s, change.ended_s, change.sources)


def _of_postgresql(row: Mapping[str, str]) -> Statement:
    read = number(row, "shared_blks_read")
    return Statement(
        text=row["query"],
        calls=number(row, "calls"),
        rows=number(row, "rows"),
        log_bytes=number(row, "wal_bytes"),
        pages=read + number(row, "shared_blks_hit"),
        pages_read=read,
        temp_bytes=number(row, "temp_blks_written") * PAGE_BYTES,
        page_images=number(row, "wal_fpi"),
    )


def _of_sql_server(row: Mapping[str, str]) -> Statement:
    calls = number(row, "count_executions")
    return Statement(
        text=row["query_sql_text"],
        calls=calls,
        rows=calls * number(row, "avg_rowcount"),
        log_bytes=calls * number(row, "avg_log_bytes_used"),
        pages=calls * number(row, "avg_logical_io_reads"),
        pages_read=calls * number(row, "avg_physical_io_reads"),
        temp_bytes=calls * number(row, "avg_tempdb_space_used") * PAGE_BYTES,
    )


def _writes(
    statements: list[Statement], sums: Mapping[Kind, Sum], database: Change | None
) -> tuple[float, str]:
    """Transactions that wrote, and how that is known."""
    calls = _total(sums, WRITING).calls
    commits = sum(each.calls for each in statements if each.word in COMMITS)
    if not commits:
        return calls, "statements that write, each a transaction of its own (no COMMIT was counted)"
    if database is None:
        return min(
            calls, commits
        ), "no more than there were COMMITs; a pair of pg_stat_database would tell better"
    # Both tables are taken around the same busy time, one right after the other.
    transactions = sum(number(row, "xact_commit") for row in database.rows)
    return min(
        calls, transactions
    ), "statements that write, no more than pg_stat_database counted transactions"


def _of_statements(sums: Mapping[Kind, Sum], writes: float, why: str, change: Change) -> Figures:
    writing, reading = _total(sums, WRITING), _total(sums, READING)
    operations = writes + reading.calls
    if not operations:
        raise InputError(f"{change.sources}: no statement that reads or writes; take them around a busy time")
    place = f"{change.sources}, {change.length_s:.0f} s"
    found = {
        WRITES_PER_S: Figure(writes / change.length_s, f"{place}: {why}"),
        READS_PER_S: Figure(reading.calls / change.length_s, f"{place}: calls of queries"),
        PAGE_READS_PER_OPERATION: Figure(
            (writing.pages_read + reading.pages_read) / operations, f"{place}: pages not found in the buffers"
        ),
        TEMP_BYTES_PER_OPERATION: Figure(
            (writing.temp_bytes + reading.temp_bytes) / operations, f"{place}: temporary files"
        ),
    }
    if writes:
        found |= {
            READS_PER_WRITE: Figure(reading.calls / writes, f"{place}: calls of queries ÷ writes"),
            ROWS_PER_WRITE: Figure(writing.rows / writes, f"{place}: rows of statements that write ÷ writes"),
        }
    return found


def _log_bytes(sums: Mapping[Kind, Sum], writes: float, change: Change, log: Change | None) -> Figure:
    """What a write comes to in the log, its commit included."""
    if log is not None:
        per_s = sum(number(row, "wal_bytes") for row in log.rows) / log.length_s
        value = per_s * change.length_s / writes
        return Figure(value, f"{log.sources}: pg_stat_wal's bytes, of all databases, ÷ writes")
    total = sum(each.log_bytes for each in sums.values())
    place = f"{change.sources}, {change.length_s:.0f} s"
    if change.kind is QUERY_STORE:
        return Figure(total / writes, f"{place}: bytes of the log ÷ writes")
    # pg_stat_statements has ended when a transaction commits.
    value = total / writes + COMMIT_LOG_BYTES
    return Figure(value, f"{place}: bytes of the log ÷ writes, and {COMMIT_LOG_BYTES:.0f} for a commit")


def _of_files(changes: Mapping[TableKind, Change]) -> Figures:
    """How large a write to the log is."""
    if change := changes.get(IO):
        rows = [row for row in change.rows if row["object"] == "wal" and row["context"] == "normal"]
        count, size = "writes", "write_bytes"
    elif change := changes.get(FILES):
        rows = [row for row in change.rows if row["type_desc"].upper() == "LOG"]
        count, size = "num_of_writes", "num_of_bytes_written"
    else:
        return {}
    writes = sum(number(row, count) for row in rows)
    if not writes:
        return {}
    mean = sum(number(row, size) for row in rows) / writes
    return {LOG_WRITE_BYTES: Figure(mean, f"{change.sources}: bytes written to the log ÷ writes to it")}


def _total(sums: Mapping[Kind, Sum], kinds: tuple[Kind, ...]) -> Sum:
    """Several kinds together."""
    several = [sums.get(kind, Sum()) for kind in kinds]
    return Sum(*(sum(getattr(each, name.name) for each in several) for name in fields(Sum)))
