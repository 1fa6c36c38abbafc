"""PostgreSQL's answers as values: looks at its sessions, and the growth of its counters. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.databases.looks import Look
from pinchpoint_collectors.proc.value import Value, growth, rate

Row = Mapping[str, Any]

TOTALS = {
    "commits": ("db.commits_per_s", ""),
    "rollbacks": ("db.rollbacks_per_s", ""),
    "deadlocks": ("db.deadlocks_per_s", ""),
    "temp_bytes": ("db.temp_bytes_per_s", ""),
    "wal_records": ("db.wal_records_per_s", ""),
    "wal_fpi": ("db.wal_page_images_per_s", ""),
    "wal_bytes": ("db.wal_bytes_per_s", ""),
    "wal_buffers_full": ("db.wal_buffers_full_per_s", ""),
    "checkpoints_timed": ("db.checkpoints_per_s", "timed"),
    "checkpoints_requested": ("db.checkpoints_per_s", "requested"),
    "checkpoint_write_s": ("db.checkpoint_write_s_per_s", ""),
    "checkpoint_sync_s": ("db.checkpoint_sync_s_per_s", ""),
    "checkpoint_buffers": ("db.checkpoint_buffers_per_s", ""),
}
"""A column of the totals -> metric and instance of its growth per second."""

_OPERATIONS = ("read", "write", "extend", "fsync")

_AT_WORK = ("active", "fastpath function call")
"""States of a session that runs something; the second is how drivers read and write large objects."""
_UNTOLD = "disabled"
"""The state of a session with ``track_activities`` off: it tells nobody whether it works."""


def look(rows: Iterable[Row]) -> Look:
    """One look, from the rows of ``postgres_sql.ACTIVITY``."""
    waiting: Counter[str] = Counter()
    running = idle = connections = hidden = 0
    for row in rows:
        connections += row["sessions"]
        if row["ours"] or row["hidden"] or row["state"] == _UNTOLD:
            hidden += 0 if row["ours"] else row["sessions"]
            continue
        if row["state"] in _AT_WORK and row["wait_event_type"] is None:
            running += row["sessions"]
        elif row["state"] in _AT_WORK:
            waiting[f"{row['wait_event_type']}:{row['wait_event']}"] += row["sessions"]
        elif (row["state"] or "").startswith("idle in transaction"):
            idle += row["sessions"]
    return Look(waiting, running, idle, connections, hidden)


def totals(before: Row, after: Row, interval_s: float) -> Iterator[Value]:
    """Growth of the server-wide counters. A column the server does not have is not sent."""
    for column, (metric, instance) in TOTALS.items():
        if before.get(column) is not None and after.get(column) is not None:
            yield Value(metric, instance, rate(before[column], after[column], interval_s))
    hits = growth(before["buffer_hits"], after["buffer_hits"])
    misses = growth(before["buffer_misses"], after["buffer_misses"])
    if hits is None or misses is None:
        yield Value("db.buffer_hit_ratio", "", None)
    else:
        wanted = hits + misses
        yield Value("db.buffer_hit_ratio", "", hits / wanted if wanted else None, wanted)


def files(before: Iterable[Row], after: Iterable[Row], interval_s: float) -> Iterator[Value]:
    """I/O by kind of file: what the server itself asked the operating system for, and how long that took.

    Times of a server that does not measure them are null, never the 0 it says.
    """
    earlier = {row["file"]: row for row in before}
    for row in after:
        old = earlier.get(row["file"])
        if old is None:
            continue
        for name in _OPERATIONS:
            yield from _operation(name, old, row, interval_s)
        for column in ("read_bytes", "write_bytes"):
            if old[column] is not None and row[column] is not None:
                yield Value(f"db.{column}_per_s", row["file"], rate(old[column], row[column], interval_s))


def _operation(name: str, before: Row, after: Row, interval_s: float) -> Iterator[Value]:
    """Count and time of one kind of operation; nothing of what the server does not count for these files."""
    file, count, spent = after["file"], f"{name}s", f"{name}_s"
    if before[count] is None or after[count] is None:
        return
    yield Value(f"db.{count}_per_s", file, rate(before[count], after[count], interval_s))
    if before[spent] is None or after[spent] is None:
        return
    done = growth(before[count], after[count])
    took_s = after[spent] - before[spent] if before["timed"] and after["timed"] else None
    # What is timed takes some time: of operations in none, whoever did them does not measure it. ``timed`` is
    # our own session's setting, and a role or a database may have one that the others have not.
    if done is None or took_s is None or took_s < 0 or (done and not took_s):
        done, took_s = None, None
    yield Value(f"db.{name}_s_per_s", file, None if took_s is None else took_s / interval_s)
    yield Value(f"db.{name}_latency_s", file, took_s / done if done and took_s is not None else None, done)
