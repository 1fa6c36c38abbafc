"""The tables of statistics that can be fitted: by which columns each is known, and how to export it."""

from __future__ import annotations

from dataclasses import dataclass

CAPTURED = "captured_at"
"""The column that says when a snapshot was taken."""
_NOW = "CONVERT(varchar(33), SYSUTCDATETIME(), 126)"
"""SQL Server's time as text: what exports it would write a date by its own language."""


@dataclass(frozen=True, slots=True)
class TableKind:
    """A table of statistics that can be fitted.

    Attributes:
        name: its name on the server.
        columns: the columns by which it is known, and without which it is no use.
        key: the columns that name a row.
        counters: the columns that only grow; those a version does not have are not told.
        export: the statement that exports it.
        means: the columns that hold numbers besides.
    """

    name: str
    columns: frozenset[str]
    key: tuple[str, ...]
    counters: tuple[str, ...]
    export: str
    means: tuple[str, ...] = ()


STATEMENTS = TableKind(
    "pg_stat_statements",
    frozenset({"queryid", "query", "calls", "rows", "wal_bytes", "shared_blks_hit", "shared_blks_read"}),
    ("userid", "dbid", "queryid", "toplevel"),
    ("calls", "rows", "wal_bytes", "wal_fpi", "shared_blks_hit", "shared_blks_read", "temp_blks_written"),
    "SELECT now() AS captured_at, * FROM pg_stat_statements "
    "WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())",
)
DATABASE = TableKind(
    "pg_stat_database",
    frozenset({"datname", "xact_commit", "xact_rollback", "blks_read"}),
    ("datid",),
    ("xact_commit", "xact_rollback", "blks_read", "temp_bytes"),
    "SELECT now() AS captured_at, * FROM pg_stat_database WHERE datname = current_database()",
)
IO = TableKind(
    "pg_stat_io",
    frozenset({"backend_type", "object", "context", "reads", "writes"}),
    ("backend_type", "object", "context"),
    ("reads", "read_bytes", "read_time", "writes", "write_bytes", "write_time"),
    "SELECT now() AS captured_at, * FROM pg_stat_io",
    ("op_bytes",),
)
WAL = TableKind(
    "pg_stat_wal",
    frozenset({"wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full"}),
    (),
    ("wal_records", "wal_fpi", "wal_bytes", "wal_write", "wal_write_time"),
    "SELECT now() AS captured_at, * FROM pg_stat_wal",
)
FILES = TableKind(
    "dm_io_virtual_file_stats",
    frozenset({"type_desc", "num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"}),
    ("database_id", "file_id"),
    (
        *("num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"),
        *("io_stall_read_ms", "io_stall_write_ms"),
    ),
    f"SELECT {_NOW} AS captured_at, f.type_desc, s.* "  # noqa: S608 -- a constant of ours
    "FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) s JOIN sys.database_files f ON f.file_id = s.file_id",
)
WAITS = TableKind(
    "dm_os_wait_stats",
    frozenset({"wait_type", "waiting_tasks_count", "wait_time_ms", "signal_wait_time_ms"}),
    ("wait_type",),
    ("waiting_tasks_count", "wait_time_ms", "signal_wait_time_ms"),
    f"SELECT {_NOW} AS captured_at, wait_type, waiting_tasks_count, "  # noqa: S608 -- likewise
    "wait_time_ms, "
    "signal_wait_time_ms FROM sys.dm_os_wait_stats WHERE waiting_tasks_count > 0",
)
QUERY_STORE = TableKind(
    "Query Store",
    frozenset(
        {
            "query_sql_text",
            "count_executions",
            "avg_rowcount",
            "avg_logical_io_reads",
            "start_time",
            "end_time",
        }
    ),
    (),
    (),
    "SELECT t.query_sql_text, r.count_executions, r.avg_rowcount, r.avg_log_bytes_used, "
    "r.avg_logical_io_reads, r.avg_physical_io_reads, r.avg_tempdb_space_used, "
    "CONVERT(varchar(34), i.start_time, 127) AS start_time, "
    "CONVERT(varchar(34), i.end_time, 127) AS end_time "
    "FROM sys.query_store_runtime_stats r JOIN sys.query_store_runtime_stats_interval i "
    "ON i.runtime_stats_interval_id = r.runtime_stats_interval_id "
    "JOIN sys.query_store_plan p ON p.plan_id = r.plan_id "
    "JOIN sys.query_store_query q ON q.query_id = p.query_id "
    "JOIN sys.query_store_query_text t ON t.query_text_id = q.query_text_id",
    (
        *("count_executions", "avg_rowcount", "avg_log_bytes_used", "avg_logical_io_reads"),
        *("avg_physical_io_reads", "avg_tempdb_space_used"),
    ),
)
KINDS = (STATEMENTS, DATABASE, IO, WAL, FILES, WAITS, QUERY_STORE)
