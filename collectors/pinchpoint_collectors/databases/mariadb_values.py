"""MariaDB's and MySQL's answers as values: looks at their sessions, the growth of their counters. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors.databases.session_sampler import LOCK, SessionSample
from pinchpoint_collectors.proc.value import Value, growth, rate
from pinchpoint_collectors.record import NotMeasured

Row = Mapping[str, Any]
Status = Mapping[str, float]
"""Status variable, in lower case -> its number."""

_PICO = 1e-12

RATES = {
    "aborted_connects": ("db.connections_failed_per_s", ""),
    "connection_errors_max_connections": ("db.connections_rejected_per_s", ""),
    "connections": ("db.connections_made_per_s", ""),
    "created_tmp_disk_tables": ("db.temp_tables_per_s", ""),
    "handler_commit": ("db.commits_per_s", ""),
    "handler_rollback": ("db.rollbacks_per_s", ""),
    "innodb_buffer_pool_pages_flushed": ("db.pages_flushed_per_s", ""),
    "innodb_buffer_pool_wait_free": ("db.buffer_waits_per_s", ""),
    "innodb_data_fsyncs": ("db.fsyncs_per_s", "innodb"),
    "innodb_data_read": ("db.read_bytes_per_s", "innodb"),
    "innodb_data_reads": ("db.reads_per_s", "innodb"),
    "innodb_data_writes": ("db.writes_per_s", "innodb"),
    "innodb_data_written": ("db.write_bytes_per_s", "innodb"),
    "innodb_deadlocks": ("db.deadlocks_per_s", ""),
    "innodb_log_waits": ("db.log_buffer_full_per_s", ""),
    "innodb_log_writes": ("db.writes_per_s", "log"),
    "innodb_os_log_fsyncs": ("db.fsyncs_per_s", "log"),
    "innodb_os_log_written": ("db.log_bytes_per_s", ""),
    "innodb_row_lock_waits": ("db.lock_waits_per_s", ""),
    "questions": ("db.statements_per_s", ""),
}
"""A status variable that only grows -> metric and instance of its growth per second."""

_OF_DATA = ("innodb_data_read", "innodb_data_reads", "innodb_data_writes", "innodb_data_written")
"""Where the log is apart these are of data files alone."""

LEVELS = {
    "innodb_data_pending_fsyncs": ("db.io_pending", "fsync"),
    "innodb_data_pending_reads": ("db.io_pending", "read"),
    "innodb_data_pending_writes": ("db.io_pending", "write"),
    "innodb_history_list_length": ("db.history_length", ""),
    "memory_used": ("db.memory_used_bytes", ""),
}
"""A status variable that holds at this moment -> metric and instance."""

_MORE = (
    *("innodb_buffer_pool_pages_dirty", "innodb_buffer_pool_pages_free", "innodb_buffer_pool_pages_total"),
    *("innodb_buffer_pool_read_requests", "innodb_buffer_pool_reads", "innodb_checkpoint_age"),
    *("innodb_checkpoint_max_age", "innodb_redo_log_capacity_resized", "innodb_redo_log_checkpoint_lsn"),
    *("innodb_redo_log_current_lsn", "innodb_row_lock_time", "threads_connected", "uptime"),
)

STATUS = tuple(sorted({*RATES, *LEVELS, *_MORE}))
"""All status variables that are asked for."""

FILES = (
    ("wait/io/file/innodb/innodb_log_file", "log"),
    ("wait/io/file/innodb/innodb_temp_file", "temp"),
    ("wait/io/file/innodb/", "data"),
    ("wait/io/file/sql/binlog", "binlog"),
    ("wait/io/file/sql/io_cache", "temp"),
    ("wait/io/file/aria/MA", "temp"),
    ("wait/io/file/myisam/", "data"),
)
"""How an event's name begins -> the kind of file, the first that fits. Aria holds what spills: every table of
a user's is InnoDB's unless asked otherwise. Other files (settings, errors, the slow log) are none."""

# ---- sessions -----------------------------------------------------------------------------------------

_NO_CLIENTS = ("Binlog Dump", "Connect", "Daemon", "Slave_", "Killed")
"""How the commands of those begin that are no client at work: replication, the server's own threads."""

_LOCKS = re.compile(r"waiting for (?P<what>.+) lock", re.IGNORECASE)

_STATES = {
    "commit": "Log:commit",
    "waiting for handler commit": "Log:commit",
    "prepare": "Log:prepare",
    "waiting for prior transaction to commit": "Log:group commit",
    "waiting for semi-sync ack from slave": "Replica:acknowledgement",
    "waiting for semi-sync ack from replica": "Replica:acknowledgement",
    "reading from net": "Client:read",
    "receiving from client": "Client:read",
    "sending to client": "Client:write",
    "writing to net": "Client:write",
    "user lock": f"{LOCK}user",
}
"""A session's state, in lower case -> what it waits for; all others are work."""


def look(sessions: Iterable[Row], transactions: Iterable[Row], own: int | None) -> SessionSample:
    """One look.

    Args:
        sessions: the rows of ``mariadb_sql.SESSIONS``.
        transactions: those of ``TRANSACTIONS``.
        own: the number of our own session.
    """
    open_by = {row["id"]: row["state"] for row in transactions}
    waiting: Counter[str] = Counter()
    running = idle = 0
    for row in sessions:
        command, trx = row["Command"] or "", open_by.get(row["Id"])
        if row["Id"] == own or command.startswith(_NO_CLIENTS):
            continue
        if command == "Sleep":
            idle += trx is not None
        elif (name := waits_for(row["State"] or "", trx)) is None:
            running += 1
        else:
            waiting[name] += 1
    return SessionSample(waiting, running, idle)


def waits_for(state: str, trx: str | None) -> str | None:
    """What a session in this state waits for; None: for nothing.

    Args:
        state: as PROCESSLIST has it.
        trx: the state of its transaction, as INNODB_TRX has it; None where none is open.
    """
    if trx == "LOCK WAIT":
        return f"{LOCK}row"
    known = _STATES.get(state.lower())
    if known is not None:
        return known
    lock = _LOCKS.fullmatch(state)
    return f"{LOCK}{lock['what'].lower()}" if lock else None


def blockers(rows: Iterable[Row], sessions: Iterable[Row], transactions: Iterable[Row]) -> dict[str, float]:
    """``USER:DOES`` -> how many sessions wait for a row lock that a session of it holds.

    DOES is ``idle``, ``waiting`` (for a lock itself) or ``active``.

    Args:
        rows: of ``mariadb_sql.BLOCKERS``.
        sessions: of ``SESSIONS``.
        transactions: of ``TRANSACTIONS``.
    """
    locked = {row["id"] for row in transactions if row["state"] == "LOCK WAIT"}
    who = {row["Id"]: row for row in sessions}
    found: Counter[str] = Counter()
    for row in rows:
        one = who.get(row["id"])
        if one is not None:  # it has gone meanwhile
            does = "idle" if one["Command"] == "Sleep" else "waiting" if row["id"] in locked else "active"
            found[f"{one['User']}:{does}"] += int(row["sessions"])
    return dict(found)


# ---- counters -----------------------------------------------------------------------------------------


def numbers(rows: Iterable[Row]) -> dict[str, float]:
    """The rows of ``SHOW GLOBAL STATUS`` by name, in lower case; what is no number is left out."""
    found = {}
    for row in rows:
        try:
            found[str(row["Variable_name"]).lower()] = float(row["Value"])
        except ValueError:
            continue  # some say ON, or nothing
    return found


def same_server(before: Status, after: Status, interval_s: float) -> bool:
    """Whether it went on running meanwhile: counters begin anew with the server, as its uptime does.

    That is told in whole seconds, at both ends.
    """
    return after["uptime"] - before["uptime"] >= interval_s - 1.5


def levels(status: Status) -> Iterator[Value]:
    """What holds at this moment. A variable the server does not have is not sent."""
    for name, (metric, instance) in LEVELS.items():
        if name in status:
            yield Value(metric, instance, status[name])
    total = status.get("innodb_buffer_pool_pages_total")
    if total:
        yield Value("db.buffer_ratio", "", 1 - status["innodb_buffer_pool_pages_free"] / total)
        yield Value("db.buffer_dirty_ratio", "", status["innodb_buffer_pool_pages_dirty"] / total)
    age, most = checkpoint_age(status)
    if age is not None:
        yield Value("db.checkpoint_age_bytes", "", age)
        yield Value("db.checkpoint_age_ratio", "", age / most if most else None)


def checkpoint_age(status: Status) -> tuple[float | None, float | None]:
    """(bytes of the log that a restart would have to go through, the most there may be); None: not told."""
    if "innodb_checkpoint_age" in status:  # MariaDB
        return status["innodb_checkpoint_age"], status.get("innodb_checkpoint_max_age")
    now, then = (status.get(f"innodb_redo_log_{of}_lsn") for of in ("current", "checkpoint"))
    if now is None or then is None:  # MySQL before 8.0.30
        return None, None
    return now - then, status.get("innodb_redo_log_capacity_resized")


def since(before: Status, after: Status, interval_s: float, *, log_apart: bool) -> Iterator[Value]:
    """Growth of the counters. A variable the server does not have is not sent.

    Args:
        before: status variables at the reading before.
        after: now.
        interval_s: in between.
        log_apart: whether ``Innodb_data_*`` are of data files alone (``mariadb_sql.LOG_APART``).
    """
    for name, (metric, instance) in RATES.items():
        if name in before and name in after:
            of = "data" if log_apart and name in _OF_DATA else instance
            yield Value(metric, of, rate(before[name], after[name], interval_s))
    if log_apart and "innodb_os_log_written" in before:
        written = rate(before["innodb_os_log_written"], after["innodb_os_log_written"], interval_s)
        yield Value("db.write_bytes_per_s", "log", written)
    wanted = _grown(before, after, "innodb_buffer_pool_read_requests")
    missed = _grown(before, after, "innodb_buffer_pool_reads")
    if wanted is None or missed is None:
        yield Value("db.buffer_hit_ratio", "", None)
    else:
        yield Value("db.buffer_hit_ratio", "", max(0.0, 1 - missed / wanted) if wanted else None, wanted)
    waits, spent_ms = (_grown(before, after, f"innodb_row_lock_{of}") for of in ("waits", "time"))
    if waits is not None and spent_ms is not None:
        yield Value("db.lock_wait_latency_s", "", spent_ms / 1000 / waits if waits else None, waits)


def _grown(before: Status, after: Status, name: str) -> float | None:
    if name not in before or name not in after:
        return None
    return growth(before[name], after[name])


# ---- files --------------------------------------------------------------------------------------------


def by_kind(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """The rows of ``mariadb_sql.FILES`` added up by kind of file; times in seconds."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        kind = next((kind for begins, kind in FILES if row["name"].startswith(begins)), None)
        if kind is None:
            continue
        sums = found.setdefault(kind, {})
        for name, value in row.items():
            if name != "name":
                of = name.removesuffix("_ps") + "_s" if name.endswith("_ps") else name
                sums[of] = sums.get(of, 0.0) + float(value) * (_PICO if name.endswith("_ps") else 1)
    return found


_OPERATIONS = (("read", "read"), ("write", "write"), ("other", "fsync"))


def files(
    before: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
    interval_s: float,
    *,
    timed: bool,
) -> Iterator[Value]:
    """I/O by kind of file, as the server waited for the operating system; a kind not used yet is not sent.

    Args:
        before: as ``by_kind`` has it, at the reading before.
        after: now.
        interval_s: in between.
        timed: whether the server takes the time at all; else times are null, never the 0 it says.
    """
    for kind, new in after.items():
        old = before.get(kind)
        if old is None:
            continue
        for theirs, ours in _OPERATIONS:
            done, spent_s = (growth(old[f"{theirs}_{of}"], new[f"{theirs}_{of}"]) for of in ("count", "s"))
            yield Value(f"db.{ours}s_per_s", kind, None if done is None else done / interval_s)
            if not timed or done is None or spent_s is None:
                done, spent_s = None, None
            yield Value(f"db.{ours}_s_per_s", kind, None if spent_s is None else spent_s / interval_s)
            mean_s = spent_s / done if done and spent_s is not None else None
            yield Value(f"db.{ours}_latency_s", kind, mean_s, done)
        for name in ("read_bytes", "write_bytes"):
            yield Value(f"db.{name}_per_s", kind, rate(old[name], new[name], interval_s))


# ---- what is missing ----------------------------------------------------------------------------------


def not_measured(
    status: Status,
    role: str,
    *,
    sees_all: bool,
    log_apart: bool,
    summaries: str | None,
    remedy: str | None,
) -> Iterator[NotMeasured]:
    """What this server, or this user, does not give.

    Args:
        status: the status variables there are.
        role: whom we log in as.
        sees_all: whether that sees others' sessions.
        log_apart: whether the log is timed by nobody (``mariadb_sql.LOG_APART``).
        summaries: why there are no summaries of files; None where there are.
        remedy: what to do about that.
    """
    for name, (metric, instance) in {**RATES, **LEVELS}.items():
        if name not in status:
            why = f"this version has no status variable {name}"
            yield NotMeasured(metric, instance, why, None)
    if checkpoint_age(status)[0] is None:
        yield NotMeasured("db.checkpoint_age*", "", "this version does not tell its checkpoint", None)
    if summaries is not None:
        for instance in ("data", "temp", *(() if log_apart else ("log",))):
            yield NotMeasured("db.*_s", instance, summaries, remedy)
        yield NotMeasured("db.sessions_waiting", "Data:read", summaries, remedy)
    if log_apart:
        why = "MariaDB from 10.8 on does not time its log: sessions that wait for it are Log:commit"
        yield NotMeasured("db.*_s", "log", why, None)
    if not sees_all:
        why = f"what sessions of other users than {role} do, and who waits for locks, is hidden from it"
        yield NotMeasured("db.sessions_*", "", why, f"run: GRANT PROCESS ON *.* TO {quoted(role)}")


def quoted(role: str) -> str:
    """``user@host`` as a statement names it."""
    user, _, host = role.rpartition("@")
    return f"'{user}'@'{host}'"
