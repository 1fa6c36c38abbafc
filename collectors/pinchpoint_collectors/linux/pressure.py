"""Parses /proc/pressure/{cpu,io,memory}: the share of time in which a task waited for a resource."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.value import Value, rate


def parse(text: str) -> int:
    """Return the microseconds since boot in which *some* task waited.

    The averages in the file lag by 10 s and more.
    """
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2])
    raise CollectorError(f"a pressure file has no line 'some ... total=': found {text[:80]!r}")


def values(before: int | None, after: int, interval_s: float, resource: str) -> Iterator[Value]:
    """Yield the share of the interval in which some task waited for ``resource`` (cpu, io, memory)."""
    if before is not None:
        yield Value(f"pressure.{resource}_ratio", "", rate(before, after, interval_s, 1e-6))
