"""Parses and formats durations and sizes as a plan writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")


def _form(units: Iterable[str]) -> Any:
    """Return the JSON Schema type of a field: numbers with units, or a number in base units."""
    pattern = rf"^\s*(?:\d+(?:\.\d+)?\s*(?:{'|'.join(units)})\s*)+$"
    number = {"type": "number", "exclusiveMinimum": 0}
    return Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string", "pattern": pattern}, number]})]


def seconds(value: object) -> float:
    """Return the duration in seconds. Raises ``ValueError`` with the allowed forms if it is not above 0."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        result = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        result = float(value)
    else:
        raise ValueError(f"{value!r} is no duration; write it with its unit, such as 30s, 250ms or 1m30s")
    if not (math.isfinite(result) and result > 0):
        raise ValueError(f"{value!r} is no duration above zero; write something like 30s")
    return result


def spelt_s(length_s: float) -> str:
    """Return a duration for a sentence: ``8s``, ``1m20s``, ``2h05m``."""
    minutes, rest_s = divmod(max(1, round(length_s)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest_s:02}s" if minutes else f"{rest_s}s"


Seconds = Annotated[float, BeforeValidator(seconds, json_schema_input_type=_form(_UNITS_S))]
"""A field that takes a duration above 0 and contains seconds."""


_UNITS_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SPELT = ("TiB", "GiB", "MiB", "KiB")


def size_bytes(value: object) -> int:
    """Return the size in bytes. Raises ``ValueError`` with the allowed forms if it is not above 0."""
    result: float | None = None
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        number, unit = match.groups()
        if unit not in _UNITS_BYTES:
            raise ValueError(f"{value!r} has no known unit; allowed: {', '.join(_UNITS_BYTES)}")
        result = float(number) * _UNITS_BYTES[unit]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        result = float(value)
    if result is None:
        raise ValueError(f"{value!r} is no size; write it with its unit, such as 200B, 8KiB or 64MB")
    if not (result >= 1 and result.is_integer()):
        raise ValueError(f"{value!r} is no whole number of bytes above zero; write something like 8KiB")
    return int(result)


def spelt_bytes(number_bytes: float) -> str:
    """Return a size for a sentence: ``96 MiB``, ``1.5 GiB``, ``200 bytes``."""
    for unit in _SPELT:
        if number_bytes >= _UNITS_BYTES[unit]:
            amount = number_bytes / _UNITS_BYTES[unit]
            return f"{amount:.0f} {unit}" if amount >= 10 or amount.is_integer() else f"{amount:.1f} {unit}"
    return f"{number_bytes:.0f} bytes"


Bytes = Annotated[int, BeforeValidator(size_bytes, json_schema_input_type=_form(_UNITS_BYTES))]
"""A field that takes a size above 0 and contains bytes."""
