"""How much users get done who wait for a CPU, for a shared flush of a log, and for reads: pure arithmetic.

Users go round in a circle (the interactive response-time law, Denning and Buzen 1978): ``X = N / (Z + R)``.
Of the response ``R`` each part is known by itself:

- **CPU**: ``m`` cores that queue (Seidmann's approximation of several servers: one of ``m`` times the speed,
  and a delay). Users meet what the other ``N - 1`` leave there.
- **Flush**: a commit waits for the flush that is going on, if there is one, and then for its own, which it
  shares with all who came meanwhile (group commit). Who is away for a random time of mean ``T`` is back
  within a flush of ``F`` seconds with probability ``1 - exp(-F / T)``; so how many share the next flush
  depends on how many shared this one alone, and the mean of both follows exactly (a Markov chain).
- **Reads**: so many one after the other, at the latency that the disk has at the rate which the throughput
  makes.

The more is done the longer everything takes, so there is one throughput that fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

Latency = Callable[[float], float]
"""I/Os per second that the disk is to do -> seconds each of them takes; infinite where it cannot."""

_Matrix = npt.NDArray[np.float64]

CROWD = 128
"""So many users are as good as any more: commits of more of them come at random."""
_HALVINGS = 48
_NEVER_IDLE = 0.97


@dataclass(frozen=True, slots=True)
class Work:
    """What one operation asks for.

    Attributes:
        rest_s: seconds that neither disk nor CPU is asked for: networks, locks, other disks.
        cpu_s: CPU seconds of the pool of cores.
        cores: in that pool; 0 where it was not measured (then ``cpu_s`` is 0 and it is part of ``rest_s``).
        commits: flushes that an operation waits for; a share where only some operations commit.
        ios_per_flush: I/Os one after the other that a flush takes.
        reads: I/Os of the disk that an operation waits for, one after the other.
        background: I/Os of the disk that it causes and does not wait for.
    """

    rest_s: float
    cpu_s: float
    cores: int
    commits: float
    ios_per_flush: float
    reads: float
    background: float


@dataclass(frozen=True, slots=True)
class Parts:
    """An operation's time at some throughput, seconds."""

    rest_s: float
    cpu_s: float
    flush_s: float
    read_s: float

    @property
    def response_s(self) -> float:
        """All of them."""
        return self.rest_s + self.cpu_s + self.flush_s + self.read_s


@dataclass(frozen=True, slots=True)
class Circle:
    """Users, what their operations ask for, and the disk.

    Attributes:
        users: N; infinite for an open load.
        think_s: Z.
        flush_io_s: what one I/O of a flush takes.
        read: of reads.
        flush_more_s: what a flush takes beside its I/Os: the server's own way to the disk and back.
        spacing_s: so long after one flush began the next may begin, at the earliest: a cap that lets so many
            through one after the other says nothing of how long each takes.
        overlap: how much of what is left of the flush that it meets a commit waits for: 1 as the chain has
            it; a range of it is a range of the model.
    """

    work: Work
    users: float
    think_s: float
    flush_io_s: float
    read: Latency
    flush_more_s: float = 0.0
    spacing_s: float = 0.0
    overlap: float = 1.0

    @property
    def flush_s(self) -> float:
        """Seconds of one flush."""
        return self.work.ios_per_flush * self.flush_io_s + self.flush_more_s

    @property
    def open(self) -> bool:
        """Whether operations come by themselves."""
        return not math.isfinite(self.users)

    def parts(self, per_s: float) -> Parts:
        """Where an operation's time goes at that throughput."""
        work = self.work
        others = 1.0 if self.open else 1 - 1 / self.users
        cpu_s = processor_s(work.cpu_s, work.cores, per_s * others)
        read_s = work.reads * self.read(per_s * (work.reads + work.background)) if work.reads else 0.0
        flush_s = self._flush(per_s, self.think_s + work.rest_s + cpu_s + read_s)
        return Parts(work.rest_s, cpu_s, flush_s, read_s)

    def _flush(self, per_s: float, away_s: float) -> float:
        commits, flush_s = self.work.commits, self.flush_s
        if not commits or not flush_s or not math.isfinite(away_s):
            return 0.0
        if self.open:
            busy = random_flushes_per_s(per_s * commits, flush_s) * flush_s
            return commits * flush_s * (1 + self.overlap * busy / 2)
        each_s = group_commit(self.users, away_s / commits, flush_s, self.spacing_s).wait_s
        return commits * (flush_s + self.overlap * (each_s - flush_s))


@dataclass(frozen=True, slots=True)
class Group:
    """Users who commit, are away, and commit again.

    Attributes:
        per_s: commits per second of all of them.
        flushes_per_s: flushes per second.
        wait_s: from a commit's begin to its end.
    """

    per_s: float
    flushes_per_s: float
    wait_s: float


def group_commit(users: float, away_s: float, flush_s: float, spacing_s: float = 0.0) -> Group:
    """So many users, away for a random time of that mean, on a log whose flush takes so long.

    Of more than ``CROWD`` users the part that as many would be: their share of what is done stays the same.

    Args:
        users: how many.
        away_s: between the end of a commit and the begin of the next, on average.
        flush_s: of a flush.
        spacing_s: from the begin of one to that of the next, at least; where it is less than ``flush_s`` they
            follow each other at once.
    """
    number = max(1, round(users))
    if number > CROWD:
        few = _chain(CROWD, away_s, flush_s, max(flush_s, spacing_s))
        return Group(few.per_s * users / CROWD, few.flushes_per_s, few.wait_s)
    return _chain(number, away_s, flush_s, max(flush_s, spacing_s))


@lru_cache(maxsize=4096)
def _chain(users: int, away_s: float, flush_s: float, spacing_s: float) -> Group:
    """Exactly: from how many share a flush to how many share the next."""
    away_s = max(away_s, flush_s * 1e-6)
    sizes = np.arange(1, users + 1)
    # Row: how many share this flush; column: how many are back when the next may begin. Those that were away
    # have all the time from begin to begin for it, those that shared it what is left when it has ended.
    counts = np.arange(users + 1)
    others = binom.pmf(counts[None, :], (users - sizes)[:, None], -math.expm1(-spacing_s / away_s))
    again = binom.pmf(counts[None, :], sizes[:, None], -math.expm1(-(spacing_s - flush_s) / away_s))
    chances = others if spacing_s <= flush_s else _sums(others, again)
    idle = chances[:, 0]
    step = chances[:, 1:].copy()
    step[:, 0] += idle  # nobody is back: the next flush is the first one's alone
    balance = np.vstack([step.T - np.eye(users), np.ones(users)])
    share, *_ = np.linalg.lstsq(balance, np.append(np.zeros(users), 1.0), rcond=None)
    each_s = spacing_s + float(share @ idle) * away_s / users
    per_s = float(share @ sizes) / each_s
    return Group(per_s, 1 / each_s, users / per_s - away_s)


def _sums(one: _Matrix, other: _Matrix) -> _Matrix:
    """Row by row the chances of the sum of two numbers."""
    return np.array([np.convolve(a, b)[: one.shape[1]] for a, b in zip(one, other, strict=True)])


def random_flushes_per_s(arrivals_per_s: float, flush_s: float) -> float:
    """How many flushes a second, of commits that come at random at that rate and share them.

    A flush follows the one before at once where somebody came meanwhile, else with the next who comes.
    """
    if arrivals_per_s <= 0:
        return 0.0
    return 1 / (flush_s + math.exp(-arrivals_per_s * flush_s) / arrivals_per_s)


def processor_s(cpu_s: float, cores: int, per_s: float) -> float:
    """Seconds at a pool of cores, waiting included, with ``per_s`` others' operations a second."""
    if not cores:
        return cpu_s
    used = per_s * cpu_s / cores
    if used >= 1:
        return math.inf
    return cpu_s * (cores - 1) / cores + cpu_s / cores / (1 - used)


def throughput(circle: Circle, most_per_s: float = math.inf) -> float:
    """Operations per second of the closed circle, ``most_per_s`` at most (a cap)."""
    idle_s = circle.think_s + circle.parts(0.0).response_s
    top = min(most_per_s, circle.users / idle_s if idle_s > 0 else math.inf)
    if circle.work.cores and circle.work.cpu_s:
        top = min(top, circle.work.cores / circle.work.cpu_s)

    def in_time(per_s: float) -> bool:
        """Whether users are back soon enough for so many a second."""
        return per_s * (circle.think_s + circle.parts(per_s).response_s) <= circle.users

    return top if in_time(top) else _last(in_time, 0.0, top)


def fitted_rest(circle: Circle, per_s: float, there_s: float) -> tuple[Circle, float]:
    """The circle in which an operation takes ``there_s``: what no part explains is its rest.

    Returns:
        The circle with that ``rest_s``, and 1; or, where the parts alone take longer than there is time, with
        no rest, and by how much the waits for the disk must be shortened (a ratio below 1) to fit.
    """

    def response(rest_s: float) -> float:
        return _rested(circle, rest_s).parts(per_s).response_s

    if response(0.0) <= there_s:
        return _rested(circle, _last(lambda rest_s: response(rest_s) <= there_s, 0.0, there_s)), 1.0
    bare = _rested(circle, 0.0)
    found = bare.parts(per_s)
    waits = found.flush_s + found.read_s
    return bare, min(1.0, max(0.0, there_s - found.cpu_s) / waits) if waits else 1.0


def flush_ios(users: float, commits_per_s: float, writes_per_s: float, io_s: float) -> float | None:
    """I/Os per flush, out of how many writes the commits made; None where writes never pause.

    Of ``v`` I/Os a flush takes ``v x io_s``; the more it takes the more share it. ``v`` times the flushes a
    second are the writes.
    """
    if commits_per_s <= 0 or writes_per_s <= 0 or writes_per_s * io_s >= _NEVER_IDLE:
        return None

    def writes(ios: float) -> float:
        return ios * _flushes(users, commits_per_s, ios * io_s)

    most = 2.0
    while writes(most) <= writes_per_s and most < 2**16:
        most *= 2
    return _last(lambda ios: writes(ios) <= writes_per_s, 0.0, most)


def _flushes(users: float, commits_per_s: float, flush_s: float) -> float:
    """How many flushes a second so many commits make, whatever their users do in between."""
    if not math.isfinite(users):
        return random_flushes_per_s(commits_per_s, flush_s)
    if not flush_s or group_commit(users, 0.0, flush_s).per_s <= commits_per_s:
        return 1 / flush_s if flush_s else commits_per_s
    longest_s = users / commits_per_s
    away_s = _last(lambda one: group_commit(users, one, flush_s).per_s >= commits_per_s, 0.0, longest_s)
    return group_commit(users, away_s, flush_s).flushes_per_s


def _rested(circle: Circle, rest_s: float) -> Circle:
    return replace(circle, work=replace(circle.work, rest_s=rest_s))


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The last value in between for which it still holds, of what holds at first and then no more."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if high - low <= 1e-7 * high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
