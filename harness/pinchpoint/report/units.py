"""The one place where base units become words: seconds, bytes, per second, ratios.

Three significant digits: what a person compares, and about what the measurements carry.
"""

from __future__ import annotations

NOT_MEASURED = "not measured"


def seconds(value: float | None) -> str:
    """A duration or latency in seconds: ``350 µs``, ``2.8 ms``, ``1.5 s``, ``12 min 30 s``, ``3 h 5 min``."""
    if value is None:
        return NOT_MEASURED
    size = abs(value)
    if size == 0:
        return "0 s"
    if size < 0.0009995:
        return f"{_digits(value * 1e6)} µs"
    if size < 0.9995:
        return f"{_digits(value * 1e3)} ms"
    if size < 119.5:
        return f"{_digits(value)} s"
    whole = round(size)
    sign = "-" if value < 0 else ""
    if whole < 7200:
        return sign + _pair(whole // 60, "min", whole % 60, "s")
    minutes = round(size / 60)
    return sign + _pair(minutes // 60, "h", minutes % 60, "min")


def bytes_(value: float | None) -> str:
    """An amount of bytes, decimal as disks and links are sold: ``512 B``, ``8.19 kB``, ``200 MB``."""
    if value is None:
        return NOT_MEASURED
    for factor, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor * 0.9995:
            return f"{_digits(value / factor)} {name}"
    return f"{_digits(value)} B"


def per_second(value: float | None) -> str:
    """A rate of events: ``0.42/s``, ``497/s``, ``12,400/s``."""
    return NOT_MEASURED if value is None else f"{_digits(value)}/s"


def percent(value: float | None) -> str:
    """A ratio (0 to 1) in per cent: ``93 %``, ``0.4 %``."""
    return NOT_MEASURED if value is None else f"{_digits(value * 100, places=2)} %"


def _digits(value: float, places: int = 3) -> str:
    """``value`` with that many significant digits, whole numbers never rounded away, no exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (places - 1):
        return f"{value:,.0f}"
    text = f"{float(f'{value:.{places}g}'):.10f}".rstrip("0").rstrip(".")
    return text or "0"


def _pair(big: int, big_name: str, small: int, small_name: str) -> str:
    return f"{big} {big_name} {small} {small_name}" if small else f"{big} {big_name}"
