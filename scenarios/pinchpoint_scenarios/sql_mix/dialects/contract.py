"""The contract of sql-mix for a kind of server: its tables, its data, its operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...databases.contract import SqlConnection
from ...databases.servers.contract import Asked
from ..operations import Drawn

Connection_contra = TypeVar("Connection_contra", bound=SqlConnection, contravariant=True)


@dataclass(frozen=True, slots=True)
class SqlOperation(Generic[Connection_contra]):
    """How to perform one operation.

    Attributes:
        run: performs it with the drawn values, as one transaction; returns the number of rows found or
            written.
        encode: converts the values to their form on the wire, before the time is taken; None: not needed.
    """

    run: Callable[[Connection_contra, Drawn], int]
    encode: Callable[[Drawn], Drawn] | None = None


def statement(text: str) -> Callable[[SqlConnection, Drawn], int]:
    """Run one statement; return its row count."""
    return lambda connection, drawn: connection.execute(text, drawn).rowcount


def number(connection: SqlConnection, text: str, drawn: Drawn = ()) -> int:
    """The first value of a query's only row; 0 without rows."""
    result = connection.execute(text, drawn).fetchone()
    return int(result[0]) if result else 0


def counting(text: str) -> Callable[[SqlConnection, Drawn], int]:
    """Run one query whose only row begins with the number of rows it read."""
    return lambda connection, drawn: number(connection, text, drawn)


def lock_contend(hold: str) -> Callable[[SqlConnection, Drawn], int]:
    """One statement per row, which it changes and locks; all of them are one transaction."""

    def run(connection: SqlConnection, drawn: Drawn) -> int:
        *rows, hold_s = drawn
        if len(rows) == 1:
            return connection.execute(hold, drawn).rowcount
        with connection.transaction():
            return sum(connection.execute(hold, (row, hold_s)).rowcount for row in rows)

    return run


def keep_below(connection: SqlConnection, bound_bytes: int, size: str, lock: str, empty: str) -> None:
    """Empty a table that is larger than this, with the server's own statements."""
    if number(connection, size) > bound_bytes:
        with connection.transaction():
            connection.execute(lock)
            # Another session that saw the size, and got the lock first, has emptied it.
            if number(connection, size) > bound_bytes:
                connection.execute(empty)


def as_rows(drawn: Drawn) -> Drawn:
    """A bulk load's rows of parameters."""
    bound_bytes, session, load, payloads = drawn
    return bound_bytes, [(session, load, payload) for payload in payloads]


@dataclass(frozen=True, slots=True)
class MixSql:
    """The statements for one kind of server, in one schema.

    ``$1`` is a parameter; names are found in the schema, or qualified with it.

    Attributes:
        make: table -> the statements that create it, empty.
        fill_hot: ``$1``: number of rows of the hot table.
        cache_bytes: one row: the server's buffer cache; null without the right to read it.
        may_know_cache: the right that is needed, in words.
        data_there: one row of (the data table's label, its bytes); nulls if it does not exist.
        data_has_key: one row: whether it has its key.
        data_count: one row: number of rows, smallest and largest id.
        data_last: one row: the largest id.
        data_fill: ``$1``, ``$2``: makes the rows from the first id to the last.
        fill_fast: statements for a connection that loads.
        data_key: creates its key; empty: it has the key from the start.
        data_settle: does maintenance that the server would otherwise do during the measurement.
        data_label: marks it as complete: ``{label}``.
        spill: statements for a session that sorts this many bytes.
        sayings: operation -> how to perform it.
    """

    make: Mapping[str, tuple[str, ...]]
    fill_hot: str
    cache_bytes: str
    may_know_cache: str
    data_there: str
    data_has_key: str
    data_count: str
    data_last: str
    data_fill: str
    fill_fast: tuple[str, ...]
    data_key: str
    data_settle: str
    data_label: str
    spill: Callable[[int], tuple[Asked, ...]]
    sayings: Mapping[str, SqlOperation[Any]]
