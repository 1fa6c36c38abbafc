"""Queries over a run's operations and samples. DuckDB is loaded with the first one: a verdict needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun

if TYPE_CHECKING:
    import duckdb

FEW = 5_000_000
"""So many samples are added up by one thread: several come to an end in any order, so that sums of one run
would differ in their last digits from one report to the next. Of more that would take seconds."""


def over_operations(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection in which they are the table ``operations``."""
    connection = _connection(run)
    connection.register("operations", run.operations)
    return connection


def over_samples(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection in which they are the table ``samples``. Raises InputError."""
    connection = _connection(run)
    samples.show(run.samples, connection)
    return connection


def _connection(run: StoredRun) -> duckdb.DuckDBPyConnection:
    import duckdb  # noqa: PLC0415 -- a fifth of a second

    there = run.samples
    count = there.num_rows if isinstance(there, pa.Table) else there.count_rows()
    return duckdb.connect(config={"threads": 1} if count <= FEW else {})
