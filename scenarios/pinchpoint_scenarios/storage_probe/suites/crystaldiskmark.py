"""CrystalDiskMark's four patterns, each as reads, writes and a mix, five times (seeds D and E).

SEQ1M Q8T1, SEQ1M Q1T1, RND4K Q32T1 and RND4K Q1T1: one thread, a file of 1 GiB, five seconds each; the mix is
70 % reads, as CrystalDiskMark 7 and later have it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cell import Cell, Job
from ..suite import Suite

_PATTERNS = (("SEQ1M", 2**20, 0.0, (8, 1)), ("RND4K", 4096, 1.0, (32, 1)))
_WAYS = (("read", 1.0), ("write", 0.0), ("mix", 0.7))


def jobs(seconds: float) -> Sequence[Job]:
    """Twelve cells."""
    return [
        Job("fio", (Cell(f"{name} {way}", block, reads, random, depth),), seconds)
        for way, reads in _WAYS
        for name, block, random, depths in _PATTERNS
        for depth in depths
    ]


SUITE = Suite(
    name="crystaldiskmark",
    about="CrystalDiskMark's four patterns (1 MiB sequential, 4 KiB random; many or one at a time), "
    "read, write and mixed",
    jobs=jobs,
    repetitions=5,
    seconds=5.0,
)
