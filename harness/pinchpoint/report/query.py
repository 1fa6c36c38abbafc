"""Queries over a run's operations. DuckDB is loaded with the first one: a verdict needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pinchpoint.store.read import StoredRun

if TYPE_CHECKING:
    import duckdb


def over_operations(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection in which they are the table ``operations``."""
    import duckdb  # noqa: PLC0415 -- a fifth of a second

    connection = duckdb.connect()
    connection.register("operations", run.operations)
    return connection
