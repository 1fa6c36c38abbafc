"""Reads counters of SQL statements (calls and time), and calculates their growth between two readings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pinchpoint_collectors.errors import CollectorError

TEXT_LENGTH = 1000
"""Length in characters at which a statement is cut."""
ASKED_LENGTH = 4 * TEXT_LENGTH
"""Length in characters of the text that is read. White space is removed before the text is cut."""


class Counted(NamedTuple):
    """One counter of one statement.

    Attributes:
        key: identity of the counter. A server may have several counters of one statement.
        statement: identity of the statement.
        database: name of the database; None if the server does not report it.
        calls: number of executions since the counter began.
        time_s: total time of the executions in seconds.
        rows: number of rows returned or changed; None if the server does not report it.
        text: normalised statement; None if it was not requested, or is hidden.
    """

    key: str
    statement: str
    database: str | None
    calls: float
    time_s: float
    rows: float | None
    text: str | None


class Grown(NamedTuple):
    """The growth of one statement between two readings, with fields as in ``Counted``."""

    text: str | None
    database: str | None
    calls: float
    time_s: float
    rows: float | None


class UncountedError(CollectorError):
    """The server does not count statements.

    Args:
        why: reason.
        remedy: what the user can do; None if nothing helps.
    """

    def __init__(self, why: str, remedy: str | None = None) -> None:
        super().__init__(f"{why}; {remedy}" if remedy else why)
        self.why, self.remedy = why, remedy


@runtime_checkable
class CountsStatements(Protocol):
    """A collector whose server counts statements."""

    def statement_counts(self, *, texts: bool) -> Sequence[Counted]:
        """Return the current counters. Texts are long and are returned only on request.

        Raises:
            UncountedError: the server counts no statements.
            CollectorError: the server did not answer.
        """
        ...


def counted(rows: Iterable[Mapping[str, Any]]) -> list[Counted]:
    """Return rows of a statement as ``Counted`` (``amount`` is ``rows``), added up by key."""
    counteds: dict[str, Counted] = {}
    for row in rows:
        key, given = str(row["id"]), row["amount"]
        one = Counted(
            key, str(row["statement"]), row["db"], float(row["calls"] or 0), float(row["time_s"] or 0),
            None if given is None else float(given), row["text"],
        )  # fmt: skip
        same = counteds.get(key)
        counteds[key] = one if same is None else _added(same, one)
    return list(counteds.values())


def _added(one: Counted, other: Counted) -> Counted:
    rows = None if one.rows is None or other.rows is None else one.rows + other.rows
    return one._replace(calls=one.calls + other.calls, time_s=one.time_s + other.time_s, rows=rows)


def growth(before: Iterable[Counted], after: Iterable[Counted]) -> list[Grown]:
    """Return the statements executed between two readings, those with the most time first.

    A counter that fell was reset, so its current value is its growth.
    """
    earlier = {one.key: one for one in before}
    parts: dict[tuple[str, str | None], list[Counted]] = defaultdict(list)
    for now in after:
        old = earlier.get(now.key)
        if old is not None and old.calls <= now.calls:
            rows = None if now.rows is None or old.rows is None else now.rows - old.rows
            now = now._replace(calls=now.calls - old.calls, time_s=now.time_s - old.time_s, rows=rows)  # noqa: PLW2901
        if now.calls > 0:
            parts[now.statement, now.database].append(now)
    result = [
        Grown(
            next((legible(one.text) for one in ones if one.text is not None), None),
            database,
            sum(one.calls for one in ones),
            max(0.0, sum(one.time_s for one in ones)),
            None if any(one.rows is None for one in ones) else sum(one.rows or 0.0 for one in ones),
        )
        for (_, database), ones in parts.items()
    ]
    return sorted(result, key=lambda one: -one.time_s)


_CONSTANT = re.compile(r"'(?:[^']|'')*'|[$]?\b\d+\b|(?<=extract\()\w+")
_BEGIN = 60


def begin(text: str) -> str:
    """Return the start of a statement without constants, equal before and after the server normalises it."""
    return " ".join(_CONSTANT.sub("$", text).split())[:_BEGIN]


_LITERAL = re.compile(r"'(?:[^']|'')*(?:'|$)|\$(\w*)\$.*?(?:\$\1\$|$)", re.DOTALL)
"""Pattern of a text literal. Servers keep it in statements that they do not normalise, such as CREATE
ROLE."""


def legible(text: str) -> str:
    """Return a statement on one line, cut, without text literals, which may be secrets or personal data."""
    line = " ".join(_LITERAL.sub("'...'", text).split())
    return line if len(line) <= TEXT_LENGTH else f"{line[: TEXT_LENGTH - 1]}…"
