"""Group commit: the time of a commit at a log that one flush serves for all waiting.

One session at a time flushes a log. A session that commits during a flush waits for its end, and then
for the next flush, which has its record and those of all that arrived meanwhile. Of up to ``CROWD``
sessions what follows is exact: who is away for a random time of mean ``a`` is back within a flush of ``F``
seconds with probability ``1 - exp(-F / a)``, so how many share the next flush depends on how many shared this
one alone, and the means follow (a Markov chain). Of more a commit takes ``F``, and where it meets a flush
what is left of that, ``F / (1 - exp(-F / a)) - a``: half of it where commits come at any moment, all of it
where those whom a flush wakes are back at once (too late for the next flush, which has begun).

A cap of the disk keeps flushes apart only where they would follow each other faster: of those who wait one
asks for the next flush at once, and all who come until the cap lets it through must wait for the one after.
So flushes last longer until they come no more often than the cap allows: one in ``c`` seconds where one is
going on for a share ``o`` of the time lasts ``o c``.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import add, mul

import numpy as np

CROWD = 40
"""From this many sessions on any one of them hardly matters to the others."""
HALVINGS = 60
_AWAY_RATIOS: list[float] = np.geomspace(1e-3, 1e4, 71).tolist()
"""Away times ÷ a flush for which the chain is solved; in between, evenly in logarithms."""
_POINTS: list[float] = np.log(_AWAY_RATIOS).tolist()
_AT_ONCE = 1e-9
"""The time in seconds that stands for a flush without duration."""


@dataclass(frozen=True)
class Sessions:
    """The sessions that commit at one log: a value per load.

    It is asked with many flush times, so what stays is kept. Plain numbers: arrays of one to three values
    take four times as long.

    Attributes:
        users: sessions of each load.
        per_s: commits per second of each.
        each_s: how long a commit of each takes, by the last round.
    """

    users: Sequence[float]
    per_s: Sequence[float]
    each_s: Sequence[float]

    def commit_s(self, flush_s: float) -> list[float]:
        """The time of a commit of each load at a log with this flush time.

        The mean is that of this many like sessions; loads differ as the flush differs that they meet: who is
        away for long meets it anywhere, who is back at once at its begin.
        """
        flush_s = max(flush_s, _AT_ONCE)
        more_s = flush_s * self._solve(flush_s)[0] - flush_s
        left_s = [residual_s(flush_s, away_s) for away_s in self._away_s]
        mean_s = self._mean(left_s)
        return [flush_s + more_s * each_s / mean_s for each_s in left_s]

    def occupied_ratio(self, flush_s: float) -> float:
        """The share of time in which a flush is in progress."""
        return self._solve(max(flush_s, _AT_ONCE))[1]

    def _solve(self, flush_s: float) -> tuple[float, float]:
        """(time of a commit in flushes, share of time in which a flush is in progress)."""
        if self.total_per_s <= 0:
            return 1.0, 0.0
        equal_users, away_s = self._like
        away = away_s / flush_s
        if equal_users > CROWD:
            return _large_group(self.total_per_s * flush_s, away)
        below = max(1, math.floor(equal_users))
        part = equal_users - below
        result = [_looked_up(users, away) for users in (below, below + (part > 0))]
        return (
            result[0][0] * (1 - part) + result[1][0] * part,
            result[0][1] * (1 - part) + result[1][1] * part,
        )

    def _mean(self, values: Sequence[float]) -> float:
        """The mean over all commits."""
        if self.total_per_s <= 0:
            return added(values) / len(values)
        return added(map(mul, values, self.per_s)) / self.total_per_s

    @cached_property
    def total_per_s(self) -> float:
        """Commits per second of all loads."""
        return added(self.per_s)

    @cached_property
    def _like(self) -> tuple[float, float]:
        """(sessions that would commit the same if all were equal, time of each between two commits)."""
        per_s = self.total_per_s
        squares = (each * each / users for each, users in zip(self.per_s, self.users, strict=True))
        equal_users = per_s**2 / added(squares)
        return equal_users, max(0.0, equal_users / per_s - self._mean(self.each_s))

    @cached_property
    def _away_s(self) -> list[float]:
        """Time of a session between two commits: its way round, per commit, less the commit."""
        return [
            max(users / max(per_s, 1e-12) - each_s, 0.0)
            for users, per_s, each_s in zip(self.users, self.per_s, self.each_s, strict=True)
        ]


def added(values: Iterable[float]) -> float:
    """Their sum, one after the other: from Python 3.12 on ``sum`` would differ in the last digits."""
    return functools.reduce(add, values, 0.0)


def residual_s(flush_s: float, away_s: float) -> float:
    """The remaining time of the present flush when a session returns, if flushes follow each other.

    Who was away for a time that is exponential with mean ``a`` comes back in the ``ceil(t / F)``-th of them:
    ``E[F ceil(t / F) - t] = F / (1 - exp(-F / a)) - a``.

    Args:
        flush_s: how long a flush takes.
        away_s: mean time between a commit's end and the next one's begin.
    """
    ratio = flush_s / max(away_s, 1e-12)
    if ratio < 1e-3:  # the difference of two large numbers would be all noise
        return flush_s / 2
    return min(max(flush_s / -math.expm1(-ratio) - away_s, 0.0), flush_s)


def flush_of(sessions: Sessions) -> float:
    """How long a flush takes where commits take as long as they do: the inverse of ``Sessions.commit_s``.

    Of several loads the mean commit is what the flush is found from.
    """
    whole = sessions.total_per_s
    target = added(map(mul, sessions.each_s, sessions.per_s)) / whole
    low, high = 0.0, target
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high} and middle not in {0.0, target}:
            break  # the two are neighbours
        result = added(map(mul, sessions.commit_s(middle), sessions.per_s)) / whole
        low, high = (middle, high) if result < target else (low, middle)
    return (low + high) / 2


def _large_group(per_flush: float, away: float) -> tuple[float, float]:
    """Commits per flush and waiting time in flushes, for commits that arrive at random."""
    occupied = 1 / (1 + math.exp(-per_flush) / per_flush)
    return 1 + occupied * residual_s(1.0, away), occupied


def _looked_up(users: int, away: float) -> tuple[float, float]:
    """The chain's, between the two points around it; each is solved once."""
    at = math.log(min(max(away, _AWAY_RATIOS[0]), _AWAY_RATIOS[-1]))
    place = min(bisect_right(_POINTS, at) - 1, len(_POINTS) - 2)
    (wait, result), (next_wait, next_found) = _chain(users, place), _chain(users, place + 1)
    past, width = at - _POINTS[place], _POINTS[place + 1] - _POINTS[place]
    return (
        (next_wait - wait) / width * past + wait,
        min((next_found - result) / width * past + result, users / max(away, 1e-12)),
    )


@lru_cache(maxsize=CROWD * len(_AWAY_RATIOS))
def _chain(users: int, place: int) -> tuple[float, float]:
    """(time of a commit, share of time with a flush) for users with this time between commits, in flushes."""
    away = _AWAY_RATIOS[place]
    sizes = np.arange(1, users + 1)
    # Row: how many share this flush; column: how many of the others are back when it ends.
    back = -math.expm1(-1 / away)
    chances = np.array([_binomial(users - size, back, users + 1) for size in range(1, users + 1)])
    no_record = chances[:, 0]
    step = chances[:, 1:].copy()
    step[:, 0] += no_record  # the next flush has only the record of the first session that arrives
    balance = np.vstack([step.T - np.eye(users), np.ones(users)])
    share, *_ = np.linalg.lstsq(balance, np.append(np.zeros(users), 1.0), rcond=None)
    each = 1 + float(share @ no_record) * away / users
    return users * each / float(share @ sizes) - away, 1 / each


def _binomial(tries: int, chance: float, length: int) -> list[float]:
    """The probabilities of 0, 1, ... successes, a list of ``length``; above ``tries`` they are 0."""
    return [
        math.comb(tries, count) * chance**count * (1 - chance) ** (tries - count) if count <= tries else 0.0
        for count in range(length)
    ]
