"""Servers that exist before a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers import postgres, running, valkey

from pinchpoint_infra.embedded.tiers.sql import Sql


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    """Yield the URLs of a PostgreSQL and a Valkey."""
    with postgres() as sql, valkey() as nosql:
        yield sql, nosql


@pytest.fixture
def sql() -> Iterator[Sql]:
    """Yield a PostgreSQL with its roles."""
    with running(Sql) as tier:
        assert isinstance(tier, Sql)
        yield tier
