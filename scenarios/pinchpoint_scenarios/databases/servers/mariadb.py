"""Statements for MariaDB and MySQL that every scenario needs. A schema is a database on these servers.

A MySQL database has no comment, so a table has the mark. Statements for one of the two servers are in
comments that the other one skips (MariaDB manual, "Comment Syntax": ``/*M!`` and ``/*!80000``).
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from .contract import Asked, ServerSql

MARK_TABLE = "pinchpoint"
"""The table with the mark in its comment."""


def _bound(application: str, timeout_s: float) -> tuple[Asked, ...]:
    del application  # the driver sends the name of the program, which a connection cannot change
    timeout_ms = max(1, round(timeout_s * 1000))
    # MySQL's limit only ends reads. The wait of a write ends with innodb_lock_wait_timeout.
    mariadb = f"/*M! SESSION max_statement_time = {timeout_s:.3f}, */"
    mysql = f"/*!80000 SESSION max_execution_time = {timeout_ms}, */"
    return ((f"SET {mariadb} {mysql} SESSION autocommit = 1", ()),)


# Recursion generates the numbers in blocks of a hundred.
_RECURSION = """/*M! SESSION max_recursive_iterations = 4294967295, */
    /*!80000 SESSION cte_max_recursion_depth = 4294967295, */ SESSION autocommit = 1"""
_LEVEL = "SET SESSION TRANSACTION ISOLATION LEVEL "

SQL = ServerSql(
    name="mariadb",
    quotes=("`", "`", "``"),
    longest_name=64,
    version="SELECT VERSION()",
    settings="""SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_buffer_pool_size',
        'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_flush_method', 'innodb_io_capacity',
        'innodb_log_file_size', 'innodb_page_size', 'innodb_snapshot_isolation', 'log_bin', 'max_connections',
        'sync_binlog', 'max_allowed_packet')""",
    durable={"innodb_flush_log_at_trx_commit": frozenset({"1", "3"})},
    files="""SELECT 'data', @@datadir UNION ALL SELECT 'log', @@innodb_log_group_home_dir
        UNION ALL SELECT 'temporary files', @@tmpdir""",
    find=f"""SELECT (SELECT TABLE_COMMENT FROM information_schema.TABLES t
            WHERE t.TABLE_SCHEMA = s.SCHEMA_NAME AND t.TABLE_NAME = '{MARK_TABLE}'), 1
        FROM information_schema.SCHEMATA s WHERE s.SCHEMA_NAME = $1""",
    # The grants of roles are not listed, so a user with a role is assumed to have the right.
    may_create="""SELECT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES
                WHERE GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')
                    AND PRIVILEGE_TYPE = 'CREATE')
            OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
                WHERE PRIVILEGE_TYPE = 'CREATE' AND '{name}' LIKE TABLE_SCHEMA)
            OR COALESCE(CURRENT_ROLE(), 'NONE') <> 'NONE',
        CURRENT_USER(), COALESCE(DATABASE(), '')""",
    grant="GRANT ALL PRIVILEGES ON `pinchpoint\\_%`.* TO {user}",
    lock="SELECT GET_LOCK($1, 0)",
    unlock="SELECT RELEASE_ALL_LOCKS()",
    create=(
        "CREATE DATABASE {schema} CHARACTER SET utf8mb4",
        f"CREATE TABLE {{schema}}.{MARK_TABLE} (nothing int) COMMENT = '{{marker}}'",
    ),
    enter=(("USE {schema}", ()),),
    others=f"""SELECT TABLE_NAME FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = $1 AND TABLE_NAME <> '{MARK_TABLE}'
        UNION ALL SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = $1
        UNION ALL SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = $1
        UNION ALL SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = $1""",
    drop_tables="DROP TABLE IF EXISTS {tables}",
    drop=("DROP DATABASE {schema}",),
    bound=_bound,
    greet=(f"SET {_RECURSION}",),
    driver_times_out=False,
    patient=(
        (
            "SET /*M! SESSION max_statement_time = 0, */ /*!80000 SESSION max_execution_time = 0, */"
            f" {_RECURSION}"
        ),
    ),
    isolation={
        "read_committed": ((_LEVEL + "READ COMMITTED", ()),),
        "repeatable_read": ((_LEVEL + "REPEATABLE READ", ()),),
        "serializable": ((_LEVEL + "SERIALIZABLE", ()),),
        # Without this a change applies to the current row, and not to the row that the transaction read.
        "snapshot": ((_LEVEL + "REPEATABLE READ", ()), ("SET SESSION innodb_snapshot_isolation = ON", ())),
    },
    transactions="SELECT /*M! @@in_transaction */ /*!80000 0 */",  # MySQL does not report it
    roll_back="ROLLBACK",
    read_only="""SELECT CASE WHEN CAST(@@global.read_only AS CHAR) IN ('0', 'OFF') THEN ''
        ELSE 'read_only is on, as on a replica' END""",
    snapshot_on="MariaDB 10.6.18, 10.11.8 or later has it",
)
"""The statements of ``ServerSql``."""
