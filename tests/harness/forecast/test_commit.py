"""Group commit: the model compared with a simulation of sessions that commit to a log."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from pinchpoint.analysis.model.commit import CROWD, Sessions, flush_of, residual_s
from pinchpoint.analysis.model.network import OPEN_USERS, Commit, Model, Users, solve

FLUSHES = 20_000
"""Flushes of a simulation: the random error is below 1 %."""


def simulated(
    users: int, flush_s: float, away_s: float, spacing_s: float = 0.0, tolerance_s: float = 0.0
) -> tuple[float, float]:
    """Return (commits, flushes) per second; the think time of a session is exponential.

    A flush takes all sessions that wait when it starts. A regulator admits one flush every ``spacing_s`` and
    makes up for ``tolerance_s`` of idle time (the generic cell rate algorithm).
    """
    random = np.random.default_rng(1)
    coming = list(random.exponential(away_s, users))
    heapq.heapify(coming)
    now, done, next_at = 0.0, 0, 0.0
    for _ in range(FLUSHES):
        now = max(now, coming[0])
        taken = 0
        while coming and coming[0] <= now:
            heapq.heappop(coming)
            taken += 1
        begins = max(now, next_at - tolerance_s)
        next_at = max(now, next_at) + spacing_s
        now = begins + flush_s
        for _ in range(taken):
            heapq.heappush(coming, now + random.exponential(away_s))
        done += taken
    return done / now, FLUSHES / now


def solved(
    users: float, flush_s: float, away_s: float, pace_s: float = 0.0, *, bursts: bool = False
) -> float:
    """Return the model's commits per second."""
    log = Commit("log", flush_s, {"orders": 1.0}, pace_s, bursts)
    return solve(Model((Users("orders", users, away_s),), (log,))).per_s["orders"]


@pytest.mark.parametrize("users", [1, 2, 8, 32])
@pytest.mark.parametrize("away", [0.02, 0.2, 1.0, 5.0])
def test_throughput_of_sessions_that_share_flushes(users: int, away: float) -> None:
    """Throughput agrees for one to 32 sessions, with short and long think times."""
    flush_s = 0.004
    expected, _ = simulated(users, flush_s, away * flush_s)
    assert solved(users, flush_s, away * flush_s) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("away", [0.5, 5.0, 50.0])
def test_a_crowd_commits_as_at_random(away: float) -> None:
    """150 sessions, more than the exact chain is solved for, agree with the simulation."""
    assert CROWD < 150
    expected, _ = simulated(150, 0.005, away * 0.005)
    assert solved(150, 0.005, away * 0.005) == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize(("users", "away_s"), [(1, 0.004), (4, 0.02), (32, 0.1)])
def test_how_much_of_the_time_a_flush_is_going_on(users: int, away_s: float) -> None:
    commits, flushes = simulated(users, 0.003, away_s)
    here = Sessions([users], [commits], [users / commits - away_s])
    assert here.occupied_ratio(0.003) == pytest.approx(flushes * 0.003, rel=0.03)


@pytest.mark.parametrize("tolerance_s", [0.0, 0.01], ids=["exact", "made up for"])
@pytest.mark.parametrize(("users", "away_ms"), [(8, 1.0), (8, 0.3), (32, 2.0), (10, 20.0)])
@pytest.mark.parametrize("cap_per_s", [150, 400])
def test_a_cap_that_keeps_flushes_apart(
    users: int, away_ms: float, cap_per_s: int, tolerance_s: float
) -> None:
    """A regulator without tolerance spaces the flushes, and late sessions wait for the next one."""
    expected, _ = simulated(users, 0.0005, away_ms / 1000, 1 / cap_per_s, tolerance_s)
    found = solved(users, 0.0005, away_ms / 1000, pace_s=1 / cap_per_s)
    assert found == pytest.approx(expected, rel=0.10)


def test_a_cap_that_lets_through_in_bursts_ends_throughput_alone() -> None:
    """A regulator with bursts only limits the number of flushes, each shared as without it."""
    free, flushes = simulated(8, 0.0005, 0.001)
    found = solved(8, 0.0005, 0.001, pace_s=1 / 400, bursts=True)
    assert found == pytest.approx(free * 400 / flushes, rel=0.05)
    assert solved(8, 0.0005, 0.001, pace_s=1 / 400_000, bursts=True) == pytest.approx(free, rel=0.03)


def test_those_who_are_back_at_once_wait_for_a_whole_flush_more() -> None:
    """A session with no think time waits for a whole flush more, others for half of one."""
    found = [residual_s(0.01, away_s) for away_s in (0.0, 1e-9, 100.0)]
    assert found == pytest.approx([0.01, 0.01, 0.005], rel=1e-3)


@pytest.mark.parametrize("away_s", [0.0005, 0.004, 0.05])
def test_a_flush_is_found_from_how_long_commits_take(away_s: float) -> None:
    """The inverse finds a flush of 6 ms from the solver's commit times."""
    model = Model((Users("orders", 8, 0.0, rest_s=away_s),), (Commit("log", 0.006, {"orders": 1.0}),))
    found = solve(model)
    here = Sessions([8], [found.per_s["orders"]], [found.stays_s["log", "orders"]])
    assert flush_of(here) == pytest.approx(0.006, rel=0.02)


def test_more_sessions_commit_more_though_the_log_does_no_more() -> None:
    """Twice the sessions give twice the commits per flush; a single session gives one."""
    per_s = [solved(users, 0.01, 0.00005) for users in (1, 8, 16)]
    assert per_s[0] == pytest.approx(100, rel=0.02)
    assert per_s[2] / per_s[1] == pytest.approx(2, rel=0.02)


def test_loads_that_share_a_log() -> None:
    """Two loads share the flushes of a log; the load without think time waits longer."""
    loads = (Users("busy", 4, 0.0002), Users("now and then", OPEN_USERS, OPEN_USERS / 50))
    log = Commit("log", 0.005, {"busy": 1.0, "now and then": 1.0})
    found = solve(Model(loads, (log,)))
    assert found.per_s["now and then"] == pytest.approx(50, rel=0.01)
    assert 0.005 < found.stays_s["log", "now and then"] < found.stays_s["log", "busy"] < 0.0105


def test_some_operations_commit() -> None:
    """One in four operations commits: 1 ms per operation and a flush of 8 ms."""
    model = Model((Users("orders", 1, 0.0, 0.001),), (Commit("log", 0.008, {"orders": 0.25}),))
    assert solve(model).per_s["orders"] == pytest.approx(1 / 0.003, rel=0.01)
