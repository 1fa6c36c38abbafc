"""Contract of sql-mix for a kind of server: its tables, its data, its operations."""

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
    """The statements of one operation.

    Attributes:
        run: performs the operation with the drawn values as one transaction. Returns the number of rows found
            or written.
        encode: converts the values to their form in the protocol, before the time is taken; None: not needed.
    """

    run: Callable[[Connection_contra, Drawn], int]
    encode: Callable[[Drawn], Drawn] | None = None


def statement(text: str) -> Callable[[SqlConnection, Drawn], int]:
    """Return a function that runs one statement and returns its row count."""
    return lambda connection, drawn: connection.execute(text, drawn).rowcount


def number(connection: SqlConnection, text: str, drawn: Drawn = ()) -> int:
    """Return the first value of a query's only row; 0 without rows."""
    result = connection.execute(text, drawn).fetchone()
    return int(result[0]) if result else 0


def counting(text: str) -> Callable[[SqlConnection, Drawn], int]:
    """Return a function that runs a query whose only row begins with the number of rows it read."""
    return lambda connection, drawn: number(connection, text, drawn)


def lock_contend(hold: str) -> Callable[[SqlConnection, Drawn], int]:
    """Return a function that changes and locks rows, one statement per row, in one transaction."""

    def run(connection: SqlConnection, drawn: Drawn) -> int:
        *rows, hold_s = drawn
        if len(rows) == 1:
            return connection.execute(hold, drawn).rowcount
        with connection.transaction():
            return sum(connection.execute(hold, (row, hold_s)).rowcount for row in rows)

    return run


def keep_below(connection: SqlConnection, bound_bytes: int, size: str, lock: str, empty: str) -> None:
    """Empty a table that is larger than a size, with statements of the server."""
    if number(connection, size) > bound_bytes:
        with connection.transaction():
            connection.execute(lock)
            # Another session that saw the size and got the lock first has emptied the table.
            if number(connection, size) > bound_bytes:
                connection.execute(empty)


def as_rows(drawn: Drawn) -> Drawn:
    """Return the rows of parameters of a bulk load."""
    bound_bytes, session, load, payloads = drawn
    return bound_bytes, [(session, load, payload) for payload in payloads]


@dataclass(frozen=True, slots=True)
class MixSql:
    """The statements for one kind of server in one schema.

    ``$1`` is a parameter. Names are found in the schema, or qualified with it.

    Attributes:
        make: table -> statements that create it empty.
        fill_hot: statement with ``$1``, the number of rows of the hot table.
        cache_bytes: query for one row: the buffer cache of the server; null without the right to read it.
        may_know_cache: name of the right that ``cache_bytes`` needs.
        data_there: query for one row of (label of the data table, its bytes); nulls if it does not exist.
        data_has_key: query for one row: whether the data table has its key.
        data_count: query for one row: number of rows, smallest and largest id.
        data_last: query for one row: the largest id.
        data_fill: statement with ``$1`` and ``$2`` that creates the rows from the first id to the last.
        fill_fast: statements for a connection that loads.
        data_key: statement that creates the key; empty: the table has the key from the start.
        data_settle: statement for maintenance that the server would otherwise do during the measurement.
        data_label: statement that marks the table as complete with ``{label}``.
        spill: returns statements for a session that sorts a number of bytes.
        sayings: operation -> its statements.
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
