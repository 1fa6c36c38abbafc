"""Parses /proc/meminfo: the current use of memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pinchpoint_collectors.value import Value


def parse(text: str) -> dict[str, int]:
    """Return bytes by name (``MemAvailable``). Lines without a unit are counts."""
    sizes = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        number, _, unit = rest.strip().partition(" ")
        sizes[name] = int(number) * (1024 if unit == "kB" else 1)
    return sizes


_AVAILABLE = re.compile(r"^(MemTotal|MemAvailable): +(\d+) kB$", re.MULTILINE)


def parse_available(text: str) -> dict[str, int]:
    """Return the two of about 55 lines that ``values`` needs, in bytes."""
    return {name: int(number) * 1024 for name, number in _AVAILABLE.findall(text)}


def values(_before: object, after: Mapping[str, int], _interval_s: float) -> Iterator[Value]:
    """Yield memory available without paging (reported by kernel 3.14 and later)."""
    if "MemAvailable" in after:
        yield Value("mem.available_bytes", "", after["MemAvailable"])
        yield Value("mem.available_ratio", "", after["MemAvailable"] / after["MemTotal"])
