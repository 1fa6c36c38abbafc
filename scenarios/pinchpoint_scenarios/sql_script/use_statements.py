"""Finds statements that leave the marked database (``USE other``).

On PostgreSQL that is no statement. Elsewhere the word is reserved, so that outside of comments, literals and
quoted names it is one wherever it stands: behind ``SET NOCOUNT ON`` or ``IF 1 = 1`` no ``;`` is needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..contract import Endpoint
from ..databases.odbc.address import SCHEMES
from ..databases.servers.contract import MSSQL, MYSQL, POSTGRESQL


def _reading(*, comment: str, quoted: str, name: str, letters: str, hint: str) -> re.Pattern[str]:
    """What reads a text piece by piece; the group ``use`` is where it leaves.

    Args:
        comment: what the server does not read, or the beginning of a comment that it does.
        quoted: a literal, or a quoted name.
        name: a word, with what belongs to it before.
        letters: what a word goes on with.
        hint: what stands behind the same word where it is a hint to the planner.
    """
    # Looked at and taken as a whole, like what is possessive: Python before 3.11.5 has groups of that wrong
    # (its issue 106052), and a part of a gap would let the name begin in it.
    gap = rf"(?=(?P<gap>(?:\s|{comment})*))(?P=gap)"
    use = rf"(?P<use>use(?![{letters}]){gap}(?!{hint})(?=[\[`\"\w$@#]))"
    return re.compile(f"{comment}|{quoted}|{use}|{name}", re.IGNORECASE | re.DOTALL)


# Deeper nested ones are read as statements: then too much is taken for leaving, not too little.
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
        # What stands in /*! */ and MariaDB's /*M! */ is executed.
        comment=r"--(?=[\s\0-\x1f]|\Z)[^\n]*+|\#[^\n]*+|/\*(?!M?!).*?\*/|/\*M?!\d*+",
        quoted=r"""'(?:[^'\\]++|''|\\.)*'|"(?:[^"\\]++|""|\\.)*"|`(?:[^`]++|``)*`""",
        name=r"[.@]*+[^\W\d][\w$]*+",
        letters=r"\w$",
        hint=r"(?:index|key)\b",
    ),
}
"""Kind of server with such a statement -> how it reads a text."""
_MAYBE = re.compile(r"use(?![\w$])", re.IGNORECASE)


def server_kinds(endpoint: Endpoint) -> Collection[str]:
    """The kinds of servers that an endpoint's may be, as far as its URL shows."""
    kind = SCHEMES.get(endpoint.url.partition("://")[0], POSTGRESQL)
    return _READINGS.keys() if kind is None else (kind,)


def find_use(text: str, kinds: Collection[str]) -> int | None:
    """Where a text has the session leave the database it is in; None: nowhere.

    Args:
        text: one statement or several, as they are sent.
        kinds: the server's, or those it may be: then it is enough that one of them would leave.
    """
    if not _MAYBE.search(text):
        return None
    readings = [reading for kind, reading in _READINGS.items() if kind in kinds]
    result = (match for reading in readings for match in reading.finditer(text) if match["use"] is not None)
    first = next(result, None)
    return None if first is None else first.start()
