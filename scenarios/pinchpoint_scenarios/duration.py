"""Durations as a plan gives them to a scenario: ``30s``, ``250ms``, ``1m30s``, or plain seconds."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")


def seconds(value: object) -> float:
    """The duration in seconds; raises ``ValueError`` naming what is allowed where it is none above zero."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        found = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    else:
        raise ValueError(f"{value!r} is no duration; write it with its unit, such as 30s, 250ms or 1m30s")
    if not (math.isfinite(found) and found > 0):
        raise ValueError(f"{value!r} is no duration above zero; write something like 30s")
    return found


def spelt(length_s: float) -> str:
    """A length for a sentence: ``8s``, ``1m20s``, ``2h05m``."""
    minutes, rest_s = divmod(max(1, round(length_s)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest_s:02}s" if minutes else f"{rest_s}s"


Seconds = Annotated[float, BeforeValidator(seconds)]
"""A field that takes a duration above zero and holds seconds."""
