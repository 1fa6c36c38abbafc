"""Tests of sql-mix on a PostgreSQL older than the embedded farm's."""

from __future__ import annotations

from postgresserver import older_postgres
from scenarios.sql_mix.helpers import SMALL, performed, prepared

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.sql_mix.operations import OPERATIONS

SIZES = {"scale": SMALL, "copy_rows": 50, "spill_bytes": "1MiB", "hold": 0.001}


def test_every_operation_runs_on_an_older_server() -> None:
    """On an older server the tables are created, loaded and removed, and no operation fails."""
    with older_postgres() as server:
        params = {"operations": dict.fromkeys(OPERATIONS, 1), **SIZES}
        with prepared(Endpoint("sql", server.loader), params) as driver:
            recorder = performed(driver, 60)
        left = server.ask("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pinchpoint%'")
    assert set(recorder.counts()) == {(name, "ok") for name in OPERATIONS}
    assert left == []
