"""One session's ODBC connection for SQL of the user's own, which begins and ends transactions by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyodbc

from ...sql_text import forgets
from ..answer import Answer
from ..contract import DatabaseFailure
from ..servers.contract import ServerSql
from .connection import OdbcConnection
from .link import OdbcLink

_BEGIN = re.compile(r"(?i)\s*(?:begin(?:\s+(?:work|tran|transaction))?|start\s+transaction)\s*;?\s*")
_COMMIT = re.compile(r"(?i)\s*(?:commit|end)(?:\s+(?:work|tran|transaction))?\s*;?\s*")
_ROLLBACK = re.compile(r"(?i)\s*(?:rollback|abort)(?:\s+(?:work|tran|transaction))?\s*;?\s*")
_DOUBT = re.compile(
    r"\b(?:begin|start\s+transaction|commit|rollback|abort|tran|transaction|autocommit|implicit_transactions)\b",
    re.IGNORECASE,
)


class Transactions:
    """What texts that were sent say of the transactions they have left open.

    No driver tells it, and asking the server is a message more: so it is asked only where this is not sure.
    """

    def __init__(self) -> None:
        self._depth: int | None = 0

    @property
    def surely_none(self) -> bool:
        """Whether certainly none is open."""
        return self._depth == 0

    def sent(self, text: str) -> None:
        """A text was run without a failure."""
        if _BEGIN.fullmatch(text):
            self._depth = None if self._depth is None else self._depth + 1
        elif _COMMIT.fullmatch(text):
            self._depth = None if self._depth is None else max(0, self._depth - 1)
        elif _ROLLBACK.fullmatch(text):
            self._depth = 0
        elif _DOUBT.search(text):
            self._depth = None

    def failed(self, text: str) -> None:
        """A text failed: what that did to an open transaction differs from server to server."""
        if self._depth != 0 or _DOUBT.search(text):
            self._depth = None

    def told(self, *, is_open: bool) -> None:
        """The server was asked, or none can be open any more."""
        self._depth = 1 if is_open else 0


class OdbcTextConnection(OdbcConnection):
    """A ``TextConnection``.

    Args:
        kind: the server's, one of ``servers.contract.KINDS``.
        server: what it is asked.
        connect: opens a link, ready to be used; raises ``pyodbc.Error``.
    """

    def __init__(self, kind: str, server: ServerSql, connect: Callable[[], OdbcLink]) -> None:
        super().__init__(kind, connect)
        self._server = server
        self._transactions = Transactions()

    def query(self, text: str) -> Answer:
        link = self._link or self._open()
        if forgets(text):
            link.forget()
        return self._noted(text, lambda: link.send(text))

    def execute_as_text(self, statement: str, parameters: Sequence[Any], *, prepared: bool = True) -> Answer:
        del prepared  # each driver has its own ways
        link = self._link or self._open()
        return self._noted(statement, lambda: link.execute(statement, parameters))

    @property
    def in_transaction(self) -> bool:
        if self._link is None or self._transactions.surely_none:
            return False
        try:
            found = self._link.execute(self._server.transactions).fetchone()
        except pyodbc.Error as error:
            raise self._failure(error) from error
        self._transactions.told(is_open=bool(found and found[0]))
        return not self._transactions.surely_none

    def roll_back(self) -> None:
        if self._link is None or self._transactions.surely_none:
            return
        try:
            self._link.send(self._server.roll_back)
        except pyodbc.Error as error:
            raise self._failure(error) from error
        self._transactions.told(is_open=False)

    def _noted(self, text: str, send: Callable[[], Answer]) -> Answer:
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
            # pyodbc's own words: it cannot send, or fetch, what the user's statement asks for.
            return DatabaseFailure(f"sqlstate_{error.args[-1]}", str(error.args[0]))

    def _drop(self) -> None:
        super()._drop()
        self._transactions.told(is_open=False)
