"""Formats values in base units for the reader: seconds, bytes, rates, ratios.

Values have three significant digits, which is about the precision of the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

NOT_MEASURED = "not measured"
ENDLESS = "infinite"


def seconds(value: float | None) -> str:
    """Return a duration: ``350 µs``, ``2.8 ms``, ``1.5 s``, ``12 min 30 s``, ``3 h 5 min``, ``infinite``."""
    if value is None:
        return NOT_MEASURED
    if math.isinf(value):
        return ENDLESS
    size = abs(value)
    for below, factor, name in ((0.0009995, 1e6, "µs"), (0.9995, 1e3, "ms"), (119.5, 1.0, "s")):
        if 0 < size < below:
            return f"{_digits(value * factor)} {name}"
    if size == 0:
        return "0 s"
    whole = round(size)
    sign = "-" if value < 0 else ""
    if whole < 7200:
        return sign + _pair(whole // 60, "min", whole % 60, "s")
    minutes = round(size / 60)
    return sign + _pair(minutes // 60, "h", minutes % 60, "min")


def span(value: float) -> str:
    """Return a rounded duration: ``43.6 s``, ``12 min``, ``2 h`` (for 119 min 45 s), ``3 h 5 min``."""
    if value < 600:
        return seconds(value)
    minutes = round(value / 60)
    step = 1 if minutes < 60 else 5
    hours, rest = divmod(round(minutes / step) * step, 60)
    return " ".join([f"{hours} h"] * (hours > 0) + [f"{rest} min"] * (rest > 0))


def bytes_(value: float | None) -> str:
    """Return a number of bytes in decimal units, as disks are sold: ``512 B``, ``8.19 kB``, ``200 MB``."""
    if value is None:
        return NOT_MEASURED
    for factor, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor * 0.9995:
            return f"{_digits(value / factor)} {name}"
    return f"{_digits(value)} B"


def per_second(value: float | None) -> str:
    """Return a rate of events: ``0.42/s``, ``497/s``, ``12,400/s``."""
    return NOT_MEASURED if value is None else f"{_digits(value)}/s"


def iops(value: float | None) -> str:
    """Return an IOPS limit of a disk: ``500 IOPS``, ``12,800 IOPS``."""
    return NOT_MEASURED if value is None else f"{_digits(value)} IOPS"


def load_level(amount: float, unit: str) -> str:
    """Return a load: ``50/s`` for the unit ``per_s``, ``4 users`` for ``users``."""
    if unit == "users":
        return f"{amount:,g} user" + "s" * (amount != 1)
    return per_second(amount)


def percent(value: float | None) -> str:
    """Return a ratio (0 to 1) in per cent: ``93 %``, ``0.4 %``."""
    if value is None:
        return NOT_MEASURED
    nearly_all = 0.99 <= abs(value) < 1  # values for which the last digits matter
    return f"{_digits(value * 100, places=3 if nearly_all else 2)} %"


def times(value: float | None) -> str:
    """Return a ratio of two figures with three digits, with a multiplication sign."""
    return NOT_MEASURED if value is None else f"{_digits(value)} \N{MULTIPLICATION SIGN}"


def interval(ends: Sequence[float]) -> str:
    """Return the ends of a ratio's 95 % interval: ``4.2 to 4.8``."""
    return " to ".join(times(end).split(" ")[0] for end in ends)


def of_metric(metric: str, value: float | None) -> str:
    """Return a value with the unit at the end of the metric's name, or as a count if the name has no unit.

    A metric in seconds per second is a mean number of operations in progress, so it is shown as a count.
    """
    if metric.endswith("_bytes_per_s"):
        return NOT_MEASURED if value is None else f"{bytes_(value)}/s"
    if metric.endswith("_s_per_s"):
        return NOT_MEASURED if value is None else _digits(value)
    for ending, write in (("_per_s", per_second), ("_bytes", bytes_), ("_ratio", percent), ("_s", seconds)):
        if metric.endswith(ending):
            return write(value)
    return NOT_MEASURED if value is None else _digits(value)


def count(value: float) -> str:
    """Return a mean number: ``0.0603``, ``13.4``, ``1,037``."""
    return _digits(value)


def _digits(value: float, places: int = 3) -> str:
    """Return a value with a number of significant digits, without an exponent.

    Whole numbers keep all digits.
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.{places}g}")
    if abs(rounded) >= 10 ** (places - 1):
        return f"{value:,.0f}"
    return f"{rounded:.10f}".rstrip("0").rstrip(".")


def _pair(big: int, big_name: str, small: int, small_name: str) -> str:
    return f"{big} {big_name} {small} {small_name}" if small else f"{big} {big_name}"
