"""The contract of a session's connection to a SQL server."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol

from pinchpoint_collectors.common.backoff import Backoff

# Explains why a server refused a connection, from its own message.

CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason of refusal, for which most client libraries have no code, only a text.

    Attributes:
        pattern: pattern of the text.
        outcome: the name of the failure for a session.
        cause: the reason, in words.
        remedy: what helps.
    """

    pattern: re.Pattern[str]
    outcome: str
    cause: str
    remedy: str


def refusal(pattern: str, outcome: str, cause: str, remedy: str) -> Refusal:
    """A reason that is recognised by a pattern, in upper or lower case."""
    return Refusal(re.compile(pattern, re.IGNORECASE), outcome, cause, remedy)


def found_in(refusals: Iterable[Refusal], text: str) -> Refusal | None:
    """The first known reason in the text; None: none."""
    return next((each for each in refusals if each.pattern.search(text)), None)


class DatabaseFailure(Exception):  # noqa: N818 - an outcome of the farm, not an error of ours
    """A statement, or the connection, failed: ``outcome`` is the name of the failure."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class FailureReport:
    """Reports the server's message when an operation fails in a new way: event ``statement_failed``.

    Args:
        event: see ``ScenarioContext.event``.
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
    """The result of a statement; valid until the connection's next statement."""

    @property
    def rowcount(self) -> int:
        """Rows inserted, changed, copied or selected."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All further rows."""
        ...


class Link(Protocol):
    """An open connection on which data are made and removed, in autocommit mode except ``transaction()``.

    Raises the exceptions of its library (``Access.error``).
    """

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Result:
        """Run one statement (``$1`` placeholders) and fetch all its rows."""
        ...

    def send(self, text: str) -> object:
        """Send a text unchanged; it may be several statements."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Committed at the end, rolled back by an exception."""
        ...

    def lists_as_texts(self) -> None:
        """Send texts without their length: a server with a length makes one plan per length.

        For statements with lists of varying length as parameters, bound to variables: comparing a column with
        a text of any length is slower.
        """
        ...

    def alive(self) -> bool:
        """Whether the server still answers on this connection."""
        ...

    def release_locks(self, unlock: str) -> None:
        """Release the locks by that statement, if the server confirms in time, and close the connection.

        A server notices a closed connection late; released locks let the next run start sooner. A server that
        does not answer releases them when it notices.
        """
        ...

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


class SqlConnection(Protocol):
    """One session's connection: opened when needed, and reopened, with pauses, after a loss.

    Every method except ``wait_until_due``, ``try_open`` and ``close`` raises ``DatabaseFailure`` for a
    failure of the farm, and other exceptions for internal errors.
    """

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        ...

    def try_open(self) -> None:
        """Connect now; a failure is reported by the first statement."""
        ...

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> Result:
        """Run one prepared statement.

        Outside ``transaction()`` each call is its own transaction: a return means committed.

        Args:
            statement: with ``$1`` placeholders, each cast to its type (``$1::int8``), so that types do not
                depend on values.
            parameters: ints, floats, strings, bytes or None.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction around several statements: committed at the end, rolled back by an exception."""
        ...

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


class CopyingConnection(SqlConnection, Protocol):
    """A connection to a server that accepts many rows as one stream (PostgreSQL's COPY)."""

    def copy(self, statement: LiteralString, content: bytes) -> Result:
        """Run ``COPY ... FROM STDIN`` with ``content`` as its whole input, in the statement's format.

        Outside ``transaction()`` each call is its own transaction: a return means committed.
        """
        ...


class LoadingConnection(SqlConnection, Protocol):
    """A connection whose driver sends many rows of parameters at once (ODBC's parameter arrays)."""

    def insert_many(self, statement: LiteralString, rows: Sequence[Sequence[Any]]) -> Result:
        """Run one prepared statement with each of the rows as its parameters.

        Outside ``transaction()`` all rows are one transaction: a return means committed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Texts:
    """The result of a user's own statement.

    Attributes:
        names: names of the columns; none without a query.
        rows: values as the server wrote them, or as numbers if the driver converts them; None is null.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


class TextResult(Protocol):
    """The result of a user's own statement; valid until the connection's next statement."""

    def texts(self) -> Texts:
        """The columns and rows of a result; for several statements those of the last."""
        ...

    def every(self) -> Sequence[Texts]:
        """Columns and rows of each statement of one text, in their order."""
        ...


class TextConnection(Protocol):
    """One session's connection for the user's own SQL; opened and lost like a ``SqlConnection``."""

    def wait_until_due(self) -> None: ...

    def try_open(self) -> None: ...

    def query(self, text: str) -> TextResult:
        """Send a text unchanged; it may be several statements: the result of the last is returned."""
        ...

    def execute_as_text(
        self, statement: str, parameters: Sequence[Any], *, prepared: bool = True
    ) -> TextResult:
        """Run one statement (``$1`` placeholders) with parameters of any type.

        Args:
            statement: the statement.
            parameters: values in the form of the connection's creator.
            prepared: whether the statement stays prepared, if the driver leaves this choice.
        """
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is still open; may query the server."""
        ...

    def roll_back(self) -> None:
        """End the open transaction, if there is one."""
        ...

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


_NUMBERS = (int, float)


class ReadableResult:
    """A ``Result``, and a ``TextResult``.

    Args:
        rowcount: rows inserted, changed or selected.
        rows: the rows of a query.
        description: DB-API description of the columns; None: not a query.
        before: results of the earlier statements of the same text.
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
        """The next row; None after the last."""
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return tuple(self._rows[self._next - 1])

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All further rows."""
        rows = [tuple(row) for row in self._rows[self._next :]]
        self._next = len(self._rows)
        return rows

    def texts(self) -> Texts:
        names = tuple(str(column[0]) for column in self._description or ())
        return Texts(names, tuple(tuple(map(plain, row)) for row in self._rows))

    def every(self) -> list[Texts]:
        return [each.texts() for each in (*self._before, self)]


def plain(value: Any) -> str | int | float | None:
    """A column's value as in SQL: numbers unchanged, bytes as ``0x...``, others as text."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, _NUMBERS):
        return value
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return str(value)  # dates and times with a blank between, decimals with all digits


class Reopening(ABC):
    """The part of a ``SqlConnection`` that opens and closes it."""

    def __init__(self) -> None:
        self._backoff = Backoff()

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        self._backoff.wait()

    def try_open(self) -> None:
        """Connect now; a failure is reported by the first statement."""
        try:
            self._open()
        except DatabaseFailure:
            self._drop()  # the back-off has noted the failure; the first operation reports it with its name

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._drop()

    @abstractmethod
    def _open(self) -> object:
        """Connect, and note success or failure in the back-off; raises ``DatabaseFailure``."""

    @abstractmethod
    def _drop(self) -> None:
        """Close the connection, if open: the next statement opens another."""
