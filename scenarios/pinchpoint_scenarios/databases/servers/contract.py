"""The contract of a kind of SQL server: statements for what every scenario needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MSSQL = "mssql"
MYSQL = "mysql"
POSTGRESQL = "postgresql"
KINDS = (MSSQL, MYSQL, POSTGRESQL)
"""Kinds of servers: SQL Server, MariaDB and MySQL, PostgreSQL."""

Asked = tuple[str, tuple[Any, ...]]
"""A statement and its parameters."""


def _as_reported(value: Any) -> int | None:
    return None if value is None else int(value)


@dataclass(frozen=True, slots=True)
class ServerSql:
    """The statements for one kind of server.

    ``$1`` is a parameter. A text with braces is filled in first: ``{schema}`` and ``{table}`` are quoted
    names, ``{name}`` is the schema's name in a string, ``{marker}`` the mark of our schemas.

    Attributes:
        name: what it is called in a message and in the manifest.
        quotes: what stands before and after a name, and what its end is doubled to inside.
        longest_name: characters of a schema's name.
        version: one row: its version.
        too_old: why a server of this version is not driven; empty: it is.
        settings: rows of (name, value): what a reader of a report must know of it.
        durable: setting -> the values with which a commit waits for the disk.
        files: rows of (what for, path): where it says that its files are; it may need rights.
        find: ``$1``: a schema's name; one row of (its mark, whether this user may drop it), or none; a truth
            value here and below is whatever ``access.yes`` knows.
        may_create: one row of (whether this user may make a schema, the user, the database).
        grant: the statement that lets it: ``{user}``, ``{database}``.
        lock: ``$1``: a name; one row: whether this connection has it now, to its end.
        unlock: gives up all such locks of this connection; empty: only its end does.
        pin: resolves names in internal statements in the server's own schema; empty if every name is
        qualified. unpin: as the user and the database have it, for texts of the user's own.
        create: makes the schema with its mark.
        enter: makes it the one that names are looked up in; none where every name is qualified.
        others: ``$1``: a schema's name; rows: its objects, except the mark.
        drop_tables: drops ``{tables}`` of the schema, as far as they are there.
        drop: drops the schema, which is empty.
        depends: the SQLSTATE with which ``drop`` refuses while objects are in it or depend on it; empty:
            it would drop all of it.
        bound: statements that set a connection's name and bound its statements: (application name, timeout
            in s); what the driver must do about the timeout where the server has none is
            ``driver_times_out``.
        greet: further statements for a connection with internal statements.
        driver_times_out: whether it is the driver that gives statements up.
        patient: statements for a connection that makes data, which takes as long as it takes.
        isolation: isolation level of a plan -> statements.
        snapshot_off: one row: 1 where the level ``snapshot`` is not available; empty: it always is.
        snapshot_on: the statement that allows it: ``{database}``.
        read_only: one row: why nothing can be written there, or an empty text.
        free: one row from which ``free_bytes`` reports the bytes free where the data goes; empty: it has no
            way to report it.
        transactions: one row: 0 if no transaction is open.
        roll_back: ends the transaction that is open, where one is.
    """

    name: str
    quotes: tuple[str, str, str]
    longest_name: int
    version: str
    settings: str
    durable: Mapping[str, frozenset[str]]
    files: str
    find: str
    may_create: str
    grant: str
    lock: str
    unlock: str
    create: tuple[str, ...]
    enter: tuple[Asked, ...]
    others: str
    drop_tables: str
    drop: tuple[str, ...]
    bound: Callable[[str, float], tuple[Asked, ...]]
    greet: tuple[str, ...]
    driver_times_out: bool
    patient: tuple[str, ...]
    isolation: Mapping[str, tuple[Asked, ...]]
    transactions: str
    roll_back: str
    too_old: Callable[[str], str] = lambda _: ""
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    snapshot_off: str = ""
    snapshot_on: str = ""
    read_only: str = ""
    free: str = ""
    free_bytes: Callable[..., int | None] = _as_reported
    depends: str = ""

    def quoted(self, name: str) -> str:
        """A name, quoted for this server."""
        before, after, doubled = self.quotes
        return f"{before}{name.replace(after, doubled)}{after}"
