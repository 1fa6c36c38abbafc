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
    """One reason, for which most client libraries give no code, only a text.

    Attributes:
        pattern: what the text says.
        outcome: the name of the failure, where a session meets it.
        cause: it, in words for a person.
        remedy: what helps.
    """

    pattern: re.Pattern[str]
    outcome: str
    cause: str
    remedy: str


def refusal(pattern: str, outcome: str, cause: str, remedy: str) -> Refusal:
    """A reason that is recognised by a pattern, whatever the case of its letters."""
    return Refusal(re.compile(pattern, re.IGNORECASE), outcome, cause, remedy)


def found_in(refusals: Iterable[Refusal], text: str) -> Refusal | None:
    """The first reason that the text gives; None: none that is known."""
    return next((each for each in refusals if each.pattern.search(text)), None)


class DatabaseFailure(Exception):  # noqa: N818 - an outcome of the farm, not an error of ours
    """A statement, or the connection, failed: ``outcome`` is the name of the failure."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class FailureReport:
    """Reports what the server said, the first time an operation fails in a way: event ``statement_failed``.

    Args:
        event: see ``ScenarioContext.event``.
    """

    def __init__(self, event: Callable[..., None]) -> None:
        self._event = event
        self._reported: set[tuple[str | int, ...]] = set()

    def __call__(self, failure: DatabaseFailure, **where: str | int) -> None:
        """Report a failure of what ``where`` names (``operation=``, or ``script=`` and ``line=``)."""
        key = (failure.outcome, *where.values())
        if key not in self._reported:
            self._reported.add(key)
            first_line = str(failure).strip().partition("\n")[0]
            self._event("statement_failed", **where, outcome=failure.outcome, said=first_line)


class Result(Protocol):
    """What a statement gave; valid until the connection's next statement."""

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

    It raises what its library raises (``Access.error``).
    """

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Result:
        """Run one statement (``$1`` placeholders), fetching all it gives."""
        ...

    def send(self, text: str) -> object:
        """Run a text as it is, one statement or several."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Committed at the end, rolled back by an exception."""
        ...

    def lists_as_texts(self) -> None:
        """Send no text with its length: a server that knows it makes a plan for each length that comes.

        For statements whose parameters are lists, of a different length each time, and are bound to variables
        there: with a column a text of any length is compared more slowly.
        """
        ...

    def alive(self) -> bool:
        """Whether the server still answers on it."""
        ...

    def release_locks(self, unlock: str) -> None:
        """Give up its locks by that statement, if the server confirms it in time, and close it.

        A server notices a closed connection late; released locks let the next run start sooner.
        One that does not answer frees them when it sees the close.
        """
        ...

    def close(self) -> None:
        """Close it. Safe to call twice."""
        ...


class SqlConnection(Protocol):
    """One session's connection: opened when needed, and again, with pauses, after it was lost.

    Every method but ``wait_until_due``, ``try_open`` and ``close`` raises ``DatabaseFailure`` for what is the
    farm's failure, and anything else for an internal error.
    """

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        ...

    def try_open(self) -> None:
        """Connect now; a failure is reported by the first statement."""
        ...

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> Result:
        """Run one prepared statement.

        Outside ``transaction()`` it is a transaction of its own: returned means committed.

        Args:
            statement: with ``$1`` placeholders. It casts each to its type (``$1::int8``), so that no type
                depends on a value.
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
    """A connection to a server that takes many rows as one stream (PostgreSQL's COPY)."""

    def copy(self, statement: LiteralString, content: bytes) -> Result:
        """Run ``COPY ... FROM STDIN`` with ``content`` as its whole input, in the format the statement names.

        Outside ``transaction()`` it is a transaction of its own: returned means committed.
        """
        ...


class LoadingConnection(SqlConnection, Protocol):
    """A connection whose driver sends many rows of parameters at once (ODBC's arrays of parameters)."""

    def insert_many(self, statement: LiteralString, rows: Sequence[Sequence[Any]]) -> Result:
        """Run one prepared statement with each of the rows as its parameters.

        Outside ``transaction()`` all of them are one transaction: returned means committed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Texts:
    """What a statement of the user's own gave.

    Attributes:
        names: of the columns; none where it was no query.
        rows: their values as the server wrote them, or as numbers where the driver makes such; None is null.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


class TextResult(Protocol):
    """What a statement of the user's own gave; valid until the connection's next statement."""

    def texts(self) -> Texts:
        """The columns and rows of a result; of several statements those of the last."""
        ...

    def every(self) -> Sequence[Texts]:
        """Columns and rows of each statement that was sent as one text, in their order."""
        ...


class TextConnection(Protocol):
    """One session's connection for SQL of the user's own; opened and lost as a ``SqlConnection`` is."""

    def wait_until_due(self) -> None: ...

    def try_open(self) -> None: ...

    def query(self, text: str) -> TextResult:
        """Send a text as it is, one statement or several: what the last of them gave."""
        ...

    def execute_as_text(
        self, statement: str, parameters: Sequence[Any], *, prepared: bool = True
    ) -> TextResult:
        """Run one statement (``$1`` placeholders) with parameters of any type.

        Args:
            statement: the statement.
            parameters: in the form that whoever made the connection gives values.
            prepared: whether it stays prepared for the next time, where the driver leaves that to us.
        """
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction that a statement began has not ended yet; may ask the server."""
        ...

    def roll_back(self) -> None:
        """End the transaction that is open, where one is."""
        ...

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


_NUMBERS = (int, float)


class ReadableResult:
    """A ``Result``, and a ``TextResult``.

    Args:
        rowcount: rows inserted, changed or selected.
        rows: they, where it was a query.
        description: of its columns, as DB-API has it; None: it was no query.
        before: what the statements before it gave, where several were sent as one text.
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
    """A value of a column as in SQL: numbers as they are, bytes as ``0x...``, all else as text."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, _NUMBERS):
        return value
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return str(value)  # dates and times with a blank between, decimals with all their digits


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
            self._drop()  # already noted in the back-off; the first operation reports it with its name

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._drop()

    @abstractmethod
    def _open(self) -> object:
        """Connect, and note in the back-off how that went; raises ``DatabaseFailure``."""

    @abstractmethod
    def _drop(self) -> None:
        """Close the connection where there is one: the next statement opens another."""
