"""What is asked of a database behind ODBC that statements of the user's own may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...scope import Value


@dataclass(frozen=True, slots=True)
class CopySql:
    """The statements for one kind of server.

    ``$1`` is a parameter. A text with braces is filled in first: ``{database}``, ``{table}`` and ``{column}``
    are quoted names, ``{marker}`` is the mark of a copy, ``{owned}`` that of what is Pinchpoint's own.

    Attributes:
        find: one row: the database (null: the connection is in none), its mark (null: it has none), and 1
            where it is one of the server's own.
        tables: at most four names of tables that are not Pinchpoint's own.
        mark: marks the database.
        lock: ``$1``: a name; one row: 1 where this connection has it now, to its end.
        sample: ``$1``: so many at most; rows: values of the column, evenly taken from all in their order.
        literal: a value as it is put into a statement's text.
        batches: a file of SQL as the texts it is sent in.
        begins: how another server's driver began a transaction -> how it is begun here.
    """

    find: str
    tables: str
    mark: str
    lock: str
    sample: str
    literal: Callable[[Value], str]
    batches: Callable[[str], list[str]]
    begins: Mapping[str, str]
