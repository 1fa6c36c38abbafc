"""Parses the JSON of other programs; replaces invalid numbers and broken characters."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")
_MAY_HOLD_HALVES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_WHOLE = "\ufffd"
"""The replacement character for invalid characters."""
_LONGEST_WHOLE = 300
"""Longest whole number in figures: a float ends at 309, and Python refuses to read some thousands."""

_PIECE = 2**20
_MOST_BYTES = 10**9
_COSTS = {"{": 128, "[": 72, ",": 40, '"': 30}
"""Upper limit of the memory in bytes that Python needs for the value that begins at each JSON character."""


AS_IT_CAME = "save what the tool printed unchanged"


class ForeignFileError(Exception):
    """A file does not contain what its format requires.

    Args:
        message: what was found, what is allowed, and the remedy; the caller adds the name of the file.
        line: number of the line, from 1; None: the file as a whole.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def text(given: str) -> str:
    r"""Return the text without lone surrogates (JSON's ``"\ud800"``), which are not characters."""
    return given if given.isascii() else _HALF.sub(_WHOLE, given)


def may_hold_halves(given: str) -> bool:
    """Return whether ``content`` must process the values of a JSON text."""
    return _MAY_HOLD_HALVES.search(given) is not None


def content(given: Any) -> Any:
    """Return the values of a JSON text, with each text cleaned by ``text``."""
    if isinstance(given, str):
        return text(given)
    if isinstance(given, list | tuple):
        return [content(each) for each in given]
    if isinstance(given, Mapping):
        return {text(name) if isinstance(name, str) else name: content(each) for name, each in given.items()}
    return given


def whole_number(figures: str) -> int | float:
    """Return a whole number; if it is too large for a float, infinity, which is outside of all ranges."""
    if len(figures) > _LONGEST_WHOLE:
        return float("-inf" if figures.startswith("-") else "inf")
    return int(figures)


def whole(lines: Iterable[str]) -> str:
    """Read a whole JSON file. Raises ``ForeignFileError`` if its values would need too much memory."""
    gathered, room, given = io.StringIO(), _MOST_BYTES, iter(lines)
    while piece := _piece(given):
        room -= 2 * sys.getsizeof(piece) + sum(cost * piece.count(sign) for sign, cost in _COSTS.items())
        if room < 0:
            raise ForeignFileError(
                "it is a JSON file that takes more than 1 GB of memory to read; export a shorter time, or "
                "fewer figures, and import the files one by one"
            )
        gathered.write(piece)
    return gathered.getvalue()


def _piece(lines: Iterator[str]) -> str:
    """Return the next lines, about ``_PIECE`` characters of them."""
    result, length = [], 0
    for line in lines:
        result.append(line)
        length += len(line)
        if length >= _PIECE:
            break
    return "".join(result)


DECODER = json.JSONDecoder(parse_int=whole_number)


def loads(given: str) -> Any:
    """Return the content of a JSON text. Raises ``ValueError``, also if it is nested too deeply."""
    try:
        result = DECODER.decode(given)
        return content(result) if may_hold_halves(given) else result
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def document(lines: Iterable[str]) -> Any:
    """Return the content of a JSON file. Raises ``ForeignFileError``."""
    try:
        return loads(whole(lines))
    except json.JSONDecodeError as error:
        raise ForeignFileError(f"no JSON: {error.msg}; {AS_IT_CAME}", error.lineno) from error
    except ValueError as error:
        raise ForeignFileError(f"no JSON: {error}; {AS_IT_CAME}") from error


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """Return the object at a place in a JSON file; ``{}`` if it is missing.

    Raises ``ForeignFileError`` for another type.
    """
    return _of_type(value, dict, "a mapping", where) or {}


def listed(value: Any, where: str) -> list[Any]:
    """Return the list at a place in a JSON file; empty if it is missing. Raises ``ForeignFileError``."""
    return _of_type(value, list, "a list", where) or []


def mappings(value: Any, where: str) -> list[Mapping[str, Any]]:
    """Return a list of objects at a place in a JSON file. Raises ``ForeignFileError`` for another type."""
    return [mapping(each, where) for each in listed(value, where)]


def _of_type(value: Any, type_: type, noun: str, where: str) -> Any:
    if value is not None and not isinstance(value, type_):
        raise ForeignFileError(
            f"found {type(value).__name__} {str(value)[:40]!r} at {where}; allowed: {noun}; {AS_IT_CAME}"
        )
    return value
