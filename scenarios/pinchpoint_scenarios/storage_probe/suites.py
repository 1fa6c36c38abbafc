"""Defines the suites of storage probes: the cells, the number of repetitions, and the size of the file.

A new suite needs a function that lists its jobs, and an entry in ``SUITES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from pinchpoint_collectors.common.names import by_name, unknown

from ..errors import ScenarioError
from .cell import Cell, Job, shape_name
from .results.bonnie import FILES, THROUGHPUT

_KIB, _MIB = 2**10, 2**20
_SIZES = (4 * _KIB, 8 * _KIB, 64 * _KIB, 256 * _KIB, _MIB)
_SMALL = 100
"""Number of small files in units of 1,024 files, as bonnie++ counts them; the value of ``demo --seed c``."""

Jobs = Callable[[float], Sequence[Job]]
"""Function: seconds per cell -> jobs of the suite in order."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A set of measurements with one name.

    Attributes:
        name: value of ``--suite``.
        about: description in one sentence, for the list of suites.
        jobs: returns the jobs for a number of seconds per cell (0 if ``seconds`` is None).
        repetitions: default number of repetitions.
        seconds: default seconds per cell; None: each tool runs until its work is done, for an unknown time.
        pause_s: pause between two repetitions in seconds.
        size_bytes: size of the file in bytes; None: 2.1 times the memory of the machine.
        bisected: whether only some queue depths of a workload are measured: the lowest, the highest, and
            those that a bisection towards the latency line needs.
    """

    name: str
    about: str
    jobs: Jobs
    repetitions: int
    seconds: float | None
    pause_s: float = 0.0
    size_bytes: int | None = 2**30
    bisected: bool = False

    def threaded(self, threads: int) -> Suite:
        """Return the suite with a number of threads, each with the suite's queue depth.

        Jobs of a log (one writer) and jobs of other tools than fio are not changed.
        """
        if threads == 1:
            return self

        def jobs(seconds: float) -> list[Job]:
            return [_of_threads(job, threads) for job in self.jobs(seconds)]

        return replace(self, jobs=jobs)


def _of_threads(job: Job, threads: int) -> Job:
    if job.tool != "fio" or job.flush_each:
        return job
    cells = tuple(replace(cell, outstanding=(cell.outstanding or 1) * threads) for cell in job.cells)
    return replace(job, cells=cells, threads=threads)


def _crystaldiskmark(seconds: float) -> list[Job]:
    """Return 12 cells: SEQ1M Q8T1, SEQ1M Q1T1, RND4K Q32T1 and RND4K Q1T1 as reads, writes and mix.

    These are the patterns of ``demo --seed d`` and ``e``, with one thread. The mix has 70 % reads, as in
    CrystalDiskMark 7 and later.
    """
    return [
        Job("fio", (Cell(f"{name} {way}", block, reads, random, depth),), seconds)
        for way, reads in (("read", 1.0), ("write", 0.0), ("mix", 0.7))
        for name, block, random, depths in (("SEQ1M", _MIB, 0.0, (8, 1)), ("RND4K", 4 * _KIB, 1.0, (32, 1)))
        for depth in depths
    ]


def _crystaldiskmark_3(seconds: float) -> list[Job]:
    """Return the 8 cells of CrystalDiskMark before version 4: Seq, 512K, 4K and 4K QD32 (``demo --seed e``).

    512K and 4K are random I/O with one outstanding I/O.
    """
    patterns = (
        ("Seq", _MIB, 0.0, 1),
        ("512K", 512 * _KIB, 1.0, 1),
        ("4K", 4 * _KIB, 1.0, 1),
        ("4K", 4 * _KIB, 1.0, 32),
    )
    return [
        Job("fio", (Cell(f"{name} {way}", block, reads, random, depth),), seconds)
        for way, reads in (("read", 1.0), ("write", 0.0))
        for name, block, random, depth in patterns
    ]


def _iometer(
    blocks: Sequence[int], reads: Sequence[float], randoms: Sequence[float], depths: Sequence[int]
) -> Jobs:
    """Return jobs for block size x share of reads x share of random I/O x queue depth (``demo --seed b``).

    The published report goes up to 1,024 outstanding I/Os and does not list its steps. The powers of two are
    Pinchpoint's choice.
    """
    return lambda seconds: [
        Job("fio", (Cell(shape_name(block, read, random), block, read, random, depth),), seconds)
        for block, read, random, depth in product(blocks, reads, randoms, depths)
    ]


def _database(seconds: float) -> list[Job]:
    """Return 13 cells with the I/O of databases: a log, data files with checkpoints, temporary files.

    - log: small sequential writes, each on the disk before the next one begins. Sizes are 4 KiB, and 60 KiB,
      the largest write of SQL Server to its log. One write is in flight, because a commit waits for it.
    - data: random pages of 8 KiB (the page size of SQL Server and PostgreSQL), only reads, and 70 % reads.
    - checkpoint: random writes of 8 KiB pages, 32 at a time, flushed to the disk after every 512 writes.
    - tempdb: sequential I/O of 64 KiB (an extent), half reads and half writes.
    """
    logs = [
        Job("fio", (Cell(f"log {size} write", block, 0.0, 0.0, 1, "log"),), seconds, flush_each=True)
        for size, block in (("4K", 4 * _KIB), ("60K", 60 * _KIB))
    ]
    data = [
        Job("fio", (Cell(f"data 8K {what}", 8 * _KIB, reads, 1.0, depth),), seconds)
        for what, reads in (("read", 1.0), ("70 % read", 0.7))
        for depth in (1, 4, 16, 64)
    ]
    checkpoint = Job("fio", (Cell("checkpoint 8K write", 8 * _KIB, 0.0, 1.0, 32),), seconds, flush_every=512)
    temporary = [
        Job("fio", (Cell("tempdb 64K half read", 64 * _KIB, 0.5, 0.0, depth, "tempdb"),), seconds)
        for depth in (1, 8)
    ]
    return [*logs, *data, checkpoint, *temporary]


def _sequential(_: float) -> list[Job]:
    """Return 3 cells that each read or write the whole file, for as long as that takes (``demo --seed e``).

    dd writes the file past the page cache and flushes it to the disk. dd reads the file after it was dropped
    from the page cache. hdparm reads the block device if there is one and the user has the right. If reads
    still get faster from repetition to repetition, a cache on the host contains the data.
    """
    return [
        Job("dd", (Cell("dd write", _MIB, 0.0, 0.0, 1),), options={"of": "write"}),
        Job("dd", (Cell("dd read", _MIB, 1.0, 0.0),), options={"of": "read"}),
        Job("hdparm", (Cell("hdparm read", None, 1.0, 0.0),), uses_file=False),
    ]


def _bonnie(_: float) -> list[Job]:
    """Return two calls that run until their work is done.

    Each value of a call is a cell (``demo --seed c``).
    """

    def job(cells: Iterable[str], title: str, small_files: int) -> Job:
        return Job(
            "bonnie++",
            tuple(Cell(f"bonnie {name}") for name in cells),
            uses_file=False,
            options={"title": f"bonnie++ {title}", "small_files": small_files},
        )

    return [job(THROUGHPUT, "large file", 0), job(FILES, "small files", _SMALL)]


def _stability(seconds: float) -> list[Job]:
    """Return one cell for hours of I/O, which shows warm-up, spent credits, trends and outliers.

    The published test (``demo --seed c``) ran for eight hours.
    """
    return [Job("fio", (Cell("8K random write", 8 * _KIB, 0.0, 1.0, 8),), seconds)]


SUITES: dict[str, Suite] = by_name(
    "suites",
    (
        Suite(
            "crystaldiskmark",
            "CrystalDiskMark's four patterns (1 MiB sequential, 4 KiB random; many or one at a time), "
            "read, write and mixed",
            _crystaldiskmark,
            repetitions=5,
            seconds=5.0,
        ),
        Suite(
            "crystaldiskmark-3",
            "the four patterns of CrystalDiskMark 3 (1 MiB sequential, 512 KiB and 4 KiB random, 4 KiB 32 at "
            "a time), read and write",
            _crystaldiskmark_3,
            repetitions=5,
            seconds=5.0,
        ),
        Suite(
            "iometer",
            "a short Iometer matrix: 8 and 64 KiB, reads and writes, random and sequential, 1 to 1,024 "
            "outstanding",
            _iometer((8 * _KIB, 64 * _KIB), (1.0, 0.0), (1.0, 0.0), (1, 8, 32, 128, 1024)),
            repetitions=1,
            seconds=5.0,
        ),
        Suite(
            "iometer-knee",
            "8 KiB, reads and writes, random and sequential, with the queue depths of 1 to 1,024 that a "
            "bisection towards the latency line needs",
            _iometer((8 * _KIB,), (1.0, 0.0), (1.0, 0.0), [2**power for power in range(11)]),
            repetitions=1,
            seconds=5.0,
            bisected=True,
        ),
        Suite(
            "iometer-full",
            "the whole matrix: five sizes, four shares of reads, three of random I/O, 1 to 1,024 "
            "outstanding; hours, to be resumed where it is interrupted",
            _iometer(
                _SIZES,
                (1.0, 0.67, 0.33, 0.0),
                (1.0, 0.5, 0.0),
                [2**power for power in range(11)],
            ),
            repetitions=1,
            seconds=5.0,
        ),
        Suite(
            "database",
            "log-shaped, data-shaped, checkpoint and tempdb-shaped I/O",
            _database,
            repetitions=3,
            seconds=5.0,
        ),
        Suite(
            "sequential",
            "dd direct write, dd read with the page cache dropped, hdparm; 12 trials 10 s apart",
            _sequential,
            repetitions=12,
            seconds=None,
            pause_s=10.0,
        ),
        Suite(
            "bonnie",
            "bonnie++: a file of more than twice the memory, and 102,400 files of 8 to 16 KiB; ten times",
            _bonnie,
            repetitions=10,
            seconds=None,
            size_bytes=None,
        ),
        Suite(
            "stability",
            "8 KiB random writes, 8 at a time, for eight hours (--time-per-cell): trend, warm-up, credits, "
            "outliers",
            _stability,
            repetitions=1,
            seconds=8 * 3600.0,
        ),
    ),
)


def suite(name: str) -> Suite:
    """Return the suite with a name. Raises ``ScenarioError`` that lists all names and the nearest one."""
    if name not in SUITES:
        raise ScenarioError(unknown("suite", name, SUITES))
    return SUITES[name]
