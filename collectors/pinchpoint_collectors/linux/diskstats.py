"""Parses /proc/diskstats: I/O by device. Fields f1… are numbered as in the kernel's iostats documentation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.value import Value, growth, rate

SECTOR_BYTES = 512
"""Size of a sector in diskstats and /sys/block/*/size, for any sector size of the device."""


METRICS = (
    "disk.reads_per_s",
    "disk.writes_per_s",
    "disk.read_bytes_per_s",
    "disk.write_bytes_per_s",
    "disk.read_latency_s",
    "disk.write_latency_s",
    "disk.outstanding",
    "disk.busy_ratio",
)
"""Metrics from the file of every kernel. Newer kernels also have flushes."""


class DiskCounters(NamedTuple):
    """Counts of one device since boot, with times in ms. The last two are None before kernel 5.5."""

    reads: int  # f1
    read_sectors: int  # f3
    read_ms: int  # f4
    writes: int  # f5
    write_sectors: int  # f7
    write_ms: int  # f8
    busy_ms: int  # f10
    outstanding_ms: int  # f11: each millisecond counted once per outstanding I/O
    flushes: int | None  # f16
    flush_ms: int | None  # f17


def parse(text: str, wanted: Mapping[str, str] | None = None) -> dict[str, DiskCounters]:
    """Return the counters by device.

    Lines have 14 fields, 18 with discards (kernel 4.18), 20 with flushes (5.5).

    Args:
        text: text of the file.
        wanted: name of a line -> device; the counters of a device's lines are added up. None: each line is a
            device, including partitions.
    """
    disks: dict[str, DiskCounters] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 14:
            raise CollectorError(
                f"/proc/diskstats: a line has {len(fields)} fields, expected 14 or more: {line!r}"
            )
        # /sys writes a slash in a name (cciss/c0d0) as "!", and so do all names here.
        name = fields[2].replace("/", "!")
        device = name if wanted is None else wanted.get(name)
        if device is None:
            continue
        f = [0, *map(int, fields[3:])]
        flushes, flush_ms = (f[16], f[17]) if len(f) > 17 else (None, None)
        result = DiskCounters(f[1], f[3], f[4], f[5], f[7], f[8], f[10], f[11], flushes, flush_ms)
        disks[device] = _together(disks[device], result) if device in disks else result
    return disks


def _together(counters: DiskCounters, other: DiskCounters) -> DiskCounters:
    """Return the counters of two paths to one disk together. The busy time is that of the busier path."""
    return DiskCounters(
        counters.reads + other.reads,
        counters.read_sectors + other.read_sectors,
        counters.read_ms + other.read_ms,
        counters.writes + other.writes,
        counters.write_sectors + other.write_sectors,
        counters.write_ms + other.write_ms,
        max(counters.busy_ms, other.busy_ms),
        counters.outstanding_ms + other.outstanding_ms,
        None if counters.flushes is None or other.flushes is None else counters.flushes + other.flushes,
        None if counters.flush_ms is None or other.flush_ms is None else counters.flush_ms + other.flush_ms,
    )


def values(
    before: Mapping[str, DiskCounters] | None,
    after: Mapping[str, DiskCounters],
    interval_s: float,
    devices: Collection[str],
    flushes_are_writes: Collection[str],
) -> Iterator[Value]:
    """Yield rates and latencies of ``devices``.

    Args:
        before: counters at the last reading; None at the first.
        after: counters at this reading.
        interval_s: seconds between the readings.
        devices: whole disks to report.
        flushes_are_writes: devices whose flushes are verified to be counted as writes.
    """
    if before is None:
        return
    for device in devices:
        if device not in before or device not in after:  # the device was removed meanwhile
            yield from (Value(metric, device, None) for metric in METRICS)
            continue
        yield from _values(device, before[device], after[device], interval_s)
        if device in flushes_are_writes:
            yield from _data_values(device, before[device], after[device], interval_s)


def _values(device: str, old: DiskCounters, new: DiskCounters, interval_s: float) -> Iterator[Value]:
    yield Value("disk.reads_per_s", device, rate(old.reads, new.reads, interval_s))
    yield Value("disk.writes_per_s", device, rate(old.writes, new.writes, interval_s))
    read_bytes = rate(old.read_sectors, new.read_sectors, interval_s, SECTOR_BYTES)
    write_bytes = rate(old.write_sectors, new.write_sectors, interval_s, SECTOR_BYTES)
    yield Value("disk.read_bytes_per_s", device, read_bytes)
    yield Value("disk.write_bytes_per_s", device, write_bytes)
    yield _latency(
        "disk.read_latency_s", device, growth(old.reads, new.reads), growth(old.read_ms, new.read_ms)
    )
    writes, write_ms = growth(old.writes, new.writes), growth(old.write_ms, new.write_ms)
    yield _latency("disk.write_latency_s", device, writes, write_ms)
    yield Value("disk.outstanding", device, rate(old.outstanding_ms, new.outstanding_ms, interval_s, 1e-3))
    yield Value("disk.busy_ratio", device, rate(old.busy_ms, new.busy_ms, interval_s, 1e-3))
    if new.flushes is not None:
        flushes, flush_ms = _flushes(old, new)
        yield Value("disk.flushes_per_s", device, None if flushes is None else flushes / interval_s)
        yield _latency("disk.flush_latency_s", device, flushes, flush_ms)


def _data_values(device: str, old: DiskCounters, new: DiskCounters, interval_s: float) -> Iterator[Value]:
    """Yield data writes: writes less flushes, in number and time (docs/metrics.md)."""
    writes, write_ms = growth(old.writes, new.writes), growth(old.write_ms, new.write_ms)
    flushes, flush_ms = _flushes(old, new)
    data = None if writes is None or flushes is None else writes - flushes
    data_ms = None if write_ms is None or flush_ms is None else write_ms - flush_ms
    if data is not None and data < 0:  # the two counts of a flush were in different intervals
        data = None
    # The same; rounding to whole milliseconds may give -1 instead of 0.
    if data_ms is not None and data_ms < 0:
        data_ms = 0 if data_ms == -1 else None
    yield Value("disk.data_writes_per_s", device, None if data is None else data / interval_s)
    yield _latency("disk.data_write_latency_s", device, data, data_ms)


def _flushes(old: DiskCounters, new: DiskCounters) -> tuple[int | None, int | None]:
    if old.flushes is None or new.flushes is None or old.flush_ms is None or new.flush_ms is None:
        return None, None
    return growth(old.flushes, new.flushes), growth(old.flush_ms, new.flush_ms)


def _latency(metric: str, device: str, operations: int | None, spent_ms: int | None) -> Value:
    """Return mean latency and weight. Without operations the weight is 0, and after a reset both are None."""
    if operations is None or spent_ms is None:
        return Value(metric, device, None, None)
    return Value(metric, device, spent_ms / 1000 / operations if operations else None, operations)
