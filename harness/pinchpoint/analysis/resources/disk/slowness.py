"""What a disk's latency is held against: its role's limit, and PAL's rule for a queue that is too long."""

from __future__ import annotations

from typing import Literal

from pinchpoint.analysis.resources.base import DiskMeasures, Resource
from pinchpoint.analysis.thresholds import (
    LARGE_IO_BYTES,
    OVERWHELMED_LARGE_S,
    OVERWHELMED_SMALL_S,
    Threshold,
    latency_limit,
)

MINOR_SHARE = 0.1
"""Reads or writes that are fewer than a tenth of a disk's I/O do not make it slow."""


def is_slow(resource: Resource, found: DiskMeasures) -> bool:
    """Whether reads or writes, if they are more than a tenth of the I/O, exceed the role's limit."""
    return slow_way(resource, found) is not None


def slow_way(resource: Resource, found: DiskMeasures) -> Literal["read", "write"] | None:
    """Which of the two does, of both the more frequent one; None where neither does."""
    limit = slowness(resource).value
    reads = found.reads_ratio if found.reads_ratio is not None else 0.0
    write_s = write_and_flush_s(resource, found)
    read = reads >= MINOR_SHARE and found.read_s is not None and found.read_s > limit
    write = 1 - reads >= MINOR_SHARE and write_s is not None and write_s > limit
    if read and (reads > 1 / 2 or not write):
        return "read"
    return "write" if write else None


def slowness(resource: Resource) -> Threshold:
    """The latency limit of a device: that of the role it is named after."""
    return latency_limit(resource.role or "")


def write_and_flush_s(resource: Resource, found: DiskMeasures) -> float | None:
    """What one durable write costs on this device.

    Where writes are known to be data I/O a flush comes on top. Where they may contain the flushes
    (METHOD section 2, "Traps") the longer of the two is taken: it can be too low, never too high.
    """
    parts = [value for value in (found.write_s, found.flush_s) if value is not None]
    if not parts:
        return None
    verified = all(role.data_io in {"kernel", "writes-flushes"} for role in resource.roles)
    return sum(parts) if verified else max(parts)


def overwhelmed(resource: Resource, found: DiskMeasures) -> bool:
    """PAL's rule for a queue that is too long, by the mean size of an I/O.

    Used if the rate response is not known; not for a log, whose commits show more.
    """
    if resource.commit_path:
        return False
    slowest = max((value for value in (found.read_s, found.write_s) if value is not None), default=0.0)
    return slowest > too_long(found).value


def too_long(found: DiskMeasures) -> Threshold:
    """From when on PAL calls a disk of I/Os of that size overwhelmed."""
    large = found.size_bytes is not None and found.size_bytes > LARGE_IO_BYTES.value
    return OVERWHELMED_LARGE_S if large else OVERWHELMED_SMALL_S
