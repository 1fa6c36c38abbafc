"""Durations, sizes, rates and ratios as people write them in a file, to base units.

Parsing only: formatting is ``pinchpoint.report.units``. Every function takes whatever stands in the file,
returns a float (or int) in base units and raises ``Unfit`` otherwise. A number without its unit is refused,
for nobody can tell ten seconds from ten minutes; 0 alone means 0 in any unit.
"""

from __future__ import annotations

import math
import re

from pinchpoint.plan.problems import Unfit, nearest, quoted

DURATION = "a duration such as 250ms, 10s, 10m or 1h30m"
SIZE = "a size such as 8KiB, 64KiB or 200MB"
RATE = "a rate such as 200/s or 5/min"
BYTE_RATE = "a byte rate such as 200MB/s or 60MiB/s"
RATIO = "a ratio such as 5% or 0.05"

_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0}

_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_BARE = re.compile(rf"-?{_NUMBER}(?:[eE][+-]?[0-9]+)?")
_PART = re.compile(rf"({_NUMBER}) ?([a-zµ]+) ?")
_WITH_UNIT = re.compile(rf"({_NUMBER}) ?([A-Za-zµ]+)")
_RATE = re.compile(rf"({_NUMBER}) ?/ ?([a-z]+)")
_PERCENT = re.compile(rf"({_NUMBER}) ?%")


def duration(value: object) -> float:
    """Seconds of ``250ms``, ``10s``, ``10m``, ``1h30m``, ``12h``, ``1d``."""
    text = _text(value, DURATION, "{}s")
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text):
        raise Unfit(_not(text, DURATION), f"allowed: {DURATION}")
    total = 0.0
    for number, unit in parts:
        if unit not in _SECONDS:
            raise _unknown_unit(text, unit, _SECONDS, DURATION)
        total += float(number) * _SECONDS[unit]
    return _finite(total, text, DURATION)


def size(value: object) -> int:
    """Bytes of ``512B``, ``8KiB`` (1024), ``200MB`` (a million each), ``1.5GiB``; always whole."""
    text = _text(value, SIZE, "{}B")
    if text == "0":
        return 0
    total = _finite(_size(text, SIZE), text, SIZE)
    if total != int(total):
        raise Unfit(f"{quoted(text)} is not a whole number of bytes", f"allowed: {SIZE}")
    return int(total)


def rate(value: object) -> float:
    """Per second of ``200/s``, ``5/min``, ``100/h``."""
    text = _text(value, RATE, "{}/s")
    if text == "0":
        return 0.0
    match = _RATE.fullmatch(text)
    if not match:
        raise Unfit(_not(text, RATE), f"allowed: {RATE}")
    number, per = match.groups()
    if per not in _PER:
        raise _unknown_unit(text, per, _PER, RATE)
    return _finite(float(number) / _PER[per], text, RATE)


def byte_rate(value: object) -> float:
    """Bytes per second of ``200MB/s``, ``60MiB/s``, ``5GB/min``."""
    text = _text(value, BYTE_RATE, "{}B/s")
    if text == "0":
        return 0.0
    amount, slash, per = (part.strip() for part in text.partition("/"))
    if not slash:
        raise Unfit(_not(text, BYTE_RATE), f"allowed: {BYTE_RATE}")
    if per not in _PER:
        raise _unknown_unit(text, per, _PER, BYTE_RATE)
    return _finite(_size(amount, BYTE_RATE) / _PER[per], text, BYTE_RATE)


def ratio(value: object) -> float:
    """The ratio 0-1 of ``5%`` or ``0.05``."""
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    percent = _PERCENT.fullmatch(text)
    if not percent and not _BARE.fullmatch(text):
        raise Unfit(_not(text, RATIO) if text else found(value), f"allowed: {RATIO}")
    number = float(percent.group(1)) / 100 if percent else float(text)
    if number < 0:
        raise Unfit(f"{quoted(text)} is less than 0", f"allowed: {RATIO}")
    if number > 1:
        raise Unfit(f"{quoted(text)} is more than 1", f"allowed: {RATIO}", None if percent else f"{text}%")
    return number


def found(value: object) -> str:
    """What kind of thing stands in the file, in words."""
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {_digits(value)}"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def _text(value: object, kind: str, with_unit: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Unfit(f"found {found(value)}", f"allowed: {kind}")
    text = value.strip() if isinstance(value, str) else _digits(value)
    if text.startswith("-"):
        raise Unfit(f"{quoted(text)} is less than 0", f"allowed: {kind}")
    if text != "0" and _BARE.fullmatch(text):
        raise Unfit(f"{quoted(text)} has no unit", f"allowed: {kind}", with_unit.format(text))
    return text


def _digits(number: float) -> str:
    """A number as text; an enormous one by its size, for Python refuses to print it."""
    if isinstance(number, int) and number.bit_length() > 200:
        return "of more than 60 digits"
    return str(number)


def _size(text: str, kind: str) -> float:
    match = _WITH_UNIT.fullmatch(text)
    if not match:
        raise Unfit(_not(text, kind), f"allowed: {kind}")
    number, unit = match.groups()
    if unit not in _BYTES:
        raise _unknown_unit(text, unit, _BYTES, kind)
    return float(number) * _BYTES[unit]


def _not(text: str, kind: str) -> str:
    return f"{quoted(text)} is not {kind.partition(' such as')[0]}"


def _unknown_unit(text: str, unit: str, units: dict[str, float] | dict[str, int], kind: str) -> Unfit:
    folded = [name for name in units if name.lower() == unit.lower()]
    return Unfit(
        f"{quoted(text)} has the unknown unit {quoted(unit)}",
        f"allowed: {', '.join(units)}, as in {kind.partition('such as ')[2]}",
        folded[0] if folded else nearest(unit, units),
    )


def _finite(number: float, text: str, kind: str) -> float:
    if not math.isfinite(number):
        raise Unfit(f"{quoted(text)} is too large", f"allowed: {kind}")
    return number
