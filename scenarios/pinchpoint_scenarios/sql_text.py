"""Properties of a SQL statement without parsing it, for any server."""

from __future__ import annotations

import re

# Comments are read in one way alone: dozens of them would have many. Nothing but single characters is
# possessive: Python before 3.11.5 has groups of that wrong (its issue 106052).
_FIRST_WORD = re.compile(r"(?:[\s(]|/\*(?:[^*]++|\*(?!/))*\*/|--[^\n]*+(?:\n|$))*([A-Za-z]+)", re.DOTALL)
_BLIND = re.compile(
    r"""--[^\n]*
    |/\*.*?\*/
    |(?<!\w)[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'
    |'[^']*(?:''[^']*)*'
    |"[^"]*(?:""[^"]*)*"
    |(?<![\w$])(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag)""",
    re.DOTALL | re.VERBOSE,
)
_MAYBE_COPY = re.compile(r"copy\b.*\bstd(?:in|out)\b", re.IGNORECASE | re.DOTALL)
_COPY = re.compile(r"(?:^|;)\s*copy\b[^;]*\bstd(?:in|out)\b", re.IGNORECASE)
_OTHER_LETTERS = re.compile(
    r"(?:^|;)\s*set\s+(?:(?:session|local)\s+)?(?:names|character\s+set|client_encoding)\b"
    r"(?:\s*(?:=|\bto\b))?\s*['\"]?(?!utf|unicode|default|binary)\w",
    re.IGNORECASE,
)
_TIME_LIMIT = re.compile(r"statement_timeout|\b(?:reset|discard)\s+all\b", re.IGNORECASE)
_FORGETS = re.compile(r"\b(?:discard|deallocate)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"(?<![\w$])\$(\d+)")


def first_word(text: str) -> str:
    """The first word of a statement in lower case, after comments; ``statement`` without one."""
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match else "statement"


def bare(text: str) -> str:
    """The text with a blank for each comment, literal and quoted name, as PostgreSQL quotes them."""
    return _BLIND.sub(" ", text)


def copies_with_client(text: str) -> bool:
    """Whether it sends rows to the client, or awaits them from there (``COPY ... FROM STDIN``)."""
    return bool(_MAYBE_COPY.search(text) and _COPY.search(bare(text)))


def writes_other_letters(text: str) -> bool:
    """Whether what follows it in its session is written in another encoding than UTF-8 (``SET NAMES``)."""
    return _OTHER_LETTERS.search(text) is not None


def forgets(text: str) -> bool:
    """Whether the server may know no prepared statement after it; poolers send such between two users."""
    return _FORGETS.search(text) is not None


def sets_time_limit(text: str) -> bool:
    """Whether statements may take another time after it than before (PostgreSQL's ``statement_timeout``)."""
    return _TIME_LIMIT.search(text) is not None


def placeholders(text: str) -> int:
    """The highest number of a placeholder in it (``$3``: 3); 0: it has none."""
    return max(map(int, _PLACEHOLDER.findall(bare(text))), default=0) if "$" in text else 0
