"""The servers of sql-mix's contract, each with queries that do not use the tested code."""

# ruff: noqa: S608 - the tests use SQL texts of their own

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from mariadbserver import MariaDb
from support import missing

from pinchpoint_scenarios.contract import Endpoint

SCHEMA = "pinchpoint_test"
MSSQL_URL = "PINCHPOINT_MSSQL_URL"
"""Environment variable with the URL of a SQL Server for the tests."""


class Target(Protocol):
    """One server with one way to reach it."""

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint as in farm.yaml."""
        ...

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement with another library than the tested one, or as another user; return its rows."""
        ...

    def quoted(self, name: str) -> str:
        """Quote a name that may be a keyword."""
        ...

    def open_transaction(self, statement: str) -> Any:
        """Return a context in which the statement is executed but not committed."""
        ...

    def kill_sessions(self) -> int:
        """End the recently busy connections; return their number."""
        ...

    def schemas(self) -> set[str]:
        """Return the names of Pinchpoint's schemas."""
        ...

    def tables(self) -> set[str]:
        """Return the tables of the scenario ``test``."""
        ...

    def clear(self) -> None:
        """Remove every schema of Pinchpoint."""
        ...


@dataclass(frozen=True)
class Postgres:
    """PostgreSQL with its own library or over ODBC."""

    server: Endpoint
    endpoint: Endpoint

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def quoted(self, name: str) -> str:
        return f'"{name}"'

    @contextmanager
    def open_transaction(self, statement: str) -> Iterator[None]:
        with psycopg.connect(self.server.url) as connection:
            connection.execute(statement.encode())
            yield
            connection.rollback()

    def kill_sessions(self) -> int:
        return len(
            self.ask(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'pinchpoint_test' "
                "AND state_change > clock_timestamp() - interval '50 ms'"
            )
        )

    def schemas(self) -> set[str]:
        return {
            row[0] for row in self.ask("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pinchpoint%'")
        }

    def tables(self) -> set[str]:
        return {row[0] for row in self.ask(f"SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}'")}

    def clear(self) -> None:
        for name in self.schemas():
            self.ask(f'DROP SCHEMA "{name}" CASCADE')


@dataclass(frozen=True)
class Maria:
    """MariaDB over ODBC."""

    server: MariaDb

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("sql", self.server.url)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        return self.server.ask(statement.replace("%", "%%"))

    def quoted(self, name: str) -> str:
        return f"`{name}`"

    @contextmanager
    def open_transaction(self, statement: str) -> Iterator[None]:
        with closing(self.server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(statement)
            yield
            connection.rollback()

    def kill_sessions(self) -> int:
        busy = self.ask(
            f"SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{SCHEMA}' AND TIME_MS < 50"
        )
        for (number,) in busy:
            self.ask(f"KILL {number}")
        return len(busy)

    def schemas(self) -> set[str]:
        names = self.ask(
            "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'pinchpoint%'"
        )
        return {row[0] for row in names}

    def tables(self) -> set[str]:
        names = self.ask(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}'")
        return {row[0] for row in names} - {"pinchpoint"}

    def clear(self) -> None:
        for name in self.schemas():
            self.ask(f"DROP DATABASE `{name}`")


@dataclass(frozen=True)
class Mssql:
    """SQL Server over ODBC, from the environment variable; its user must be able to end sessions."""

    endpoint: Endpoint

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        with self._connected() as connection:
            cursor = connection.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def quoted(self, name: str) -> str:
        return f"[{name}]"

    @contextmanager
    def open_transaction(self, statement: str) -> Iterator[None]:
        with self._connected() as connection:
            connection.autocommit = False
            connection.execute(statement)
            yield
            connection.rollback()

    def kill_sessions(self) -> int:
        busy = self.ask(
            "SELECT session_id FROM sys.dm_exec_sessions WHERE program_name = 'pinchpoint_test' "
            "AND last_request_start_time > DATEADD(millisecond, -100, SYSDATETIME())"
        )
        for (number,) in busy:
            self.ask(f"KILL {number}")
        return len(busy)

    def schemas(self) -> set[str]:
        return {row[0] for row in self.ask("SELECT name FROM sys.schemas WHERE name LIKE 'pinchpoint%'")}

    def tables(self) -> set[str]:
        return {
            row[0] for row in self.ask(f"SELECT name FROM sys.tables WHERE schema_id = SCHEMA_ID('{SCHEMA}')")
        }

    def clear(self) -> None:
        for name in self.schemas():
            for (table,) in self.ask(f"SELECT name FROM sys.tables WHERE schema_id = SCHEMA_ID('{name}')"):
                self.ask(f"DROP TABLE [{name}].[{table}]")
            self.ask(f"DROP SCHEMA [{name}]")

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        import pyodbc  # noqa: PLC0415 - needs the system's libodbc, which is asked for by then

        from pinchpoint_scenarios.databases.odbc.address import connection_string, parse  # noqa: PLC0415
        from pinchpoint_scenarios.databases.odbc.link import found_driver, keywords  # noqa: PLC0415

        address = parse(self.endpoint)
        text = connection_string(keywords(address, found_driver(self.endpoint, address), "tests"))
        with closing(pyodbc.connect(text, autocommit=True, timeout=5)) as connection:
            yield connection


def by_odbc(url: str) -> str:
    """Return a PostgreSQL URL as a URL for ODBC."""
    return urlunsplit(urlsplit(url)._replace(scheme="postgresql+odbc"))


def need_driver(*names: str, package: str) -> None:
    """Skip the test, or in CI fail it, if no ODBC driver with one of these names is registered."""
    try:
        import pyodbc  # noqa: PLC0415 - whether it can be imported is the question
    except ImportError as error:
        missing(f"ODBC's driver manager is missing: {error} (Debian: unixodbc)")
    if not any(name in registered for registered in pyodbc.drivers() for name in names):
        missing(f"the ODBC driver {names[0]} is missing (Debian: {package})")


def mssql() -> Mssql:
    """Return the environment's SQL Server; skip the test without one, because there is no package of it."""
    url = os.environ.get(MSSQL_URL)
    if not url:
        pytest.skip(f"no SQL Server is to be had as a package: {MSSQL_URL} names one")
    need_driver("SQL Server", "FreeTDS", package="tdsodbc")
    return Mssql(Endpoint("sql", url))
