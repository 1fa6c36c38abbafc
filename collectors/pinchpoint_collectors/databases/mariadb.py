"""Collector kind ``mariadb``: waits, locks, files, log and connections of MariaDB or MySQL.

Counters come from status variables, and from the file summaries if the performance schema is on (MariaDB's
default is off, MySQL's is on). MySQL 8 moved blocking sessions to the performance schema.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint_collectors.databases.base import (
    ReadingQuestion,
    RefusedError,
    Row,
    SamplingCollector,
    ServerKind,
    ServerReading,
)
from pinchpoint_collectors.databases.session_sampler import LOCK, SessionSample
from pinchpoint_collectors.databases.top_statements import ASKED_LENGTH, Counted, UncountedError, counted
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Metric, Value, grown, mean, operations, rate
from pinchpoint_collectors.value import levels as levels_of
from pinchpoint_collectors.value import rates as rates_of

OLDEST = {"mariadb": (10, 5), "mysql": (8, 0)}
"""Oldest versions that the statements support."""
LOG_APART = (10, 8)
"""MariaDB version from which the I/O of the log is neither timed nor part of the counts of other files."""

# ---- statements ---------------------------------------------------------------------------------------

ABOUT = """SELECT VERSION() AS version, CURRENT_USER() AS role, @@GLOBAL.max_connections AS connections_limit,
    @@GLOBAL.read_only AS standby, @@GLOBAL.performance_schema AS performance_schema,
    @@GLOBAL.innodb_page_size AS page_bytes"""
"""Statement for one row about the server."""

SUMMARIES = """SELECT NAME AS name, ENABLED = 'YES' AS counted, TIMED = 'YES' AS timed
    FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/io/file/innodb/innodb_%_file'"""
"""Statement for which file summaries are on. It needs the right to read the performance schema."""

FILES = """SELECT EVENT_NAME AS name, COUNT_READ AS read_count, SUM_NUMBER_OF_BYTES_READ AS read_bytes,
    SUM_TIMER_READ AS read_ps, COUNT_WRITE AS write_count, SUM_NUMBER_OF_BYTES_WRITE AS write_bytes,
    SUM_TIMER_WRITE AS write_ps, COUNT_MISC AS other_count, SUM_TIMER_MISC AS other_ps
    FROM performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0"""
"""Statement for a row per kind of file. I/O other than reads and writes is flushing, opening, closing and
lookups."""

COUNTING = """SELECT (SELECT COUNT(*) FROM performance_schema.setup_instruments
        WHERE NAME LIKE 'statement/sql/%' AND ENABLED = 'YES' AND TIMED = 'YES') AS timed,
    (SELECT COUNT(*) FROM performance_schema.setup_consumers
        WHERE NAME = 'statements_digest' AND ENABLED = 'YES') AS digests"""
"""Statement for whether statements are timed, and added up by their normalised text."""

COUNTED = """SELECT CONCAT_WS('/', SCHEMA_NAME, DIGEST) AS id, DIGEST AS statement, SCHEMA_NAME AS db,
    COUNT_STAR AS calls, SUM_TIMER_WAIT / 1e12 AS time_s, SUM_ROWS_SENT + SUM_ROWS_AFFECTED AS amount,
    {text} AS text FROM performance_schema.events_statements_summary_by_digest
    WHERE DIGEST IS NOT NULL AND COALESCE(DIGEST_TEXT, '') NOT LIKE '%performance_schema%'
    AND COALESCE(DIGEST_TEXT, '') NOT LIKE 'SHOW %'"""
"""Statement for a row per database and normalised statement, without those of collectors and
administrators."""

_UPDATE = "UPDATE performance_schema."
_COUNTING = (
    (
        "timed",
        "instruments",
        f"{_UPDATE}setup_instruments SET ENABLED='YES', TIMED='YES' WHERE NAME LIKE 'statement/%'",
    ),
    ("digests", "digests", f"{_UPDATE}setup_consumers SET ENABLED='YES' WHERE NAME = 'statements_digest'"),
)
"""Column of ``COUNTING`` -> setting that is off if the column is 0, and the statement that turns it on."""

SESSIONS = "SHOW PROCESSLIST"
"""Statement for a row per session. INFORMATION_SCHEMA.PROCESSLIST would write a temporary table to the disk
each time."""

TRANSACTIONS = "SELECT trx_mysql_thread_id AS id, trx_state AS state FROM information_schema.INNODB_TRX"
"""Statement for a row per open transaction: its session, and whether it waits for a lock.

It needs the privilege PROCESS. A user without it sees only its own sessions.
"""

_BLOCKERS = """SELECT b.trx_mysql_thread_id AS id, COUNT(DISTINCT {waiting}) AS sessions FROM {waits} w
    JOIN information_schema.INNODB_TRX b ON b.trx_id = {blocking} GROUP BY b.trx_mysql_thread_id"""

BLOCKERS = {
    "mariadb": _BLOCKERS.format(
        waiting="w.requesting_trx_id",
        blocking="w.blocking_trx_id",
        waits="information_schema.INNODB_LOCK_WAITS",
    ),
    "mysql": _BLOCKERS.format(
        waiting="w.REQUESTING_ENGINE_TRANSACTION_ID",
        blocking="w.BLOCKING_ENGINE_TRANSACTION_ID",
        waits="performance_schema.data_lock_waits",
    ),
}
"""Statement for sessions that hold a row lock, with the number of sessions that wait for it."""

_SETTINGS = (
    *("autocommit", "binlog_format", "default_storage_engine", "flush_time", "innodb_buffer_pool_size"),
    *("innodb_change_buffering", "innodb_doublewrite", "innodb_file_per_table"),
    *("innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_flush_neighbors"),
    *("innodb_io_capacity", "innodb_io_capacity_max", "innodb_lock_wait_timeout", "innodb_log_buffer_size"),
    *("innodb_log_file_size", "innodb_log_files_in_group", "innodb_max_dirty_pages_pct"),
    *("innodb_page_size", "innodb_purge_threads", "innodb_read_io_threads", "innodb_redo_log_capacity"),
    *("innodb_use_native_aio", "innodb_write_io_threads", "log_bin", "max_connections"),
    *("performance_schema", "read_only", "sync_binlog", "table_open_cache", "thread_handling"),
    *("thread_pool_size", "tmp_table_size", "transaction_isolation", "tx_isolation"),
)


def _named(what: str, names: Iterable[str]) -> str:
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"SHOW GLOBAL {what} WHERE Variable_name IN ({quoted})"


SETTINGS = _named("VARIABLES", _SETTINGS)
"""Statement that reads the settings in ``_SETTINGS`` that the server has."""


def greeting(server: str) -> tuple[str, ...]:
    """Return settings of a new connection: read only, short lock timeouts."""
    patience = "max_statement_time = 2" if server == "mariadb" else "max_execution_time = 2000"
    return (
        "SET SESSION TRANSACTION READ ONLY",
        f"SET SESSION {patience}, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1",
    )


@dataclass(frozen=True, slots=True)
class Version:
    """Product and version of a server.

    Attributes:
        server: product: ``mariadb`` or ``mysql``.
        number: major and minor version.
    """

    server: str
    number: tuple[int, int]

    @property
    def log_apart(self) -> bool:
        """Return whether the I/O of the log is counted separately, and never timed."""
        return self.server == "mariadb" and self.number >= LOG_APART


def version_of(text: str) -> Version:
    """Return the version in ``SELECT VERSION()``: ``10.11.6-MariaDB-0+deb12u1``, ``8.0.39``.

    Raises ``CollectorError`` for other text.
    """
    server = "mariadb" if "mariadb" in text.lower() else "mysql"
    match = _NUMBER.match(text)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if number < OLDEST[server]:
        raise CollectorError(
            f"the server is {text}; collector kind 'mariadb' knows MariaDB from 10.5 and MySQL from 8.0 on: "
            "upgrade the server, or leave this collector out"
        )
    return Version(server, number)


# ---- tables -------------------------------------------------------------------------------------------

RATES = {
    "aborted_connects": Metric("db.connections_failed_per_s"),
    "connection_errors_max_connections": Metric("db.connections_rejected_per_s"),
    "connections": Metric("db.connections_made_per_s"),
    "created_tmp_disk_tables": Metric("db.temp_tables_per_s"),
    "handler_commit": Metric("db.commits_per_s"),
    "handler_rollback": Metric("db.rollbacks_per_s"),
    "innodb_buffer_pool_pages_flushed": Metric("db.pages_flushed_per_s"),
    "innodb_buffer_pool_wait_free": Metric("db.buffer_waits_per_s"),
    "innodb_data_fsyncs": Metric("db.fsyncs_per_s", "innodb"),
    "innodb_data_read": Metric("db.read_bytes_per_s", "innodb"),
    "innodb_data_reads": Metric("db.reads_per_s", "innodb"),
    "innodb_data_writes": Metric("db.writes_per_s", "innodb"),
    "innodb_data_written": Metric("db.write_bytes_per_s", "innodb"),
    "innodb_deadlocks": Metric("db.deadlocks_per_s"),
    "innodb_log_waits": Metric("db.log_buffer_full_per_s"),
    "innodb_log_writes": Metric("db.writes_per_s", "log"),
    "innodb_os_log_fsyncs": Metric("db.fsyncs_per_s", "log"),
    "innodb_os_log_written": Metric("db.log_bytes_per_s"),
    "innodb_row_lock_waits": Metric("db.lock_waits_per_s"),
    "questions": Metric("db.statements_per_s"),
}
"""Status variables that only grow -> metric for the growth per second."""

_OF_DATA = ("innodb_data_read", "innodb_data_reads", "innodb_data_writes", "innodb_data_written")
RATES_LOG_APART = {
    **RATES,
    **{name: RATES[name]._replace(instance="data") for name in _OF_DATA},
}
"""The same for versions that count the log separately: these variables cover only data files."""

LEVELS = {
    "innodb_data_pending_fsyncs": Metric("db.io_pending", "fsync"),
    "innodb_data_pending_reads": Metric("db.io_pending", "read"),
    "innodb_data_pending_writes": Metric("db.io_pending", "write"),
    "innodb_history_list_length": Metric("db.history_length"),
    "memory_used": Metric("db.memory_used_bytes"),
}
"""Status variables with a current value -> metric."""

_MORE = (
    *("innodb_buffer_pool_pages_dirty", "innodb_buffer_pool_pages_free", "innodb_buffer_pool_pages_total"),
    *("innodb_buffer_pool_read_requests", "innodb_buffer_pool_reads", "innodb_checkpoint_age"),
    *("innodb_checkpoint_max_age", "innodb_redo_log_capacity_resized", "innodb_redo_log_checkpoint_lsn"),
    *("innodb_redo_log_current_lsn", "innodb_row_lock_time", "threads_connected", "uptime"),
)

STATUS = tuple(sorted({*RATES, *LEVELS, *_MORE}))
"""All status variables that the collector reads."""
COUNTERS = _named("STATUS", STATUS)

KINDS_OF_FILE = (
    ("wait/io/file/innodb/innodb_log_file", "log"),
    ("wait/io/file/innodb/innodb_temp_file", "temp"),
    ("wait/io/file/innodb/", "data"),
    ("wait/io/file/sql/binlog", "binlog"),
    ("wait/io/file/sql/io_cache", "temp"),
    ("wait/io/file/aria/MA", "temp"),
    ("wait/io/file/myisam/", "data"),
)
"""Begin of an event's name -> kind of file; the first match counts. Aria has the temporary tables, because
tables of users are InnoDB's by default. Other files (settings, errors, the slow log) are not counted."""

Status = Mapping[str, float]
"""Status variable in lower case -> its number."""

_PICO = 1e-12
_NUMBER = re.compile(r"(\d+)\.(\d+)")

# ---- sessions -----------------------------------------------------------------------------------------

_NO_CLIENTS = ("Binlog Dump", "Connect", "Daemon", "Slave_", "Killed")
"""First words of commands of sessions that are not clients (replication, the server's own threads)."""

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
"""State of a session (in lower case) -> what the session waits for. In all other states it works."""


def session_sample(sessions: Iterable[Row], transactions: Iterable[Row], own: int | None) -> SessionSample:
    """Return one sample.

    Args:
        sessions: rows of ``SESSIONS``.
        transactions: rows of ``TRANSACTIONS``.
        own: number of the collector's session.
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
    """Return the wait of a session in a state; None if the session does not wait.

    Args:
        state: state as in PROCESSLIST.
        trx: state of the session's transaction as in INNODB_TRX; None if none is open.
    """
    if trx == "LOCK WAIT":
        return f"{LOCK}row"
    known = _STATES.get(state.lower())
    if known is not None:
        return known
    lock = _LOCKS.fullmatch(state)
    return f"{LOCK}{lock['what'].lower()}" if lock else None


def blockers(rows: Iterable[Row], sessions: Iterable[Row], transactions: Iterable[Row]) -> dict[str, float]:
    """Return ``USER:ACTIVITY`` -> number of sessions that wait for a row lock of such a session.

    ACTIVITY is ``idle``, ``waiting`` (for a lock itself) or ``active``.

    Args:
        rows: rows of ``BLOCKERS``.
        sessions: rows of ``SESSIONS``.
        transactions: rows of ``TRANSACTIONS``.
    """
    locked = {row["id"] for row in transactions if row["state"] == "LOCK WAIT"}
    who = {row["Id"]: row for row in sessions}
    result: Counter[str] = Counter()
    for row in rows:
        one = who.get(row["id"])
        if one is not None:  # otherwise the session ended meanwhile
            does = "idle" if one["Command"] == "Sleep" else "waiting" if row["id"] in locked else "active"
            result[f"{one['User']}:{does}"] += int(row["sessions"])
    return dict(result)


# ---- counters -----------------------------------------------------------------------------------------


def numbers(rows: Iterable[Row]) -> dict[str, float]:
    """Return the rows of ``SHOW GLOBAL STATUS`` by name (in lower case). Values must be numbers."""
    result = {}
    for row in rows:
        try:
            result[str(row["Variable_name"]).lower()] = float(row["Value"])
        except ValueError:
            continue  # some are ON or empty
    return result


def is_same_server(before: Status, after: Status, interval_s: float) -> bool:
    """Return whether the server has run since the last reading: its uptime (in seconds) did not restart."""
    return after["uptime"] - before["uptime"] >= interval_s - 1.5


def levels(status: Status) -> Iterator[Value]:
    """Return current values. A variable that the server lacks is not sent."""
    yield from levels_of(LEVELS, status)
    total = status.get("innodb_buffer_pool_pages_total")
    if total:
        yield Value("db.buffer_ratio", "", 1 - status["innodb_buffer_pool_pages_free"] / total)
        yield Value("db.buffer_dirty_ratio", "", status["innodb_buffer_pool_pages_dirty"] / total)
    age, most = checkpoint_age(status)
    if age is not None:
        yield Value("db.checkpoint_age_bytes", "", age)
        yield Value("db.checkpoint_age_ratio", "", age / most if most else None)


def checkpoint_age(status: Status) -> tuple[float | None, float | None]:
    """Return bytes of log that a restart would have to read, and their upper limit; None if unknown."""
    if "innodb_checkpoint_age" in status:  # MariaDB
        return status["innodb_checkpoint_age"], status.get("innodb_checkpoint_max_age")
    now, then = (status.get(f"innodb_redo_log_{of}_lsn") for of in ("current", "checkpoint"))
    if now is None or then is None:  # MySQL before 8.0.30
        return None, None
    return now - then, status.get("innodb_redo_log_capacity_resized")


def since(before: Status, after: Status, interval_s: float, *, log_apart: bool) -> Iterator[Value]:
    """Return the growth of counters. A variable that the server lacks is not sent.

    Args:
        before: status variables at the last reading.
        after: status variables now.
        interval_s: time between the readings in seconds.
        log_apart: whether ``Innodb_data_*`` cover only data files (``LOG_APART``).
    """
    yield from rates_of(RATES_LOG_APART if log_apart else RATES, before, after, interval_s)
    if log_apart and "innodb_os_log_written" in before:
        written = rate(before["innodb_os_log_written"], after["innodb_os_log_written"], interval_s)
        yield Value("db.write_bytes_per_s", "log", written)
    wanted, missed = grown(before, after, "innodb_buffer_pool_read_requests", "innodb_buffer_pool_reads")
    if wanted is None or missed is None:
        yield Value("db.buffer_hit_ratio", "", None)
    else:
        yield Value("db.buffer_hit_ratio", "", max(0.0, 1 - missed / wanted) if wanted else None, wanted)
    waits, spent_ms = grown(before, after, "innodb_row_lock_waits", "innodb_row_lock_time")
    if waits is not None and spent_ms is not None:
        yield mean("db.lock_wait_latency_s", "", spent_ms / 1000, waits)


# ---- files --------------------------------------------------------------------------------------------


def by_kind(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return the rows of ``FILES`` added up by kind of file, with times in seconds."""
    result: dict[str, dict[str, float]] = {}
    for row in rows:
        kind = next((kind for begins, kind in KINDS_OF_FILE if row["name"].startswith(begins)), None)
        if kind is None:
            continue
        sums = result.setdefault(kind, {})
        for name, value in row.items():
            if name != "name":
                of = name.removesuffix("_ps") + "_s" if name.endswith("_ps") else name
                sums[of] = sums.get(of, 0.0) + float(value) * (_PICO if name.endswith("_ps") else 1)
    return result


_OPERATIONS = (("read", "read"), ("write", "write"), ("other", "fsync"))


def files(
    before: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
    interval_s: float,
    *,
    timed: bool,
) -> Iterator[Value]:
    """Return I/O by kind of file, as the server waited for it. A kind that was not used yet is not sent.

    Args:
        before: result of ``by_kind`` at the last reading.
        after: result of ``by_kind`` now.
        interval_s: time between the readings in seconds.
        timed: whether the server measures times. If not, times are null, although the server reports 0.
    """
    for kind, new in after.items():
        old = before.get(kind)
        if old is None:
            continue
        for theirs, ours in _OPERATIONS:
            done, spent_s = grown(old, new, f"{theirs}_count", f"{theirs}_s")
            yield Value(f"db.{ours}s_per_s", kind, None if done is None else done / interval_s)
            yield from operations(ours, kind, done, spent_s if timed else None, interval_s)
        for name in ("read_bytes", "write_bytes"):
            yield Value(f"db.{name}_per_s", kind, rate(old[name], new[name], interval_s))


def not_measured(
    status: Status,
    role: str,
    *,
    sees_all: bool,
    log_apart: bool,
    summaries: str | None,
    remedy: str | None,
) -> Iterator[NotMeasured]:
    """Return the metrics that this server, or the rights of this user, do not provide.

    Args:
        status: known status variables.
        role: user of the collector.
        sees_all: whether the user sees the sessions of other users.
        log_apart: whether the server does not time its log (``LOG_APART``).
        summaries: why file summaries are missing; None if they exist.
        remedy: remedy for missing file summaries.
    """
    for name, metric in {**RATES, **LEVELS}.items():
        if name not in status:
            why = f"this version has no status variable {name}"
            yield NotMeasured(metric.metric, metric.instance, why, None)
    if checkpoint_age(status)[0] is None:
        yield NotMeasured("db.checkpoint_age*", "", "this version does not report its checkpoint", None)
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
    """Return ``user@host`` quoted for a statement."""
    user, _, host = role.rpartition("@")
    return f"'{user}'@'{host}'"


# ---- the collector ------------------------------------------------------------------------------------

READING = "Data:read"
"""Name of the wait of sessions for the read of a page, timed by the performance schema."""


class MariadbCollector(SamplingCollector):
    """Reads the counters of the server at each reading, and its sessions ten times a second in between."""

    KIND = "mariadb"
    SESSIONS = SESSIONS

    def _begin(self) -> None:
        self._about = self._server.ask(ABOUT)[0]
        try:
            self._version = version_of(str(self._about["version"]))
        except CollectorError as error:
            raise CollectorError(f"{self._where}: {error}") from error
        self._sees_all = self._may(TRANSACTIONS)
        self._no_summaries, self._timed = self._find_summaries()

    def _may(self, statement: str) -> bool:
        """Return whether the user has the right for a statement."""
        try:
            self._server.ask(statement)
        except RefusedError:
            return False
        return True

    def _find_summaries(self) -> tuple[tuple[str, str] | None, bool]:
        """Return why file summaries are missing, with the remedy (or None), and whether I/O is timed."""
        if not self._about["performance_schema"]:
            why = "performance_schema is off: this server counts all files of InnoDB together, without times"
            return (why, "say performance_schema=ON in the server's settings and start it again"), False
        role = quoted(str(self._about["role"]))
        if not (self._may(SUMMARIES) and self._may(FILES)):
            why = f"{role} may not read performance_schema"
            return (why, f"run: GRANT SELECT ON performance_schema.* TO {role}"), False
        rows = self._server.ask(SUMMARIES)
        if not all(row["counted"] for row in rows):
            why = "the performance schema's instruments of files are off"
            remedy = "UPDATE performance_schema.setup_instruments SET ENABLED='YES', TIMED='YES'"
            return (why, f"run: {remedy} WHERE NAME LIKE 'wait/io/file/%'"), False
        return None, all(row["timed"] for row in rows)

    def statement_counts(self, *, texts: bool) -> Sequence[Counted]:
        """Return the counters of the performance schema's digests, of all databases."""
        if not self._about["performance_schema"]:
            raise UncountedError(
                "performance_schema is off",
                "say performance_schema=ON in the server's settings and start it again",
            )
        try:
            (result,) = self._server.ask(COUNTING)
            text = f"LEFT(DIGEST_TEXT, {ASKED_LENGTH})" if texts else "NULL"
            rows = self._server.ask(COUNTED.format(text=text))
        except RefusedError as error:
            role = quoted(str(self._about["role"]))
            raise UncountedError(
                f"{role} may not read performance_schema",
                f"run: GRANT SELECT ON performance_schema.* TO {role}",
            ) from error
        for name, what, remedy in _COUNTING:
            if not result[name]:
                raise UncountedError(
                    f"the performance schema's {what} of statements are off", f"run: {remedy}"
                )
        return counted(rows)

    def _questions(self) -> Mapping[str, ReadingQuestion]:
        asked = {"status": ReadingQuestion(COUNTERS, numbers)}
        return asked if self._no_summaries else {**asked, "files": ReadingQuestion(FILES, by_kind)}

    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        return is_same_server(before["status"], now["status"], now.seconds_since(before))

    def _session_sample(self, rows: Any) -> SessionSample:
        return session_sample(rows, self._transactions(), self._server.session)

    def _transactions(self) -> Sequence[Row]:
        rows: Sequence[Row] = self._server.ask(TRANSACTIONS) if self._sees_all else ()
        return rows

    def _find_blockers(self, last: SessionSample) -> Mapping[str, float]:
        if not last.waiting.get(f"{LOCK}row"):
            return {}
        sessions = self._server.ask(SESSIONS)
        rows = self._server.ask(BLOCKERS[self._version.server])
        return blockers(rows, sessions, self._transactions())

    def _connections(self, now: ServerReading) -> float | None:
        count: float | None = now["status"].get("threads_connected")
        return count

    def _levels(self, now: ServerReading) -> Iterator[Value]:
        return levels(now["status"])

    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterator[Value]:
        if before is not None:
            apart = self._version.log_apart
            yield from since(before["status"], now["status"], interval_s, log_apart=apart)
            if self._no_summaries is None:
                files_s = now.seconds_since(before, "files")
                yield from files(before["files"], now["files"], files_s, timed=self._timed)

    def _server_values(
        self, before: ServerReading | None, now: ServerReading, interval_s: float
    ) -> list[Value]:
        """Return each series once. If both sources have it, the file summaries are used."""
        values = super()._server_values(before, now, interval_s)
        return list(_reading_apart({(each.metric, each.instance): each for each in values}.values()))

    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        rows = self._server.ask(SETTINGS)
        about = self._about
        role = str(about["role"])
        database = {
            "server": self._version.server,
            "version": about["version"],
            "role": role,
            "sees": "all sessions" if self._sees_all else f"sessions of {role} only",
            "standby": bool(about["standby"]),
            "connections_limit": about["connections_limit"],
            "settings": {row["Variable_name"]: str(row["Value"]) for row in rows},
        }
        why, remedy = self._no_summaries or (None, None)
        missing = not_measured(
            numbers(self._server.ask(COUNTERS)),
            role,
            sees_all=self._sees_all,
            log_apart=self._version.log_apart,
            summaries=why,
            remedy=remedy,
        )
        return database, missing


def _reading_apart(values: Iterable[Value]) -> Iterator[Value]:
    """Return the values, with sessions that read a page subtracted from the running ones.

    The session that needs a page reads it itself, and these times do not include read-ahead. Read time ÷
    interval is therefore the mean number of sessions that wait for a read.
    """
    values = list(values)
    reading = next((each.value for each in values if each[:2] == ("db.read_s_per_s", "data")), None)
    for each in values:
        if each.metric == "db.sessions_running" and reading is not None and each.value is not None:
            yield Value(each.metric, each.instance, max(0.0, each.value - reading))
        else:
            yield each
    if reading is not None:
        yield Value("db.sessions_waiting", READING, reading)


class MariadbKind(ServerKind):
    """Collector kind ``mariadb`` of farm.yaml: MariaDB from 10.5, MySQL from 8.0 on."""

    name = "mariadb"
    product = "MariaDB or MySQL"
    schemes = ("mysql", "mariadb", "mysql+odbc", "mariadb+odbc")
    package = "pymysql"
    collector = MariadbCollector
    connection = "MariaDbServerConnection"
    counts_files = True
