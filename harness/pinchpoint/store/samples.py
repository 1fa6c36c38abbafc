"""The samples of a run where they lie: a table in memory, or a finished run's file, read part by part.

Eight hours of twenty hosts are 115 million samples: as a table they would take ten gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pinchpoint.errors import InputError
from pinchpoint.store.schema import SAMPLES_SCHEMA

Samples: TypeAlias = pa.Table | ds.Dataset
"""A table, or a dataset of one file; ``to_table()`` makes the one of the other."""

_NAMES = ("host", "metric", "instance")
_ROWS = 250_000


def in_file(path: Path) -> ds.Dataset:
    """The samples of a file, none of which are read yet.

    Raises:
        InputError: it cannot be read, or its columns are not those of ``SAMPLES_SCHEMA``.
    """
    try:
        found = ds.dataset(path, format="parquet").schema
        if not found.equals(SAMPLES_SCHEMA):
            raise InputError(f"{path}: cannot be read: its columns are {_listed(found)}; {_EXPECTED}")
        return ds.dataset(path, schema=SAMPLES_SCHEMA, format="parquet")
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def tables(samples: Samples) -> Iterator[pa.Table]:
    """All of them in their order, so many at a time as fit into a processor's caches.

    Names are dictionaries where they come from a file, whose next group of rows is read meanwhile.

    Raises:
        InputError: the file is damaged.
    """
    if isinstance(samples, pa.Table):
        yield from (pa.table(batch) for batch in samples.to_batches(max_chunksize=_ROWS))
        return
    try:
        with (
            pq.ParquetFile(samples.files[0], read_dictionary=_NAMES) as file,
            ThreadPoolExecutor(1) as reader,
        ):
            following = None
            for group in range(file.num_row_groups):
                found = following or reader.submit(file.read_row_group, group)
                following = (
                    reader.submit(file.read_row_group, group + 1) if group + 1 < file.num_row_groups else None
                )
                yield found.result()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{samples.files[0]}: cannot be read: {error}") from error


def table(samples: Samples) -> pa.Table:
    """All of them in memory.

    Raises:
        InputError: the file is damaged.
    """
    if isinstance(samples, pa.Table):
        return samples
    try:
        return samples.to_table()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{samples.files[0]}: cannot be read: {error}") from error


def extent(samples: Samples) -> tuple[float, float] | None:
    """When the first interval began and the last one ended, UTC seconds; None where there are no samples."""
    connection = duckdb.connect()
    show(samples, connection)
    first, last, longest = connection.execute(
        "SELECT min(time_ns) / 1e9, max(time_ns) / 1e9, max(interval_s) FROM samples"
    ).fetchall()[0]
    return None if first is None else (first - longest, last)


def usual_interval_s(samples: Samples) -> float:
    """The median of the intervals that samples cover, seconds; 0 where there are no samples."""
    connection = duckdb.connect()
    show(samples, connection)
    usual = connection.execute("SELECT median(interval_s) FROM samples").fetchall()[0][0]
    return float(usual or 0.0)


def show(samples: Samples, connection: duckdb.DuckDBPyConnection) -> None:
    """Make them the view ``samples``; DuckDB itself reads a file, and of it what a query needs."""
    if isinstance(samples, pa.Table):
        connection.register("samples", samples)
    else:
        connection.from_parquet(samples.files[0]).create_view("samples")


_EXPECTED = f"allowed: {', '.join(f'{field.name} ({field.type})' for field in SAMPLES_SCHEMA)}"


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
