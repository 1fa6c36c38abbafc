"""One open ODBC connection, with ``$1`` placeholders, many rows at once, and transactions.

It raises ``pyodbc.Error``. ``connection`` names the failures and reconnects.
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
    """Return a statement with ``?`` for every placeholder, and the index of each placeholder's parameter."""
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
"""Settings that pin names before the driver sends its own queries while connecting."""
_ROW_BY_ROW = frozenset({FREETDS})
"""Families of drivers without parameter arrays."""
_LONGEST_SHORT = 8000
"""Length in bytes of the longest value that SQL Server does not treat as long."""
_MOST_STATEMENTS = 256
"""Largest number of statements that stay prepared. A captured load may have any number of statements."""
_LONGEST = 2**30
"""Largest length of a parameter in bytes."""
_ANY_LENGTH = pyodbc.SQL_WVARCHAR, 0, 0
"""Type of a text whose length must not be sent: ``nvarchar(max)``."""
_SEVERAL_STATEMENTS = "67108864"
"""CLIENT_MULTI_STATEMENTS, as a number for the keyword OPTION of MariaDB and MySQL."""


@dataclass(frozen=True, slots=True)
class _OdbcStatement:
    """A prepared ODBC statement.

    Attributes:
        text: text with ``?`` placeholders.
        cursor: cursor of the statement, because pyodbc keeps the last statement of a cursor prepared.
        order: index of the parameter of each ``?``; None: all parameters in order.
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
        connection: open pyodbc connection.
        driver: family of the driver.

    Attributes:
        usable: whether the next statement may use the link (see ``transaction``).
    """

    def __init__(self, connection: pyodbc.Connection, driver: str) -> None:
        self.usable = True
        self._connection = connection
        self._driver = driver
        self._fast = driver not in _ROW_BY_ROW
        self._any_length = False
        if driver == MARIADB:
            connection.maxwrite = _LONGEST  # FreeTDS loses long values that arrive in several pieces
        self._statements: dict[str, _OdbcStatement] = {}
        self._sender: pyodbc.Cursor | None = None
        self._inside = False

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> ReadableResult:
        """Run one statement with ``$1`` placeholders to its end and fetch all its rows."""
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
            if not cursor.nextset():  # failures of the later parts of a batch are raised here
                return ReadableResult(rowcount, rows or (), description)

    def send(self, text: str) -> ReadableResult:
        """Send a text unchanged, with one or several statements, and run it to its end.

        Returns the last result.
        """
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
        """Run one statement with each row, as one transaction."""
        known = self._statements.get(statement) or self._known(statement)
        arranged = rows if known.order is None else [known.arranged(row) for row in rows]
        known.cursor.fast_executemany = self._fast
        known.cursor.setinputsizes([_size(column) for column in zip(*arranged, strict=True)])
        if self._inside:
            known.cursor.executemany(known.text, arranged)
        else:
            with self.transaction():
                known.cursor.executemany(known.text, arranged)
        return ReadableResult(len(rows), ())  # drivers count the last row, the last array, or nothing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction: committed at the end, rolled back by an exception.

        The link is unusable if the rollback or the return to autocommit failed: either the connection is lost
        and the server has rolled back, or the driver no longer knows its state (FreeTDS after a deadlock).
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
        """Send texts without a length, because Microsoft's driver sends it (``@P1 nvarchar(1234)``)."""
        self._any_length = self._driver == MICROSOFT

    def forget(self) -> None:
        """Forget all prepared statements, because the server is about to forget them."""
        for known in self._statements.values():
            known.cursor.close()
        self._statements.clear()

    def limit(self, seconds: float) -> None:
        """Set the time limit of a statement in the driver (whole seconds)."""
        self._connection.timeout = max(1, math.ceil(seconds))

    @property
    def server(self) -> str:
        """Return the name that the server reports for its product."""
        return str(self._connection.getinfo(pyodbc.SQL_DBMS_NAME))

    @property
    def library(self) -> str:
        """Return the library of the driver and its version."""
        info = self._connection.getinfo
        return f"{info(pyodbc.SQL_DRIVER_NAME)} {info(pyodbc.SQL_DRIVER_VER)}"

    def alive(self) -> bool:
        try:
            # the statement returns no rows, because MariaDB's driver crashes if rows of a text are not all
            # read
            self._connection.commit()
            self.execute("SELECT 1")
        except pyodbc.Error:
            return False
        return True

    def release_locks(self, unlock: str) -> None:
        if unlock and self.alive():  # a lost connection releases its locks by itself
            with contextlib.suppress(pyodbc.Error):
                self.execute(unlock)
        self.close()

    def close(self) -> None:
        """Close the connection and ignore failures. A second call does nothing."""
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
    """Return the type of a parameter column and the width of its widest value.

    Not every driver derives them.
    """
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
    """Return the driver for an address; None if the data source names it. Raises ``EndpointUnreachable``."""
    try:
        return find(address, pyodbc.drivers())
    except NoDriver as missing:
        raise unreachable(endpoint, missing.cause, missing.remedy) from missing


def open_link(
    address: OdbcAddress, driver: OdbcDriver | None, application: str, *, own_sql: bool = False
) -> OdbcLink:
    """Open a new connection, named ``application`` on the server if the driver can send the name.

    Raises ``pyodbc.Error``.
    """
    given = keywords(address, driver, application, own_sql=own_sql)
    try:
        connection = _connected(given)
    except pyodbc.Error as error:
        if _PINNED not in given.get("pqopt", "") or "unsupported startup parameter" not in str(error):
            raise
        # Text of a pooler's message.
        connection = _connected({**given, "pqopt": given["pqopt"].replace(_PINNED, "")})
    family = driver.family if driver else family_of(str(connection.getinfo(pyodbc.SQL_DRIVER_NAME)))
    return OdbcLink(connection, family)


def _connected(given: Mapping[str, str]) -> pyodbc.Connection:
    return pyodbc.connect(connection_string(given), autocommit=True, timeout=CONNECT_TIMEOUT_S)


def keywords(
    address: OdbcAddress, driver: OdbcDriver | None, application: str, *, own_sql: bool = False
) -> dict[str, str]:
    """Return the keywords of the connection string.

    Those in the URL's query come last and override the others.

    Args:
        address: address of the endpoint.
        driver: driver of the endpoint; None: the data source names it.
        application: name of the connection on the server.
        own_sql: whether the connection runs texts of the user, with their own transactions.
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
    """Return Pinchpoint's keywords for a driver, for every kind of server."""
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
    """Return keywords for texts of the user, with their own transactions and several statements."""
    if family == POSTGRESQL:
        # The server decides how a failure affects a transaction, and the user decides where names are
        # resolved.
        return {"Protocol": "7.4-0", "pqopt": _LIBPQ}
    return {"OPTION": _SEVERAL_STATEMENTS} if family in (MARIADB, MYSQL) else {}
