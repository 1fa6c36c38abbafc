"""One open ODBC connection: statements with ``$1`` placeholders, many rows at once, transactions.

Raises ``pyodbc.Error``; ``connection`` names the failures and reconnects.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyodbc

from pinchpoint_collectors.common.odbc import freetds_encryption

from ...addresses import unreachable
from ...contract import Endpoint
from ..contract import CONNECT_TIMEOUT_S, ReadableResult
from ..servers.contract import MSSQL, MYSQL, POSTGRESQL
from .address import (
    FREETDS,
    MARIADB,
    MICROSOFT,
    NoDriver,
    OdbcAddress,
    OdbcDriver,
    connection_string,
    family_of,
    find,
)

_PLACEHOLDER = re.compile(
    r"""
    '(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`
    |--[^\n]*|/\*.*?\*/
    |\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?(tag)(?P=tag))\$
    |\$(?P<number>\d+)
    """,
    re.VERBOSE | re.DOTALL,
)


def as_markers(statement: str) -> tuple[str, tuple[int, ...]]:
    """A statement with ``?`` for every placeholder, and the number of each one's parameter, from 0."""
    order: list[int] = []

    def marker(match: re.Match[str]) -> str:
        if match["number"] is None:
            return match[0]
        order.append(int(match["number"]) - 1)
        return "?"

    return _PLACEHOLDER.sub(marker, statement), tuple(order)


# A returned connection must be closed, because it may hold locks.
pyodbc.pooling = False

_LIBPQ = (
    f"connect_timeout={CONNECT_TIMEOUT_S} tcp_user_timeout=30000 keepalives_idle=10 keepalives_interval=5 "
    "keepalives_count=3"
)
_PINNED = " options='-c search_path=pg_catalog,pg_temp'"
"""The driver's own queries while connecting also use the server's own names."""
_ROW_BY_ROW = frozenset({FREETDS})
"""Families of drivers without parameter arrays."""
_LONGEST_SHORT = 8000
"""Bytes of the longest value that SQL Server does not treat as long."""
_MOST_STATEMENTS = 256
"""Number of statements that stay prepared; a captured load may have any number of statements."""
_LONGEST = 2**30
"""Bytes; a longer value is no parameter."""
_ANY_LENGTH = pyodbc.SQL_WVARCHAR, 0, 0
"""Type of a text whose length must not be sent: ``nvarchar(max)``."""
_SEVERAL_STATEMENTS = "67108864"
"""CLIENT_MULTI_STATEMENTS, as a number of MariaDB's and MySQL's keyword OPTION."""


@dataclass(frozen=True, slots=True)
class _OdbcStatement:
    """A statement as in ODBC.

    Attributes:
        text: with ``?`` placeholders.
        cursor: its own cursor: pyodbc keeps a cursor's last statement prepared.
        order: the parameter of each ``?``; None: all of them in order.
        count: number of parameters.
    """

    text: str
    cursor: pyodbc.Cursor
    order: tuple[int, ...] | None
    count: int

    def arranged(self, parameters: Sequence[Any]) -> Sequence[Any]:
        if len(parameters) != self.count:
            raise ValueError(
                f"{len(parameters)} parameters for a statement that takes {self.count}: {self.text!r}"
            )
        if self.order is None:
            return parameters
        if len(self.order) == 1:
            return (parameters[self.order[0]],)
        return itemgetter(*self.order)(parameters)  # type: ignore[no-any-return]  # a tuple, for there are two or more


class OdbcLink:
    """An open connection, in autocommit mode except ``transaction()``.

    Args:
        connection: it.
        driver: the family of its driver.

    Attributes:
        usable: whether the next statement may use the link; see ``transaction``.
    """

    def __init__(self, connection: pyodbc.Connection, driver: str) -> None:
        self.usable = True
        self._connection = connection
        self._driver = driver
        self._fast = driver not in _ROW_BY_ROW
        self._any_length = False
        if driver == MARIADB:
            connection.maxwrite = _LONGEST  # it loses long values that arrive in several pieces
        self._statements: dict[str, _OdbcStatement] = {}
        self._sender: pyodbc.Cursor | None = None
        self._inside = False

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> ReadableResult:
        """Run one statement (``$1`` placeholders) to its end and fetch all its rows."""
        known = self._statements.get(statement) or self._known(statement)
        cursor = known.cursor
        if known.count or parameters:
            values = known.arranged(parameters)
            if self._any_length:
                cursor.setinputsizes([_ANY_LENGTH if isinstance(value, str) else None for value in values])
            cursor.execute(known.text, values)
        else:
            cursor.execute(known.text)
        rows, rowcount, description = None, cursor.rowcount, None
        while True:
            if rows is None and cursor.description:
                rows, description = cursor.fetchall(), cursor.description
                rowcount = len(rows)
            if not cursor.nextset():  # of a batch: failures of its later parts are raised here
                return ReadableResult(rowcount, rows or (), description)

    def send(self, text: str) -> ReadableResult:
        """Send a text unchanged, with one or several statements, to its end; return the last result."""
        if self._sender is None:
            self._sender = self._connection.cursor()
        cursor = self._sender
        cursor.execute(text)
        before: list[ReadableResult] = []
        while True:
            description = cursor.description
            rows = cursor.fetchall() if description else ()
            answer = ReadableResult(len(rows) if description else cursor.rowcount, rows, description, before)
            if not cursor.nextset():
                return answer
            before = [*before, answer]

    def insert_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> ReadableResult:
        """Run one statement with each of the rows, as one transaction."""
        known = self._statements.get(statement) or self._known(statement)
        arranged = rows if known.order is None else [known.arranged(row) for row in rows]
        known.cursor.fast_executemany = self._fast
        known.cursor.setinputsizes([_size(column) for column in zip(*arranged, strict=True)])
        if self._inside:
            known.cursor.executemany(known.text, arranged)
        else:
            with self.transaction():
                known.cursor.executemany(known.text, arranged)
        return ReadableResult(len(rows), ())  # drivers count the last row, the last array or nothing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Committed at the end, rolled back by an exception.

        The link is unusable if the rollback, or the return to autocommit, failed: either the connection is
        lost and the server has rolled back, or the driver no longer knows its state (FreeTDS after a
        deadlock).
        """
        self._connection.autocommit = False
        self._inside = True
        try:
            yield
            self._connection.commit()
        except BaseException:
            self._unusable_if_it_fails(self._connection.rollback)
            raise
        finally:
            self._inside = False
            self._unusable_if_it_fails(lambda: setattr(self._connection, "autocommit", True))

    def _unusable_if_it_fails(self, call: Callable[[], None]) -> None:
        try:
            call()
        except pyodbc.Error:
            self.usable = False

    def lists_as_texts(self) -> None:
        """Microsoft's driver sends a text's length (``@P1 nvarchar(1234)``)."""
        self._any_length = self._driver == MICROSOFT

    def forget(self) -> None:
        """Forget all prepared statements: the server is about to forget them."""
        for known in self._statements.values():
            known.cursor.close()
        self._statements.clear()

    def limit(self, seconds: float) -> None:
        """Set the driver's time limit of a statement (whole seconds)."""
        self._connection.timeout = max(1, math.ceil(seconds))

    @property
    def server(self) -> str:
        """The server's name for itself."""
        return str(self._connection.getinfo(pyodbc.SQL_DBMS_NAME))

    @property
    def library(self) -> str:
        """The driver's library and version."""
        info = self._connection.getinfo
        return f"{info(pyodbc.SQL_DRIVER_NAME)} {info(pyodbc.SQL_DRIVER_VER)}"

    def alive(self) -> bool:
        try:
            self._connection.commit()  # has no rows: MariaDB's driver crashes if a text's rows break off
            self.execute("SELECT 1")
        except pyodbc.Error:
            return False
        return True

    def release_locks(self, unlock: str) -> None:
        if unlock and self.alive():  # a lost connection releases its own locks
            with contextlib.suppress(pyodbc.Error):
                self.execute(unlock)
        self.close()

    def close(self) -> None:
        """Close the connection, ignoring failures. Safe to call twice."""
        with contextlib.suppress(pyodbc.Error):
            self._connection.close()

    def _known(self, statement: str) -> _OdbcStatement:
        text, order = as_markers(statement)
        count = max(order, default=-1) + 1
        known = _OdbcStatement(
            text=text,
            cursor=self._connection.cursor(),
            order=None if order == tuple(range(count)) else order,
            count=count,
        )
        if len(self._statements) >= _MOST_STATEMENTS:
            self._statements.pop(next(iter(self._statements))).cursor.close()
        self._statements[statement] = known
        return known


def _size(column: Sequence[Any]) -> tuple[int, int, int]:
    """The type of a parameter column and the width of its widest value: not every driver derives them."""
    kinds = {type(value) for value in column if value is not None}
    if kinds <= {int, bool}:
        return pyodbc.SQL_BIGINT, 0, 0
    if kinds <= {int, bool, float}:
        return pyodbc.SQL_DOUBLE, 0, 0
    width = max(1, *(len(value) for value in column if value is not None))
    if kinds == {bytes}:
        return (pyodbc.SQL_VARBINARY if width <= _LONGEST_SHORT else pyodbc.SQL_LONGVARBINARY), width, 0
    return (pyodbc.SQL_WVARCHAR if width <= _LONGEST_SHORT // 2 else pyodbc.SQL_WLONGVARCHAR), width, 0


def found_driver(endpoint: Endpoint, address: OdbcAddress) -> OdbcDriver | None:
    """The driver for an address; None: the data source names it. Raises ``EndpointUnreachable``."""
    try:
        return find(address, pyodbc.drivers())
    except NoDriver as missing:
        raise unreachable(endpoint, missing.cause, missing.remedy) from missing


def open_link(
    address: OdbcAddress, driver: OdbcDriver | None, application: str, *, own_sql: bool = False
) -> OdbcLink:
    """A new connection, named ``application`` on the server if the driver can send it.

    Raises ``pyodbc.Error``.
    """
    given = keywords(address, driver, application, own_sql=own_sql)
    try:
        connection = _connected(given)
    except pyodbc.Error as error:
        if _PINNED not in given.get("pqopt", "") or "unsupported startup parameter" not in str(error):
            raise
        # A pooler's words.
        connection = _connected({**given, "pqopt": given["pqopt"].replace(_PINNED, "")})
    family = driver.family if driver else family_of(str(connection.getinfo(pyodbc.SQL_DRIVER_NAME)))
    return OdbcLink(connection, family)


def _connected(given: Mapping[str, str]) -> pyodbc.Connection:
    return pyodbc.connect(connection_string(given), autocommit=True, timeout=CONNECT_TIMEOUT_S)


def keywords(
    address: OdbcAddress, driver: OdbcDriver | None, application: str, *, own_sql: bool = False
) -> dict[str, str]:
    """The connection string's keywords; those of the URL's query come last and replace ours.

    Args:
        address: the endpoint's.
        driver: its driver; None: the data source names it.
        application: the connection's name on the server.
        own_sql: whether it runs the user's own texts, with their own transactions.
    """
    result: dict[str, str] = {"DSN": address.dsn} if driver is None else {"DRIVER": driver.keyword}
    if address.dsn and driver is not None:
        result["DSN"] = address.dsn
    family = driver.family if driver else ""
    if address.host:
        result |= _server(address, family)
    if address.database:
        result["DATABASE"] = address.database
    if address.user is not None:
        result["UID"] = address.user
    if address.password is not None:
        result["PWD"] = address.password
    result |= _ours(address, family, application)
    if own_sql:
        result |= _of_own_sql(family)
    given = {key.lower() for key in address.options}
    return {key: value for key, value in result.items() if key.lower() not in given} | dict(address.options)


def _server(address: OdbcAddress, family: str) -> dict[str, str]:
    if family == MICROSOFT:
        return {"SERVER": f"{address.host},{address.port}" if address.port else address.host}
    default = {"PORT": "1433"} if family == FREETDS and "\\" not in address.host else {}
    return {"SERVER": address.host} | ({"PORT": str(address.port)} if address.port else default)


def _ours(address: OdbcAddress, family: str, application: str) -> dict[str, str]:
    """Our keywords for a driver, for every server."""
    result: dict[str, str] = {}
    if address.kind == MSSQL and family in (MICROSOFT, FREETDS):
        result["APP"] = application
        if address.user is None and address.option("Authentication") is None:
            result["Trusted_Connection"] = "yes"
    if family == MICROSOFT:
        # The driver would hide lost connections, and with them the loss of the session's settings.
        result["ConnectRetryCount"] = "0"
    if family == FREETDS:
        result |= {"TDS_Version": "7.4", "ClientCharset": "UTF-8"}
        result |= freetds_encryption(address.option("Encrypt"))
    if family == POSTGRESQL:
        # A failed statement ends the transaction: no savepoint before each statement, as with psycopg.
        result |= {"Protocol": "7.4-1", "pqopt": _LIBPQ + _PINNED}
    return result


def _of_own_sql(family: str) -> dict[str, str]:
    """Keywords for the user's own texts, with their own transactions and several statements."""
    if family == POSTGRESQL:
        # The server decides how a failure affects a transaction, the user where names are resolved.
        return {"Protocol": "7.4-0", "pqopt": _LIBPQ}
    return {"OPTION": _SEVERAL_STATEMENTS} if family in (MARIADB, MYSQL) else {}
