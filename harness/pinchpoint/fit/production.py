"""Computes the work of a production database: statements, file I/O, waits and log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import APART, COUNTED, WAITED, Collected, Figures, ProductionFigure, ratios
from pinchpoint.fit.rates import Rate
from pinchpoint.fit.snapshots import (
    DATABASE,
    FILES,
    IO,
    QUERY_STORE,
    STATEMENTS,
    WAITS,
    WAL,
    CounterChange,
    Row,
    TableKind,
    number,
    seconds,
)
from pinchpoint.fit.statements import (
    COMMITS,
    PAGE_BYTES,
    READING,
    TRANSACTIONAL,
    WRITING,
    StatementActivity,
    StatementKind,
    Sum,
    by_kind,
)
from pinchpoint.plan.production import (
    LOG_BYTES_PER_WRITE,
    PAGE_READS_PER_OPERATION,
    READS_PER_S,
    READS_PER_WRITE,
    ROWS_PER_WRITE,
    TEMP_BYTES_PER_OPERATION,
    WRITES_PER_S,
)
from pinchpoint_collectors.windows.waits import named

_SHOWN_WAITS = 6
_COUNTS_ALL = "the server counts every write to its files there"


@dataclass(frozen=True, slots=True)
class FileActivity:
    """The I/O of the log or the data files in a period; None if not reported.

    Attributes:
        origin: the source of the figures, in words.
        length_s: length of the period in seconds.
        reads, writes: number of reads and writes.
        read_bytes, write_bytes: bytes read and written.
        read_s, write_s: seconds that the server waited for reads and writes in total.
    """

    origin: str
    length_s: float
    reads: float
    writes: float
    read_bytes: float | None
    write_bytes: float | None
    read_s: float | None
    write_s: float | None


def of_files(changes: Mapping[TableKind, CounterChange], writes_per_s: float, collected: Collected) -> None:
    """Collect the figures of the log files and the data files.

    Args:
        changes: table -> its changes.
        writes_per_s: writing transactions per second.
        collected: receives the figures.
    """
    for what, several in (("log", _log(changes)), ("data", _data(changes))):
        for each in several:
            amounts = {f"{what}.{name}": getattr(each, name) for name in COUNTED}
            _take(collected, each.origin, {**amounts, "writes": writes_per_s * each.length_s})


def _take(collected: Collected, origin: str, amounts: Mapping[str, float | None]) -> None:
    for one, value in ratios(amounts):
        collected.take(one.figure, ProductionFigure(value, f"{origin}: {one.words}"), _COUNTS_ALL)


def _log(changes: Mapping[TableKind, CounterChange]) -> Iterator[FileActivity]:
    if change := changes.get(IO):
        # Only context 'normal' of the log: 'init' writes the zeros of new segments, which no commit causes.
        rows = [row for row in change.rows if row["object"] == "wal" and row["context"] == "normal"]
        if rows:
            yield _files_of_postgresql(change, rows, "the log in pg_stat_io")
    if change := changes.get(FILES):
        yield _files_of_sql_server(change, "LOG")
    change = changes.get(WAL)
    # the columns exist until PostgreSQL 17; wal_bytes counts records, not writes
    if change and "wal_write" in change.columns:
        writes, spent_ms = (_sum_of(change.rows, name) for name in ("wal_write", "wal_write_time"))
        origin = f"{change.sources}, pg_stat_wal"
        spent_s = spent_ms / 1000 if spent_ms else None  # 0 if track_wal_io_timing is off
        yield FileActivity(origin, change.length_s, 0.0, writes, None, None, None, spent_s)


def _data(changes: Mapping[TableKind, CounterChange]) -> Iterator[FileActivity]:
    if change := changes.get(IO):
        rows = [row for row in change.rows if row["object"] == "relation"]
        yield _files_of_postgresql(change, rows, "relations in pg_stat_io")
    if change := changes.get(FILES):
        yield _files_of_sql_server(change, "ROWS")


def _files_of_postgresql(change: CounterChange, rows: Sequence[Row], what: str) -> FileActivity:
    """The I/O of rows of pg_stat_io; times of 0 were not measured.

    PostgreSQL 18 reports bytes; earlier versions report ``op_bytes``, the bytes per operation.
    """

    def size(name: str, count: str) -> float | None:
        if name in change.columns:
            return _sum_of(rows, name)
        if "op_bytes" in change.columns:
            return sum(number(row, count) * number(row, "op_bytes") for row in rows)
        return None

    def spent_s(name: str) -> float | None:
        return _sum_of(rows, name) / 1000 or None

    return FileActivity(
        origin=f"{change.sources}, {what}",
        length_s=change.length_s,
        reads=_sum_of(rows, "reads"),
        writes=_sum_of(rows, "writes"),
        read_bytes=size("read_bytes", "reads"),
        write_bytes=size("write_bytes", "writes"),
        read_s=spent_s("read_time"),
        write_s=spent_s("write_time"),
    )


def _files_of_sql_server(change: CounterChange, type_desc: str) -> FileActivity:
    rows = [row for row in change.rows if row["type_desc"].strip().upper() == type_desc]
    timed = {"io_stall_read_ms", "io_stall_write_ms"} <= change.columns
    return FileActivity(
        origin=f"{change.sources}, files of type {type_desc}",
        length_s=change.length_s,
        reads=_sum_of(rows, "num_of_reads"),
        writes=_sum_of(rows, "num_of_writes"),
        read_bytes=_sum_of(rows, "num_of_bytes_read"),
        write_bytes=_sum_of(rows, "num_of_bytes_written"),
        read_s=_sum_of(rows, "io_stall_read_ms") / 1000 if timed else None,
        write_s=_sum_of(rows, "io_stall_write_ms") / 1000 if timed else None,
    )


def _sum_of(rows: Sequence[Row], name: str) -> float:
    return sum(number(row, name) for row in rows)


def of_waits(changes: Mapping[TableKind, CounterChange], collected: Collected) -> list[str]:
    """Collect the waits for the log and for pages, and return the most important waits as sentences.

    Waits of idle server threads are ignored (``sqlserver.WAITS``).
    """
    change = changes.get(WAITS)
    if change is None:
        return []
    spent_s: dict[str, float] = {}
    counted: dict[str, float] = {}
    signal_s = 0.0
    for row in change.rows:
        if name := named(row["wait_type"].strip().upper()):
            spent_s[name] = spent_s.get(name, 0.0) + number(row, "wait_time_ms") / 1000
            counted[name] = counted.get(name, 0.0) + number(row, "waiting_tasks_count")
            signal_s += number(row, "signal_wait_time_ms") / 1000
    total_s = sum(spent_s.values())
    for what, begins in WAITED.items():
        waited_s, waits = _beginning(spent_s, begins), _beginning(counted, begins)
        _take(collected, change.sources, {f"{what}.wait_s": waited_s, f"{what}.waits": waits})
    if not total_s:
        return [f"{change.sources}: no session waited for a disk, a lock or a CPU"]
    most = sorted(spent_s, key=lambda name: -spent_s[name])[:_SHOWN_WAITS]
    shares = ", ".join(f"{name} {spent_s[name] / total_s:.0%}" for name in most)
    sentence = (
        f"{change.sources}: at any moment {total_s / change.length_s:.2g} sessions waited: {shares}; "
        f"{signal_s / total_s:.0%} of it was for a CPU"
    )
    return [sentence]


def _beginning(amounts: Mapping[str, float], begins: str) -> float:
    return sum(amount for name, amount in amounts.items() if name.startswith(begins))


_HIDDEN = ("", "NULL", "<insufficient privilege>")
"""Placeholders of servers for a statement's text that the user may not see."""
_NO = ("f", "false")
_SHOWN = 60
"""Characters of a statement's text in a message."""
COMMIT_LOG_BYTES = 40.0
"""Log bytes of a commit record, as measured on PostgreSQL 18."""


@dataclass(frozen=True, slots=True)
class Production:
    """The figures of a production server.

    Attributes:
        collected: the figures, and notes where sources differ.
        sums: kind of statement -> totals over ``length_s``.
        writes: number of writing transactions in ``length_s``.
        began_s, ended_s: start and end of the period, UTC seconds.
        sources: the sources, in words.
        course: statements per second by interval; empty if the source has no intervals.
        notes: notes for the reader about waits and resets, as sentences.
    """

    collected: Collected
    sums: Mapping[StatementKind, Sum]
    writes: float
    began_s: float
    ended_s: float
    sources: str
    course: tuple[Rate, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def figures(self) -> Figures:
        """The figures of the server by name."""
        return self.collected.figures

    @property
    def length_s(self) -> float:
        """Seconds between ``began_s`` and ``ended_s``."""
        return self.ended_s - self.began_s


def production(changes: Mapping[TableKind, CounterChange]) -> Production:
    """Combine the figures of all tables. Raises InputError if no table contains statements."""
    change = changes.get(STATEMENTS) or changes.get(QUERY_STORE)
    if change is None:
        names = ", ".join(each.sources for each in changes.values())
        raise InputError(
            f"{names}: no statistics of statements among them; needed: two snapshots of pg_stat_statements "
            f"({STATEMENTS.export}), or one of the Query Store ({QUERY_STORE.export})"
        )
    statements = [
        _of_postgresql(row) if change.kind is STATEMENTS else _of_sql_server(row) for row in change.rows
    ]
    hidden = _hidden(statements, change)
    sums, collected = by_kind(_counted(statements)), Collected()
    writes, why = _writes(statements, change, changes.get(DATABASE), collected)
    within = _within(statements, change)
    _of_statements(sums, writes, why, change, collected, within)
    if writes:
        total = sum(each.log_bytes for each in statements if not each.nested)
        _log_bytes(total, writes, change, changes.get(WAL), collected)
    of_files(changes, writes / change.length_s, collected)
    notes = [
        *hidden,
        *within,
        *of_waits(changes, collected),
        *(note for each in changes.values() for note in each.notes),
    ]
    return Production(
        collected=collected,
        sums=sums,
        writes=writes,
        began_s=change.began_s,
        ended_s=change.ended_s,
        sources=change.sources,
        course=_course(change) if change.kind is QUERY_STORE else (),
        notes=tuple(notes),
    )


def _hidden(statements: Sequence[StatementActivity], change: CounterChange) -> list[str]:
    """A sentence about statements of other users whose text PostgreSQL hides; empty if none are hidden.

    Raises InputError if all texts are hidden.
    """
    calls = sum(each.calls for each in statements)
    hidden = sum(each.calls for each in statements if each.text.strip() in _HIDDEN)
    if not hidden or change.kind is not STATEMENTS:
        return []
    remedy = "export as a member of pg_read_all_stats (GRANT pg_read_all_stats TO USER)"
    if hidden == calls:
        raise InputError(
            f"{change.sources}: the server shows no statement's text, so what they do is not known; {remedy}"
        )
    sentence = (
        f"{change.sources}: the server hides the text of {hidden / calls:.0%} of the calls, which are not in "
        f"here: {remedy}"
    )
    return [sentence]


def _counted(statements: Sequence[StatementActivity]) -> Sequence[StatementActivity]:
    """The statements to count: without statements that only call other counted statements."""
    if not any(each.nested for each in statements):
        return statements
    return [each for each in statements if not each.calls_what_writes]


def _within(statements: Sequence[StatementActivity], change: CounterChange) -> list[str]:
    """A sentence about writes inside functions and procedures that the server did not count separately."""
    if change.kind is not STATEMENTS or any(each.nested for each in statements):
        return []
    calling = sorted(
        (each for each in statements if each.calls_what_writes), key=lambda each: -each.log_bytes
    )
    within, total = (sum(each.log_bytes for each in several) for several in (calling, statements))
    if within <= APART * total:
        return []
    shown = " ".join(calling[0].text.split())[:_SHOWN]
    sentence = (
        f"{change.sources}: {within / total:.0%} of the log's bytes are written within functions and "
        f"procedures ({shown}), whose statements are not counted, so that what they write and read is not in "
        "here: set pg_stat_statements.track = all"
    )
    return [sentence]


def _course(change: CounterChange) -> tuple[Rate, ...]:
    """Executed statements per second, by the intervals of the Query Store."""
    executions: dict[tuple[float, float], float] = {}
    for row in change.rows:
        span = tuple(seconds(row[name], f"{change.sources}: {name}") for name in ("start_time", "end_time"))
        executions[span[0], span[1]] = executions.get((span[0], span[1]), 0.0) + number(
            row, "count_executions"
        )
    return tuple(
        Rate(ended_s, ended_s - began_s, count / (ended_s - began_s))
        for (began_s, ended_s), count in sorted(executions.items())
        if ended_s > began_s
    )


def _of_postgresql(row: Mapping[str, str]) -> StatementActivity:
    read = number(row, "shared_blks_read")
    return StatementActivity(
        text=row["query"],
        calls=number(row, "calls"),
        rows=number(row, "rows"),
        log_bytes=number(row, "wal_bytes"),
        pages=read + number(row, "shared_blks_hit"),
        pages_read=read,
        temp_bytes=number(row, "temp_blks_written") * PAGE_BYTES,
        page_images=number(row, "wal_fpi"),
        nested=row.get("toplevel", "").strip().lower() in _NO,
    )


def _of_sql_server(row: Mapping[str, str]) -> StatementActivity:
    calls = number(row, "count_executions")
    return StatementActivity(
        text=row["query_sql_text"],
        calls=calls,
        rows=calls * number(row, "avg_rowcount"),
        log_bytes=calls * number(row, "avg_log_bytes_used"),
        pages=calls * number(row, "avg_logical_io_reads"),
        pages_read=calls * number(row, "avg_physical_io_reads"),
        temp_bytes=calls * number(row, "avg_tempdb_space_used") * PAGE_BYTES,
    )


def _writes(
    statements: Sequence[StatementActivity],
    change: CounterChange,
    database: CounterChange | None,
    collected: Collected,
) -> tuple[float, str]:
    """(number of writing transactions, how the number was found)."""
    outer = [each for each in statements if not each.nested]
    calls = _calls(each for each in outer if each.kind in WRITING)
    within = min(
        _calls(each for each in statements if each.nested and each.kind in WRITING),
        _calls(each for each in outer if each.calls_what_writes),
    )
    commits = _calls(each for each in outer if each.word in COMMITS)
    if database is None:
        if not commits:
            return (
                calls + within,
                "statements that write, each a transaction of its own (no COMMIT was counted)",
            )
        return min(
            calls + within, commits
        ), "no more than there were COMMITs; a pair of pg_stat_database would show it better"
    # Both tables were read around the same busy time, one directly after the other.
    transactions = sum(number(row, "xact_commit") for row in database.rows)
    if calls > transactions:
        collected.compare(
            "transactions that write, a second",
            ProductionFigure(transactions / database.length_s, f"{database.sources}: xact_commit"),
            ProductionFigure(calls / change.length_s, f"{change.sources}: calls of statements that write"),
            "several statements form one transaction",
        )
    # Statements without a COMMIT are single transactions; the others share the counted transactions.
    alone = max(0.0, transactions - commits)
    shared = max(0.0, _calls(each for each in outer if each.word not in TRANSACTIONAL) - alone)
    several = min(calls, shared)
    return min(
        calls - several + min(commits, several) + within, transactions
    ), "statements that write; those that shared a COMMIT, by pg_stat_database's transactions, as one"


def _calls(statements: Iterable[StatementActivity]) -> float:
    return sum(each.calls for each in statements)


def _of_statements(
    sums: Mapping[StatementKind, Sum],
    writes: float,
    why: str,
    change: CounterChange,
    collected: Collected,
    within: Sequence[str],
) -> None:
    writing, reading = _total(sums, WRITING), _total(sums, READING)
    operations = writes + reading.calls
    if not operations:
        raise InputError(
            *within, f"{change.sources}: no statement that reads or writes; take them around a busy time"
        )
    place = f"{change.sources}, {change.length_s:.0f} s"
    result = collected.figures
    result[WRITES_PER_S] = ProductionFigure(writes / change.length_s, f"{place}: {why}")
    result[READS_PER_S] = ProductionFigure(reading.calls / change.length_s, f"{place}: calls of queries")
    if writes:
        result[READS_PER_WRITE] = ProductionFigure(
            reading.calls / writes, f"{place}: calls of queries ÷ writes"
        )
        result[ROWS_PER_WRITE] = ProductionFigure(
            writing.rows / writes, f"{place}: rows of statements that write ÷ writes"
        )
    if {"shared_blks_read", "avg_physical_io_reads"} & change.columns:
        result[PAGE_READS_PER_OPERATION] = ProductionFigure(
            (writing.pages_read + reading.pages_read) / operations, f"{place}: pages not found in the buffers"
        )
    if {"temp_blks_written", "avg_tempdb_space_used"} & change.columns:
        result[TEMP_BYTES_PER_OPERATION] = ProductionFigure(
            (writing.temp_bytes + reading.temp_bytes) / operations, f"{place}: temporary files"
        )


def _log_bytes(
    total: float, writes: float, change: CounterChange, log: CounterChange | None, collected: Collected
) -> None:
    """Collect the log bytes per write including its commit; ``total`` is the log of all statements."""
    if log is not None:
        per_s = sum(number(row, "wal_bytes") for row in log.rows) / log.length_s
        figure = ProductionFigure(
            per_s * change.length_s / writes,
            f"{log.sources}: pg_stat_wal's bytes, of all databases, ÷ writes",
        )
        collected.take(LOG_BYTES_PER_WRITE, figure, "it is the first")
    place = f"{change.sources}, {change.length_s:.0f} s"
    if change.kind is QUERY_STORE:
        if "avg_log_bytes_used" not in change.columns:
            return  # SQL Server 2016 does not report log bytes
        figure = ProductionFigure(total / writes, f"{place}: bytes of the log ÷ writes")
    else:
        # pg_stat_statements does not count the log bytes of the commit itself.
        figure = ProductionFigure(
            total / writes + COMMIT_LOG_BYTES,
            f"{place}: bytes of the log ÷ writes, and {COMMIT_LOG_BYTES:.0f} for a commit",
        )
    collected.take(
        LOG_BYTES_PER_WRITE, figure, "it counts everything written to the log, also by other databases"
    )


def _total(sums: Mapping[StatementKind, Sum], kinds: tuple[StatementKind, ...]) -> Sum:
    """The totals of several kinds together."""
    several = [sums.get(kind, Sum()) for kind in kinds]
    return Sum(*(sum(getattr(each, name.name) for each in several) for name in fields(Sum)))
