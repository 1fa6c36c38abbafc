"""Parses numbers with a decimal mark, and with or without a thousands separator."""

from __future__ import annotations

import re

_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([ \u00a0\u202f'\u2019.,])\d{3}(?:\1\d{3})*(?!\d)")
"""A number with a mark between thousands: 1 000, 1'234'567, 1.000 (if the comma is the decimal mark)."""


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NONE = re.compile(r"[+-]?(?:[0-9]\.#\w+|nan(?:\(\w*\))?|inf|infinity)", re.IGNORECASE)
"""How C libraries print a missing number: 1.#QNAN, -1.#IND, -nan(ind), inf."""


def strict(text: str) -> float:
    """A number with the figures 0 to 9 and a decimal point; infinity if it is too large for a float.

    Python's own ``float`` also accepts 1_000, figures of other alphabets, nan and infinity.

    Raises:
        ValueError: it is none.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError("no number")
    return float(text)


def is_none(text: str) -> bool:
    """Whether a cell stands for a missing number: nan, inf, -1.#IND."""
    return _NONE.fullmatch(text) is not None


class AmbiguousNumeralError(ValueError):
    """A mark may separate thousands or decimals, and nothing shows which."""


def plain(text: str, decimal: str, thousands: str | None = None) -> str:
    """A number with a decimal point and no mark between thousands.

    Args:
        text: the number as it was written.
        decimal: the decimal mark.
        thousands: the mark between thousands; None: not known.

    Raises:
        AmbiguousNumeralError: the mark may separate thousands or decimals, as in 1,234.
        ValueError: a point is neither.
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
