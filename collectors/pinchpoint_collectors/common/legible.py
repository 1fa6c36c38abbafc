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
"""A float ends at 309 figures, and Python refuses to read some thousands."""

_PIECE = 2**20
_MOST_BYTES = 10**9
_COSTS = {"{": 128, "[": 72, ",": 40, '"': 30}
"""Upper limit of the memory (bytes) that Python takes for the value each JSON character begins."""


AS_IT_CAME = "save what the tool printed unchanged"


class ForeignFileError(Exception):
    """A file does not hold what its format should.

    Args:
        message: what was found, what is allowed, the remedy; the caller knows the file's name.
        line: where, counted from 1; None: in the file as a whole.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def text(given: str) -> str:
    r"""The text without halves of surrogate pairs (JSON's ``"\ud800"``): no characters."""
    return given if given.isascii() else _HALF.sub(_WHOLE, given)


def may_hold_halves(given: str) -> bool:
    """Whether ``content`` must process the values of a JSON text."""
    return _MAY_HOLD_HALVES.search(given) is not None


def content(given: Any) -> Any:
    """The values of a JSON text, with each text cleaned by ``text``."""
    if isinstance(given, str):
        return text(given)
    if isinstance(given, list | tuple):
        return [content(each) for each in given]
    if isinstance(given, Mapping):
        return {text(name) if isinstance(name, str) else name: content(each) for name, each in given.items()}
    return given


def whole_number(figures: str) -> int | float:
    """A whole number; infinity, which is outside of every metric's range, if it is too large for a float."""
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
    """The next lines, about ``_PIECE`` characters of them."""
    result, length = [], 0
    for line in lines:
        result.append(line)
        length += len(line)
        if length >= _PIECE:
            break
    return "".join(result)


DECODER = json.JSONDecoder(parse_int=whole_number)


def loads(given: str) -> Any:
    """The content of a JSON text. Raises ``ValueError``, also if it is nested too deeply."""
    try:
        result = DECODER.decode(given)
        return content(result) if may_hold_halves(given) else result
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def document(lines: Iterable[str]) -> Any:
    """The content of a JSON file. Raises ``ForeignFileError``."""
    try:
        return loads(whole(lines))
    except json.JSONDecodeError as error:
        raise ForeignFileError(f"no JSON: {error.msg}; {AS_IT_CAME}", error.lineno) from error
    except ValueError as error:
        raise ForeignFileError(f"no JSON: {error}; {AS_IT_CAME}") from error


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """The mapping at a place of a JSON file, ``{}`` if missing.

    Raises ``ForeignFileError`` for another type.
    """
    return _of_type(value, dict, "a mapping", where) or {}


def listed(value: Any, where: str) -> list[Any]:
    """Likewise a list."""
    return _of_type(value, list, "a list", where) or []


def mappings(value: Any, where: str) -> list[Mapping[str, Any]]:
    """A list of mappings at a place of a JSON file. Raises ``ForeignFileError`` for another type."""
    return [mapping(each, where) for each in listed(value, where)]


def _of_type(value: Any, type_: type, noun: str, where: str) -> Any:
    if value is not None and not isinstance(value, type_):
        raise ForeignFileError(
            f"found {type(value).__name__} {str(value)[:40]!r} at {where}; allowed: {noun}; {AS_IT_CAME}"
        )
    return value
