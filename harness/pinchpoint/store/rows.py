"""Checks the rows of a run's two tables, column by column, when they are read."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinchpoint.base.errors import InputError
from pinchpoint.store import document
from pinchpoint.store.schema import MAY_BE_NULL
from pinchpoint_collectors import bounds

AGAIN = "this is not as Pinchpoint wrote it; copy the run directory anew"
_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_LARGEST_GROUP_BYTES = 2**28
"""The largest accepted size of a group of rows in memory; groups of ``compact.py`` take a tenth of it."""
_ENCODED = "HISTF"
"""The start of every histogram: the cookie of HdrHistogram V2 in base64."""
_BETWEEN: dict[str, tuple[float, float]] = {
    "time_s": (0, bounds.LATEST_NS // 10**9),
    "interval_s": (1e-3, bounds.LONGEST_INTERVAL_S),
    "count": (0, 1e13),
    "bytes": (0, 1e15),
    "dropped": (0, 1e13),
}
"""The possible range of each column of operations; ``impossible_values.py`` has the ranges for samples."""


def read(path: Path, schema: pa.Schema, remedy: str = AGAIN) -> pa.Table:
    """A whole table, checked.

    Raises:
        InputError: the file is missing or damaged, a row or column is not as Pinchpoint writes it, or the
            table takes more memory than a file of this size should.
    """
    texts = [field.name for field in schema if field.type == pa.string()]
    try:
        check_columns(path, pq.read_schema(path), schema)
        with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
            check_size(path, file.metadata)
            table = pa.concat_tables([schema.empty_table(), *_groups(path, file, schema)])
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error, remedy) from error
    check(path, table)
    return table


def _groups(path: Path, file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """The groups of rows of a file; texts stay dictionaries until their size in memory is known."""
    most, size = document.most_unpacked(path), 0
    for number in range(file.num_row_groups):
        group = file.read_row_group(number)
        group.validate(full=True)
        for column in group.columns:
            for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
                lengths = pc.binary_length(chunk.dictionary)
                size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
        _check_bytes(path, size, most)
        yield group.cast(schema)


def check_size(path: Path, metadata: pq.FileMetaData, times: int = 100) -> None:
    """Raise InputError if the memory for the groups of rows is larger than for any run.

    Args:
        path: path of the file.
        metadata: Parquet metadata of the file.
        times: allowed ratio of unpacked to packed size, as for ``document.most_unpacked``.
    """
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    sizes = [max(group.total_byte_size, 8 * metadata.num_columns * group.num_rows) for group in groups]
    _check_bytes(path, max(sizes, default=0), _LARGEST_GROUP_BYTES)
    _check_bytes(path, sum(sizes), document.most_unpacked(path, times))


def _check_bytes(path: Path, size: int, most: int) -> None:
    if size > most:
        raise InputError(
            f"{path}: takes {size:,} bytes of memory; allowed by its own size: {most:,}; {AGAIN}"
        )


def unreadable(path: Path | str, error: OSError | pa.ArrowException, remedy: str = "") -> InputError:
    """The InputError for a file that cannot be read.

    Raises ``error`` again if this process has no memory or file descriptor left, because the file may be
    intact.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in _LIMITS:
        raise error
    return InputError(f"{path}: cannot be read: {error}{remedy and f'; {remedy}'}")


def check_columns(path: Path | str, schema: pa.Schema, allowed: pa.Schema) -> None:
    """Raise InputError unless the columns are the allowed ones; a missing column would be read as null."""
    if not schema.equals(allowed):
        raise InputError(
            f"{path}: cannot be read: its columns are {_listed(schema)}; allowed: {_listed(allowed)}; {AGAIN}"
        )


def check(path: Path | str, table: pa.Table, first: int = 0) -> None:
    """Check the values of each column. Raises InputError that names the row.

    Args:
        path: path of the file, for the message.
        table: table with some of the file's rows.
        first: the number of rows of the file before this table.
    """
    try:
        table.validate(full=True)  # finds texts that are not UTF-8, and indices outside a dictionary
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: cannot be read: {error}; {AGAIN}") from error
    problem = next(_problems(table, first), None)
    if problem:
        raise InputError(f"{path}: {problem}; {AGAIN}")


def _problems(table: pa.Table, first: int) -> Iterator[str]:
    """The problems of a table; in samples only the names must not be null."""
    names = (field.name for field in table.schema if field.type not in (pa.int64(), pa.float64()))
    of_operations = "operation" in table.column_names
    for name in table.column_names if of_operations else names:
        column, allowed = table[name], "never null"
        if name in _BETWEEN and of_operations:
            least, most = _BETWEEN[name]
            allowed = f"{least:g} to {most:g}"
            # compared as integers, because floats above 2**53 are not exact
            whole = pa.types.is_integer(column.type)
            ends = (int(least), int(most)) if whole else (least, most)
            fine = pc.and_(pc.greater_equal(column, ends[0]), pc.less_equal(column, ends[1]))
        elif name in ("service", "response"):
            allowed = "a histogram (HdrHistogram V2 in base64), or null"
            fine = pc.starts_with(column, _ENCODED)
        else:
            fine = pc.is_valid(column)
        if name not in MAY_BE_NULL:
            fine = pc.fill_null(fine, False)
        if pc.all(fine).as_py() is False:
            yield _problem(name, column, fine, first, allowed)


def _problem(name: str, column: pa.ChunkedArray, fine: pa.ChunkedArray, first: int, allowed: str) -> str:
    row = pc.index(pc.fill_null(fine, True), False).as_py()
    result = column[row].as_py()
    shown = "null" if result is None else repr(result)[:60]
    return f"{name}: found {shown} in row {first + row + 1}; allowed: {allowed}"


def missing(path: Path) -> InputError:
    """The InputError for a missing file of a run."""
    return InputError(f"{path}: is missing; copy the whole run directory, a run without it cannot be read")


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
