"""I/O as databases do it: a log, data files with checkpoints, temporary files.

- log: small sequential writes, each on the disk before the next one begins (4 KiB; and 60 KiB, the largest
  that SQL Server writes to its log at once). One is in flight: a commit waits for it.
- data: pages of 8 KiB at random (SQL Server's and PostgreSQL's), read, and read and written 70 to 30.
- checkpoint: pages of 8 KiB at random, many at once, brought to the disk after every 512 of them.
- tempdb: 64 KiB, an extent, one after the other, as much written as read.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cell import Cell, Job
from ..suite import Suite

_PAGE = 8192
_DEPTHS = (1, 4, 16, 64)


def jobs(seconds: float) -> Sequence[Job]:
    """13 cells."""
    logs = [
        Job("fio", (Cell(f"log {size} write", block, 0.0, 0.0, 1, "log"),), seconds, flush_each=True)
        for size, block in (("4K", 4096), ("60K", 61440))
    ]
    data = [
        Job("fio", (Cell(f"data 8K {what}", _PAGE, reads, 1.0, depth),), seconds)
        for what, reads in (("read", 1.0), ("70 % read", 0.7))
        for depth in _DEPTHS
    ]
    checkpoint = Job("fio", (Cell("checkpoint 8K write", _PAGE, 0.0, 1.0, 32),), seconds, flush_every=512)
    temporary = [
        Job("fio", (Cell("tempdb 64K half read", 65536, 0.5, 0.0, depth, "tempdb"),), seconds)
        for depth in (1, 8)
    ]
    return [*logs, *data, checkpoint, *temporary]


SUITE = Suite(
    name="database",
    about="log-shaped, data-shaped, checkpoint and tempdb-shaped I/O",
    jobs=jobs,
    repetitions=3,
    seconds=5.0,
)
