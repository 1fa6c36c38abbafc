"""``$1`` as ODBC has it: a ``?`` for each, but for what stands in quotes and comments."""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(
    r"""
    '(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`
    |--[^\n]*|/\*.*?\*/
    |\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?(tag)(?P=tag))\$
    |\$(?P<number>\d+)
    """,
    re.VERBOSE | re.DOTALL,
)


def as_markers(statement: str) -> tuple[str, tuple[int, ...]]:
    """A statement with ``?`` for every placeholder, and which parameter, from 0, each of them is."""
    order: list[int] = []

    def marker(match: re.Match[str]) -> str:
        if match["number"] is None:
            return match[0]
        order.append(int(match["number"]) - 1)
        return "?"

    return _PLACEHOLDER.sub(marker, statement), tuple(order)
