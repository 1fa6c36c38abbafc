"""Converts ``$filter`` and ``$orderby`` to SQL with separate parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pinchpoint_infra.services.odata import RefusalError

Condition = tuple[str, list[Any]]
"""Condition of a WHERE clause with its values."""
Fields = Mapping[str, tuple[str, Callable[[str], Any]]]
"""Field in lower case -> column and conversion of a literal."""
NAME = r"regexp_replace(path, '^.*/', '')"
"""SQL expression for the last part of a document's path."""
FOLDER = r"regexp_replace(path, '/[^/]*$', '')"

OPERATORS = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_TOKEN = re.compile(
    r"\s*(?:(?:datetime|guid)?'(?P<text>(?:[^']|'')*)'|(?P<word>[A-Za-z_]\w*)|(?P<mark>[(),])|(?P<number>-?\d+))"
)
_DEEPEST = 50
_TRUTHS = {"true", "false"}
_OF_NULL = {"eq": "IS NULL", "ne": "IS NOT NULL"}


def time(text: str) -> datetime:
    """Parse a time; without a zone it is UTC. Raises ``ValueError``."""
    result = datetime.fromisoformat(text)
    return result if result.tzinfo else result.replace(tzinfo=UTC)


def truth(text: str) -> bool:
    """Parse ``true``, ``false``, or the 1 and 0 of some clients. Raises ``ValueError``."""
    if text.lower() not in {"true", "false", "1", "0"}:
        raise ValueError(text)
    return text.lower() in {"true", "1"}


def condition(text: str, fields: Fields) -> Condition:
    """Return the condition of ``$filter``; without a filter it is always true. Raises ``RefusalError``."""
    return _Parser(text, fields).whole() if text.strip() else ("true", [])


def order(text: str, fields: Fields) -> str:
    """Return ``$orderby`` as the content of ORDER BY. Raises ``RefusalError``."""
    parts = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, _, direction = each.partition(" ")
        if name.lower() not in fields or direction.strip().lower() not in {"", "asc", "desc"}:
            raise RefusalError(
                400, f"$orderby: {each!a} is not understood; allowed are {names(fields)}, asc, desc"
            )
        parts.append(f"{fields[name.lower()][0]} {direction.strip()}".strip())
    return ", ".join([*parts, "id"])


def names(fields: Fields) -> str:
    """Return the names of fields for a message."""
    return ", ".join(sorted(fields))


class _Parser:
    def __init__(self, text: str, fields: Fields) -> None:
        self._text = text
        self._fields = fields
        self._at = 0
        self._depth = 0

    def whole(self) -> Condition:
        result = self._either()
        if self._text[self._at :].strip():
            raise self._refused("its end")
        return result

    def _either(self) -> Condition:
        sql, values = self._both()
        while self._take("word", "or"):
            more, others = self._both()
            sql, values = f"({sql} OR {more})", [*values, *others]
        return sql, values

    def _both(self) -> Condition:
        sql, values = self._one()
        while self._take("word", "and"):
            more, others = self._one()
            sql, values = f"({sql} AND {more})", [*values, *others]
        return sql, values

    def _one(self) -> Condition:
        if self._take("mark", "("):
            result = self._deeper(self._either)
            self._need("mark", ")")
            return result
        name = self._need("word").lower()
        if name == "not":
            sql, values = self._deeper(self._one)
            return f"NOT {sql}", values
        if name in {"startswith", "substringof"}:
            return self._function(name)
        column, convert = self._column(name)
        answer = self._need("word").lower()
        operator = OPERATORS.get(answer)
        if operator is None:
            raise self._refused("one of " + ", ".join(OPERATORS))
        if answer in _OF_NULL and self._take("word", "null"):
            return f"{column} {_OF_NULL[answer]}", []
        return f"{column} {operator} %s", [self._value(convert)]

    def _deeper(self, read: Callable[[], Condition]) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused("fewer brackets")
        result = read()
        self._depth -= 1
        return result

    def _function(self, name: str) -> Condition:
        self._need("mark", "(")
        if name == "startswith":
            column, _ = self._column(self._need("word").lower())
            self._need("mark", ",")
            text = self._need("text")
            sql = f"starts_with(lower({column}), lower(%s))"
        else:
            text = self._need("text")
            self._need("mark", ",")
            column, _ = self._column(self._need("word").lower())
            sql = f"position(lower(%s) in lower({column})) > 0"
        self._need("mark", ")")
        if self._take("word", "eq"):  # some clients write the condition in this way
            sql = sql if self._truth() == "true" else f"NOT {sql}"
        return sql, [text.replace("''", "'").replace("\0", "\ufffd")]

    def _column(self, name: str) -> tuple[str, Callable[[str], Any]]:
        if name not in self._fields:
            raise RefusalError(
                400, f"$filter: there is no field {name!a} to filter by; allowed are {names(self._fields)}"
            )
        return self._fields[name]

    def _value(self, convert: Callable[[str], Any]) -> Any:
        text = self._maybe("text")
        literal = text.replace("''", "'") if text is not None else self._maybe("number")
        if literal is None:
            literal = self._truth()
        try:
            return convert(literal.replace("\0", "\ufffd"))
        except ValueError as error:
            raise RefusalError(400, f"$filter: {literal!a} is not a value of that field") from error

    def _truth(self) -> str:
        """Return ``true`` or ``false`` as a condition.

        Any other word is invalid, because text needs quotes.
        """
        before, word = self._at, self._need("word").lower()
        if word not in _TRUTHS:
            self._at = before
            raise self._refused("a value ('text', a number, true, false)")
        return word

    def _take(self, kind: str, wanted: str) -> bool:
        match = _TOKEN.match(self._text, self._at)
        if match is None or (match[kind] or "").lower() != wanted:
            return False
        self._at = match.end()
        return True

    def _maybe(self, kind: str) -> str | None:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match[kind] is None:
            return None
        self._at = match.end()
        return str(match[kind])

    def _need(self, kind: str, wanted: str | None = None) -> str:
        result = self._maybe(kind)
        if result is None or (wanted is not None and result.lower() != wanted):
            raise self._refused(wanted or f"a {kind}")
        return result

    def _refused(self, wanted: str) -> RefusalError:
        return RefusalError(400, f"$filter: {wanted} is needed at {self._text[self._at : self._at + 40]!a}")
