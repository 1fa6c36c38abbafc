"""What a database server says of the I/O of its files, and of what its sessions wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.fit.figures import Figure, Told
from pinchpoint.fit.snapshots import Change, Row, number
from pinchpoint.fit.tables import FILES, IO, WAITS, WAL, TableKind
from pinchpoint.plan.production import (
    DATA_READ_BYTES,
    DATA_READ_LATENCY_S,
    DATA_READS_PER_DATA_WRITE,
    DATA_WAIT_S,
    DATA_WRITE_BYTES,
    LOG_DISK_BYTES_PER_WRITE,
    LOG_IOS_PER_WRITE,
    LOG_WAIT_S,
    LOG_WRITE_BYTES,
    LOG_WRITE_LATENCY_S,
)
from pinchpoint_collectors.databases.sqlserver import named

LOG_WAITS, DATA_WAITS = "Log:WRITELOG", "Data:PAGEIOLATCH"
"""How the waits for a commit's write and for a page begin, as collector ``sqlserver`` names them."""
_SHOWN_WAITS = 6
_COUNTS_ALL = "the server counts every write to its files there"


@dataclass(frozen=True, slots=True)
class Files:
    """The I/O of the server's log, or of its data files, in a time; what is None is not told.

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


def of_files(changes: Mapping[TableKind, Change], writes_per_s: float, told: Told) -> None:
    """Take what the files' statistics tell of the log and of the data files.

    Args:
        changes: by table.
        writes_per_s: transactions that write.
        told: takes the figures.
    """
    for log in _log(changes):
        _take(told, LOG_WRITE_BYTES, log.write_bytes, log.writes, f"{log.origin}: bytes ÷ writes")
        _take(told, LOG_WRITE_LATENCY_S, log.write_s, log.writes, f"{log.origin}: time ÷ writes")
        transactions = writes_per_s * log.length_s
        _take(told, LOG_IOS_PER_WRITE, log.writes, transactions, f"{log.origin}: its writes ÷ transactions")
        _take(told, LOG_DISK_BYTES_PER_WRITE, log.write_bytes, transactions, f"{log.origin}: ÷ transactions")
    for data in _data(changes):
        _take(told, DATA_READ_BYTES, data.read_bytes, data.reads, f"{data.origin}: bytes ÷ reads")
        _take(told, DATA_WRITE_BYTES, data.write_bytes, data.writes, f"{data.origin}: bytes ÷ writes")
        _take(told, DATA_READS_PER_DATA_WRITE, data.reads, data.writes, f"{data.origin}: reads ÷ writes")
        _take(told, DATA_READ_LATENCY_S, data.read_s, data.reads, f"{data.origin}: time ÷ reads")


def _take(told: Told, name: str, amount: float | None, count: float, origin: str) -> None:
    """Of what did not happen there is no size and no time."""
    if amount is not None and count > 0:
        told.take(name, Figure(amount / count, origin), _COUNTS_ALL)


def _log(changes: Mapping[TableKind, Change]) -> Iterator[Files]:
    if change := changes.get(IO):
        # Of the log only context 'normal': the zeros of a new segment ('init') are nobody's commit.
        rows = [row for row in change.rows if row["object"] == "wal" and row["context"] == "normal"]
        if rows:
            yield _of_postgresql(change, rows, "the log in pg_stat_io")
    if change := changes.get(FILES):
        yield _of_sql_server(change, "LOG")
    change = changes.get(WAL)
    if change and "wal_write" in change.columns:  # until 17; its bytes are those of records, not of writes
        writes, spent_ms = (_sum(change.rows, name) for name in ("wal_write", "wal_write_time"))
        origin = f"{change.sources}, pg_stat_wal"
        spent_s = spent_ms / 1000 if spent_ms else None  # 0 where track_wal_io_timing is off
        yield Files(origin, change.length_s, 0.0, writes, None, None, None, spent_s)


def _data(changes: Mapping[TableKind, Change]) -> Iterator[Files]:
    if change := changes.get(IO):
        rows = [row for row in change.rows if row["object"] == "relation"]
        yield _of_postgresql(change, rows, "relations in pg_stat_io")
    if change := changes.get(FILES):
        yield _of_sql_server(change, "ROWS")


def _of_postgresql(change: Change, rows: Sequence[Row], what: str) -> Files:
    """18 counts bytes; before, each operation has ``op_bytes``. Times are 0 where they are not measured."""

    def size(name: str, count: str) -> float | None:
        if name in change.columns:
            return _sum(rows, name)
        if "op_bytes" in change.columns:
            return sum(number(row, count) * number(row, "op_bytes") for row in rows)
        return None

    def spent_s(name: str) -> float | None:
        return _sum(rows, name) / 1000 or None

    return Files(
        origin=f"{change.sources}, {what}",
        length_s=change.length_s,
        reads=_sum(rows, "reads"),
        writes=_sum(rows, "writes"),
        read_bytes=size("read_bytes", "reads"),
        write_bytes=size("write_bytes", "writes"),
        read_s=spent_s("read_time"),
        write_s=spent_s("write_time"),
    )


def _of_sql_server(change: Change, type_desc: str) -> Files:
    rows = [row for row in change.rows if row["type_desc"].strip().upper() == type_desc]
    timed = {"io_stall_read_ms", "io_stall_write_ms"} <= change.columns
    return Files(
        origin=f"{change.sources}, files of type {type_desc}",
        length_s=change.length_s,
        reads=_sum(rows, "num_of_reads"),
        writes=_sum(rows, "num_of_writes"),
        read_bytes=_sum(rows, "num_of_bytes_read"),
        write_bytes=_sum(rows, "num_of_bytes_written"),
        read_s=_sum(rows, "io_stall_read_ms") / 1000 if timed else None,
        write_s=_sum(rows, "io_stall_write_ms") / 1000 if timed else None,
    )


def _sum(rows: Sequence[Row], name: str) -> float:
    return sum(number(row, name) for row in rows)


def of_waits(changes: Mapping[TableKind, Change], told: Told) -> list[str]:
    """Take how long sessions waited for the log and for pages; which waits there were, as sentences.

    Of what a server's own threads wait for, with nothing to do, nothing is told (``sqlserver.WAITS``).
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
    for figure, begins in ((LOG_WAIT_S, LOG_WAITS), (DATA_WAIT_S, DATA_WAITS)):
        waited_s, waits = _beginning(spent_s, begins), _beginning(counted, begins)
        _take(told, figure, waited_s, waits, f"{change.sources}: {begins}*, time ÷ waits")
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
