"""Describes problems of a file, one line each: ``FILE:LINE: field: found; allowed; nearest name``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pinchpoint_collectors.common.names import nearest_name

Path = tuple[str | int, ...]
"""The path of a value in a file: the keys and list positions that lead to it."""


ABSENT = object()
"""The result of ``inside`` if there is no value."""


class BadValue(ValueError):  # noqa: N818 - a finding about a value; it ends as one line of an InputError
    """A value is not valid for its field.

    Args:
        found: description of the value in the file.
        allowed: description of the allowed values.
        nearest: the name that was probably meant; None if there is none.
    """

    def __init__(self, value: str, allowed: str, nearest: str | None = None) -> None:
        super().__init__(value)
        self.found = value
        self.allowed = allowed
        self.nearest = nearest

    def __str__(self) -> str:
        return sentence(self.found, self.allowed, self.nearest)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a file.

    Attributes:
        path: path of the field; ``()`` for the whole file.
        found: description of the value in the file.
        allowed: description of the allowed values, or the remedy; ``""`` if ``found`` is enough.
        nearest: the name that was probably meant; None if there is none.
        line: line number, from 1; ``None`` for the line of ``path``.
    """

    path: Path
    found: str
    allowed: str = ""
    nearest: str | None = None
    line: int | None = None


def inside(data: object, step: str | int) -> object:
    """The value one step inside ``data``: a mapping's key or a list's position; else ``ABSENT``."""
    if isinstance(data, Mapping):
        return data.get(step, ABSENT)
    if isinstance(data, list | tuple) and isinstance(step, int):
        return data[step] if step < len(data) else ABSENT
    return ABSENT


def sentence(value: str, allowed: str, near: str | None) -> str:
    """``what was found; what is allowed; nearest: NAME``, without empty parts."""
    return "; ".join(part for part in (value, allowed, f"nearest: {near}" if near else "") if part)


def dotted(path: Path) -> str:
    """The path as text, such as ``tiers.sql.hosts.sql1.collect[0].kind``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in step)
            text += f".{shown}" if text else shown
    return text


def unknown(what: str, name: str, allowed: Iterable[str]) -> BadValue:
    """The error for an unknown name, with the nearest name and the existing names (ten of a long list)."""
    names = sorted(allowed)
    best = nearest_name(name, names)
    if len(names) > 2 * _MOST_NAMES:
        close = difflib.get_close_matches(name, names, n=_MOST_NAMES, cutoff=0)
        close.sort(key=lambda each: each != best)
        names = [*close, f"and {len(names) - len(close)} more"]
    return BadValue(f"unknown {what} {quoted(name)}", f"allowed: {listed(names)}", best)


_MOST_NAMES = 10


def unknown_at(path: Path, what: str, name: str, allowed: Iterable[str]) -> Problem:
    """The problem for an unknown name at this path; see ``unknown``."""
    why = unknown(what, name, allowed)
    return Problem(path, why.found, why.allowed, why.nearest)


def listed(names: Iterable[str]) -> str:
    """Names as text with commas; ``nothing`` for no names."""
    return ", ".join(names) or "nothing"


def quoted(text: str, limit: int = 60) -> str:
    """Text from the file in quotes, for a message: one line, printable, at most ``limit`` characters."""
    shown = repr(text if len(text) <= limit else text[: limit - 1] + "…")
    return f'"{shown[1:-1]}"'
