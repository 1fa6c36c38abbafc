"""Takes passwords and other secrets out of what is written to a manifest or shown in a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|pwd$|secret|token|cookie|api_?key|private_?key|credential|authorization",
    re.IGNORECASE,
)
# An unencoded '@', '/', '?' or '#' in a password makes the URL invalid.
# So a password ends at the last '@' before white space or the next URL.
# Where there is none before white space, it ends at the last '@' behind it.
_USER = r"(?<=://)(?P<user>[^:@/?#\s]*):(?!\d*(?:[/?#\s]|$))"
_AUTHORITY = re.compile(rf"{_USER}(?P<password>(?:(?!://)\S)*)@")
_BROKEN_AUTHORITY = re.compile(rf"{_USER}(?P<password>(?:(?!://).)*)@", re.DOTALL)
_QUERY = re.compile(
    r"(?P<key>[?&;][^=&;\s]*(?:pass|pwd|secret|token|key)[^=&;\s]*=)(?P<password>[^&;#\s]*)", re.IGNORECASE
)
_VARIABLES = re.compile(r"(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})*")


def redacted(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of JSON-ready data in which no secret is left.

    Passwords in URLs, and the values of keys that speak of passwords, tokens or secrets, become ``***``.
    ``${ENV}`` texts stay: they are names, not values.
    """
    return {key: _hidden(value) if is_secret(key) else _redacted(value) for key, value in data.items()}


def redacted_text(text: str) -> str:
    """The text with the passwords of the URLs in it replaced by ``***``."""
    if "://" not in text:
        return text

    def user(match: re.Match[str]) -> str:
        return f"{match['user']}:{_hidden(match['password'])}@"

    shown = _AUTHORITY.sub(user, text) if _AUTHORITY.search(text) else _BROKEN_AUTHORITY.sub(user, text)
    return _QUERY.sub(lambda match: match["key"] + str(_hidden(match["password"])), shown)


def is_secret(key: str) -> bool:
    """Whether a key of this name holds a secret."""
    return bool(_SECRET_KEY.search(key))


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redacted(value)
    if isinstance(value, list | tuple):
        return [_redacted(item) for item in value]
    return redacted_text(value) if isinstance(value, str) else value


def _hidden(value: object) -> object:
    if value is None or (isinstance(value, str) and _VARIABLES.fullmatch(value)):
        return value
    return HIDDEN
