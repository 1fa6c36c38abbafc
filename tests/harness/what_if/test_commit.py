"""Group commit: the formula beside a simulation of sessions that commit to a log, flush by flush."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from pinchpoint.what_if.commit import flush_of, residual_s
from pinchpoint.what_if.model import Commit, Model, Users, solve

FLUSHES = 20_000


def simulated_per_s(users: int, flush_s: float, away_s: float) -> float:
    """Commits per second: a flush takes all who wait when it begins; who is away is so exponentially."""
    random = np.random.default_rng(1)
    coming = list(random.exponential(away_s, users))
    heapq.heapify(coming)
    now, done = 0.0, 0
    for _ in range(FLUSHES):
        now = max(now, coming[0])
        taken = 0
        while coming and coming[0] <= now:
            heapq.heappop(coming)
            taken += 1
        now += flush_s
        for _ in range(taken):
            heapq.heappush(coming, now + random.exponential(away_s))
        done += taken
    return done / now


@pytest.mark.parametrize("users", [1, 2, 8, 40])
@pytest.mark.parametrize("away", [0.02, 0.2, 1.0, 5.0])
def test_throughput_of_sessions_that_share_flushes(users: int, away: float) -> None:
    """From sessions that are back at once to such as mostly do something else, one to forty of them."""
    flush_s = 0.004
    model = Model(
        (Users("orders", users, 0.0, rest_s=away * flush_s),), (Commit("log", flush_s, {"orders": 1.0}),)
    )
    found = solve(model).per_s["orders"]
    assert found == pytest.approx(simulated_per_s(users, flush_s, away * flush_s), rel=0.08)


def test_those_who_are_back_at_once_wait_for_a_whole_flush_more() -> None:
    """The two ends of the residual: all of a flush, or half of it."""
    found = residual_s(0.01, np.array([0.0, 1e-9, 100.0]))
    assert found == pytest.approx([0.01, 0.01, 0.005], rel=1e-3)


@pytest.mark.parametrize("away_s", [0.0005, 0.004, 0.05])
def test_a_flush_is_found_from_how_long_commits_take(away_s: float) -> None:
    """The inverse: what the solver says of a flush of 6 ms leads back to it."""
    model = Model((Users("orders", 8, 0.0, rest_s=away_s),), (Commit("log", 0.006, {"orders": 1.0}),))
    found = solve(model)
    one = np.array([1.0])
    flush_s = flush_of(
        users=8 * one,
        per_s=found.per_s["orders"] * one,
        commits=one,
        each_s=found.stays_s["log", "orders"] * one,
    )
    assert flush_s == pytest.approx(0.006, rel=0.02)


def test_more_sessions_commit_more_though_the_log_does_no_more() -> None:
    """Twice the sessions, twice the commits per flush; one session alone gets one commit a flush."""
    per_s = [
        solve(Model((Users("orders", users, 0.0, 0.00005),), (Commit("log", 0.01, {"orders": 1.0}),))).per_s[
            "orders"
        ]
        for users in (1, 8, 16)
    ]
    assert per_s[0] == pytest.approx(100, rel=0.02)
    assert per_s[2] / per_s[1] == pytest.approx(2, rel=0.02)
