"""Compacts journal segments to Parquet parts during a run, and the parts to two files at the end of the run.

A part replaces its segment in two steps: rename the part, then delete the segment. A part that exists is
complete, so a process killed between the two steps loses nothing and counts nothing twice. Parts are
processed one at a time, so a day's run needs no more memory than a minute's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinchpoint.base.errors import InputError
from pinchpoint.store import rows as checked
from pinchpoint.store.coarse import coarse
from pinchpoint.store.impossible_values import without_impossible_operations, without_impossible_samples
from pinchpoint.store.journal import SUFFIX, read_frames, segments
from pinchpoint.store.order import by_series, with_dictionaries
from pinchpoint.store.schema import OPERATIONS_SCHEMA, SAMPLES_SCHEMA
from pinchpoint_collectors import bounds
from pinchpoint_collectors.record import Sample

_COMPRESSION = "zstd"
_GROUP_ROWS = 80_000
_REPEATED_BYTES = 128_000
"""The largest dictionary of repeated values in a group of rows, bytes."""


def segment_tables(segment: Path, nonsense: bounds.Tally) -> tuple[pa.Table, pa.Table]:
    """(operations, samples) of one segment as tables; ``nonsense`` counts the impossible values.

    Raises:
        InputError: a frame has a correct checksum but content of another form.
    """
    try:
        return _segment_tables(segment, nonsense)
    except MemoryError:  # pyarrow's memory error is also an ArrowException
        raise
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise InputError(
            f"{segment}: a frame holds what is no sample and no operation: {error!r}; this is not as "
            "Pinchpoint wrote it; move it away: all but its minute is kept"
        ) from error


def _segment_tables(segment: Path, nonsense: bounds.Tally) -> tuple[pa.Table, pa.Table]:
    names: dict[int, tuple[str, str, str]] = {}
    operations: list[list[object]] = []
    columns: list[list[object]] = [[] for _ in SAMPLES_SCHEMA]
    for frame in read_frames(segment):
        match frame:
            case ["series", int(number), str(host), str(metric), str(instance)]:
                names[number] = (host, metric, instance)
            case ["samples", time_ns, interval_s, ids, values, weights] if bounds.is_placed(
                time_ns, interval_s
            ):
                columns[0] += [time_ns] * len(ids)
                columns[1] += [interval_s] * len(ids)
                for position in range(3):
                    columns[2 + position] += [names[number][position] for number in ids]
                columns[5] += _floats(values)
                columns[6] += _floats(weights)
            case ["samples", time_ns, interval_s, [first, *_], [value, *_], _]:
                nonsense.add(bounds.nonsense(Sample(time_ns, interval_s, *names[first], value)))
            case ["operations", rows]:
                operations += rows
    rows = pa.table(
        list(map(list, zip(*operations, strict=True))) or [[] for _ in OPERATIONS_SCHEMA],
        schema=OPERATIONS_SCHEMA,
    )
    samples = pa.table(columns, schema=SAMPLES_SCHEMA)
    return without_impossible_operations(rows, nonsense), without_impossible_samples(samples, nonsense)


def _floats(values: list[float | None]) -> list[float | None]:
    """The values as floats, which Arrow needs.

    Arrow refuses whole numbers above 2^53, such as "no limit" (2^63 - 1) of a server.
    """
    return [None if value is None else float(value) for value in values]


def compact_closed(directory: Path, step_s: int = 1) -> bounds.Tally:
    """Turn every segment that its writer has closed into Parquet parts.

    Args:
        directory: the journal folder.
        step_s: seconds that a row of operations covers from now on; existing parts change only when merged.

    Returns:
        The impossible values of these segments, which the parts contain as "not measured".

    Raises:
        OSError: a part cannot be written.
    """
    result, nonsense = segments(directory), bounds.Tally()
    for segment, following in itertools.pairwise(result):
        if _writer(segment) == _writer(following):
            operations, samples = segment_tables(segment, nonsense)
            # The samples part is written last, so its existence proves that the operations part exists too.
            for path, table in zip(
                _parts(segment.with_suffix("")), (coarse(operations, step_s), samples), strict=True
            ):
                partial = path.with_suffix(".partial")
                pq.write_table(table, partial, compression=_COMPRESSION, write_page_checksum=True)
                partial.replace(path)
            segment.unlink()
    return nonsense


def tables(directory: Path, step_s: int = 1) -> tuple[pa.Table, pa.Table]:
    """(operations, samples) of a whole journal folder as tables in memory; the folder does not change."""
    pairs = list(_pairs(directory, step_s, bounds.Tally()))
    return (
        pa.concat_tables([OPERATIONS_SCHEMA.empty_table(), *(pair[0] for pair in pairs)]),
        pa.concat_tables([SAMPLES_SCHEMA.empty_table(), *(pair[1] for pair in pairs)]),
    )


def last_ns(directory: Path) -> int | None:
    """The time of the last measurement in a journal folder, UTC nanoseconds; None for an empty journal."""
    result: list[int] = []
    for operations, samples in _pairs(directory, 1, bounds.Tally()):
        if operations.num_rows:
            ends = pc.add(operations["time_s"], operations["interval_s"])
            result.append(round(pc.max(ends).as_py()) * 1_000_000_000)
        if samples.num_rows:
            result.append(pc.max(samples["time_ns"]).as_py())
    return max(result, default=None)


def merge(directory: Path, operations: Path, samples: Path, step_s: int = 1) -> bounds.Tally:
    """Write a journal folder's content as the run's two files, each complete or absent. Raises OSError.

    Returns:
        The impossible values of segments not yet compacted, which the files contain as "not measured".
    """
    nonsense = bounds.Tally()
    unfinished = [path.with_suffix(".parquet.partial") for path in (operations, samples)]
    try:
        with (
            _RowGroups(unfinished[0], OPERATIONS_SCHEMA, compression=_COMPRESSION) as operations_file,
            SampleGroups(unfinished[1]) as samples_file,
        ):
            for pair in _pairs(directory, step_s, nonsense):
                operations_file.add(pair[0])
                samples_file.add(pair[1])
        for partial, path in zip(unfinished, (operations, samples), strict=True):
            partial.replace(path)
    finally:
        for partial in unfinished:  # a partial file takes space on a full disk
            with suppress(OSError):
                partial.unlink(missing_ok=True)
    return nonsense


class _RowGroups:
    """A Parquet file whose row groups collect the rows of many small tables.

    Args:
        path: path of the file.
        schema: columns of the file.
        settings: options of ``ParquetWriter``.
    """

    most_rows, most_bytes = 100_000, 32_000_000  # rows with histograms are wide

    def __init__(self, path: Path, schema: pa.Schema, **settings: object) -> None:
        # The checksum turns a byte that a disk or a copy changed into an error instead of a wrong figure.
        self._file = pq.ParquetWriter(path, schema, write_page_checksum=True, **settings)
        self._waiting: list[pa.Table] = []
        self._rows = self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._write()
        self._file.close()

    def add(self, table: pa.Table) -> None:
        """Append rows. Raises OSError."""
        if table.num_rows:
            self._waiting.append(table)
            self._rows += table.num_rows
            self._bytes += table.nbytes
        if self._rows >= self.most_rows or self._bytes >= self.most_bytes:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        groups = self._groups(pa.concat_tables(self._waiting))
        self._waiting, self._rows, self._bytes = [], 0, 0
        for group in groups:
            self._file.write_table(group)

    def _groups(self, table: pa.Table) -> Iterator[pa.Table]:
        yield table


class SampleGroups(_RowGroups):
    """A samples file; rows are sorted by series in batches of up to a million rows or 100 MB."""

    most_rows, most_bytes = 1_000_000, 100_000_000

    def __init__(self, path: Path) -> None:
        # Without the stored Arrow schema readers get text columns; here the columns are dictionaries.
        schema = with_dictionaries(SAMPLES_SCHEMA.empty_table()).schema
        # LZ4 takes a tenth more space than zstd and half the time to read.
        settings = {"compression": "lz4", "dictionary_pagesize_limit": _REPEATED_BYTES}
        super().__init__(path, schema, store_schema=False, **settings)

    def add(self, table: pa.Table) -> None:
        """Append samples; their names are text or dictionaries. Raises OSError."""
        super().add(with_dictionaries(table))

    def _groups(self, table: pa.Table) -> Iterator[pa.Table]:
        table = table.unify_dictionaries().combine_chunks()
        yield from (table.take(pa.array(rows)) for rows in by_series(table, _GROUP_ROWS))


def _pairs(directory: Path, step_s: int, nonsense: bounds.Tally) -> Iterator[tuple[pa.Table, pa.Table]]:
    stems = {path.name.removesuffix(SUFFIX) for path in segments(directory)}
    stems |= {path.name.removesuffix(".samples.parquet") for path in directory.glob("*.samples.parquet")}
    for stem in sorted(stems):
        part, samples_part = _parts(directory / stem)
        if samples_part.exists():
            operations, samples = _read(part, OPERATIONS_SCHEMA), _read(samples_part, SAMPLES_SCHEMA)
        else:
            operations, samples = segment_tables(directory / f"{stem}{SUFFIX}", nonsense)
        yield coarse(operations, step_s), samples


def _read(part: Path, schema: pa.Schema) -> pa.Table:
    """The table of a part. Raises InputError if the part is damaged."""
    return checked.read(part, schema, "move it and the one beside it away: all but their minute is kept")


def _parts(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(f"{stem.name}.operations.parquet"), stem.with_name(f"{stem.name}.samples.parquet")


def _writer(segment: Path) -> str:
    return segment.stem.rpartition("-")[0]
