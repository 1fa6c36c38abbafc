"""The specification of an emulated disk."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint_infra.catalogue import BurstAllowance
from pinchpoint_infra.disks.raid import Level

DEFAULT_SIZE_BYTES = 8 * 2**30
"""Sparse: it takes the room that is written, no more."""


class DiskError(Exception):
    """A disk cannot be built or removed; one sentence."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that serves one I/O at a time and is never quite as fast twice, as a spinning disk is.

    Attributes:
        service_s: mean time one I/O takes that does not follow the one before.
        sequential_s: likewise of one that begins where the one before ended.
        spread_ratio: standard deviation of a single time over its mean (lognormal); the mean itself
            wanders by a third of that from second to second.
    """

    service_s: float
    sequential_s: float
    spread_ratio: float = 0.4


@dataclass(frozen=True, slots=True)
class SlowStart:
    """A disk that is slow at first.

    Attributes:
        from_ratio: its share of full speed in the beginning.
        over_s: how long it takes to full speed, in a straight line.
    """

    from_ratio: float
    over_s: float


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """One emulated disk; each of its ``stripes`` disks has all of these limits for itself.

    Attributes:
        iops, bytes_per_s: caps of reads and writes together; None: none.
        read_iops, write_iops, read_bytes_per_s, write_bytes_per_s: caps of one of them alone.
        io_unit_bytes: an I/O counts as one for every this many bytes begun; None: any I/O is one.
        burst: what is allowed on credits; without ``credit_s`` it is bought: always allowed.
        latency_s: the least time of every I/O, whatever the queue.
        jitter_s: mean of what comes on top of it (exponential).
        device: how the device behind it behaves; None: it is never in the way.
        warm_up: how it starts; None: at full speed.
        stripes: disks an array with chunks of 64 KiB is made of.
        raid: the array's level.
        size_bytes: the disk's size; its file is sparse.
        time_scale: credits and warm-up pass this many times faster.
        read_ahead_bytes: how far the kernel reads ahead of sequential reads.
        host_cache_bytes: what the host keeps of what was read; 0: nothing.
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
