"""A marked database with two tables, removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scenarios.sql_mix.helpers import ask

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.sql_script.marked_copy import MARKER

TABLES = """CREATE TABLE account (id int PRIMARY KEY, name text NOT NULL, balance bigint NOT NULL DEFAULT 0);
    INSERT INTO account SELECT id, 'account ''' || id, 0 FROM generate_series(1, 100) id;
    CREATE TABLE moved (at int, client int, amount bigint, rate float8, fits boolean, note text)"""


@pytest.fixture
def bank(sql: Endpoint) -> Iterator[Endpoint]:
    """Yield a database marked as a copy, with a hundred accounts and no movements."""
    ask(sql, TABLES)
    ask(sql, f"COMMENT ON DATABASE loadtest IS '{MARKER}'")
    yield sql
    ask(sql, "DROP TABLE IF EXISTS account, moved, made CASCADE")
    ask(sql, "COMMENT ON DATABASE loadtest IS NULL")
