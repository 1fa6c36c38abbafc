"""Contract of a kind of SQL server: the statements that every scenario needs."""

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

    ``$1`` is a parameter. Names in braces are replaced first: ``{schema}`` and ``{table}`` are quoted names,
    ``{name}`` is the name of the schema in a string, and ``{marker}`` is the mark of Pinchpoint's schemas.

    Attributes:
        name: name of the server in messages and the manifest.
        quotes: characters before and after a name, and the doubled end quote inside.
        longest_name: largest number of characters of a schema's name.
        version: query for one row with the version.
        too_old: why a server of this version is not supported; empty: it is supported.
        settings: query for (name, value) of the settings that a reader of a report must know.
        durable: setting -> values with which a commit waits for the disk.
        files: query for (purpose, path) of the server's files; it may need rights.
        find: query with ``$1``, the name of a schema, for one row of (its mark, whether this user may drop
            it), or no row. Truth values are those that ``access.yes`` accepts.
        may_create: query for one row of (whether this user may create a schema, the user, the database).
        grant: statement that grants this right, with ``{user}`` and ``{database}``.
        lock: query with ``$1``, a name, for one row: whether this connection has the lock now, until its end.
        unlock: statement that releases all such locks of this connection; empty: they end with the
            connection.
        pin: statement after which names in internal statements are those of the server itself; empty if every
            name is qualified. unpin: statement after which names are resolved by the settings of the user and
            the database, for texts of the user.
        create: statement that creates the schema with its mark.
        enter: statement after which names are resolved in the schema; empty if every name is qualified.
        others: query with ``$1``, the name of a schema, for its objects except the mark.
        drop_tables: statement that drops ``{tables}`` of the schema, if they exist.
        drop: statement that drops the empty schema.
        depends: SQLSTATE with which ``drop`` is refused while the schema contains other objects or other
            objects depend on it; empty: ``drop`` would drop all of them.
        bound: statements that set a connection's name and time limit, from (application name, timeout in s).
            If the driver must apply the timeout, see ``driver_times_out``.
        greet: further statements for a connection with internal statements.
        driver_times_out: whether the driver, and not the server, applies the time limit.
        patient: statements for a connection that creates data, without a time limit.
        isolation: isolation level of a plan -> statements.
        snapshot_off: query for one row: 1 if the level ``snapshot`` is not available; empty: it is always
            available.
        snapshot_on: statement that enables the level, with ``{database}``.
        read_only: query for one row: why the server is read-only, or an empty text.
        free: query for one row from which ``free_bytes`` computes the free bytes at the data; empty: not
            reported.
        transactions: query for one row: 0 if no transaction is open.
        roll_back: statement that ends the open transaction, if there is one.
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
        """Return a name, quoted for this server."""
        before, after, doubled = self.quotes
        return f"{before}{name.replace(after, doubled)}{after}"
