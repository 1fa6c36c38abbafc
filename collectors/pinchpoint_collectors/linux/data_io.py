"""Tests with limited I/O which operations the kernel counts as writes on a device and file system.

With a write-back cache, Linux counts the flush of ``fdatasync`` as a write without data *and* as a flush.
diskstats then shows twice the writes and too low a latency. On a journalled file system the commit block is
part of the flush, and subtracting flushes from writes would subtract data. Names do not show which case
applies, so a test decides: it overwrites and appends a known number of blocks, each with ``fdatasync``, and
compares the counters of the device. Sectors show the number of blocks that were really written.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pinchpoint_collectors.linux import diskstats
from pinchpoint_collectors.linux.files import read_text

Counted = Literal["kernel", "writes-flushes", "unknown"]

_WRITES = 200
_LEAST_WRITES = 20
_LIMIT_S = 1.5
_ATTEMPTS = 3
_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class DataIo:
    """How data writes are calculated from the counters of a device.

    Attributes:
        counted: ``kernel``: writes are data writes; ``writes-flushes``: data writes are writes less flushes;
            ``unknown``: neither fits, or the test failed.
        why: figures behind the answer.
    """

    counted: Counted
    why: str


class Counts(NamedTuple):
    """The counts of a device during one pattern: writes, flushes, and blocks of data (from sectors)."""

    writes: int
    flushes: int
    blocks: int


def verify_data_io(path: Path, device: str) -> DataIo:
    """Test how the kernel counts writes to ``device`` through the file system at ``path``.

    Writes at most 1,800 blocks into an unlinked temporary file in that directory (nothing remains, even after
    SIGKILL) and takes about ten seconds at most. Other I/O on the device disturbs the test, so there are
    three attempts.
    """
    block_bytes = os.statvfs(path).f_frsize
    answer = DataIo("unknown", "not tried")
    for _ in range(_ATTEMPTS):
        try:
            with tempfile.TemporaryFile(dir=path, buffering=0) as file:
                overwritten, appended = _run(file.fileno(), device, block_bytes)
        except OSError as error:
            return DataIo("unknown", f"the test could not write in {path}: {error.strerror}")
        answer = judge(overwritten, appended)
        if answer.counted != "unknown":
            return answer
    return answer


def judge(overwritten: Counts, appended: Counts) -> DataIo:
    """Return the answer from the counts of the two patterns."""
    facts = (
        f"{overwritten.blocks} blocks written over: "
        f"{overwritten.writes} writes, {overwritten.flushes} flushes; "
        f"{appended.blocks} blocks appended: {appended.writes} writes, {appended.flushes} flushes"
    )
    if overwritten.blocks < _LEAST_WRITES:
        return DataIo("unknown", f"too few writes reached the device: {facts}")
    if _near(overwritten.writes, overwritten.blocks):
        return DataIo("kernel", facts)
    if all(_near(counts.writes - counts.flushes, counts.blocks) for counts in (overwritten, appended)):
        return DataIo("writes-flushes", facts)
    if _near(overwritten.writes - overwritten.flushes, overwritten.blocks):
        return DataIo("unknown", f"flushes carry data when a file grows (a journal): {facts}")
    return DataIo("unknown", f"the counts fit no rule, or other I/O disturbed the test: {facts}")


def _near(value: int, expected: int) -> bool:
    return abs(value - expected) <= _TOLERANCE * expected


def _run(descriptor: int, device: str, block_bytes: int) -> tuple[Counts, Counts]:
    block = os.urandom(block_bytes)
    os.pwrite(descriptor, block * _WRITES, 0)
    os.fsync(descriptor)

    def write(number: int) -> None:
        os.pwrite(descriptor, block, number * block_bytes)
        os.fdatasync(descriptor)

    overwritten = _count(device, block_bytes, write)
    appended = _count(device, block_bytes, lambda number: write(_WRITES + number))
    return overwritten, appended


def _count(device: str, block_bytes: int, write: Callable[[int], None]) -> Counts:
    before = _counters(device)
    end = time.monotonic() + _LIMIT_S
    for number in range(_WRITES):
        write(number)
        if time.monotonic() > end:
            break
    after = _counters(device)
    return Counts(
        after.writes - before.writes,
        (after.flushes or 0) - (before.flushes or 0),
        (after.write_sectors - before.write_sectors) * diskstats.SECTOR_BYTES // block_bytes,
    )


def _counters(device: str) -> diskstats.DiskCounters:
    return diskstats.parse(read_text("/proc/diskstats"))[device]
