"""What MariaDB and MySQL are asked, by version. Pure text.

Counters are status variables, and where the performance schema is on its file summaries: MariaDB ships with
it off, MySQL with it on. Who blocks whom moved to the performance schema in MySQL 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pinchpoint_collectors.errors import CollectorError

OLDEST = {"mariadb": (10, 5), "mysql": (8, 0)}
"""The first versions these statements were written for."""
LOG_APART = (10, 8)
"""From this MariaDB on its log is no file like the others: neither timed, nor counted among them."""

_NUMBER = re.compile(r"(\d+)\.(\d+)")

ABOUT = """SELECT VERSION() AS version, CURRENT_USER() AS role, @@GLOBAL.max_connections AS connections_limit,
    @@GLOBAL.read_only AS standby, @@GLOBAL.performance_schema AS performance_schema,
    @@GLOBAL.innodb_page_size AS page_bytes"""
"""One row about the server."""

SUMMARIES = """SELECT NAME AS name, ENABLED = 'YES' AS counted, TIMED = 'YES' AS timed
    FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/io/file/innodb/innodb_%_file'"""
"""What of the files' summaries is on; refused to a user who may not read the performance schema."""

FILES = """SELECT EVENT_NAME AS name, COUNT_READ AS read_count, SUM_NUMBER_OF_BYTES_READ AS read_bytes,
    SUM_TIMER_READ AS read_ps, COUNT_WRITE AS write_count, SUM_NUMBER_OF_BYTES_WRITE AS write_bytes,
    SUM_TIMER_WRITE AS write_ps, COUNT_MISC AS other_count, SUM_TIMER_MISC AS other_ps
    FROM performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0"""
"""A row per kind of file; what is neither reading nor writing is flushing, opening, closing, looking up."""

SESSIONS = "SHOW PROCESSLIST"
"""A row per session. INFORMATION_SCHEMA.PROCESSLIST would write a temporary table to the disk each time."""

TRANSACTIONS = "SELECT trx_mysql_thread_id AS id, trx_state AS state FROM information_schema.INNODB_TRX"
"""A row per open transaction: of which session, and whether it waits for a lock.

Refused to a user without the privilege PROCESS, who sees no sessions but its own.
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
"""Sessions that hold a row lock others wait for, and how many wait for each."""

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


def _named(what: str, names: tuple[str, ...]) -> str:
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"SHOW GLOBAL {what} WHERE Variable_name IN ({quoted})"


SETTINGS = _named("VARIABLES", _SETTINGS)
"""Those that matter, of them those the server has."""


def status(names: tuple[str, ...]) -> str:
    """The status variables of these names, of them those the server has."""
    return _named("STATUS", names)


@dataclass(frozen=True, slots=True)
class Version:
    """Which server it is.

    Attributes:
        server: ``mariadb`` or ``mysql``.
        number: major and minor.
    """

    server: str
    number: tuple[int, int]

    @property
    def log_apart(self) -> bool:
        """Whether the log's I/O is counted by itself, and never timed."""
        return self.server == "mariadb" and self.number >= LOG_APART


def version_of(text: str) -> Version:
    """From ``SELECT VERSION()``: ``10.11.6-MariaDB-0+deb12u1``, ``8.0.39``. Raises ``CollectorError``."""
    server = "mariadb" if "mariadb" in text.lower() else "mysql"
    found = _NUMBER.match(text)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    if number < OLDEST[server]:
        raise CollectorError(
            f"the server is {text}; collector kind 'mariadb' knows MariaDB from 10.5 and MySQL from 8.0 on: "
            "upgrade the server, or leave this collector out"
        )
    return Version(server, number)


def greeting(server: str) -> tuple[str, ...]:
    """What a new connection is told first: to read only, and to wait for nothing for long."""
    patience = "max_statement_time = 2" if server == "mariadb" else "max_execution_time = 2000"
    return (
        "SET SESSION TRANSACTION READ ONLY",
        f"SET SESSION {patience}, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1",
    )
