"""Fixtures of the servers of the contract, each clean before and after a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest
from mariadbserver import MariaDb
from scenarios.sql_servers.targets import Maria, Postgres, Target, by_odbc, mssql, need_driver

from pinchpoint_scenarios.contract import Endpoint

Cleaned = TypeVar("Cleaned", bound=Target)
TARGETS = ("postgresql", "postgresql+odbc", "mysql+odbc", "mssql+odbc")


@pytest.fixture
def maria(maria_server: MariaDb) -> Iterator[Maria]:
    """Yield MariaDB over ODBC."""
    yield from _clean(Maria(maria_server))


@pytest.fixture
def postgres_odbc(sql_server: Endpoint) -> Iterator[Postgres]:
    """Yield PostgreSQL over ODBC."""
    need_driver("PostgreSQL", package="odbc-postgresql")
    yield from _clean(Postgres(sql_server, Endpoint("sql", by_odbc(sql_server.url))))


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Yield every server in turn."""
    yield from _target(request, request.param)


@pytest.fixture(params=TARGETS[1:])
def odbc_target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Yield every server over ODBC in turn."""
    yield from _target(request, request.param)


def _target(request: pytest.FixtureRequest, name: str) -> Iterator[Target]:
    match name:
        case "postgresql":
            server: Endpoint = request.getfixturevalue("sql_server")
            yield from _clean(Postgres(server, server))
        case "postgresql+odbc":
            yield request.getfixturevalue("postgres_odbc")
        case "mysql+odbc":
            yield request.getfixturevalue("maria")
        case _:
            yield from _clean(mssql())


def _clean(target: Cleaned) -> Iterator[Cleaned]:
    target.clear()
    yield target
    target.clear()
