"""An Iometer matrix: block size x share of reads x share of random I/O x outstanding I/Os (seed B).

The report it is taken from goes up to 1,024 outstanding and does not list its steps; powers of two are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ..cell import Cell, Job
from ..suite import Suite

_SIZES = {4096: "4K", 8192: "8K", 65536: "64K", 262144: "256K", 2**20: "1M"}


def _matrix(
    seconds: float,
    blocks: Sequence[int],
    reads: Sequence[float],
    randoms: Sequence[float],
    depths: Sequence[int],
) -> list[Job]:
    return [
        Job("fio", (Cell(_workload(block, read, random), block, read, random, depth),), seconds)
        for block, read, random, depth in product(blocks, reads, randoms, depths)
    ]


def _workload(block: int, read: float, random: float) -> str:
    what = {1.0: "read", 0.0: "write"}.get(read, f"{read:.0%} read")
    how = {1.0: "random", 0.0: "sequential"}.get(random, f"{random:.0%} random")
    return f"{_SIZES[block]} {how} {what}"


def short(seconds: float) -> Sequence[Job]:
    """Sizes, ways and depths at which a disk's limits show: 40 cells."""
    return _matrix(seconds, (8192, 65536), (1.0, 0.0), (1.0, 0.0), (1, 8, 32, 128, 1024))


def full(seconds: float) -> Sequence[Job]:
    """660 cells: above an hour; what was interrupted can be gone on with."""
    depths = [2**power for power in range(11)]
    return _matrix(seconds, tuple(_SIZES), (1.0, 0.67, 0.33, 0.0), (1.0, 0.5, 0.0), depths)


SHORT = Suite(
    name="iometer",
    about="a short Iometer matrix: 8 and 64 KiB, reads and writes, random and sequential, 1 to 1,024 "
    "outstanding",
    jobs=short,
    repetitions=1,
    seconds=5.0,
)
FULL = Suite(
    name="iometer-full",
    about="the whole matrix: five sizes, four shares of reads, three of random I/O, 1 to 1,024 outstanding; "
    "hours, to be resumed where it is interrupted",
    jobs=full,
    repetitions=1,
    seconds=5.0,
)
