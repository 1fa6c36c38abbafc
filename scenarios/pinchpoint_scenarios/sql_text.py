"""Derives properties of a SQL statement for any server without parsing it."""

from __future__ import annotations

import re

# A comment can be matched in only one way, because dozens of comments would otherwise have many ways. Only
# single characters are possessive, because Python before 3.11.5 handles possessive groups incorrectly (issue
# 106052).
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
    """Return the first word of a statement in lower case, after comments; ``statement`` without a word."""
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match else "statement"


def bare(text: str) -> str:
    """Return the text with a space for each comment, literal and quoted name, as PostgreSQL quotes them."""
    return _BLIND.sub(" ", text)


def copies_with_client(text: str) -> bool:
    """Return whether a statement sends rows to the client, or receives them (``COPY ... FROM STDIN``)."""
    return bool(_MAYBE_COPY.search(text) and _COPY.search(bare(text)))


def writes_other_letters(text: str) -> bool:
    """Return whether later text of the session has another encoding than UTF-8 (``SET NAMES``)."""
    return _OTHER_LETTERS.search(text) is not None


def forgets(text: str) -> bool:
    """Return whether the server may forget prepared statements; poolers send such texts between two users."""
    return _FORGETS.search(text) is not None


def sets_time_limit(text: str) -> bool:
    """Return whether a statement changes the time limit of later ones (``statement_timeout``)."""
    return _TIME_LIMIT.search(text) is not None


def placeholders(text: str) -> int:
    """Return the highest number of a placeholder (``$3``: 3); 0 without a placeholder."""
    return max(map(int, _PLACEHOLDER.findall(bare(text))), default=0) if "$" in text else 0
