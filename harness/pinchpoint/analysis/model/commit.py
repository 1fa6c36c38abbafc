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

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CROWD = 40
"""From this many sessions on any one of them hardly matters to the others."""
HALVINGS = 60
_AWAY_RATIOS: list[float] = np.geomspace(1e-3, 1e4, 71).tolist()
"""Away times ÷ a flush for which the chain is solved; in between, evenly in logarithms."""
_POINTS: list[float] = np.log(_AWAY_RATIOS).tolist()
_AT_ONCE = 1e-9
"""The time in seconds that stands for a flush without duration."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Who commits at one log: a value per load.

    Attributes:
        users: sessions of each load.
        per_s: commits per second of each.
        each_s: how long a commit of each takes, by the last round.
    """

    users: Floats
    per_s: Floats
    each_s: Floats

    def commit_s(self, flush_s: float) -> Floats:
        """The time of a commit of each load at a log with this flush time.

        The mean is that of this many like sessions; loads differ as the flush differs that they meet: who is
        away for long meets it anywhere, who is back at once at its begin.
        """
        flush_s = max(flush_s, _AT_ONCE)
        mean_s = flush_s * self._solve(flush_s)[0]
        left_s = residual_s(flush_s, self._away_s())
        return np.asarray(flush_s + (mean_s - flush_s) * left_s / self._mean(left_s))

    def occupied_ratio(self, flush_s: float) -> float:
        """The share of time in which a flush is in progress."""
        return self._solve(max(flush_s, _AT_ONCE))[1]

    def _solve(self, flush_s: float) -> tuple[float, float]:
        """(time of a commit in flushes, share of time in which a flush is in progress)."""
        per_s = float(self.per_s.sum())
        if per_s <= 0:
            return 1.0, 0.0
        equal_users = per_s**2 / float((self.per_s**2 / self.users).sum())
        away = max(0.0, equal_users / per_s - self._mean(self.each_s)) / flush_s
        if equal_users > CROWD:
            return _large_group(per_s * flush_s, away)
        below = max(1, math.floor(equal_users))
        part = equal_users - below
        result = [_looked_up(users, away) for users in (below, below + (part > 0))]
        return (
            result[0][0] * (1 - part) + result[1][0] * part,
            result[0][1] * (1 - part) + result[1][1] * part,
        )

    def _mean(self, values: Floats) -> float:
        """Of all commits."""
        per_s = float(self.per_s.sum())
        return float(values @ self.per_s) / per_s if per_s > 0 else float(values.mean())

    def _away_s(self) -> Floats:
        """Time of a session between two commits: its way round, per commit, less the commit."""
        return np.asarray(np.maximum(self.users / np.maximum(self.per_s, 1e-12) - self.each_s, 0.0))


def residual_s(flush_s: float, away_s: Floats) -> Floats:
    """The remaining time of the present flush when a session returns, if flushes follow each other.

    Who was away for a time that is exponential with mean ``a`` comes back in the ``ceil(t / F)``-th of them:
    ``E[F ceil(t / F) - t] = F / (1 - exp(-F / a)) - a``.

    Args:
        flush_s: how long a flush takes.
        away_s: mean time between a commit's end and the next one's begin, a value per load.
    """
    ratio = flush_s / np.maximum(away_s, 1e-12)
    short = ratio < 1e-3  # where the difference of two large numbers would be all noise
    long = flush_s / -np.expm1(-np.where(short, 1.0, ratio)) - away_s
    return np.asarray(np.where(short, flush_s / 2, np.clip(long, 0.0, flush_s)))


def flush_of(sessions: Sessions) -> float:
    """How long a flush takes where commits take as long as they do: the inverse of ``Sessions.commit_s``.

    Of several loads the mean commit is what the flush is found from.
    """
    target = float(np.average(sessions.each_s, weights=sessions.per_s))
    low, high = 0.0, target
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        result = float(np.average(sessions.commit_s(middle), weights=sessions.per_s))
        low, high = (middle, high) if result < target else (low, middle)
    return (low + high) / 2


def _large_group(per_flush: float, away: float) -> tuple[float, float]:
    """Of many: commits come at random, this many in the time of a flush; times in flushes."""
    occupied = 1 / (1 + math.exp(-per_flush) / per_flush)
    return 1 + occupied * float(residual_s(1.0, np.array([away]))[0]), occupied


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
