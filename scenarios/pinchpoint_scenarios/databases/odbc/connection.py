"""One session's ODBC connection: it names its failures and comes back by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyodbc

from ..answer import Answer
from ..contract import DatabaseFailure
from ..postgresql import CONNECTION_LOST
from ..reopening import Reopening
from .failures import outcome_of, told
from .link import OdbcLink


class OdbcConnection(Reopening):
    """A ``LoadingConnection``.

    It waits inside the driver's C code: under gevent its calls belong into threads (``contract.Blocking``).

    Args:
        kind: the server's, one of ``servers.contract.KINDS``: how its failures are named.
        connect: opens a link, ready to be used; raises ``pyodbc.Error``.
    """

    def __init__(self, kind: str, connect: Callable[[], OdbcLink]) -> None:
        super().__init__()
        self._kind = kind
        self._connect = connect
        self._link: OdbcLink | None = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        """Run one prepared statement (``$1`` placeholders); raises ``DatabaseFailure``."""
        link = self._link or self._open()
        try:
            return link.execute(statement, parameters)
        except pyodbc.Error as error:
            raise self._failure(error) from error

    def insert_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> Answer:
        """Run one prepared statement with each row, as one transaction; raises ``DatabaseFailure``."""
        link = self._link or self._open()
        try:
            return link.insert_many(statement, rows)
        except pyodbc.Error as error:
            raise self._failure(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction around several statements: committed at the end, rolled back by an exception."""
        link = self._link or self._open()
        try:
            with link.transaction():
                yield
        except pyodbc.Error as error:
            raise self._failure(error) from error

    def _open(self) -> OdbcLink:
        try:
            self._link = self._connect()
        except pyodbc.Error as error:
            self._backoff.failed()
            raise DatabaseFailure(outcome_of(error, self._kind, connecting=True), str(error)) from error
        self._backoff.succeeded()
        return self._link

    def _failure(self, error: pyodbc.Error) -> DatabaseFailure:
        outcome = outcome_of(error, self._kind)
        if outcome in (CONNECTION_LOST, "unreachable"):
            self._drop()
        return DatabaseFailure(outcome, told(error))

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
