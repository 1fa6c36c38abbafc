"""Tests of the collector `sqlserver`: T-SQL by a grammar, and metrics from documented rows.

No SQL Server was available. With `PINCHPOINT_MSSQL_URL=mssql+odbc://...` the last tests use a real one.
"""

from __future__ import annotations

import datetime
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import sqlglot
from collectors.asking import found
from collectors.server_contract import README
from support import missing

from pinchpoint_collectors.common.odbc import sqlserver_driver
from pinchpoint_collectors.databases import sqlserver
from pinchpoint_collectors.databases.base import DatabaseTarget
from pinchpoint_collectors.databases.sqlserver import SqlserverCollector
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind

URL = os.environ.get("PINCHPOINT_MSSQL_URL")
Row = dict[str, Any]

ABOUT: Row = {
    "version": "16.0.4135.4", "edition": "Developer Edition (64-bit)", "engine": 3,
    "updateability": "READ_WRITE", "role": "watcher", "database_name": "master", "connections_limit": 32767,
    "sees_server": 1, "sees_performance": 1, "sees_database": 1, "sees_files": 1,
}  # fmt: skip
TOTALS: Row = {
    "started": datetime.datetime.fromisoformat("2026-11-01T08:00:00"), "cores": 4, "cpu_ms": 100_000,
    "committed_kb": 3_000_000, "target_kb": 4_000_000, "workers_limit": 512, "runnable": 3, "queued": 0,
    "workers": 64, "used_kb": 3_100_000,
}  # fmt: skip
SESSIONS: list[Row] = [
    {"status": "running", "wait_type": None, "sessions": 2},
    {"status": "runnable", "wait_type": "SOS_SCHEDULER_YIELD", "sessions": 3},
    {"status": "suspended", "wait_type": "WRITELOG", "sessions": 5},
    {"status": "suspended", "wait_type": "LCK_M_X", "sessions": 4},
    {"status": "suspended", "wait_type": "PAGEIOLATCH_SH", "sessions": 1},
    {"status": "suspended", "wait_type": "WAITFOR", "sessions": 1},
    {"status": "idle in transaction", "wait_type": None, "sessions": 2},
]
BLOCKERS: list[Row] = [
    {"login": "loader", "status": "sleeping", "blocked": 0, "sessions": 3},
    {"login": "loader", "status": "running", "blocked": 1, "sessions": 1},
]
WAITS: list[Row] = [
    {"wait_type": "WRITELOG", "waits": 1000, "wait_ms": 5000, "signal_ms": 100},
    {"wait_type": "LAZYWRITER_SLEEP", "waits": 900, "wait_ms": 900_000, "signal_ms": 50},
]
CLERKS: list[Row] = [{"type": "MEMORYCLERK_SQLBUFFERPOOL", "pages_kb": 2_000_000}]


def file(database: str, number: int, of: int | None, writes: int, stall_ms: int, **more: Any) -> Row:
    numbers = {"master": 1, "tempdb": 2, "loadtest": 5}
    return {
        "database_name": database, "database_id": numbers[database], "file_id": number, "type": of,
        "name": f"{database}_{number}", "reads": 10, "read_bytes": 81920, "read_ms": 20, "writes": writes,
        "write_bytes": writes * 4096, "write_ms": stall_ms, "governed_ms": 0, **more,
    }  # fmt: skip


FILES = [
    file("loadtest", 1, 0, 100, 500),
    file("loadtest", 2, 1, 1000, 4000),
    file("tempdb", 1, 0, 50, 100),
    file("tempdb", 2, 1, 5, 10),
]


def counter(of: str, name: str, value: int, kind_: int) -> Row:
    return {"object": f"SQLServer:{of}".ljust(128), "counter": name.ljust(128), "value": value, "type": kind_}


PERFORMANCE: list[Row] = [
    counter("SQL Statistics", "Batch Requests/sec", 10_000, 272696576),
    counter("Buffer Manager", "Page life expectancy", 4200, 65792),
    counter("Buffer Manager", "Buffer cache hit ratio", 970, 537003264),
    counter("Buffer Manager", "Buffer cache hit ratio base", 1000, 1073939712),
    counter("General Statistics", "User Connections", 40, 65792),
    counter("General Statistics", "Processes blocked", 4, 65792),
    counter("Databases", "Log Flushes/sec", 700, 272696576),
]


class Recorded:
    """Replaces a connection: returns recorded rows for each statement, and the later ones the second time."""

    def __init__(self, about: Row = ABOUT, *, later: Mapping[str, list[Row]] | None = None) -> None:
        engine = about["engine"]
        self.answers: dict[str, list[Row]] = {
            sqlserver.ABOUT: [about],
            sqlserver.TOTALS: [TOTALS],
            sqlserver.SESSIONS: SESSIONS,
            sqlserver.BLOCKERS: BLOCKERS,
            sqlserver.CLERKS: CLERKS,
            sqlserver.SETTINGS: [{"name": "max degree of parallelism", "value": "4"}],
            sqlserver.DATABASES: [{"name": "loadtest", "recovery_model": "FULL"}],
            sqlserver.files_statement(engine): FILES,
            sqlserver.waits_statement(engine): WAITS,
            sqlserver.COUNTERS_STATEMENT: PERFORMANCE,
        }
        self.later = dict(later or {})
        self.closed = False

    def ask(self, statement: str) -> list[Mapping[str, Any]]:
        return list(self.answers[statement])

    def ask_if_connected(self, statement: str) -> list[Mapping[str, Any]] | None:
        return self.ask(statement)

    def close(self) -> None:
        self.closed = True

    def go_on(self) -> None:
        self.answers |= self.later


def collecting(server: Any) -> SqlserverCollector:
    return SqlserverCollector([Watch("sql1", "sql")], server, "host 'sql1', collector 'sqlserver' (here)")


@contextmanager
def watching(server: Recorded) -> Iterator[SqlserverCollector]:
    collector = collecting(server)
    try:
        yield collector
    finally:
        collector.close()
    assert server.closed


# ---- values -------------------------------------------------------------------------------------------


def test_a_file_whose_type_is_hidden_is_told_by_its_number() -> None:
    """A file whose type is hidden is recognised by its number: a database's second file is its log."""
    assert sqlserver.kind_of(file("loadtest", 2, None, 0, 0)) == "log"
    assert sqlserver.kind_of(file("loadtest", 3, None, 0, 0)) == "data"
    assert sqlserver.kind_of(file("loadtest", 3, 1, 0, 0)) == "log"


# ---- the collector ------------------------------------------------------------------------------------


def test_a_reading_holds_all_of_it_and_is_in_the_readme() -> None:
    """The second reading has differences, and the documentation lists each metric and fact."""
    writes = [{**FILES[1], "writes": 1100, "write_ms": 4500}]
    server = Recorded(later={sqlserver.files_statement(3): [*FILES[:1], *writes, *FILES[2:]]})
    with watching(server) as collector:
        first = found(collector.read())
        server.go_on()
        samples = collector.read()
        facts = collector.inventory()["sql1"]
    assert ("db.writes_per_s", "log") not in first
    values = found(samples)
    assert values["db.write_latency_s", "log"] == pytest.approx(0.005)
    assert values["db.lock_waiters", ""] == 4
    assert values["db.sessions_blocked_by", "loader:idle"] == 3
    assert values["db.connections_ratio", ""] == pytest.approx(40 / 32767)
    assert {each.metric for each in samples if f"`{each.metric}`" not in README} == set()
    database = facts["database"]
    assert database["databases"]["loadtest"] == {"recovery_model": "FULL"}
    assert [key for key in (*facts, *database) if f"`{key}`" not in README] == []
    listed = {each["metric"] for each in facts["not_measured"]}
    assert "db.deadlocks_per_s" in listed, "a counter the server does not have"


def test_a_restart_costs_one_interval() -> None:
    """A restart resets the counters and costs one interval."""
    anew = {**TOTALS, "started": TOTALS["started"] + datetime.timedelta(days=1)}
    server = Recorded(later={sqlserver.TOTALS: [anew]})
    with watching(server) as collector:
        collector.read()
        server.go_on()
        assert ("db.cpu_ratio", "") not in found(collector.read())
        assert found(collector.read())["db.cpu_ratio", ""] == 0


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"sees_server": 0, "sees_performance": 0}, r"GRANT VIEW SERVER STATE TO \[watcher\]"),
        ({"version": "12.0.2000.8"}, r"SQL Server 12\.0\.2000\.8; collector kind 'sqlserver' knows 2016"),
        ({"engine": 5, "sees_database": 0}, r"GRANT VIEW DATABASE STATE TO \[watcher\]"),
    ],
)
def test_a_login_that_may_see_nothing_is_told_its_grant(about: Row, said: str) -> None:
    """A login without rights gets the needed grant; an old server's error names its version."""
    with pytest.raises(CollectorError, match=said):
        collecting(Recorded(ABOUT | about))


def test_a_database_in_azure_is_asked_for_its_own() -> None:
    """In Azure SQL Database, which has no server-wide views, the database's own views are used."""
    with watching(Recorded(ABOUT | {"engine": 5, "version": "12.0.2000.8"})) as collector:
        assert collector.read()
    with watching(Recorded(ABOUT | {"sees_server": 0})) as collector:
        assert collector.read()
    assert "dm_db_wait_stats" in sqlserver.waits_statement(5)
    assert "master_files" not in sqlserver.files_statement(5)


# ---- statements and the connection --------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        *(sqlserver.ABOUT, sqlserver.TOTALS, sqlserver.SESSIONS, sqlserver.BLOCKERS),
        *(sqlserver.CLERKS, sqlserver.SETTINGS, sqlserver.DATABASES),
        *(
            make(engine)
            for make in (sqlserver.files_statement, sqlserver.waits_statement)
            for engine in (3, 5)
        ),
        sqlserver.COUNTERS_STATEMENT,
        *(sqlserver.COUNTING, sqlserver.COUNTED.format(text="MAX(LEFT(t.query_sql_text, 4000))")),
    ],
)
def test_every_statement_is_t_sql_and_only_reads(statement: str) -> None:
    """Every statement parses as T-SQL and only reads."""
    (parsed,) = sqlglot.parse(statement, read="tsql")
    assert parsed is not None
    assert parsed.key in {"select", "union"}


def test_the_greeting_only_sets() -> None:
    """The session's first statement only sets options."""
    parsed = sqlglot.parse(sqlserver.GREETING, read="tsql")
    assert len(parsed) == 3
    assert {each.key for each in parsed if each is not None} <= {"set", "command"}


@pytest.fixture
def connection() -> Any:
    try:
        from pinchpoint_collectors.databases import sqlserver_driver  # noqa: PLC0415 -- needs libodbc
    except ImportError as error:
        missing(f"libodbc is missing (Debian: unixodbc): {error}")
    return sqlserver_driver


def test_a_url_becomes_a_connection_string(connection: Any) -> None:
    """Microsoft's driver gets host and port in one key, FreeTDS in two; special characters are quoted."""
    url = "mssql+odbc://watcher:p%3Bw%7D@sql1:1444/loadtest?TrustServerCertificate=yes&driver="
    made: Callable[[DatabaseTarget], str] = connection.connection_string
    assert made(DatabaseTarget("here", f"{url}ODBC Driver 18 for SQL Server")) == (
        "Driver=ODBC Driver 18 for SQL Server;Server=tcp:sql1,1444;Database=loadtest;UID=watcher;"
        "PWD={p;w}}};APP=pinchpoint-collector;TrustServerCertificate=yes"
    )
    free = made(DatabaseTarget("here", "mssql+odbc://nowhere?driver=FreeTDS", "h", "u", "p"))
    assert free == "Driver=FreeTDS;Server=h;Port=1433;Database=master;UID=u;PWD=p;APP=pinchpoint-collector"
    asked = made(DatabaseTarget("here", "mssql+odbc://h?driver=FreeTDS&Encrypt=yes"))
    assert asked.endswith("Encrypt=yes;Encryption=require"), "FreeTDS ignores Microsoft's keyword"


_MICROSOFT = "[Microsoft][ODBC Driver 18 for SQL Server]"
REFUSED = f"[28000] {_MICROSOFT}[SQL Server]Login failed for user 'w'. (18456) (SQLDriverConnect)"
LATE = f"[HYT00] {_MICROSOFT}Login timeout expired (0) (SQLDriverConnect)"


@pytest.mark.parametrize(
    ("arguments", "state", "said"),
    [
        (("28000", REFUSED), "28000", "Login failed for user 'w'"),
        (("HYT00", LATE), "HYT00", "Login timeout expired"),
        (("IM002",), "IM002", "IM002"),
    ],
)
def test_what_a_driver_says_is_made_readable(connection: Any, arguments: Any, state: str, said: str) -> None:
    """A driver's error is shortened to its message, without the chain of component names."""
    import pyodbc  # noqa: PLC0415 -- needs libodbc

    assert connection.said_by(pyodbc.Error(*arguments)) == (state, said)


def test_a_server_that_is_not_there_is_explained(connection: Any) -> None:
    """With a real driver, a missing server gives one sentence with the remedy and without the password."""
    import pyodbc  # noqa: PLC0415 -- needs libodbc

    if sqlserver_driver(pyodbc.drivers()) is None:
        missing("no ODBC driver for SQL Server is installed (Debian: tdsodbc)")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"mssql+odbc://watcher:wrong-secret@127.0.0.1:{nobody.getsockname()[1]}/"
        with pytest.raises(CollectorError, match="host 'sql1', collector 'sqlserver'") as caught:
            kind("sqlserver").connect([Watch("sql1", "sql", options={"url": url})])
    assert "wrong-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value), "a remedy"


# ---- a real one ---------------------------------------------------------------------------------------


@pytest.mark.skipif(
    URL is None, reason="needs a SQL Server: PINCHPOINT_MSSQL_URL=mssql+odbc://USER:PASSWORD@HOST/DB"
)
def test_a_real_server_is_read(connection: Any) -> None:
    """A real server's readings and inventory have only documented names."""
    collector = kind("sqlserver").connect([Watch("sql1", "sql", options={"url": URL})])
    try:
        collector.read()
        samples = collector.read()
        facts = collector.inventory()["sql1"]
    finally:
        collector.close()
    values = found(samples)
    assert values["db.reads_per_s", "data"] is not None
    assert values["db.writes_per_s", "log"] is not None
    assert values["db.connections", ""]
    assert facts["database"]["server"] == "sqlserver"
    assert {each.metric for each in samples if f"`{each.metric}`" not in README} == set()
