"""A session's connection to a crawl database that is reached by ODBC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, LiteralString

from ..databases.contract import DatabaseFailure, ReadableResult, SqlConnection
from .aside import Aside
from .dialects import NEXT

_DEADLOCKS = 5
"""So often a script that its server ended to let another go on is run again: all of it was undone."""


class CrawlConnection:
    """A ``SqlConnection`` that runs scripts (see ``CrawlSql``), whose times are UTC and say so.

    Args:
        inner: it, without these.
    """

    def __init__(self, inner: SqlConnection) -> None:
        self._inner = inner
        self._aside = Aside()
        self._inside = False

    def wait_until_due(self) -> None:
        self._inner.wait_until_due()

    def try_open(self) -> None:
        self._aside.call(self._inner.try_open)

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> ReadableResult:
        """Run a statement, or a script whose first part takes the parameters and whose last is answered."""
        return self._aside.call(lambda: self._run(statement, parameters))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        inner = self._inner.transaction()
        self._aside.call(inner.__enter__)
        self._inside = True
        try:
            yield
        except BaseException as error:
            failed = type(error), error, error.__traceback__
            self._aside.call(lambda: inner.__exit__(*failed))
            raise
        finally:
            self._inside = False
        self._aside.call(lambda: inner.__exit__(None, None, None))

    def close(self) -> None:
        """Close the connection, unless the driver still waits: then it ends with the process."""
        if not self._aside.busy:
            self._aside.call(self._inner.close)
            self._aside.close()

    def _run(self, statement: LiteralString, parameters: Sequence[Any]) -> ReadableResult:
        for _ in range(0 if self._inside else _DEADLOCKS):
            try:
                return self._once(statement, parameters)
            except DatabaseFailure as failure:
                if failure.outcome != "deadlock":
                    raise
        return self._once(statement, parameters)

    def _once(self, statement: LiteralString, parameters: Sequence[Any]) -> ReadableResult:
        first, *further = statement.split(NEXT)
        answer = self._inner.execute(first, [_plain(value) for value in parameters])
        for part in further:
            answer = self._inner.execute(part)
        return ReadableResult(answer.rowcount, [tuple(map(_value, row)) for row in answer.fetchall()])


def _plain(value: Any) -> Any:
    """A parameter as every driver has it: not all of them know truth values."""
    return int(value) if isinstance(value, bool) else value


def _value(value: Any) -> Any:
    """A value as the other drivers give it: times say that they are UTC, a decimal is a float."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return float(value) if isinstance(value, Decimal) else value
