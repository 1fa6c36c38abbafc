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
        name: its name in messages and the manifest.
        quotes: the characters before and after a name, and the doubled end quote inside.
        longest_name: characters of a schema's name.
        version: one row: its version.
        too_old: why a server of this version is not supported; empty: it is.
        settings: rows of (name, value) that a reader of a report must know.
        durable: setting -> the values with which a commit waits for the disk.
        files: rows of (purpose, path) of its files; it may need rights.
        find: ``$1``: a schema's name; one row of (its mark, whether this user may drop it), or none; truth
            values are those that ``access.yes`` accepts.
        may_create: one row of (whether this user may create a schema, the user, the database).
        grant: the statement that grants this right: ``{user}``, ``{database}``.
        lock: ``$1``: a name; one row: whether this connection has the lock now, until its end.
        unlock: releases all such locks of this connection; empty: only its end does.
        pin: resolves names in internal statements in the server's own schema; empty if every name is
            qualified. unpin: resolves them by the user's and database's settings, for the user's own texts.
        create: creates the schema with its mark.
        enter: makes the schema the one in which names are resolved; none if every name is qualified.
        others: ``$1``: a schema's name; rows: its objects, except the mark.
        drop_tables: drops ``{tables}`` of the schema, if they exist.
        drop: drops the schema, which is empty.
        depends: the SQLSTATE with which ``drop`` refuses while the schema has or needs other objects; empty:
            it would drop all of them.
        bound: statements that set a connection's name and time limit: (application name, timeout in s);
            ``driver_times_out`` if the driver must apply the timeout.
        greet: further statements for a connection with internal statements.
        driver_times_out: whether the driver, not the server, applies the time limit.
        patient: statements for a connection that creates data, without a time limit.
        isolation: isolation level of a plan -> statements.
        snapshot_off: one row: 1 if the level ``snapshot`` is not available; empty: it always is.
        snapshot_on: the statement that enables it: ``{database}``.
        read_only: one row: why the server is read-only, or an empty text.
        free: one row from which ``free_bytes`` computes the free bytes at the data; empty: not reported.
        transactions: one row: 0 if no transaction is open.
        roll_back: ends the open transaction, if there is one.
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
