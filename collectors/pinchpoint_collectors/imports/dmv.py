"""Reads snapshots of a database server's views: a CSV with the time of the snapshot in each row.

Waits (``sys.dm_os_wait_stats``) and I/O of files (``sys.dm_io_virtual_file_stats``) count since the start of
the server, so the increase from one snapshot to the next is used. Milliseconds of waiting per second are
waiting sessions, by Little's law. Requests (``sys.dm_exec_requests``, ``sys.dm_os_waiting_tasks``) and memory
grants (``sys.dm_exec_query_memory_grants``) are counted directly. The files of one drive are one disk. For
PostgreSQL ``pg_stat_activity`` and ``pg_stat_database`` are read, for MySQL ``SHOW GLOBAL STATUS``. A single
snapshot gives the share of each kind of wait and the mean latency of files, both since the start of the
server; its requests and memory grants cover one second.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.exporters.databases import SERVERS, figures
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import (
    ALLOWED_POWERSHELL_DATES,
    POWERSHELL_DATES,
    LastLine,
    cells,
    csv_cells,
    number,
    zone_of,
)
from pinchpoint_collectors.imports.times import LEAST_S, Dates, begin_of, zoned_s
from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.windows.waits import named

_OF_TIME = re.compile(r"time|date|stamp|_at$|^ts$|^now$")
_NOT_NOW = re.compile(
    r"(start|login|blk|session|active|idle|last|create|max|wait|signal|cpu|elapsed|total|estimated)_?.*"
)
"""Columns with times other than that of the snapshot."""
_DRIVE = re.compile(r"[A-Za-z]:")
_DASHES = re.compile(r"-+")
_ROWS = re.compile(r"\(\d+ \S+ \S+\)")
"""Line that sqlcmd prints below a table."""
UNKNOWN_S = 3600.0
_WAIT_INFO = re.compile(r"\)([A-Z_]+)")
_RECORD = "record the view every 15 s, with SYSUTCDATETIME() AS sample_time as a column"
_READS, _WRITES = ("num_of_reads", "io_stall_read_ms"), ("num_of_writes", "io_stall_write_ms")
_PATHS = ("physical_name", "file_name", "logical_name", "name")
_NUMBERED = ("database_name", "db_name", "database_id", "file_id")
_WAITED_MS = {"wait_time_ms": 1.0, "wait_time_s": 1e3, "wait_s": 1e3}
_AS_METRIC = {
    "Lock": "db.lock_waiters",
    "Memory:RESOURCE_SEMAPHORE": "db.memory_grants_pending",
    "CPU:THREADPOOL": "db.tasks_queued",
}
"""Kinds of waits, or single waits, with a metric of their own."""

_NONE = frozenset({"", "0", "NULL"})

Row = Mapping[str, str]


class Snapshot(NamedTuple):
    """Rows of one time (UTC seconds), and the line of the last row."""

    time_s: float
    rows: list[Row]
    line: int


class Dmv:
    """Import format ``dmv``."""

    name = "dmv"
    says = (
        "snapshots of SQL Server's views (dm_os_wait_stats, dm_io_virtual_file_stats, dm_exec_requests), "
        "PostgreSQL's (pg_stat_activity, pg_stat_database) or MySQL's status, CSV with a time in each row"
    )

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the column names of a view."""
        lines = head.lstrip("\ufeff").splitlines()
        return bool(lines) and _reader(_names(lines[0])) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per figure and snapshot, except the first snapshot (see ``Format.read``)."""
        header, rows = _table(lines, facts)
        read = _reader(header)
        if read is None:
            raise ForeignFileError(
                f"found the columns {', '.join(header)[:80]}; allowed: those of sys.dm_os_wait_stats, "
                "sys.dm_io_virtual_file_stats, sys.dm_exec_requests, sys.dm_os_waiting_tasks or "
                "sys.dm_exec_query_memory_grants; of pg_stat_activity or pg_stat_database; of MySQL's status",
                1,
            )
        snapshots = _snapshots(header, rows, settings, facts)
        of_windows = {} if read in (_sessions, _figures) else {"os": "Windows"}
        facts.facts("").update(data_io="kernel", **of_windows)
        if len(snapshots) == 1:
            yield from _once(read, snapshots[0], facts)
        for before, after in itertools.pairwise(snapshots):
            interval_s = after.time_s - before.time_s
            facts.line = after.line
            for metric, instance, value, weight in read(before, after, interval_s):
                yield Sample(round(after.time_s * 1e9), interval_s, "", metric, instance, value, weight)


def _once(read: Reader, snapshot: Snapshot, facts: FileFacts) -> Iterator[Sample]:
    """Yield the samples of a single snapshot. Raises ``ForeignFileError`` if it gives none."""
    if read is _figures:
        raise ForeignFileError(
            f"it has a single snapshot, and the views count since the start of the server; {_RECORD}"
        )
    since_start = _SINCE_START.get(read)
    figures_ = since_start(snapshot) if since_start else read(snapshot, snapshot, LEAST_S)
    interval_s = UNKNOWN_S if since_start else LEAST_S
    facts.note(
        "it is a single snapshot, of the time since the server started, for which an hour was assumed"
        if since_start
        else "it is a single snapshot, of a moment: a second was assumed"
    )
    for metric, instance, value, weight in figures_:
        yield Sample(
            round((snapshot.time_s + interval_s) * 1e9), interval_s, "", metric, instance, value, weight
        )


Figure = tuple[str, str, float | None, float | None]
"""Metric, instance, value, weight."""
Reader = Callable[[Snapshot, Snapshot, float], Iterator[Figure]]


def _reader(names: Sequence[str]) -> Reader | None:
    """Return the reader of a view with these columns; None for an unknown view."""
    return next((reader for needed, reader in _READERS if needed <= set(names)), None)


def _delimiter(line: str) -> str | None:
    """Return the separator of cells; None if there are only spaces."""
    mark = max(",;\t|", key=line.count)
    return mark if mark in line else None


def _names(line: str) -> list[str]:
    return [name.strip(' "\ufeff').casefold() for name in line.split(_delimiter(line))]


def _cells(text: str, delimiter: str | None, spans: Sequence[tuple[int, int]], line: int) -> list[str]:
    """Return the cells of a row. Without a separator they stand below the dashes, or else between spaces."""
    if delimiter is not None:
        return csv_cells(text, delimiter, line)
    return [text[begin:end].strip() for begin, end in spans] if spans else text.split()


def _table(lines: Iterable[str], facts: FileFacts) -> tuple[list[str], list[tuple[int, Row]]]:
    """Return names of the columns, and line and cells of each row. sqlcmd prints dashes below the names."""
    header: list[str] = []
    rows: list[tuple[int, Row]] = []
    last = LastLine(facts)
    delimiter: str | None = ","
    spans: list[tuple[int, int]] = []
    for line, text in last.lines(lines):
        if not header:
            header, delimiter = _names(text.rstrip("\r\n")), _delimiter(text.rstrip("\r\n"))
        elif not text.strip(f"-+{delimiter or ''} \r\n"):
            spans = [match.span() for match in _DASHES.finditer(text)]
        elif not _ROWS.match(text):
            try:
                row = _cells(text.rstrip("\r\n"), delimiter, spans, line)
                rows.append((line, cells(header, row, line)))
            except ForeignFileError as error:
                last.damaged(error)
    return header, rows


def _snapshots(
    header: Sequence[str], rows: Sequence[tuple[int, Row]], settings: Settings, facts: FileFacts
) -> list[Snapshot]:
    column = next((name for name in header if _OF_TIME.search(name) and not _NOT_NOW.fullmatch(name)), None)
    if column is None:
        begin_s = begin_of(settings, facts).timestamp()
        return [Snapshot(begin_s, [row for _, row in rows], rows[-1][0])] if rows else []
    dates = Dates([row[column] for _, row in rows], POWERSHELL_DATES, facts)
    snapshots: dict[float, Snapshot] = {}
    for line, row in rows:
        try:
            moment = dates.read(row[column])
        except ValueError as error:
            raise ForeignFileError(
                f"found {row[column][:40]!r} in column {column}; {ALLOWED_POWERSHELL_DATES}", line
            ) from error
        zone = moment.tzinfo or zone_of(settings, facts)
        time_s = zoned_s(moment.replace(tzinfo=None), zone, None)
        snapshots.setdefault(time_s, Snapshot(time_s, [], line)).rows.append(row)
    return [snapshots[time_s] for time_s in sorted(snapshots)]


def _counts(
    snapshot: Snapshot, key: Callable[[Row], str | None], columns: Sequence[str]
) -> dict[str, list[float]]:
    """Return the counts of a snapshot by instance. Several rows of one instance are added up."""
    result: dict[str, list[float]] = {}
    for row in snapshot.rows:
        name = key(row)
        values = [number(row[column], column, snapshot.line) for column in columns]
        if name is not None and None not in values:
            known = result.setdefault(name, [0.0] * len(columns))
            result[name] = [one + (more or 0.0) for one, more in zip(known, values, strict=True)]
    return result


def _increases(
    before: Snapshot, after: Snapshot, key: Callable[[Row], str | None], columns: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    """Return the increase of each count between two snapshots. New and reset counters are left out."""
    earlier = _counts(before, key, columns)
    for name, values in _counts(after, key, columns).items():
        if name in earlier:
            more = [later - first for later, first in zip(values, earlier[name], strict=True)]
            if min(more) >= 0:
                yield name, more


def _waits(before: Snapshot, after: Snapshot, interval_s: float) -> Iterator[Figure]:
    column = next(name for name in _WAITED_MS if name in after.rows[0])
    waiting: dict[tuple[str, str], float] = {}
    for name, (more,) in _increases(before, after, lambda row: named(row["wait_type"].strip()), [column]):
        where = _place(name)
        waiting[where] = waiting.get(where, 0.0) + more * _WAITED_MS[column] / 1000 / interval_s
    yield from ((metric, instance, value, None) for (metric, instance), value in waiting.items())


def _shares(snapshot: Snapshot) -> Iterator[Figure]:
    """Yield the waits of sessions as shares of all waiting time."""
    column = next(name for name in _WAITED_MS if name in snapshot.rows[0])
    waited: Counter[str] = Counter()
    for name, (more,) in _counts(snapshot, lambda row: named(row["wait_type"].strip()), [column]).items():
        waited[name.partition(":")[0]] += round(more * _WAITED_MS[column])
    for kind, more in waited.items():
        yield "db.waits_ratio", kind, more / (waited.total() or 1), None


def _place(wait: str) -> tuple[str, str]:
    """Return metric and instance of a wait, as the collector names them."""
    metric = _AS_METRIC.get(wait) or _AS_METRIC.get(wait.partition(":")[0])
    return (metric, "") if metric else ("db.sessions_waiting", wait)


def _requests(before: Snapshot, after: Snapshot, interval_s: float) -> Iterator[Figure]:  # noqa: ARG001 -- they do not count
    blocked = sum(row["blocking_session_id"].strip() not in _NONE for row in after.rows)
    yield "db.sessions_blocked", "", float(blocked), None
    every = {_place(name) for one in (before, after) for row in one.rows if (name := named(_wait_of(row)))}
    now = Counter(_place(name) for row in after.rows if (name := named(_wait_of(row))))
    for metric, instance in sorted(every):
        yield metric, instance, float(now[metric, instance]), None


def _wait_of(row: Row) -> str:
    """Return the wait of a request. sp_WhoIsActive puts the duration before it."""
    if "wait_type" in row:
        return row["wait_type"].strip()
    wait = _WAIT_INFO.search(row["wait_info"])
    return wait[1] if wait else ""


def _sessions(before: Snapshot, after: Snapshot, interval_s: float) -> Iterator[Figure]:  # noqa: ARG001 -- they do not count
    """Yield PostgreSQL's active sessions by wait. Waits for locks have a metric of their own."""
    waits = [
        Counter(f"{row['wait_event_type'].strip()}:{row['wait_event'].strip()}" for row in _active(one))
        for one in (before, after)
    ]
    yield "db.sessions_active", "", float(waits[1].total()), None
    locks = sum(count for wait, count in waits[1].items() if wait.startswith("Lock:"))
    yield "db.lock_waiters", "", float(locks), None
    for wait in sorted(waits[0].keys() | waits[1].keys()):
        if not wait.startswith(("Lock:", ":", "NULL:")):  # a session without a wait event runs
            yield "db.sessions_waiting", wait, float(waits[1][wait]), None


def _active(snapshot: Snapshot) -> Iterator[Row]:
    return (row for row in snapshot.rows if row["state"].strip() == "active")


def _figures(before: Snapshot, after: Snapshot, interval_s: float) -> Iterator[Figure]:
    """Yield figures of all PostgreSQL databases together, or of MySQL's status, as exporters have them."""
    for metric, instance, value in figures(_by_series(before), _by_series(after), interval_s):
        yield metric, instance, value, None


def _by_series(snapshot: Snapshot) -> dict[str, float]:
    """Return the figures of a snapshot under the exporters' names."""
    total: dict[str, float] = {}
    for row in snapshot.rows:
        named_ = (
            {f"mysql_global_status_{row['variable_name'].strip().casefold()}": row["value"]}
            if "variable_name" in row
            else {f"pg_stat_database_{column}": cell for column, cell in row.items()}
        )
        for name, cell in named_.items():
            value = number(cell, name, snapshot.line) if name in SERVERS else None
            if value is not None:
                total[name] = total.get(name, 0.0) + value
    return total


def _grants(before: Snapshot, after: Snapshot, interval_s: float) -> Iterator[Figure]:  # noqa: ARG001 -- they do not count
    pending = sum(row["granted_memory_kb"].strip() in _NONE for row in after.rows)
    yield "db.memory_grants_pending", "", float(pending), None


def _files(before: Snapshot, after: Snapshot, interval_s: float) -> Iterator[Figure]:
    for disk, more in _increases(before, after, _disk, [*_READS, *_WRITES]):
        for way, (count, stalled_ms) in zip(("read", "write"), (more[:2], more[2:]), strict=True):
            yield f"disk.{way}s_per_s", disk, count / interval_s, None
            yield f"disk.{way}_latency_s", disk, stalled_ms / 1000 / count if count else None, count


def _means(snapshot: Snapshot) -> Iterator[Figure]:
    for disk, values in _counts(snapshot, _disk, [*_READS, *_WRITES]).items():
        for way, (count, stalled_ms) in zip(("read", "write"), (values[:2], values[2:]), strict=True):
            yield f"disk.{way}_latency_s", disk, stalled_ms / 1000 / count if count else None, count


def _disk(row: Row) -> str | None:
    """Return the drive of a file, or else its name, or else its number in its database."""
    path = next((row[column].strip() for column in _PATHS if row.get(column, "").strip()), "")
    drive = _DRIVE.match(path)
    named_by = " ".join(row[column].strip() for column in _NUMBERED if row.get(column, "").strip())
    return drive[0].upper() if drive else path or named_by or None


_READERS: Sequence[tuple[set[str], Reader]] = (
    ({*_READS, *_WRITES}, _files),
    ({"session_id", "granted_memory_kb"}, _grants),
    ({"wait_type", "blocking_session_id"}, _requests),
    ({"wait_info", "blocking_session_id"}, _requests),
    *(({"wait_type", column}, _waits) for column in _WAITED_MS),
    ({"state", "wait_event_type", "wait_event"}, _sessions),
    ({"numbackends", "xact_commit"}, _figures),
    ({"variable_name", "value"}, _figures),
)
"""Columns of a view -> its reader. The first match counts."""
_SINCE_START: Mapping[Reader, Callable[[Snapshot], Iterator[Figure]]] = {_waits: _shares, _files: _means}
"""View that counts since the start of the server -> reader of a single snapshot."""
