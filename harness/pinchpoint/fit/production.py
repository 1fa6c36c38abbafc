"""The work of a production database: statements, file writes, waits, log."""

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
    """The I/O of the server's log, or of its data files, in a time; None is not reported.

    Attributes:
        origin: where it comes from.
        length_s: the time.
        reads, writes: how many.
        read_bytes, write_bytes: how much.
        read_s, write_s: how long the server waited for them in all.
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
    """Take the statistics of the log and of the data files.

    Args:
        changes: by table.
        writes_per_s: transactions that write.
        collected: takes the figures.
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
        # Of the log only context 'normal': the zeros of a new segment ('init') belong to no commit.
        rows = [row for row in change.rows if row["object"] == "wal" and row["context"] == "normal"]
        if rows:
            yield _files_of_postgresql(change, rows, "the log in pg_stat_io")
    if change := changes.get(FILES):
        yield _files_of_sql_server(change, "LOG")
    change = changes.get(WAL)
    if change and "wal_write" in change.columns:  # until 17; its bytes are those of records, not of writes
        writes, spent_ms = (_sum_of(change.rows, name) for name in ("wal_write", "wal_write_time"))
        origin = f"{change.sources}, pg_stat_wal"
        spent_s = spent_ms / 1000 if spent_ms else None  # 0 where track_wal_io_timing is off
        yield FileActivity(origin, change.length_s, 0.0, writes, None, None, None, spent_s)


def _data(changes: Mapping[TableKind, CounterChange]) -> Iterator[FileActivity]:
    if change := changes.get(IO):
        rows = [row for row in change.rows if row["object"] == "relation"]
        yield _files_of_postgresql(change, rows, "relations in pg_stat_io")
    if change := changes.get(FILES):
        yield _files_of_sql_server(change, "ROWS")


def _files_of_postgresql(change: CounterChange, rows: Sequence[Row], what: str) -> FileActivity:
    """18 counts bytes; before, each operation has ``op_bytes``. Times are 0 if they are not measured."""

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
    """Take how long sessions waited for the log and for pages; which waits there were, as sentences.

    Of what a server's own threads wait for, with nothing to do, nothing is reported (``sqlserver.WAITS``).
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
"""Texts that servers give in place of a statement that they do not show."""
_NO = ("f", "false")
_SHOWN = 60
"""Letters of a statement that is shown."""
COMMIT_LOG_BYTES = 40.0
"""A commit's record, as PostgreSQL 18 was measured to write it."""


@dataclass(frozen=True, slots=True)
class Production:
    """The figures of a production server.

    Attributes:
        collected: its figures, and where sources differ.
        sums: what statements of each kind came to, in ``length_s``.
        writes: transactions that wrote in that time.
        began_s, ended_s: that time, UTC seconds.
        sources: where it comes from.
        course: statements by the interval, where the source has intervals.
        notes: what a reader must know, as sentences: waits, counters that were reset.
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
        """How long the time was."""
        return self.ended_s - self.began_s


def production(changes: Mapping[TableKind, CounterChange]) -> Production:
    """The figures of all tables together. Raises ``InputError`` if none has statements."""
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
    """Statements of other users that PostgreSQL hides, as a sentence.

    Raises ``InputError`` if it hides all.
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
    """The statements that do work themselves; those that only call counted statements are left out."""
    if not any(each.nested for each in statements):
        return statements
    return [each for each in statements if not each.calls_what_writes]


def _within(statements: Sequence[StatementActivity], change: CounterChange) -> list[str]:
    """Writes inside functions and procedures that were not separated, as a sentence."""
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
    """Executions by the Query Store's intervals."""
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
    """Transactions that wrote, and how that is known."""
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
    # Both tables are taken around the same busy time, one right after the other.
    transactions = sum(number(row, "xact_commit") for row in database.rows)
    if calls > transactions:
        collected.compare(
            "transactions that write, a second",
            ProductionFigure(transactions / database.length_s, f"{database.sources}: xact_commit"),
            ProductionFigure(calls / change.length_s, f"{change.sources}: calls of statements that write"),
            "several statements form one transaction",
        )
    # A statement without COMMIT is a transaction by itself; all others share the counted transactions.
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
    """Bytes of log per write, its commit included; ``total`` is the log of all statements."""
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
            return  # SQL Server 2016
        figure = ProductionFigure(total / writes, f"{place}: bytes of the log ÷ writes")
    else:
        # pg_stat_statements has ended when a transaction commits.
        figure = ProductionFigure(
            total / writes + COMMIT_LOG_BYTES,
            f"{place}: bytes of the log ÷ writes, and {COMMIT_LOG_BYTES:.0f} for a commit",
        )
    collected.take(
        LOG_BYTES_PER_WRITE, figure, "it counts everything written to the log, also by other databases"
    )


def _total(sums: Mapping[StatementKind, Sum], kinds: tuple[StatementKind, ...]) -> Sum:
    """Several kinds together."""
    several = [sums.get(kind, Sum()) for kind in kinds]
    return Sum(*(sum(getattr(each, name.name) for each in several) for name in fields(Sum)))
