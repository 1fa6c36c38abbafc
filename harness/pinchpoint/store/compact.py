"""Journal segments become Parquet parts while the run goes on, and parts become a run's two files at its end.

A segment's part replaces it in two steps, rename then delete; a part that lies beside its segment is
complete, so a process killed between the two loses nothing and counts nothing twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pinchpoint.store.journal import SUFFIX, read_frames, segments
from pinchpoint.store.schema import OPERATIONS_SCHEMA, SAMPLES_SCHEMA

_COMPRESSION = "zstd"


def segment_tables(segment: Path) -> tuple[pa.Table, pa.Table]:
    """(operations, samples) of one segment."""
    names: dict[int, tuple[str, str, str]] = {}
    operations: list[list[object]] = []
    columns: list[list[object]] = [[] for _ in SAMPLES_SCHEMA]
    for frame in read_frames(segment):
        match frame:
            case ["series", number, host, metric, instance]:
                names[number] = (host, metric, instance)
            case ["samples", time_ns, interval_s, ids, values, weights]:
                columns[0] += [time_ns] * len(ids)
                columns[1] += [interval_s] * len(ids)
                for position in range(3):
                    columns[2 + position] += [names[number][position] for number in ids]
                columns[5] += values
                columns[6] += weights
            case ["operations", rows]:
                operations += rows
    return (
        pa.table(
            list(map(list, zip(*operations, strict=True))) or [[] for _ in OPERATIONS_SCHEMA],
            schema=OPERATIONS_SCHEMA,
        ),
        pa.table(columns, schema=SAMPLES_SCHEMA),
    )


def compact_closed(directory: Path) -> None:
    """Turn every segment that has a successor by the same writer into parts. Raises OSError."""
    found = segments(directory)
    for segment, following in itertools.pairwise(found):
        if _writer(segment) == _writer(following):
            _compact(segment)


def tables(directory: Path) -> tuple[pa.Table, pa.Table]:
    """(operations, samples) of a whole journal folder, in memory; changes nothing."""
    pairs = list(_pairs(directory))
    return (
        pa.concat_tables([OPERATIONS_SCHEMA.empty_table(), *(pair[0] for pair in pairs)]),
        pa.concat_tables([SAMPLES_SCHEMA.empty_table(), *(pair[1] for pair in pairs)]),
    )


def merge(directory: Path, operations: Path, samples: Path) -> None:
    """Write a journal folder's content as the run's two files, each complete or not there. Raises OSError."""
    unfinished = [path.with_suffix(".parquet.partial") for path in (operations, samples)]
    with (
        pq.ParquetWriter(unfinished[0], OPERATIONS_SCHEMA, compression=_COMPRESSION) as operations_file,
        pq.ParquetWriter(unfinished[1], SAMPLES_SCHEMA, compression=_COMPRESSION) as samples_file,
    ):
        for pair in _pairs(directory):
            for file, table in zip((operations_file, samples_file), pair, strict=True):
                if table.num_rows:
                    file.write_table(table)
    for partial, path in zip(unfinished, (operations, samples), strict=True):
        partial.replace(path)


def _pairs(directory: Path) -> Iterator[tuple[pa.Table, pa.Table]]:
    stems = {path.name.removesuffix(SUFFIX) for path in segments(directory)}
    stems |= {path.name.removesuffix(".samples.parquet") for path in directory.glob("*.samples.parquet")}
    for stem in sorted(stems):
        operations, samples = _parts(directory / stem)
        if samples.exists():
            yield pq.read_table(operations), pq.read_table(samples)
        else:
            yield segment_tables(directory / f"{stem}{SUFFIX}")


def _compact(segment: Path) -> None:
    # The samples part comes last: where it lies, its operations part lies too.
    for path, table in zip(_parts(segment.with_suffix("")), segment_tables(segment), strict=True):
        partial = path.with_suffix(".partial")
        pq.write_table(table, partial, compression=_COMPRESSION)
        partial.replace(path)
    segment.unlink()


def _parts(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(f"{stem.name}.operations.parquet"), stem.with_name(f"{stem.name}.samples.parquet")


def _writer(segment: Path) -> str:
    return segment.stem.rpartition("-")[0]
