"""Group commit: how long a commit takes at a log that is flushed once for all who wait.

A log is flushed by one session at a time. Who commits while a flush is going on waits for its end, and then
for the flush that has its own record, together with all others who came meanwhile. So a commit takes one
flush, and what is left of the one before: half of it where commits come at any moment, all of it where those
whom a flush wakes are back at once (they are too late for the next flush, which has begun). The more sessions
there are, the more commits share a flush: throughput grows though the disk does no more.

A cap of the disk keeps flushes apart only where they would follow each other faster: flushes come at the rate
``o / F``, o the share of the time in which one is going on, so under a cap of one in c seconds F is the
larger of what a flush takes by itself and ``o c``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

HALVINGS = 60


def residual_s(flush_s: float, away_s: Floats) -> Floats:
    """What is left of the flush that is going on when a session comes back.

    Flushes follow each other. Who was away for a time that is exponential with mean ``a`` comes back in the
    ``ceil(t / F)``-th of them: ``E[F ceil(t / F) - t] = F / (1 - exp(-F / a)) - a``, which is F for a = 0 and
    F / 2 for a time that is long beside a flush.

    Args:
        flush_s: how long a flush takes.
        away_s: mean time between a commit's end and the next one's begin, a value per load.
    """
    ratio = flush_s / np.maximum(away_s, 1e-12)
    short = ratio < 1e-3  # where the difference of two large numbers would be all noise
    long = flush_s / -np.expm1(-np.where(short, 1.0, ratio)) - away_s
    return np.asarray(np.where(short, flush_s / 2, np.clip(long, 0.0, flush_s)))


def busy_ratio(users: Floats, per_s: Floats, commits: Floats, each_s: Floats) -> Floats:
    """How likely one of the other sessions is at the log when a session of each load comes there.

    Args:
        users: sessions of each load.
        per_s: operations per second of each.
        commits: commits per operation.
        each_s: how long a commit takes.
    """
    absent = _absent(users, per_s, commits, each_s)
    return np.asarray(1 - np.exp((users * absent).sum() - absent))


def occupied_ratio(users: Floats, per_s: Floats, commits: Floats, each_s: Floats) -> float:
    """The share of the time in which any session is at the log; the arguments are those of ``busy_ratio``."""
    return float(1 - np.exp((users * _absent(users, per_s, commits, each_s)).sum()))


def _absent(users: Floats, per_s: Floats, commits: Floats, each_s: Floats) -> Floats:
    """The logarithm of how likely one session of each load is not at the log."""
    return np.asarray(np.log1p(-np.clip(per_s * commits * each_s / users, 0.0, 1.0 - 1e-9)))


def commit_s(flush_s: float, users: Floats, per_s: Floats, commits: Floats, each_s: Floats) -> Floats:
    """How long a commit takes by one round of what it takes; the arguments are those of ``busy_ratio``."""
    away_s = _away_s(users, per_s, commits, each_s)
    busy = busy_ratio(users, per_s, commits, each_s)
    return np.asarray(flush_s + busy * residual_s(flush_s, away_s))


def flush_of(users: Floats, per_s: Floats, commits: Floats, each_s: Floats) -> float:
    """How long a flush takes where commits are known to take ``each_s``: the inverse of ``commit_s``.

    Of several loads the mean commit is what the flush is found from.
    """
    weight = per_s * commits
    target = float(np.average(each_s, weights=weight))
    low, high = 0.0, target
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = float(np.average(commit_s(middle, users, per_s, commits, each_s), weights=weight))
        low, high = (middle, high) if found < target else (low, middle)
    return (low + high) / 2


def _away_s(users: Floats, per_s: Floats, commits: Floats, each_s: Floats) -> Floats:
    """Time of a session between two commits: its way round, per commit, less the commit."""
    rate = np.maximum(per_s * commits, 1e-12)
    return np.asarray(np.maximum(users / rate - each_s, 0.0))
