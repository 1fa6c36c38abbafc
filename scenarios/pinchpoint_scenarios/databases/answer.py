"""What a statement gave, fetched whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .contract import Texts

_NUMBERS = (int, float)


class Answer:
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
        before: Sequence[Answer] = (),
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
    """A value of a column as SQL has it: numbers as they are, bytes as ``0x...``, all else as text."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, _NUMBERS):
        return value
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return str(value)  # dates and times with a blank between, decimals with all their digits
