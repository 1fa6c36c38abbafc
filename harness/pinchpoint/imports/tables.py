"""Samples as tables of a run's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa

from pinchpoint.store.schema import SAMPLES_SCHEMA
from pinchpoint_collectors.record import Sample

ROWS = 100_000


def tables(samples: Iterable[Sample]) -> Iterator[pa.Table]:
    """Tables of ``SAMPLES_SCHEMA``, so many rows at a time."""
    waiting = iter(samples)
    while rows := list(islice(waiting, ROWS)):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SAMPLES_SCHEMA, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=SAMPLES_SCHEMA)
