"""Simulate disks, logs and readers I/O by I/O, and return one reading per second as the kernel counts them.

    seconds = commits(Capped(iops=310), users=8, seconds=70)
    build.device("sql1", "loop1", seconds).served("orders", "log_append", seconds)

An I/O is counted with its whole time in the second in which it ends (diskstats fields 1, 4, 5, 8, 11). The
busy time is spread over the seconds that the I/O covers (field 10). Counts are therefore whole numbers, and
an I/O that crosses a second's end counts in the next second.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PAGE = 8192
SEGMENT = 16 * 2**20
LARGE = 2**20
BELOW_S = 0.0002
"""Service time of the disk below a regulator, in seconds."""


class Disk:
    """An ideal disk that completes each I/O at once. ``done`` returns when an I/O that arrives now ends."""

    def done(self, now: float, size: int, random: np.random.Generator) -> float:
        del size, random
        return now


class Capped(Disk):
    """A disk behind a regulator (GCRA with 10 ms of tolerance), plus the disk's own short latency."""

    def __init__(
        self, iops: float = math.inf, bytes_per_s: float = math.inf, below_s: float = 0.0002
    ) -> None:
        self.costs = [(1 / iops, 0.0), (0.0, 1 / bytes_per_s)]
        self.next_at = [0.0, 0.0]
        self.below_s = below_s

    def done(self, now: float, size: int, random: np.random.Generator) -> float:
        begins = now
        for index, (each, per_byte) in enumerate(self.costs):
            begins = max(begins, self.next_at[index] - 0.01)
            self.next_at[index] = max(now, self.next_at[index]) + each + per_byte * size
        return begins + BELOW_S * random.lognormal(0, 0.3)


class Distant(Disk):
    """A disk with a fixed latency plus jitter, independent of the load."""

    def __init__(self, latency_s: float, jitter_s: float) -> None:
        self.latency_s, self.jitter_s = latency_s, jitter_s

    def done(self, now: float, size: int, random: np.random.Generator) -> float:
        transfer_s = size / 300e6
        return now + self.latency_s + random.exponential(self.jitter_s) + transfer_s


class Drifting(Disk):
    """A disk that serves many I/Os at a time, with a network latency that rises and falls periodically."""

    def __init__(self, latency_s: float, swing: float = 0.3, period_s: float = 17.0) -> None:
        self.latency_s, self.swing, self.period_s = latency_s, swing, period_s

    def done(self, now: float, size: int, random: np.random.Generator) -> float:
        drift = 1 + self.swing * math.sin(2 * math.pi * now / self.period_s)
        return now + self.latency_s * drift * random.lognormal(0, 0.1)


class Spindle(Disk):
    """A disk that serves one I/O at a time, each with a random service time."""

    def __init__(self, service_s: float, spread: float = 0.4) -> None:
        self.service_s, self.spread, self.free_at = service_s, spread, 0.0

    def done(self, now: float, size: int, random: np.random.Generator) -> float:
        sigma = math.sqrt(math.log1p(self.spread**2))
        takes_s = self.service_s * random.lognormal(-(sigma**2) / 2, sigma) + size / 150e6
        self.free_at = max(now, self.free_at) + takes_s
        return self.free_at


class Changing(Disk):
    """A disk behind a regulator whose rate changes over time."""

    def __init__(self, iops_at: Callable[[float], float]) -> None:
        self.iops_at, self.next_at = iops_at, 0.0

    def done(self, now: float, size: int, random: np.random.Generator) -> float:
        begins = max(now, self.next_at - 0.01)
        self.next_at = max(now, self.next_at) + 1 / self.iops_at(now)
        return begins + BELOW_S * random.lognormal(0, 0.3)


@dataclass
class Seconds:
    """The readings of a simulation: each field has one value per second."""

    length: int
    reads: Floats = field(init=False)
    writes: Floats = field(init=False)
    bytes: Floats = field(init=False)
    time_s: Floats = field(init=False)
    busy: Floats = field(init=False)
    operations: Floats = field(init=False)
    operation_s: Floats = field(init=False)
    _busy_until: float = 0.0

    def __post_init__(self) -> None:
        names = ("reads", "writes", "bytes", "time_s", "busy", "operations", "operation_s")
        for name in names:
            setattr(self, name, np.zeros(self.length))

    def io(self, start: float, end: float, size: int, *, write: bool) -> None:
        """Count one I/O; calls must come in order of the start times."""
        second = int(end)
        if second < self.length:
            (self.writes if write else self.reads)[second] += 1
            self.bytes[second] += size
            self.time_s[second] += end - start
        begin, self._busy_until = max(start, self._busy_until), max(end, self._busy_until)
        while begin < min(end, self.length):
            until = min(end, math.floor(begin) + 1)
            self.busy[int(begin)] += until - begin
            begin = until

    def operations_of(self, starts: Sequence[float], end: float) -> None:
        """Count the operations of several users that end at the same time."""
        second = int(end)
        if second < self.length:
            self.operations[second] += len(starts)
            total_s = float(self.operation_s[second])
            for start in starts:
                total_s += end - start
            self.operation_s[second] = total_s

    @property
    def latency_s(self) -> Floats:
        """Return the mean latency of the I/Os that ended in each second; NaN where none ended."""
        latency_s = np.full(self.length, np.nan)
        done = self.reads + self.writes
        np.divide(self.time_s, done, out=latency_s, where=done > 0)
        return latency_s

    @property
    def service_s(self) -> Floats:
        """Return the mean service time of the operations that ended in each second."""
        return np.divide(
            self.operation_s, self.operations, out=np.zeros(self.length), where=self.operations > 0
        )


def commits(
    disk: Disk,
    seconds: int,
    users: int = 0,
    rate_per_s: float = 0.0,
    seed: int = 1,
    work_s: float = 0.0004,
    row_bytes: int = 1200,
    segments: int = 4,
) -> Seconds:
    """Simulate a log with group commit: one write at a time, carrying all commits that wait for it.

    Closed users commit repeatedly, open users arrive at random; each works ``work_s`` seconds before its
    commit. A new segment begins every 16 MiB. One of ``segments`` segments is newly allocated, which adds
    large writes.
    """
    random, found = np.random.default_rng(seed), Seconds(seconds)
    coming = _first(random, users, rate_per_s, seconds, work_s)
    heapq.heapify(coming)
    waiting: list[float] = []
    now, logged = 0.0, (segments - 1) * SEGMENT
    while now < seconds and (coming or waiting):
        if not waiting:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            waiting.append(heapq.heappop(coming)[1])
        size = PAGE * math.ceil(len(waiting) * row_bytes / PAGE)
        logged += size
        if logged > segments * SEGMENT:
            logged = 0
            for _ in range(SEGMENT // LARGE):
                found.io(now, disk.done(now, LARGE, random), LARGE, write=True)
        end = disk.done(now, size, random)
        found.io(now, end, size, write=True)
        found.operations_of(waiting, end)
        if users:
            for works_s in random.exponential(work_s, len(waiting)).tolist():
                heapq.heappush(coming, (end + works_s, end))
        waiting, now = [], end + random.exponential(0.00005)
    return found


def _first(
    random: np.random.Generator, users: int, rate_per_s: float, seconds: int, work_s: float
) -> list[tuple[float, float]]:
    """Return (ready time, start time) of each user's first commit, or of every commit of an open load."""
    if users:
        return [(ready, 0.0) for ready in random.exponential(work_s, users).tolist()]
    begins = np.cumsum(random.exponential(1 / rate_per_s, int(rate_per_s * seconds * 1.1)))
    return [(begin + random.exponential(work_s), begin) for begin in begins.tolist()]


def reads(
    disk: Disk, seconds: int, users: int, seed: int = 1, work_s: float = 0.0004, every_s: float = 0.0
) -> Seconds:
    """Simulate users who read one page at a time; about every ``every_s`` seconds 20 pages are written."""
    random, found = np.random.default_rng(seed), Seconds(seconds)
    coming = [(ready, 0.0) for ready in random.exponential(work_s, users).tolist()]
    heapq.heapify(coming)
    written_at = every_s
    while coming and coming[0][0] < seconds:
        ready, start = heapq.heappop(coming)
        if every_s and ready > written_at:
            written_at += every_s * random.uniform(0.6, 1.4)
            for _ in range(20):
                found.io(ready, disk.done(ready, PAGE, random), PAGE, write=True)
        end = disk.done(ready, PAGE, random)
        found.io(ready, end, PAGE, write=False)
        found.operations_of([start], end)
        heapq.heappush(coming, (end + random.exponential(work_s), end))
    return found


def reads_on_time(disk: Disk, seconds: int, rate_per_s: float, seed: int = 1) -> Seconds:
    """Simulate page reads at a constant rate, however many reads are outstanding."""
    random, found = np.random.default_rng(seed), Seconds(seconds)
    for number in range(int(rate_per_s * seconds)):
        begin = number / rate_per_s
        end = disk.done(begin, PAGE, random)
        found.io(begin, end, PAGE, write=False)
        found.operations_of([begin], end)
    return found


def read_then_commit(
    disk: Disk, seconds: int, users: int, seed: int = 1, reading: float = 1.0, work_s: float = 0.0004
) -> tuple[Seconds, Seconds]:
    """Simulate users who read a page and then commit. Returns (log, data): two devices that share one disk.

    ``reading``: share of the commits that are preceded by a read.
    """
    random, log, data = np.random.default_rng(seed), Seconds(seconds), Seconds(seconds)
    coming = [(ready, 0.0, True) for ready in random.exponential(work_s, users)]
    heapq.heapify(coming)
    while coming and coming[0][0] < seconds:
        now, start, reads_first = heapq.heappop(coming)
        end = disk.done(now, PAGE, random)
        if reads_first:
            data.io(now, end, PAGE, write=False)
            heapq.heappush(coming, (end, start, False))
            continue
        log.io(now, end, PAGE, write=True)
        log.operations_of([start], end)
        ready = end + random.exponential(work_s)
        heapq.heappush(coming, (ready, ready, bool(random.random() < reading)))
    return log, data


def eight_segments(_: np.random.Generator) -> list[int]:
    """Return the sizes of a commit's large I/Os in bytes: eight of the same size."""
    return [200_000] * 8


def four_segments(random: np.random.Generator) -> list[int]:
    """Return the sizes of a commit's large I/Os in bytes: four of random size."""
    return [int(size) for size in np.minimum(PAGE + random.exponential(250_000, 4), 575_000)]


def indexing(
    disk: Disk,
    seconds: int,
    pause_s: float,
    seed: int = 1,
    chain: int = 30,
    segments: Callable[[np.random.Generator], Sequence[int]] = eight_segments,
) -> tuple[Seconds, list[tuple[float, float]]]:
    """Simulate an index with repeated commits. Returns the disk's seconds, and each commit's (start, end).

    A commit writes its ``segments`` at once, then ``chain`` small I/Os one after the other.
    """
    random, found = np.random.default_rng(seed), Seconds(seconds)
    now = 0.0
    commits_: list[tuple[float, float]] = []
    while now < seconds:
        start = now
        sizes = segments(random)
        ends = [disk.done(now, size, random) for size in sizes]
        for end, size in zip(ends, sizes, strict=True):
            found.io(now, end, size, write=True)
        now = max(ends)
        for _ in range(chain):
            end = disk.done(now, 2 * PAGE, random)
            found.io(now, end, 2 * PAGE, write=True)
            now = end
        commits_.append((start, now))
        now += pause_s * random.uniform(0.7, 1.3)
    return found, commits_
