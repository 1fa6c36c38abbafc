"""Provides access to a server by ODBC: its kind, its connections and its facts."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyodbc

from ...contract import Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ...sql_text import forgets
from ..access import Access
from ..contract import DatabaseFailure, Link, ReadableResult, Reopening
from ..postgresql import CONNECTION_LOST
from ..servers import kind_of
from ..servers.contract import KINDS, ServerSql
from .address import parse
from .failures import message, outcome_of, refused, state
from .link import OdbcLink, found_driver, open_link

# The classes below are one session's ODBC connection, which names failures and reconnects, and a session's
# connection for SQL of the user.


class OdbcConnection(Reopening):
    """A ``LoadingConnection`` over ODBC.

    It waits inside the C code of the driver. Under gevent its calls must run in threads
    (``contract.Blocking``).

    Args:
        kind: kind of the server, one of ``servers.contract.KINDS``, which determines the names of failures.
        connect: opens a link that is ready to use. Raises ``pyodbc.Error``.
    """

    def __init__(self, kind: str, connect: Callable[[], OdbcLink]) -> None:
        super().__init__()
        self._kind = kind
        self._connect = connect
        self._link: OdbcLink | None = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> ReadableResult:
        """Run one prepared statement with ``$1`` placeholders. Raises ``DatabaseFailure``."""
        link = self._usable()
        try:
            return link.execute(statement, parameters)
        except pyodbc.Error as error:
            raise self._failure(error) from error

    def insert_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> ReadableResult:
        """Run one prepared statement with each row, as one transaction. Raises ``DatabaseFailure``."""
        link = self._usable()
        try:
            return link.insert_many(statement, rows)
        except pyodbc.Error as error:
            raise self._failure(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run several statements as a transaction: committed at the end, rolled back by an exception."""
        link = self._usable()
        try:
            with link.transaction():
                yield
        except pyodbc.Error as error:
            raise self._failure(error) from error

    def _usable(self) -> OdbcLink:
        """Return the link for the next statement: a new one if the last one is no longer usable."""
        if self._link is not None and not self._link.usable:
            self._drop()
        return self._link or self._open()

    def _open(self) -> OdbcLink:
        try:
            self._link = self._connect()
        except pyodbc.Error as error:
            self._backoff.failed()
            raise DatabaseFailure(
                outcome_of(error, self._kind, connecting=True), message(error, self._kind)
            ) from error
        self._backoff.succeeded()
        return self._link

    def _failure(self, error: pyodbc.Error) -> DatabaseFailure:
        outcome = outcome_of(error, self._kind)
        if outcome in (CONNECTION_LOST, "unreachable"):
            self._drop()
        return DatabaseFailure(outcome, message(error, self._kind))

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


_BEGIN = re.compile(r"(?i)\s*(?:begin(?:\s+(?:work|tran|transaction))?|start\s+transaction)\s*;?\s*")
_COMMIT = re.compile(r"(?i)\s*(?:commit|end)(?:\s+(?:work|tran|transaction))?\s*;?\s*")
_ROLLBACK = re.compile(r"(?i)\s*(?:rollback|abort)(?:\s+(?:work|tran|transaction))?\s*;?\s*")
_DOUBT = re.compile(
    r"\b(?:begin|start\s+transaction|commit|rollback|abort|tran|transaction|autocommit|implicit_transactions)\b",
    re.IGNORECASE,
)


class Transactions:
    """Derives from the texts that were sent whether a transaction may be open.

    No driver reports open transactions, and a query costs one message. The server is therefore queried only
    in uncertain cases.
    """

    def __init__(self) -> None:
        self._depth: int | None = 0

    @property
    def surely_none(self) -> bool:
        """Return whether certainly no transaction is open."""
        return self._depth == 0

    def sent(self, text: str) -> None:
        """Record a text that ran without a failure."""
        if _BEGIN.fullmatch(text):
            self._depth = None if self._depth is None else self._depth + 1
        elif _COMMIT.fullmatch(text):
            self._depth = None if self._depth is None else max(0, self._depth - 1)
        elif _ROLLBACK.fullmatch(text):
            self._depth = 0
        elif _DOUBT.search(text):
            self._depth = None

    def failed(self, text: str) -> None:
        """Record a text that failed. Its effect on an open transaction differs between servers."""
        if self._depth != 0 or _DOUBT.search(text):
            self._depth = None

    def observed(self, *, is_open: bool) -> None:
        """Record that the server was queried, or that no transaction can be open."""
        self._depth = 1 if is_open else 0


class OdbcTextConnection(OdbcConnection):
    """A ``TextConnection`` over ODBC.

    Args:
        kind: kind of the server, one of ``servers.contract.KINDS``.
        server: statements for the kind of server.
        connect: opens a link that is ready to use. Raises ``pyodbc.Error``.
    """

    def __init__(self, kind: str, server: ServerSql, connect: Callable[[], OdbcLink]) -> None:
        super().__init__(kind, connect)
        self._server = server
        self._transactions = Transactions()

    def query(self, text: str) -> ReadableResult:
        link = self._usable()
        if forgets(text):
            link.forget()
        return self._noted(text, lambda: link.send(text))

    def execute_as_text(
        self, statement: str, parameters: Sequence[Any], *, prepared: bool = True
    ) -> ReadableResult:
        del prepared  # each driver has a form of its own
        link = self._usable()
        return self._noted(statement, lambda: link.execute(statement, parameters))

    @property
    def in_transaction(self) -> bool:
        if self._link is None or not self._link.usable or self._transactions.surely_none:
            return False
        try:
            result = self._link.execute(self._server.transactions).fetchone()
        except pyodbc.Error as error:
            raise self._failure(error) from error
        self._transactions.observed(is_open=bool(result and result[0]))
        return not self._transactions.surely_none

    def roll_back(self) -> None:
        if self._link is None or not self._link.usable or self._transactions.surely_none:
            return
        try:
            self._link.send(self._server.roll_back)
        except pyodbc.Error as error:
            raise self._failure(error) from error
        self._transactions.observed(is_open=False)

    def _noted(self, text: str, send: Callable[[], ReadableResult]) -> ReadableResult:
        try:
            answer = send()
        except pyodbc.Error as error:
            self._transactions.failed(text)
            raise self._failure(error) from error
        self._transactions.sent(text)
        return answer

    def _failure(self, error: pyodbc.Error) -> DatabaseFailure:
        try:
            return super()._failure(error)
        except pyodbc.Error:
            # pyodbc raised the error itself: it cannot send or fetch what the user's statement needs.
            return DatabaseFailure(f"sqlstate_{error.args[-1]}", str(error.args[0]))

    def _drop(self) -> None:
        super()._drop()
        self._transactions.observed(is_open=False)


class OdbcAccess(Access):
    """Access to an endpoint with an ODBC URL.

    Args:
        endpoint: endpoint of the server.
        name: name of the connections (see ``Access``).
        own_sql: whether the access is for SQL of the user (see ``access_to``).

    Raises:
        ScenarioError: the URL contains something that is not allowed.
    """

    error = pyodbc.Error

    def __init__(self, endpoint: Endpoint, name: str, *, own_sql: bool = False) -> None:
        self._address = parse(endpoint)
        self._own_sql = own_sql
        super().__init__(endpoint, name, self._address.kind)

    @property
    def kind(self) -> str:
        """Return the kind of the server, from the URL or else from the server.

        Raises ``EndpointUnreachable`` if the server does not answer.
        """
        if self.known_kind is None:
            try:
                link = self._new()
            except pyodbc.Error as error:
                raise self.refused(error) from error
            with contextlib.closing(link):
                name = link.server
            self.known_kind = kind_of(name)
            if self.known_kind is None:
                raise ScenarioError(
                    f"{self.place}: the server calls itself {name!r}; allowed are SQL Server, MariaDB, "
                    f"MySQL and PostgreSQL, or whatever speaks like one: &dialect={'|'.join(KINDS)}"
                )
        return self.known_kind

    def open(self, *, pinned: bool = True) -> OdbcLink:
        link = self._new()
        try:
            if pinned:
                self.pin(link)
        except BaseException:
            link.close()
            raise
        return link

    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> OdbcConnection:

        def opened() -> OdbcLink:
            return self._bound(self.open(), timeout_s, self.server.greet, ready)

        return OdbcConnection(self.kind, opened)

    def own_session(self, timeout_s: float) -> OdbcTextConnection:

        def opened() -> OdbcLink:
            return self._bound(self._new(), timeout_s, (), lambda _: None)

        return OdbcTextConnection(self.kind, self.server, opened)

    def refused(self, error: pyodbc.Error) -> EndpointUnreachable:
        return refused(self.endpoint, error, self.known_kind or KINDS[0], self._address)

    def message(self, error: pyodbc.Error) -> str:
        return message(error, self.known_kind)

    def state(self, error: pyodbc.Error) -> str:
        return state(error)

    def facts(self, link: Link) -> dict[str, Any]:
        """Return the parts of the URL with driver and files."""
        driver = found_driver(self.endpoint, self._address)
        shown = driver.shown if driver else f"data source {self._address.dsn}"
        library = link.library if isinstance(link, OdbcLink) else ""
        try:
            rows = link.execute(self.server.files).fetchall()
        except pyodbc.ProgrammingError:
            rows = None  # this user may lack the right
        files = None if rows is None else {str(what): str(path) for what, path in rows}
        return {**super().facts(link), "driver": f"{shown}, {library}", "files": files}

    def _bound(
        self, link: OdbcLink, timeout_s: float, greeting: tuple[str, ...], ready: Callable[[Link], None]
    ) -> OdbcLink:
        """Open a new connection with a time limit for statements, applied by the server or the driver."""
        try:
            if self.server.driver_times_out:
                link.limit(timeout_s)
            for statement, parameters in self.server.bound(self.name, timeout_s):
                link.execute(statement, parameters)
            for statement in greeting:
                link.execute(statement)
            ready(link)
        except pyodbc.Error:
            link.close()
            raise
        return link

    def _new(self) -> OdbcLink:
        driver = found_driver(self.endpoint, self._address)
        return open_link(self._address, driver, self.name, own_sql=self._own_sql)
