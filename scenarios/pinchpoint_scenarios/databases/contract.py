"""Contract of a session's connection to a SQL server."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol

from pinchpoint_collectors.common.backoff import Backoff

# The functions below explain from a server's message why the server refused a connection.

CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason of refusal. Most client libraries have only a text for it and no code.

    Attributes:
        pattern: regular expression that matches the text.
        outcome: name of the failure for a session.
        cause: the reason in words.
        remedy: the remedy.
    """

    pattern: re.Pattern[str]
    outcome: str
    cause: str
    remedy: str


def refusal(pattern: str, outcome: str, cause: str, remedy: str) -> Refusal:
    """Return a reason that is recognised by a pattern in any letter case."""
    return Refusal(re.compile(pattern, re.IGNORECASE), outcome, cause, remedy)


def found_in(refusals: Iterable[Refusal], text: str) -> Refusal | None:
    """Return the first known reason in the text; None if there is none."""
    return next((each for each in refusals if each.pattern.search(text)), None)


class DatabaseFailure(Exception):  # noqa: N818 - an outcome of the farm, not an error of ours
    """A statement or the connection failed. ``outcome`` is the name of the failure."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class FailureReport:
    """Reports the server's message when an operation fails in a new way: event ``statement_failed``.

    Args:
        event: writes an event (see ``ScenarioContext.event``).
    """

    def __init__(self, event: Callable[..., None]) -> None:
        self._event = event
        self._reported: set[tuple[str | int, ...]] = set()

    def __call__(self, failure: DatabaseFailure, **where: str | int) -> None:
        """Report a failure of ``where`` (``operation=``, or ``script=`` and ``line=``)."""
        key = (failure.outcome, *where.values())
        if key not in self._reported:
            self._reported.add(key)
            first_line = str(failure).strip().partition("\n")[0]
            self._event("statement_failed", **where, outcome=failure.outcome, said=first_line)


class Result(Protocol):
    """The result of a statement. It is valid until the next statement of the connection."""

    @property
    def rowcount(self) -> int:
        """Return the number of rows inserted, changed, copied or selected."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last row."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all further rows."""
        ...


class Link(Protocol):
    """An open connection for creating and removing data, in autocommit mode except in ``transaction()``.

    It raises the exceptions of its library (``Access.error``).
    """

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Result:
        """Run one statement with ``$1`` placeholders and fetch all its rows."""
        ...

    def send(self, text: str) -> object:
        """Send a text unchanged. It may contain several statements."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Run a transaction: committed at the end, rolled back by an exception."""
        ...

    def lists_as_texts(self) -> None:
        """Send texts without their length, because a server that knows the length makes one plan per length.

        It is for statements with lists of varying length as parameters that are bound to variables. A
        comparison of a column with a text of any length is slower.
        """
        ...

    def alive(self) -> bool:
        """Return whether the server still answers on this connection."""
        ...

    def release_locks(self, unlock: str) -> None:
        """Release locks by a statement, if the server confirms in time, and close the connection.

        A server notices a closed connection late. Released locks let the next run start sooner. A server that
        does not answer releases the locks when it notices the closed connection.
        """
        ...

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class SqlConnection(Protocol):
    """One session's connection. It is opened when needed, and reopened after a loss, with pauses.

    Every method except ``wait_until_due``, ``try_open`` and ``close`` raises ``DatabaseFailure`` for a
    failure of the farm. Other exceptions are internal errors.
    """

    def wait_until_due(self) -> None:
        """Wait for the end of the pause after a failed attempt to connect. Call it before taking the time."""
        ...

    def try_open(self) -> None:
        """Connect now. The first statement reports a failure."""
        ...

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> Result:
        """Run one prepared statement.

        Outside ``transaction()`` each call is a transaction of its own, so a return means that it is
        committed.

        Args:
            statement: text with ``$1`` placeholders, each cast to its type (``$1::int8``), so that types do
                not depend on values.
            parameters: values: ints, floats, strings, bytes or None.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Run several statements as a transaction: committed at the end, rolled back by an exception."""
        ...

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class CopyingConnection(SqlConnection, Protocol):
    """A connection to a server that accepts many rows as one stream (PostgreSQL's COPY)."""

    def copy(self, statement: LiteralString, content: bytes) -> Result:
        """Run ``COPY ... FROM STDIN`` with ``content`` as the whole input, in the format of the statement.

        Outside ``transaction()`` each call is a transaction of its own, so a return means that it is
        committed.
        """
        ...


class LoadingConnection(SqlConnection, Protocol):
    """A connection whose driver sends many rows of parameters at once (ODBC's parameter arrays)."""

    def insert_many(self, statement: LiteralString, rows: Sequence[Sequence[Any]]) -> Result:
        """Run one prepared statement once for each row of parameters.

        Outside ``transaction()`` all rows are one transaction, so a return means that they are committed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Texts:
    """The result of a statement of the user.

    Attributes:
        names: names of the columns; empty if the statement is no query.
        rows: values as the server wrote them, or as numbers if the driver converts them; None is null.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


class TextResult(Protocol):
    """The result of a statement of the user. It is valid until the next statement of the connection."""

    def texts(self) -> Texts:
        """Return the columns and rows of a result; for several statements those of the last one."""
        ...

    def every(self) -> Sequence[Texts]:
        """Return the columns and rows of each statement of a text, in order."""
        ...


class TextConnection(Protocol):
    """One session's connection for SQL of the user. It is opened and lost like a ``SqlConnection``."""

    def wait_until_due(self) -> None: ...

    def try_open(self) -> None: ...

    def query(self, text: str) -> TextResult:
        """Send a text unchanged. It may contain several statements. Returns the result of the last one."""
        ...

    def execute_as_text(
        self, statement: str, parameters: Sequence[Any], *, prepared: bool = True
    ) -> TextResult:
        """Run one statement with ``$1`` placeholders and parameters of any type.

        Args:
            statement: text of the statement.
            parameters: values in the form that the creator of the connection defines.
            prepared: whether the statement stays prepared, if the driver allows this choice.
        """
        ...

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is still open. The call may query the server."""
        ...

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one."""
        ...

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


_NUMBERS = (int, float)


class ReadableResult:
    """A result that is both a ``Result`` and a ``TextResult``.

    Args:
        rowcount: number of rows inserted, changed or selected.
        rows: rows of a query.
        description: DB-API description of the columns; None: the statement is no query.
        before: results of the earlier statements in the same text.
    """

    __slots__ = ("_before", "_description", "_next", "_rows", "rowcount")

    def __init__(
        self,
        rowcount: int,
        rows: Sequence[Any],
        description: Sequence[Any] | None = None,
        before: Sequence[ReadableResult] = (),
    ) -> None:
        self.rowcount = rowcount
        self._before = before
        self._rows = rows
        self._description = description
        self._next = 0

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last row."""
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return tuple(self._rows[self._next - 1])

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all further rows."""
        rows = [tuple(row) for row in self._rows[self._next :]]
        self._next = len(self._rows)
        return rows

    def texts(self) -> Texts:
        names = tuple(str(column[0]) for column in self._description or ())
        return Texts(names, tuple(tuple(map(plain, row)) for row in self._rows))

    def every(self) -> list[Texts]:
        return [each.texts() for each in (*self._before, self)]


def plain(value: Any) -> str | int | float | None:
    """Return a column's value as in SQL: numbers unchanged, bytes as ``0x...``, other values as text."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, _NUMBERS):
        return value
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return str(value)  # dates and times with a space between them, decimals with all digits


class Reopening(ABC):
    """The part of a ``SqlConnection`` that opens and closes the connection."""

    def __init__(self) -> None:
        self._backoff = Backoff()

    def wait_until_due(self) -> None:
        """Wait for the end of the pause after a failed attempt to connect. Call it before taking the time."""
        self._backoff.wait()

    def try_open(self) -> None:
        """Connect now. The first statement reports a failure."""
        try:
            self._open()
        except DatabaseFailure:
            self._drop()  # the back-off has recorded the failure, and the first operation reports it by name

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._drop()

    @abstractmethod
    def _open(self) -> object:
        """Connect, and record success or failure in the back-off. Raises ``DatabaseFailure``."""

    @abstractmethod
    def _drop(self) -> None:
        """Close the connection if it is open. The next statement opens another connection."""
