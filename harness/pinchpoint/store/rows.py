"""Checks the rows of a run's two tables, column by column, as they are read."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinchpoint.base.errors import InputError
from pinchpoint.store.schema import MAY_BE_NULL
from pinchpoint_collectors import bounds

AGAIN = "this is not as Pinchpoint wrote it; copy the run directory anew"
_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_ENCODED = "HISTF"
"""How every histogram begins: the cookie of HdrHistogram V2 in base64."""
_BETWEEN: dict[str, tuple[float, float]] = {
    "time_s": (0, bounds.LATEST_NS // 10**9),
    "interval_s": (1e-3, bounds.LONGEST_INTERVAL_S),
    "count": (0, 1e13),
    "bytes": (0, 1e15),
    "dropped": (0, 1e13),
}
"""Of operations; what samples can be is in ``possible.py``: a value that cannot be is not measured."""


def read(path: Path, schema: pa.Schema, remedy: str = AGAIN) -> pa.Table:
    """A whole table.

    Raises:
        InputError: it is missing or damaged, or a row or column is not as it was written.
    """
    try:
        check_columns(path, pq.read_schema(path), schema)
        table = pq.read_table(path, schema=schema, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error, remedy) from error
    check(path, table)
    return table


def unreadable(path: Path | str, error: OSError | pa.ArrowException, remedy: str = "") -> InputError:
    """What to raise of a file that cannot be read.

    Raises ``error`` again where this process has no memory or no descriptor left: the file may be whole.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in _LIMITS:
        raise error
    return InputError(f"{path}: cannot be read: {error}{remedy and f'; {remedy}'}")


def check_columns(path: Path | str, found: pa.Schema, allowed: pa.Schema) -> None:
    """Raises InputError: what is missing would be read as null, and no row be counted."""
    if not found.equals(allowed):
        raise InputError(
            f"{path}: cannot be read: its columns are {_listed(found)}; allowed: {_listed(allowed)}; {AGAIN}"
        )


def check(path: Path | str, table: pa.Table, first: int = 0) -> None:
    """Whether each column holds what it may. Raises InputError that names the row.

    Args:
        path: the file, for the message.
        table: some of its rows.
        first: how many rows of the file lie before them.
    """
    try:
        table.validate(full=True)  # texts that are not UTF-8, indices beyond a dictionary
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: cannot be read: {error}; {AGAIN}") from error
    problem = next(_problems(table, first), None)
    if problem:
        raise InputError(f"{path}: {problem}; {AGAIN}")


def _problems(table: pa.Table, first: int) -> Iterator[str]:
    """Of samples only a name must not be null."""
    names = (field.name for field in table.schema if field.type not in (pa.int64(), pa.float64()))
    of_operations = "operation" in table.column_names
    for name in table.column_names if of_operations else names:
        column, allowed = table[name], "never null"
        if name in _BETWEEN and of_operations:
            least, most = _BETWEEN[name]
            allowed = f"{least:g} to {most:g}"
            whole = pa.types.is_integer(column.type)  # compared as such: a float holds none beyond 2**53
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
    found = column[row].as_py()
    shown = "null" if found is None else repr(found)[:60]
    return f"{name}: found {shown} in row {first + row + 1}; allowed: {allowed}"


def missing(path: Path) -> InputError:
    """What to say where a run lacks one of its files."""
    return InputError(f"{path}: is missing; copy the whole run directory, a run without it cannot be read")


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
