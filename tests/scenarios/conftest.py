"""Fixtures of the scenarios' tests: one real server of each kind for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from mariadbserver import MariaDb, mariadb
from scenarios.sql_servers.targets import need_driver
from servers import postgres, valkey
from valkey import Valkey

from pinchpoint_scenarios.contract import Endpoint


@pytest.fixture(scope="session")
def sql_server() -> Iterator[Endpoint]:
    """Yield a PostgreSQL server."""
    with postgres() as url:
        yield Endpoint("sql", url)


@pytest.fixture
def sql(sql_server: Endpoint) -> Iterator[Endpoint]:
    """Yield the PostgreSQL server, without schemas of Pinchpoint before and after the test."""
    _drop_all(sql_server)
    yield sql_server
    _drop_all(sql_server)


@pytest.fixture(scope="session")
def nosql() -> Iterator[Endpoint]:
    """Yield a Valkey server."""
    with valkey() as url:
        yield Endpoint("nosql", url)


@pytest.fixture
def client(nosql: Endpoint) -> Iterator[Valkey]:
    """Yield a client of the Valkey server, which is empty before and after the test."""
    with Valkey.from_url(nosql.url) as found:
        found.flushdb()
        yield found
        found.flushdb()


@pytest.fixture(scope="session")
def maria_server() -> Iterator[MariaDb]:
    """Yield a MariaDB server."""
    need_driver("MariaDB", package="odbc-mariadb")
    with mariadb() as server:
        yield server


def _drop_all(endpoint: Endpoint) -> None:
    with psycopg.connect(endpoint.url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pinchpoint%'"
        ).fetchall()
        for (name,) in found:
            connection.execute(psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(psycopg.sql.Identifier(name)))
