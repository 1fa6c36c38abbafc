"""Defines the specification of an emulated disk."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint_infra.catalogue import BurstAllowance
from pinchpoint_infra.disks.raid import Level

DEFAULT_SIZE_BYTES = 8 * 2**30
"""Default size in bytes. The file is sparse and takes only the space that is written."""


class DiskError(Exception):
    """A disk cannot be built or removed; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that serves one I/O at a time, in varying times, such as a spinning disk.

    Attributes:
        service_s: mean time of a random I/O in seconds.
        sequential_s: mean time in seconds of an I/O that begins where the previous one ended.
        spread_ratio: standard deviation ÷ mean of single times (lognormal). The mean itself varies from
            second to second by a third of this.
    """

    service_s: float
    sequential_s: float
    spread_ratio: float = 0.4


@dataclass(frozen=True, slots=True)
class SlowStart:
    """A disk that is slow at first.

    Attributes:
        from_ratio: share of full speed at the start.
        over_s: seconds until full speed. The speed rises linearly.
    """

    from_ratio: float
    over_s: float


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """The specification of one emulated disk. Each disk of an array has all of these limits.

    Attributes:
        iops, bytes_per_s: limits of reads and writes together; None: no limit. read_iops, write_iops,
        read_bytes_per_s, write_bytes_per_s: separate limits.
        io_unit_bytes: an I/O counts once per unit of this size that it begins; None: every I/O counts once.
        burst: the limits while credits last; without ``credit_s`` they are bought and always apply.
        latency_s: minimum time of every I/O, at any queue depth.
        jitter_s: mean of an additional, exponentially distributed time.
        device: the model of the device; None: it adds no time.
        warm_up: a slow start; None: full speed from the start.
        stripes: number of disks in the array, which has chunks of 64 KiB.
        raid: RAID level of the array.
        size_bytes: size of the disk in bytes. Its file is sparse.
        time_scale: factor by which credits and warm-up pass faster.
        read_ahead_bytes: read-ahead of the kernel for sequential reads, in bytes.
        host_cache_bytes: size of the host's read cache in bytes; 0: no cache.
    """

    iops: float | None = None
    bytes_per_s: float | None = None
    read_iops: float | None = None
    write_iops: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    io_unit_bytes: int | None = None
    burst: BurstAllowance | None = None
    latency_s: float = 0.0
    jitter_s: float = 0.0
    device: Device | None = None
    warm_up: SlowStart | None = None
    stripes: int = 1
    raid: Level = 0
    size_bytes: int = DEFAULT_SIZE_BYTES
    time_scale: float = 1.0
    read_ahead_bytes: int = 128 * 2**10
    host_cache_bytes: int = 0
