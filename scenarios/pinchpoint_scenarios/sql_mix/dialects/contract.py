"""What sql-mix needs said to a kind of server: its tables, its data, its operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...databases.contract import LoadingConnection, SqlConnection
from ..operations import Drawn

Connection_contra = TypeVar("Connection_contra", bound=SqlConnection, contravariant=True)


@dataclass(frozen=True, slots=True)
class Saying(Generic[Connection_contra]):
    """How one operation is done.

    Attributes:
        run: does it with the values that were drawn for it, as one transaction: how many rows it found or
            made.
        encode: puts the values into the form they travel in, before the clock is taken; None: they are.
    """

    run: Callable[[Connection_contra, Drawn], int]
    encode: Callable[[Drawn], Drawn] | None = None


def statement(text: str) -> Callable[[SqlConnection, Drawn], int]:
    """One statement: its row count."""
    return lambda connection, drawn: connection.execute(text, drawn).rowcount


def counting(text: str) -> Callable[[SqlConnection, Drawn], int]:
    """One query whose only row begins with the number of rows it went through."""

    def run(connection: SqlConnection, drawn: Drawn) -> int:
        found = connection.execute(text, drawn).fetchone()
        return int(found[0]) if found else 0

    return run


@dataclass(frozen=True, slots=True)
class OdbcMixSql:
    """The statements for one kind of server behind ODBC, in one schema.

    ``$1`` is a parameter; names are found in the schema, or qualified with it.

    Attributes:
        make: table -> the statements that make it anew, empty.
        fill_hot: ``$1``: so many rows of the hot table.
        cache_bytes: one row: the server's buffer cache; null where this user may not know it.
        may_know_cache: what lets it, for a person.
        data_there: one row of (the table's label, its bytes, whether it has its key); nulls where there is
            none.
        data_count: one row: how many rows, the least and the greatest id.
        data_fill: ``$1``, ``$2``: makes the rows from the first id to the last.
        fill_fast: statements for a connection that fills.
        data_complete: what makes it whole, ``{label}`` last.
        spill: statements for a session that spills, ``{bytes}``: so much is sorted.
        sayings: operation -> how it is done.
    """

    make: Mapping[str, tuple[str, ...]]
    fill_hot: str
    cache_bytes: str
    may_know_cache: str
    data_there: str
    data_count: str
    data_fill: str
    fill_fast: tuple[str, ...]
    data_complete: tuple[str, ...]
    spill: tuple[str, ...]
    sayings: Mapping[str, Saying[LoadingConnection]]
