"""Models group commit: the time of a commit when one flush serves all waiting sessions.

One session at a time flushes the log. A session that commits during a flush waits for the end of that flush,
and then for the next flush, which writes its record and all records that arrived meanwhile. For up to
``CROWD`` sessions a Markov chain gives the exact means: a session that is away for a random time of mean
``a`` returns within a flush of ``F`` seconds with probability ``1 - exp(-F / a)``, so the number of sessions
in the next flush depends only on the number in this flush. With more sessions, a commit takes ``F``, and if
it arrives during a flush, the rest of that flush as well: ``F / (1 - exp(-F / a)) - a``. The rest is half of
``F`` if commits arrive at random, and all of ``F`` if the sessions that a flush wakes return at once (too
late for the next flush, which has begun).

A disk cap delays flushes only if flushes would otherwise follow each other too fast. While a flush waits for
the cap, arriving sessions must wait for the flush after it. So flushes get longer until their rate meets the
cap: with a cap of one flush in ``c`` seconds and a flush in progress for a share ``o`` of the time, each
flush lasts ``o c``.
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
"""Above this number of sessions, one session hardly affects the others."""
HALVINGS = 60
_AWAY_RATIOS: list[float] = np.geomspace(1e-3, 1e4, 71).tolist()
"""Ratios of away time to flush time for which the chain is solved; values between are interpolated in
logarithms."""
_POINTS: list[float] = np.log(_AWAY_RATIOS).tolist()
_AT_ONCE = 1e-9
"""Seconds that stand for a flush of zero duration."""


@dataclass(frozen=True)
class Sessions:
    """The sessions that commit to one log: one value per load.

    Results are cached, because the solver tries many flush times. Plain lists are used, because arrays of one
    to three values take four times as long.

    Attributes:
        users: number of sessions of each load.
        per_s: commits per second of each load.
        each_s: seconds per commit of each load, from the last iteration.
    """

    users: Sequence[float]
    per_s: Sequence[float]
    each_s: Sequence[float]

    def commit_s(self, flush_s: float) -> list[float]:
        """Seconds per commit of each load, for this flush time.

        The mean is that of an equivalent number of identical sessions. Loads differ in the time that is left
        of a flush when a session arrives: a session that is away for long arrives at any moment of a flush,
        and a session that returns at once arrives at the beginning of a flush.
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
        """(time of a commit in flush times, share of time in which a flush is in progress)."""
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
        """The mean of one value per load, weighted by the commits of each load."""
        if self.total_per_s <= 0:
            return added(values) / len(values)
        return added(map(mul, values, self.per_s)) / self.total_per_s

    @cached_property
    def total_per_s(self) -> float:
        """Commits per second of all loads."""
        return added(self.per_s)

    @cached_property
    def _like(self) -> tuple[float, float]:
        """(number of identical sessions with this rate of commits, seconds between two commits of each)."""
        per_s = self.total_per_s
        squares = (each * each / users for each, users in zip(self.per_s, self.users, strict=True))
        equal_users = per_s**2 / added(squares)
        return equal_users, max(0.0, equal_users / per_s - self._mean(self.each_s))

    @cached_property
    def _away_s(self) -> list[float]:
        """Seconds between two commits of a session, for each load."""
        return [
            max(users / max(per_s, 1e-12) - each_s, 0.0)
            for users, per_s, each_s in zip(self.users, self.per_s, self.each_s, strict=True)
        ]


def added(values: Iterable[float]) -> float:
    """The sum of the values, one by one: ``sum`` of Python 3.12 and later differs in the last digits."""
    return functools.reduce(add, values, 0.0)


def residual_s(flush_s: float, away_s: float) -> float:
    """The remaining seconds of the present flush when a session returns, if flushes follow each other.

    If the time away ``t`` is exponential with mean ``a``, the session returns during flush number ``ceil(t /
    F)``: ``E[F ceil(t / F) - t] = F / (1 - exp(-F / a)) - a``.

    Args:
        flush_s: seconds per flush.
        away_s: mean seconds between the end of a commit and the beginning of the next commit.
    """
    ratio = flush_s / max(away_s, 1e-12)
    if ratio < 1e-3:  # avoids the rounding error of the difference of two large numbers
        return flush_s / 2
    return min(max(flush_s / -math.expm1(-ratio) - away_s, 0.0), flush_s)


def flush_of(sessions: Sessions) -> float:
    """The flush time in seconds that explains the given commit times: the inverse of ``Sessions.commit_s``.

    With several loads, the flush time is found from the mean commit time.
    """
    whole = sessions.total_per_s
    target = added(map(mul, sessions.each_s, sessions.per_s)) / whole
    low, high = 0.0, target
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high} and middle not in {0.0, target}:
            break  # no number lies between low and high
        result = added(map(mul, sessions.commit_s(middle), sessions.per_s)) / whole
        low, high = (middle, high) if result < target else (low, middle)
    return (low + high) / 2


def _large_group(per_flush: float, away: float) -> tuple[float, float]:
    """(time of a commit in flush times, share of time with a flush in progress), for many sessions."""
    occupied = 1 / (1 + math.exp(-per_flush) / per_flush)
    return 1 + occupied * residual_s(1.0, away), occupied


def _looked_up(users: int, away: float) -> tuple[float, float]:
    """The result of the chain, interpolated between the two solved ratios next to ``away``."""
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
    """(time of a commit in flush times, share of time with a flush) for the away ratio at index ``place``."""
    away = _AWAY_RATIOS[place]
    sizes = np.arange(1, users + 1)
    # Row: number of sessions in this flush. Column: number of other sessions that are back when the flush
    # ends.
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
    """The probabilities of 0, 1, ... successes, as a list of ``length``; they are 0 above ``tries``."""
    return [
        math.comb(tries, count) * chance**count * (1 - chance) ** (tries - count) if count <= tries else 0.0
        for count in range(length)
    ]
