"""Finds statements that leave the marked database (``USE other``).

PostgreSQL has no such statement. On other servers the word is reserved, so outside of comments, literals and
quoted names it is always a statement: no ``;`` is needed after ``SET NOCOUNT ON`` or ``IF 1 = 1``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..contract import Endpoint
from ..databases.odbc.address import SCHEMES
from ..databases.servers.contract import MSSQL, MYSQL, POSTGRESQL


def _reading(*, comment: str, quoted: str, name: str, letters: str, hint: str) -> re.Pattern[str]:
    """Return the pattern that reads a text piece by piece. Its group ``use`` matches the statement.

    Args:
        comment: pattern of a comment that the server ignores, or of the start of a comment that it executes.
        quoted: pattern of a literal or a quoted name.
        name: pattern of a word, with the characters before it that belong to it.
        letters: characters that continue a word.
        hint: pattern of the text after the same word if it is a hint to the planner.
    """
    # A piece is matched as a whole by a lookahead, like a possessive group, because Python before 3.11.5
    # handles possessive groups incorrectly (issue 106052), and otherwise a name could begin within a gap.
    gap = rf"(?=(?P<gap>(?:\s|{comment})*))(?P=gap)"
    use = rf"(?P<use>use(?![{letters}]){gap}(?!{hint})(?=[\[`\"\w$@#]))"
    return re.compile(f"{comment}|{quoted}|{use}|{name}", re.IGNORECASE | re.DOTALL)


# Comments with deeper nesting are read as statements. Too many statements are then found, but none is missed.
_WITHIN = r"[^/*]++|/(?!\*)|\*(?!/)"
_NESTED = rf"/\*(?:{_WITHIN}|/\*(?:{_WITHIN})*\*/)*\*/"

_READINGS: Mapping[str, re.Pattern[str]] = {
    MSSQL: _reading(
        comment=rf"--[^\r\n]*+|{_NESTED}",
        quoted=r"""'(?:[^']++|'')*'|"(?:[^"]++|"")*"|\[(?:[^\]]++|\]\])*\]""",
        name=r"[.@#]*+[^\W\d][\w$@#]*+",
        letters=r"\w$@#",
        hint=r"(?:index|key|plan)\b|hint\s*\(",
    ),
    MYSQL: _reading(
        # Text in /*! */ and MariaDB's /*M! */ is executed.
        comment=r"--(?=[\s\0-\x1f]|\Z)[^\n]*+|\#[^\n]*+|/\*(?!M?!).*?\*/|/\*M?!\d*+",
        quoted=r"""'(?:[^'\\]++|''|\\.)*'|"(?:[^"\\]++|""|\\.)*"|`(?:[^`]++|``)*`""",
        name=r"[.@]*+[^\W\d][\w$]*+",
        letters=r"\w$",
        hint=r"(?:index|key)\b",
    ),
}
"""Kind of server with such a statement -> pattern that reads a text."""
_MAYBE = re.compile(r"use(?![\w$])", re.IGNORECASE)


def server_kinds(endpoint: Endpoint) -> Collection[str]:
    """Return the kinds of servers that an endpoint may have, as far as its URL shows."""
    kind = SCHEMES.get(endpoint.url.partition("://")[0], POSTGRESQL)
    return _READINGS.keys() if kind is None else (kind,)


def find_use(text: str, kinds: Collection[str]) -> int | None:
    """Return the place where a text leaves the database; None: it does not.

    Args:
        text: one or several statements as they are sent.
        kinds: possible kinds of the server. It suffices that one of them would leave the database.
    """
    if not _MAYBE.search(text):
        return None
    readings = [reading for kind, reading in _READINGS.items() if kind in kinds]
    result = (match for reading in readings for match in reading.finditer(text) if match["use"] is not None)
    first = next(result, None)
    return None if first is None else first.start()
