"""``$filter`` and ``$orderby`` of a list's items, as SQL with its values apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pinchpoint_infra.services.odata import RefusalError

Condition = tuple[str, list[Any]]
"""A condition of a WHERE clause with its values."""


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_NAME = r"regexp_replace(path, '^.*/', '')"
COLUMNS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "id": ("id", int),
    "fileref": ("path", str),
    "fileleafref": (_NAME, str),
    "title": (_NAME, str),
    "modified": ("modified", _time),
    "fsobjtype": ("0", int),
    "filesystemobjecttype": ("0", int),
}
"""Field in lower case -> its column, and how a literal becomes a value of it."""
_OPERATORS = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_]\w*)(?!')|(?P<mark>[(),])|(?:datetime)?'(?P<text>(?:[^']|'')*)'|(?P<number>-?\d+))"
)
_DEEPEST = 50


def condition(text: str) -> Condition:
    """What ``$filter`` asks for; raises ``RefusalError``."""
    return _Parser(text).whole()


def order(text: str) -> str:
    """What ``$orderby`` asks for, as the inside of an ORDER BY; raises ``RefusalError``."""
    parts = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, _, direction = each.partition(" ")
        if name.lower() not in COLUMNS or direction.strip().lower() not in {"", "asc", "desc"}:
            raise RefusalError(
                400, f"$orderby: {each!a} is not understood; allowed are {_names()}, asc, desc"
            )
        parts.append(f"{COLUMNS[name.lower()][0]} {direction.strip()}".strip())
    return ", ".join([*parts, "id"])


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._either()
        if self._text[self._at :].strip():
            raise self._refused("its end")
        return found

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
            found = self._deeper(self._either)
            self._need("mark", ")")
            return found
        name = self._need("word").lower()
        if name == "not":
            sql, values = self._deeper(self._one)
            return f"NOT {sql}", values
        if name in {"startswith", "substringof"}:
            return self._function(name)
        column, convert = self._column(name)
        operator = _OPERATORS.get(self._need("word").lower())
        if operator is None:
            raise self._refused("one of " + ", ".join(_OPERATORS))
        return f"{column} {operator} %s", [self._value(convert)]

    def _deeper(self, read: Callable[[], Condition]) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused("fewer brackets")
        found = read()
        self._depth -= 1
        return found

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
        return sql, [text.replace("''", "'").replace("\0", "\ufffd")]

    def _column(self, name: str) -> tuple[str, Callable[[str], Any]]:
        if name not in COLUMNS:
            raise RefusalError(
                400, f"$filter: there is no field {name!a} to filter by; allowed are {_names()}"
            )
        return COLUMNS[name]

    def _value(self, convert: Callable[[str], Any]) -> Any:
        text = self._maybe("text")
        literal = text.replace("''", "'") if text is not None else self._need("number")
        try:
            return convert(literal.replace("\0", "\ufffd"))
        except ValueError as error:
            raise RefusalError(400, f"$filter: {literal!a} is not a value of that field") from error

    def _take(self, kind: str, wanted: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or (found[kind] or "").lower() != wanted:
            return False
        self._at = found.end()
        return True

    def _maybe(self, kind: str) -> str | None:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found[kind] is None:
            return None
        self._at = found.end()
        return str(found[kind])

    def _need(self, kind: str, wanted: str | None = None) -> str:
        found = self._maybe(kind)
        if found is None or (wanted is not None and found.lower() != wanted):
            raise self._refused(wanted or f"a {kind}")
        return found

    def _refused(self, wanted: str) -> RefusalError:
        return RefusalError(400, f"$filter: {wanted} is needed at {self._text[self._at : self._at + 40]!a}")


def _names() -> str:
    return ", ".join(sorted(COLUMNS))
