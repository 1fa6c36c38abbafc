"""What SQL Server is asked: its dynamic management views, from 2016 (13) on. Pure text.

Every statement is T-SQL that reads server-wide views; of a database in Azure SQL Database, which has no
others, those of that database. What columns mean is Microsoft's documentation of each view.
"""

from __future__ import annotations

from collections.abc import Iterable

OLDEST = 13
"""SQL Server 2016."""
AZURE = 5
"""``EngineEdition`` of Azure SQL Database."""

ABOUT = """SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
    CAST(SERVERPROPERTY('Edition') AS nvarchar(128)) AS edition,
    CAST(SERVERPROPERTY('EngineEdition') AS int) AS engine,
    CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128)) AS updateability,
    SUSER_SNAME() AS role, DB_NAME() AS database_name, @@MAX_CONNECTIONS AS connections_limit,
    COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE'), 0) AS sees_server,
    COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER PERFORMANCE STATE'), 0) AS sees_performance,
    COALESCE(HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DATABASE STATE'), 0) AS sees_database,
    COALESCE(HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION'), 0) AS sees_files"""
"""One row about the server. A permission that a version does not know is NULL there, so 0 here."""

GREETING = "SET NOCOUNT ON; SET LOCK_TIMEOUT 500; SET DEADLOCK_PRIORITY LOW"
"""What a new connection is told first: to wait for nobody long."""

TOTALS = """SELECT i.sqlserver_start_time AS started, i.cpu_count AS cores,
    i.process_kernel_time_ms + i.process_user_time_ms AS cpu_ms, i.committed_kb AS committed_kb,
    i.committed_target_kb AS target_kb, i.max_workers_count AS workers_limit, q.runnable AS runnable,
    q.queued AS queued, q.workers AS workers, m.physical_memory_in_use_kb AS used_kb
    FROM sys.dm_os_sys_info AS i CROSS JOIN sys.dm_os_process_memory AS m
    CROSS JOIN (SELECT SUM(runnable_tasks_count) AS runnable, SUM(work_queue_count) AS queued,
        SUM(active_workers_count) AS workers FROM sys.dm_os_schedulers
        WHERE status = 'VISIBLE ONLINE') AS q"""
"""One row: CPU, memory, schedulers. Runnable tasks want a CPU, queued ones a worker thread."""

SESSIONS = """SELECT r.status AS status, r.wait_type AS wait_type, COUNT(*) AS sessions
    FROM sys.dm_exec_requests AS r JOIN sys.dm_exec_sessions AS s ON s.session_id = r.session_id
    WHERE s.is_user_process = 1 AND r.session_id <> @@SPID GROUP BY r.status, r.wait_type
    UNION ALL SELECT 'idle in transaction', NULL, COUNT(*) FROM sys.dm_exec_sessions AS s
    WHERE s.is_user_process = 1 AND s.status = 'sleeping' AND s.open_transaction_count > 0"""
"""Users' requests by what they do now, and sessions whose client keeps a transaction open and is silent."""

BLOCKERS = """SELECT s.login_name AS login, s.status AS status,
    CASE WHEN b.blocking_session_id > 0 THEN 1 ELSE 0 END AS blocked, COUNT(*) AS sessions
    FROM sys.dm_exec_requests AS r JOIN sys.dm_exec_sessions AS s ON s.session_id = r.blocking_session_id
    LEFT JOIN sys.dm_exec_requests AS b ON b.session_id = s.session_id
    WHERE r.blocking_session_id > 0 AND r.blocking_session_id <> r.session_id
    GROUP BY s.login_name, s.status, CASE WHEN b.blocking_session_id > 0 THEN 1 ELSE 0 END"""
"""Sessions others wait for, by login and by what they do, and how many wait for each."""

CLERKS = """SELECT TOP (8) type AS type, SUM(pages_kb) AS pages_kb FROM sys.dm_os_memory_clerks
    GROUP BY type ORDER BY SUM(pages_kb) DESC"""
"""Who has most of the server's memory."""

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
"""Users' databases, as far as our login may see them."""


def files(engine: int) -> str:
    """The statement for files' I/O since the start of the server."""
    if engine == AZURE:
        return _FILES.format(database="DB_ID()", files="sys.database_files AS f ON f.file_id = v.file_id")
    joined = "sys.master_files AS f ON f.database_id = v.database_id AND f.file_id = v.file_id"
    return _FILES.format(database="NULL", files=joined)


def waits(engine: int) -> str:
    """The statement for waits since the start of the server."""
    return _WAITS.format(view="dm_db_wait_stats" if engine == AZURE else "dm_os_wait_stats")


def counters(objects: Iterable[str]) -> str:
    """The statement for performance counters of these objects (``Buffer Manager``), of the whole server."""
    named = " OR ".join(f"object_name LIKE '%:{name}%'" for name in objects)
    return f"""SELECT RTRIM(object_name) AS object, RTRIM(counter_name) AS counter, cntr_value AS value,
    cntr_type AS type FROM sys.dm_os_performance_counters
    WHERE instance_name IN ('', '_Total') AND ({named})"""  # noqa: S608 -- constants of ours
