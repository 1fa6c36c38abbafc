"""Sizes as a plan gives them to a scenario: ``200B``, ``8KiB``, ``64MB``, or plain bytes."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

_UNITS_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_WHOLE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SPELT = ("TiB", "GiB", "MiB", "KiB")


def size_bytes(value: object) -> int:
    """The size in bytes; raises ``ValueError`` naming what is allowed where it is none above zero."""
    found: float | None = None
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value.strip())):
        number, unit = match.groups()
        if unit not in _UNITS_BYTES:
            raise ValueError(f"{value!r} has no known unit; allowed: {', '.join(_UNITS_BYTES)}")
        found = float(number) * _UNITS_BYTES[unit]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    if found is None:
        raise ValueError(f"{value!r} is no size; write it with its unit, such as 200B, 8KiB or 64MB")
    if not (found >= 1 and found.is_integer()):
        raise ValueError(f"{value!r} is no whole number of bytes above zero; write something like 8KiB")
    return int(found)


def spelt(number_bytes: float) -> str:
    """A size for a sentence: ``96 MiB``, ``1.5 GiB``, ``200 bytes``."""
    for unit in _SPELT:
        if number_bytes >= _UNITS_BYTES[unit]:
            amount = number_bytes / _UNITS_BYTES[unit]
            return f"{amount:.0f} {unit}" if amount >= 10 or amount.is_integer() else f"{amount:.1f} {unit}"
    return f"{number_bytes:.0f} bytes"


Bytes = Annotated[int, BeforeValidator(size_bytes)]
"""A field that takes a size above zero and holds bytes."""
