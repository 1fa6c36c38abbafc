"""Parses durations, sizes, rates and ratios with units into base units.

``pinchpoint.base.units`` formats values. Every function takes a value of a file, returns a float (or int) in
base units, and raises ``BadValue`` if the value is invalid. A number without a unit is refused, because ten
seconds could be ten minutes; only 0 needs no unit.
"""

from __future__ import annotations

import re

from pinchpoint.plan.problems import BadValue, quoted
from pinchpoint_collectors.common.names import nearest_name

DURATION = "a duration such as 250ms, 10s, 10m or 1h30m"
SIZE = "a size such as 8KiB, 64KiB or 200MB"
RATE = "a rate such as 200/s or 5/min"
BYTE_RATE = "a byte rate such as 200MB/s or 60MiB/s"
RATIO = "a ratio such as 5% or 0.05"

LONGEST_S = 366 * 86400.0
FASTEST_PER_S = 1e7
LARGEST_BYTES = 1e18
"""Larger values are refused as typing errors."""

_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0}

_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_BARE = re.compile(rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?")
_PART = re.compile(rf"({_NUMBER}) ?([a-zµ]+) ?")
_WITH_UNIT = re.compile(rf"({_NUMBER}) ?([A-Za-zµ]+)")
_RATE = re.compile(rf"({_NUMBER}) ?/ ?([a-z]+)")
_PERCENT = re.compile(rf"({_NUMBER}) ?%")


def _or_zero(pattern: str, kind: str) -> dict[str, object]:
    text = {"type": "string", "pattern": rf"^ *(?:0|{pattern}) *$", "patternErrorMessage": f"allowed: {kind}"}
    return {"anyOf": [text, {"const": 0}]}


DURATION_FORM = _or_zero(rf"(?:{_NUMBER} ?(?:{'|'.join(_SECONDS)}) ?)+", DURATION)
SIZE_FORM = _or_zero(rf"{_NUMBER} ?(?:{'|'.join(_BYTES)})", SIZE)
RATE_FORM = _or_zero(rf"{_NUMBER} ?/ ?(?:{'|'.join(_PER)})", RATE)
BYTE_RATE_FORM = _or_zero(rf"{_NUMBER} ?(?:{'|'.join(_BYTES)}) */ *(?:{'|'.join(_PER)})", BYTE_RATE)
RATIO_FORM = {
    "anyOf": [
        {"type": "string", "pattern": rf"^ *(?:{_NUMBER} ?%|{_BARE.pattern}) *$"},
        {"type": "number", "minimum": 0, "maximum": 1},
    ]
}
"""JSON Schemas of the values that the functions below read (editors show ``patternErrorMessage``)."""


def duration(value: object) -> float:
    """Seconds of a duration such as ``250ms``, ``10s``, ``10m``, ``1h30m``, ``12h`` or ``1d``."""
    text = _text(value, DURATION, "{0}s or {0}ms")
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text):
        raise BadValue(_not(text, DURATION), f"allowed: {DURATION}")
    total = 0.0
    for number, unit in parts:
        if unit not in _SECONDS:
            raise _unknown_unit(text, unit, _SECONDS, DURATION)
        total += float(number) * _SECONDS[unit]
    return _at_most(total, LONGEST_S, "366d", text)


def size(value: object) -> int:
    """Bytes of a size such as ``512B``, ``8KiB`` (8 x 1024) or ``200MB`` (200 million); must be whole."""
    text = _text(value, SIZE, "{}B")
    if text == "0":
        return 0
    total = _at_most(_size(text, SIZE), LARGEST_BYTES, "1000000TB", text)
    if total != int(total):
        raise BadValue(f"{quoted(text)} is not a whole number of bytes", f"allowed: {SIZE}")
    return int(total)


def rate(value: object) -> float:
    """Rate per second of ``200/s``, ``5/min`` or ``100/h``."""
    text = _text(value, RATE, "{}/s")
    if text == "0":
        return 0.0
    match = _RATE.fullmatch(text)
    if not match:
        raise BadValue(_not(text, RATE), f"allowed: {RATE}")
    number, per = match.groups()
    if per not in _PER:
        raise _unknown_unit(text, per, _PER, RATE)
    return _at_most(float(number) / _PER[per], FASTEST_PER_S, "10000000/s", text)


def byte_rate(value: object) -> float:
    """Bytes per second of ``200MB/s``, ``60MiB/s`` or ``5GB/min``."""
    text = _text(value, BYTE_RATE, "{}B/s")
    if text == "0":
        return 0.0
    amount, slash, per = (part.strip() for part in text.partition("/"))
    if not slash:
        raise BadValue(_not(text, BYTE_RATE), f"allowed: {BYTE_RATE}")
    if per not in _PER:
        raise _unknown_unit(text, per, _PER, BYTE_RATE)
    return _at_most(_size(amount, BYTE_RATE) / _PER[per], LARGEST_BYTES, "1000000TB/s", text)


def ratio(value: object) -> float:
    """The ratio from 0 to 1 of ``5%`` or ``0.05``."""
    text = _text(value, RATIO)
    percent = _PERCENT.fullmatch(text)
    if not percent and not _BARE.fullmatch(text):
        raise BadValue(_not(text, RATIO), f"allowed: {RATIO}")
    number = float(percent.group(1)) / 100 if percent else float(text)
    if number > 1:
        meant = "" if percent else f"; {text} percent is {text}%"
        raise BadValue(f"{quoted(text)} is more than 1", f"allowed: {RATIO}{meant}")
    return number


def found(value: object) -> str:
    """The kind of a value and its content, as text for a message."""
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"  # Python may refuse to print such a number
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if value is None:
        return "nothing"
    kind = "list" if isinstance(value, list | tuple) else "mapping"
    return f"a {kind}" if value else f"an empty {kind}"


def _text(value: object, kind: str, with_unit: str | None = None) -> str:
    """The value as text, checked to be 0 or more and to have a unit.

    ``with_unit`` is a pattern that shows how to write a number without a unit; None: no unit is needed.
    """
    printable = isinstance(value, str | float) or (isinstance(value, int) and value.bit_length() <= 200)
    if isinstance(value, bool) or not printable:
        raise BadValue(f"found {found(value)}", f"allowed: {kind}")
    text = str(value).strip()
    if text.startswith("-"):
        raise BadValue(f"{quoted(text)} is less than 0", f"allowed: {kind}")
    if with_unit and text != "0" and _BARE.fullmatch(text):
        raise BadValue(f"{quoted(text)} has no unit", f"allowed: {kind}; write {with_unit.format(text)}")
    return text


def _size(text: str, kind: str) -> float:
    match = _WITH_UNIT.fullmatch(text)
    if not match:
        raise BadValue(_not(text, kind), f"allowed: {kind}")
    number, unit = match.groups()
    if unit not in _BYTES:
        raise _unknown_unit(text, unit, _BYTES, kind)
    return float(number) * _BYTES[unit]


def _not(text: str, kind: str) -> str:
    return f"{quoted(text)} is not {kind.partition(' such as')[0]}"


def _unknown_unit(text: str, unit: str, units: dict[str, float] | dict[str, int], kind: str) -> BadValue:
    folded = [name for name in units if name.lower() == unit.lower()]
    return BadValue(
        f"{quoted(text)} has the unknown unit {quoted(unit)}",
        f"allowed: {', '.join(units)}, as in {kind.partition('such as ')[2]}",
        folded[0] if folded else nearest_name(unit, units),
    )


def _at_most(number: float, limit: float, limit_text: str, text: str) -> float:
    if number > limit:
        raise BadValue(f"{quoted(text)} is too large", f"allowed: at most {limit_text}")
    return number
