"""Parses numbers with a decimal mark, and with or without a thousands separator."""

from __future__ import annotations

import re

_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([ \u00a0\u202f'\u2019.,])\d{3}(?:\1\d{3})*(?!\d)")
"""Pattern of a number with a thousands separator: 1 000, 1'234'567, 1.000 (if the comma is the decimal
mark)."""


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NONE = re.compile(r"[+-]?(?:[0-9]\.#\w+|nan(?:\(\w*\))?|inf|infinity)", re.IGNORECASE)
"""Pattern of a missing number as C libraries print it: 1.#QNAN, -1.#IND, -nan(ind), inf."""


def strict(text: str) -> float:
    """Return a number with the figures 0 to 9 and a decimal point; infinity if it is too large for a float.

    Python's own ``float`` also accepts 1_000, figures of other alphabets, nan and infinity.

    Raises:
        ValueError: the text is no such number.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError("no number")
    return float(text)


def is_none(text: str) -> bool:
    """Return whether a cell stands for a missing number: nan, inf, -1.#IND."""
    return _NONE.fullmatch(text) is not None


class AmbiguousNumeralError(ValueError):
    """A mark may separate thousands or decimals, and the number does not show which."""


def plain(text: str, decimal: str, thousands: str | None = None) -> str:
    """Return a number with a decimal point and without thousands separators.

    Args:
        text: number as written.
        decimal: the decimal mark.
        thousands: thousands separator; None: not known.

    Raises:
        AmbiguousNumeralError: the mark may separate thousands or decimals, as in 1,234.
        ValueError: a mark separates neither thousands nor decimals.
    """
    grouped = _GROUPED.match(text)
    mark = grouped[1] if grouped else None
    if grouped and mark and mark != decimal:
        whole, rest = grouped[0], text[grouped.end() :]
        answer = mark == thousands or decimal != "."
        if mark in ",." and not answer and whole.count(mark) == 1 and not rest.startswith(decimal):
            raise AmbiguousNumeralError("a mark between thousands, or a decimal one")
        text = whole.replace(mark, "") + rest
    if decimal != "." and "." in text:
        raise ValueError("a point that divides no groups of three")
    return text.replace(decimal, ".")
