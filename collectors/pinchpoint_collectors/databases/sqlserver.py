"""Collector kind ``sqlserver``: files, waits, locks, memory and schedulers of SQL Server 2016 and later.

Statements are T-SQL on dynamic management views: server-wide views, or the database's own views in Azure SQL
Database. Microsoft's documentation of each view explains its columns.

Performance counters have Windows' types (winperf.h): a growing count becomes a rate, and a fraction is
divided by its base. Metrics have the same names and units as those of imported performance logs
(``windows/counters.csv``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pinchpoint_collectors.databases.base import (
    ReadingQuestion,
    RefusedError,
    Row,
    SamplingCollector,
    ServerKind,
    ServerReading,
)
from pinchpoint_collectors.databases.session_sampler import SessionSample
from pinchpoint_collectors.databases.top_statements import ASKED_LENGTH, Counted, UncountedError, counted
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Value, grown, operations, rate
from pinchpoint_collectors.windows.counters import COUNTERS, NAMED_INSTANCE
from pinchpoint_collectors.windows.waits import named

OLDEST = 13
"""Major version of SQL Server 2016."""
AZURE = 5
"""``EngineEdition`` of Azure SQL Database."""

# ---- statements ---------------------------------------------------------------------------------------

ABOUT = """SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
    CAST(SERVERPROPERTY('Edition') AS nvarchar(128)) AS edition,
    CAST(SERVERPROPERTY('EngineEdition') AS int) AS engine,
    CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128)) AS updateability,
    SUSER_SNAME() AS role, DB_NAME() AS database_name, @@MAX_CONNECTIONS AS connections_limit,
    COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE'), 0) AS sees_server,
    COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER PERFORMANCE STATE'), 0) AS sees_performance,
    COALESCE(HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DATABASE STATE'), 0) AS sees_database,
    COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION'), 0) AS sees_files"""
"""Statement for one row about the server. A permission that a version does not know is NULL, here 0."""

GREETING = "SET NOCOUNT ON; SET LOCK_TIMEOUT 500; SET DEADLOCK_PRIORITY LOW"
"""Settings of a new connection: a short lock timeout, and its session is the first deadlock victim."""

TOTALS = """SELECT i.sqlserver_start_time AS started, i.cpu_count AS cores,
    i.process_kernel_time_ms + i.process_user_time_ms AS cpu_ms, i.committed_kb AS committed_kb,
    i.committed_target_kb AS target_kb, i.max_workers_count AS workers_limit, q.runnable AS runnable,
    q.queued AS queued, q.workers AS workers, m.physical_memory_in_use_kb AS used_kb
    FROM sys.dm_os_sys_info AS i CROSS JOIN sys.dm_os_process_memory AS m
    CROSS JOIN (SELECT SUM(runnable_tasks_count) AS runnable, SUM(work_queue_count) AS queued,
        SUM(active_workers_count) AS workers FROM sys.dm_os_schedulers
        WHERE status = 'VISIBLE ONLINE') AS q"""
"""Statement for one row: CPU, memory, schedulers. Runnable tasks wait for a CPU, queued tasks for a worker
thread."""

SESSIONS = """SELECT r.status AS status, r.wait_type AS wait_type, COUNT(*) AS sessions
    FROM sys.dm_exec_requests AS r JOIN sys.dm_exec_sessions AS s ON s.session_id = r.session_id
    WHERE s.is_user_process = 1 AND r.session_id <> @@SPID GROUP BY r.status, r.wait_type
    UNION ALL SELECT 'idle in transaction', NULL, COUNT(*) FROM sys.dm_exec_sessions AS s
    WHERE s.is_user_process = 1 AND s.status = 'sleeping' AND s.open_transaction_count > 0"""
"""Statement for users' requests by activity, and for sessions that are idle in an open transaction."""

BLOCKERS = """SELECT s.login_name AS login, s.status AS status,
    CASE WHEN b.blocking_session_id > 0 THEN 1 ELSE 0 END AS blocked, COUNT(*) AS sessions
    FROM sys.dm_exec_requests AS r JOIN sys.dm_exec_sessions AS s ON s.session_id = r.blocking_session_id
    LEFT JOIN sys.dm_exec_requests AS b ON b.session_id = s.session_id
    WHERE r.blocking_session_id > 0 AND r.blocking_session_id <> r.session_id
    GROUP BY s.login_name, s.status, CASE WHEN b.blocking_session_id > 0 THEN 1 ELSE 0 END"""
"""Statement for blocking sessions by login and activity, with the number of sessions that wait for each."""

CLERKS = """SELECT TOP (8) type AS type, SUM(pages_kb) AS pages_kb FROM sys.dm_os_memory_clerks
    GROUP BY type ORDER BY SUM(pages_kb) DESC"""
"""Statement for the memory clerks with the largest shares of the server's memory."""

_WAITS = """SELECT wait_type AS wait_type, waiting_tasks_count AS waits, wait_time_ms AS wait_ms,
    signal_wait_time_ms AS signal_ms FROM sys.{view} WHERE waiting_tasks_count > 0"""

_FILES = """SELECT DB_NAME(v.database_id) AS database_name, v.database_id AS database_id,
    v.file_id AS file_id, f.type AS type, f.name AS name, v.num_of_reads AS reads,
    v.num_of_bytes_read AS read_bytes, v.io_stall_read_ms AS read_ms, v.num_of_writes AS writes,
    v.num_of_bytes_written AS write_bytes, v.io_stall_write_ms AS write_ms,
    v.io_stall_queued_read_ms + v.io_stall_queued_write_ms AS governed_ms
    FROM sys.dm_io_virtual_file_stats({database}, NULL) AS v LEFT JOIN {files}"""

SETTINGS = """SELECT name AS name, CAST(value_in_use AS nvarchar(64)) AS value FROM sys.configurations
    WHERE name IN ('ADR Preallocation Factor', 'backup compression default', 'blocked process threshold (s)',
    'cost threshold for parallelism', 'fill factor (%)', 'lightweight pooling', 'max degree of parallelism',
    'max server memory (MB)', 'max worker threads', 'min server memory (MB)', 'network packet size (B)',
    'optimize for ad hoc workloads', 'priority boost', 'recovery interval (min)',
    'tempdb metadata memory-optimized', 'user connections') ORDER BY name"""

DATABASES = """SELECT name AS name, recovery_model_desc AS recovery_model,
    delayed_durability_desc AS delayed_durability, page_verify_option_desc AS page_verify,
    is_read_committed_snapshot_on AS read_committed_snapshot, compatibility_level AS compatibility_level
    FROM sys.databases WHERE database_id > 4 ORDER BY name"""
"""Statement for users' databases that the collector's login may see."""


COUNTING = """SELECT DB_NAME() AS db, actual_state AS state, readonly_reason AS reason
    FROM sys.database_query_store_options"""
"""Statement for whether the Query Store of the collector's database records statements (2) or only shows them
(1)."""

COUNTED = """SELECT CONCAT(s.plan_id, '/', s.execution_type, '/', s.runtime_stats_interval_id) AS id,
    p.query_id AS statement, DB_NAME() AS db, SUM(s.count_executions) AS calls,
    SUM(s.avg_duration * s.count_executions) / 1e6 AS time_s,
    SUM(s.avg_rowcount * s.count_executions) AS amount, {text} AS text
    FROM sys.query_store_runtime_stats AS s
    JOIN sys.query_store_runtime_stats_interval AS i
        ON i.runtime_stats_interval_id = s.runtime_stats_interval_id
    JOIN sys.query_store_plan AS p ON p.plan_id = s.plan_id
    JOIN sys.query_store_query AS q ON q.query_id = p.query_id
    JOIN sys.query_store_query_text AS t ON t.query_text_id = q.query_text_id
    WHERE i.end_time > DATEADD(hour, -48, SYSDATETIMEOFFSET()) AND t.query_sql_text NOT LIKE '%sys.dm[_]%'
        AND t.query_sql_text NOT LIKE '%sys.query[_]store%'
    GROUP BY s.plan_id, s.execution_type, s.runtime_stats_interval_id, p.query_id"""
"""Statement for a row per plan and interval of the Query Store, over two days, with memory and disk added up.
An interval is at most a day. Statements on the server's views are left out, because they are those of
collectors."""
_READ_WRITE = 2


def files_statement(engine: int) -> str:
    """Return the statement for the I/O of files since the start of the server."""
    if engine == AZURE:
        return _FILES.format(database="DB_ID()", files="sys.database_files AS f ON f.file_id = v.file_id")
    joined = "sys.master_files AS f ON f.database_id = v.database_id AND f.file_id = v.file_id"
    return _FILES.format(database="NULL", files=joined)


def waits_statement(engine: int) -> str:
    """Return the statement for waits since the start of the server."""
    return _WAITS.format(view="dm_db_wait_stats" if engine == AZURE else "dm_os_wait_stats")


def counters_statement(objects: Iterable[str]) -> str:
    """Return the server-wide statement for performance counters of some objects."""
    named = " OR ".join(f"object_name LIKE '%:{name}%'" for name in objects)
    return f"""SELECT RTRIM(object_name) AS object, RTRIM(counter_name) AS counter, cntr_value AS value,
    cntr_type AS type FROM sys.dm_os_performance_counters
    WHERE instance_name IN ('', '_Total') AND ({named})"""  # noqa: S608 -- constants


_KIB = 1024

# ---- sessions and waits -------------------------------------------------------------------------------


def session_sample(rows: Iterable[Row]) -> SessionSample:
    """Return one sample from the rows of ``SESSIONS``. Sessions that wait for a CPU count as running."""
    waiting: Counter[str] = Counter()
    running = idle = 0
    for row in rows:
        status, count = str(row["status"]).lower(), int(row["sessions"])
        if status == "idle in transaction":
            idle += count
        elif status == "suspended" and row["wait_type"]:
            waiting[named(row["wait_type"]) or f"Other:{row['wait_type']}"] += count
        else:
            running += count
    return SessionSample(waiting, running, idle)


def blockers(rows: Iterable[Row]) -> dict[str, float]:
    """Return ``LOGIN:ACTIVITY`` -> number of sessions it blocks (``idle``, ``waiting`` or ``active``)."""
    result: Counter[str] = Counter()
    for row in rows:
        idle = str(row["status"]).lower() == "sleeping"
        does = "idle" if idle else "waiting" if row["blocked"] else "active"
        result[f"{row['login']}:{does}"] += int(row["sessions"])
    return dict(result)


def waits(before: Iterable[Row], after: Iterable[Row], interval_s: float) -> Iterator[Value]:
    """Return number and time of the waits that ended in the interval, by kind.

    Waits that occurred since the start of the server are sent. The share of signal waits (the session got its
    resource and waited for a CPU) covers all of them.
    """
    earlier = {row["wait_type"]: row for row in before}
    spent_ms = signal_ms = 0.0
    cleared = False
    for row in after:
        name = named(row["wait_type"])
        if name is None:
            continue
        old = earlier.get(row["wait_type"], {"waits": 0, "wait_ms": 0, "signal_ms": 0})
        count, each_ms, signal = grown(old, row, "waits", "wait_ms", "signal_ms")
        if count is None or each_ms is None or signal is None:  # DBCC SQLPERF has reset them
            cleared = True
            count, each_ms, signal = None, None, None
        yield Value("db.waits_per_s", name, None if count is None else count / interval_s)
        yield from operations("wait", name, count, None if each_ms is None else each_ms / 1000, interval_s)
        spent_ms, signal_ms = spent_ms + (each_ms or 0), signal_ms + (signal or 0)
    yield Value("db.signal_wait_ratio", "", None if cleared or not spent_ms else signal_ms / spent_ms)


# ---- CPU, memory, schedulers --------------------------------------------------------------------------


def levels(totals: Row, clerks: Iterable[Row]) -> Iterator[Value]:
    """Return current values from ``TOTALS`` and ``CLERKS``."""
    yield Value("db.tasks_runnable", "", totals["runnable"])
    yield Value("db.tasks_queued", "", totals["queued"])
    workers, limit = totals["workers"], totals["workers_limit"]
    yield Value("db.workers_ratio", "", workers / limit if workers is not None and limit else None)
    yield Value("db.memory_used_bytes", "", totals["used_kb"] * _KIB)
    target = totals["target_kb"]
    yield Value("db.memory_ratio", "", totals["committed_kb"] / target if target else None)
    for row in clerks:
        yield Value("db.memory_clerk_bytes", str(row["type"]), float(row["pages_kb"]) * _KIB)


def cpu(before: Row, after: Row, interval_s: float) -> Value:
    """Return the share of the machine's CPU that the process of the server used."""
    spent = rate(before["cpu_ms"], after["cpu_ms"], interval_s, 1e-3)
    return Value("db.cpu_ratio", "", None if spent is None else spent / after["cores"])


# ---- performance counters -----------------------------------------------------------------------------

_GROWS = (272696320, 272696576)
"""Types of growing counts: PERF_COUNTER_COUNTER, PERF_COUNTER_BULK_COUNT."""
_HOLDS = (65536, 65792)
"""Types of current values: PERF_COUNTER_RAWCOUNT, PERF_COUNTER_LARGE_RAWCOUNT."""
_FRACTION, _BASE = 537003264, 1073939712
"""Types PERF_RAW_FRACTION of a large base, and of its base, with the same name and `` base`` at the end."""
PERCENT = 100.0
"""Factor of fractions. Performance logs have them as percentages, which the scales of the name table
expect."""

NOT_FROM_COUNTERS = ("db.connections", "db.sessions_blocked")
"""Metrics of the name table that come from sampled sessions, or need a limit of their own."""

OBJECTS = tuple(name.partition(":")[2] for name in COUNTERS if name.startswith("SQLServer:"))
"""The objects with known counters."""
COUNTERS_STATEMENT = counters_statement(OBJECTS)

Counters = Mapping[tuple[str, str], tuple[float, int]]
"""(object as in the table, counter) -> value and type."""


def by_name(rows: Iterable[Row]) -> Counters:
    """Return the rows of ``COUNTERS_STATEMENT`` by name.

    Objects of a named instance get the default names.
    """
    return {
        (NAMED_INSTANCE.sub("SQLServer:", row["object"].strip()), row["counter"].strip()): (
            float(row["value"]),
            int(row["type"]),
        )
        for row in rows
    }


def counters(before: Counters | None, after: Counters, interval_s: float) -> Iterator[Value]:
    """Return the known counters, named as in an imported log. Rates need an earlier reading."""
    for (of, name), (value, kind) in after.items():
        means = COUNTERS.get(of, {}).get(name)
        if means is None or means.metric in NOT_FROM_COUNTERS:
            continue
        if kind in _HOLDS:
            yield Value(means.metric, "", value * means.scale + means.offset)
        elif kind == _FRACTION:
            base = after.get((of, f"{name} base"), (0.0, _BASE))[0]
            ratio = PERCENT * value / base * means.scale + means.offset if base else None
            yield Value(means.metric, "", ratio)
        elif kind in _GROWS and before is not None and (of, name) in before:
            grown = rate(before[of, name][0], value, interval_s, means.scale)
            yield Value(means.metric, "", grown)


def connection_count(value: Counters) -> float | None:
    """Return the number of users' connections; None if it is not counted."""
    return value.get(("SQLServer:General Statistics", "User Connections"), (None, 0))[0]


# ---- files --------------------------------------------------------------------------------------------

_TEMPDB = 2
_LOG_FILE = 2
"""Number of a database's first log file, for logins that may not see file types."""
_ROWS, _LOG = 0, 1
MOST_FILES = 50
"""Number of files that are reported individually: the busiest since the start. The sums cover all files."""

_SUMS = ("reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms", "governed_ms")


def kind_of(row: Row) -> str:
    """Return ``log``, ``data`` or ``temp``. All files of tempdb, including its log, are temporary."""
    if row["database_id"] == _TEMPDB:
        return "temp"
    log = row["file_id"] == _LOG_FILE if row["type"] is None else row["type"] == _LOG
    return "log" if log else "data"


def by_file(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return the rows of ``files_statement``: sums of each kind, and files by ``DATABASE:NAME``."""
    result: dict[str, dict[str, float]] = {}
    files: dict[str, dict[str, float]] = {}
    for row in rows:
        own = {name: float(row[name] or 0) for name in _SUMS}
        kind = result.setdefault(kind_of(row), dict.fromkeys(_SUMS, 0.0))
        for name in _SUMS:
            kind[name] += own[name]
        files[f"{row['database_name']}:{row['name'] or row['file_id']}"] = own
    busiest = sorted(files, key=lambda name: -(files[name]["reads"] + files[name]["writes"]))
    return result | {name: files[name] for name in busiest[:MOST_FILES]}


def files(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]], interval_s: float
) -> Iterator[Value]:
    """Return I/O by kind of file and by file, with the server's waits for it."""
    for instance, new in after.items():
        old = before.get(instance)
        if old is None:
            continue
        for name in ("read", "write"):
            done, spent_ms = grown(old, new, f"{name}s", f"{name}_ms")
            if done is None or spent_ms is None:
                done, spent_ms = None, None
            size = rate(old[f"{name}_bytes"], new[f"{name}_bytes"], interval_s)
            yield Value(f"db.{name}s_per_s", instance, None if done is None else done / interval_s)
            yield Value(f"db.{name}_bytes_per_s", instance, size)
            spent_s = None if spent_ms is None else spent_ms / 1000
            yield from operations(name, instance, done, spent_s, interval_s)
        governed = rate(old["governed_ms"], new["governed_ms"], interval_s, 1e-3)
        yield Value("db.governed_s_per_s", instance, governed)


def not_measured(about: Row, value: Counters) -> Iterator[NotMeasured]:
    """Return the metrics that this login or this server does not provide."""
    if not about["sees_files"]:
        why = f"the login {about['role']} may not see files' types: a file numbered 2 is taken for a log"
        yield NotMeasured(
            "db.*", "DATABASE:NAME", why, f"run: GRANT VIEW ANY DEFINITION TO [{about['role']}]"
        )
    for of, names in COUNTERS.items():
        if of.startswith("SQLServer:"):
            for name, means in names.items():
                if (of, name) not in value and means.metric not in NOT_FROM_COUNTERS:
                    yield NotMeasured(means.metric, "", f"the server has no counter {of}\\{name}", None)


# ---- the collector ------------------------------------------------------------------------------------


class SqlserverCollector(SamplingCollector):
    """Reads the counters of the server at each reading, and its sessions ten times a second in between."""

    KIND = "sqlserver"
    SESSIONS = SESSIONS

    def _begin(self) -> None:
        self._about = self._server.ask(ABOUT)[0]
        self._check()
        engine = self._about["engine"]
        self._asked = {
            "totals": ReadingQuestion(TOTALS, lambda rows: rows[0]),
            "clerks": ReadingQuestion(CLERKS),
            "counters": ReadingQuestion(COUNTERS_STATEMENT, by_name),
            "waits": ReadingQuestion(waits_statement(engine)),
            "files": ReadingQuestion(files_statement(engine), by_file),
        }

    def _check(self) -> None:
        """Raises ``CollectorError`` if the server is too old, or the login may not see its state."""
        about, where = self._about, self._where
        role, azure = about["role"], about["engine"] == AZURE
        if not azure and int(str(about["version"]).partition(".")[0]) < OLDEST:
            raise CollectorError(
                f"{where}: the server is SQL Server {about['version']}; collector kind 'sqlserver' knows "
                f"2016 ({OLDEST}) and later: upgrade the server, or leave this collector out"
            )
        if azure and not about["sees_database"]:
            raise CollectorError(
                f"{where}: the user {role} may not see what the database does; in it, run: "
                f"GRANT VIEW DATABASE STATE TO [{role}]"
            )
        if not azure and not (about["sees_server"] or about["sees_performance"]):
            raise CollectorError(
                f"{where}: the login {role} may not see what the server does; run: "
                f"GRANT VIEW SERVER STATE TO [{role}] (from 2022 on VIEW SERVER PERFORMANCE STATE is enough)"
            )

    def statement_counts(self, *, texts: bool) -> Sequence[Counted]:
        """Return the counters of the Query Store of the collector's database."""
        database, role = self._about["database_name"], self._about["role"]
        try:
            result = next(iter(self._server.ask(COUNTING)), None)
        except RefusedError as error:
            raise UncountedError(
                f"{role} may not read the Query Store of {database}",
                f"run there: GRANT VIEW DATABASE STATE TO [{role}]",
            ) from error
        if result is None or database == "master":
            raise UncountedError(
                f"the database {database} has no Query Store",
                "name the load's database in the endpoint's url",
            )
        if result["state"] != _READ_WRITE:
            why = f"is read-only (reason {result['reason']})" if result["state"] == 1 else "is off"
            remedy = f"run: ALTER DATABASE [{database}] SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE)"
            raise UncountedError(f"the Query Store of {database} {why}", remedy)
        text = f"MAX(LEFT(t.query_sql_text, {ASKED_LENGTH}))" if texts else "NULL"
        return counted(self._server.ask(COUNTED.format(text=text)))

    def _questions(self) -> Mapping[str, ReadingQuestion]:
        return self._asked

    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        return bool(before["totals"]["started"] == now["totals"]["started"])

    def _session_sample(self, rows: Any) -> SessionSample:
        return session_sample(rows)

    def _find_blockers(self, last: SessionSample) -> Mapping[str, float]:
        return blockers(self._server.ask(BLOCKERS)) if last.blocked else {}

    def _connections(self, now: ServerReading) -> float | None:
        return connection_count(now["counters"])

    def _levels(self, now: ServerReading) -> Iterator[Value]:
        return levels(now["totals"], now["clerks"])

    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterator[Value]:
        if before is None:
            yield from counters(None, now["counters"], interval_s)
            return
        yield cpu(before["totals"], now["totals"], interval_s)
        for name, values in (("counters", counters), ("waits", waits), ("files", files)):
            yield from values(before[name], now[name], now.seconds_since(before, name))

    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        about = self._about
        settings = self._server.ask(SETTINGS)
        databases = self._server.ask(DATABASES)
        database = {
            "server": "sqlserver",
            "version": about["version"],
            "edition": about["edition"],
            "role": about["role"],
            "sees": "all sessions",
            "standby": about["updateability"] == "READ_ONLY",
            "connections_limit": about["connections_limit"],
            "settings": {row["name"]: row["value"] for row in settings},
            "databases": {row["name"]: {k: v for k, v in row.items() if k != "name"} for row in databases},
        }
        return database, not_measured(about, by_name(self._server.ask(COUNTERS_STATEMENT)))


class SqlserverKind(ServerKind):
    """Collector kind ``sqlserver`` of farm.yaml: SQL Server from 2016 on, also as Azure SQL."""

    name = "sqlserver"
    product = "SQL Server"
    schemes = ("mssql+odbc", "mssql")
    package = "pyodbc (and the system's libodbc; Debian: unixodbc)"
    collector = SqlserverCollector
    connection = "SqlServerConnection"
    counts_files = True
