"""The bridge's arithmetic, against a simulation that knows nothing of it, and against what must hold."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import replace

import pytest

from pinchpoint.probe.bridge.model import (
    Circle,
    Work,
    fitted_rest,
    flush_ios,
    group_commit,
    processor_s,
    random_flushes_per_s,
    throughput,
)


def work(
    rest_s: float = 0.0, cpu_s: float = 0.0, cores: int = 0, commits: float = 0.0, reads: float = 0.0
) -> Work:
    return Work(rest_s, cpu_s, cores, commits, 1.0, reads, 0.0)


def circle(
    users: float, asked: Work, flush_s: float = 0.0, read_s: float = 0.0, think_s: float = 0.0
) -> Circle:
    return Circle(asked, users, think_s, flush_s, lambda _: read_s)


ENOUGH = 20_000
"""Commits of a simulation: chance is below one percent."""


def simulated(users: int, away_s: float, flush_s: float) -> tuple[float, float]:
    """(commits, flushes) per second of users who are away for a random time, then share a flush."""
    chance = random.Random(7)
    back = [chance.expovariate(1 / away_s) for _ in range(users)]
    heapq.heapify(back)
    free_at, commits, flushes = 0.0, 0, 0
    while commits < ENOUGH:
        begin, group = max(back[0], free_at), 0
        while back and back[0] <= begin:
            heapq.heappop(back)
            group += 1
        free_at, commits, flushes = begin + flush_s, commits + group, flushes + 1
        for _ in range(group):
            heapq.heappush(back, free_at + chance.expovariate(1 / away_s))
    return commits / free_at, flushes / free_at


@pytest.mark.parametrize("users", [1, 2, 8, 32])
@pytest.mark.parametrize("away_ms", [0.2, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("flush_ms", [1.0, 5.0])
def test_group_commit_as_it_is_simulated(users: int, away_ms: float, flush_ms: float) -> None:
    """From one user to 32, from a log that idles to one that never does: commits and flushes."""
    commits, flushes = simulated(users, away_ms / 1000, flush_ms / 1000)
    found = group_commit(users, away_ms / 1000, flush_ms / 1000)
    assert found.per_s == pytest.approx(commits, rel=0.03)
    assert found.flushes_per_s == pytest.approx(flushes, rel=0.03)
    asked = circle(users, work(rest_s=away_ms / 1000, commits=1.0), flush_ms / 1000)
    assert throughput(asked) == pytest.approx(found.per_s, rel=1e-4)


def test_a_crowd_commits_as_at_random() -> None:
    """300 users are more than the chain is made for: their commits are as simulated."""
    commits, flushes = simulated(300, 0.5, 0.005)
    found = group_commit(300, 0.5, 0.005)
    assert found.per_s == pytest.approx(commits, rel=0.05)
    assert random_flushes_per_s(commits, 0.005) == pytest.approx(flushes, rel=0.05)


def spaced(users: int, away_s: float, flush_s: float, spacing_s: float) -> float:
    """Commits per second where a cap lets one flush through in so many seconds, each done much sooner."""
    chance = random.Random(7)
    back = [chance.expovariate(1 / away_s) for _ in range(users)]
    heapq.heapify(back)
    may_begin, commits = 0.0, 0
    while commits < ENOUGH:
        begin, group = max(back[0], may_begin), 0
        while back and back[0] <= begin:
            heapq.heappop(back)
            group += 1
        may_begin, commits = begin + spacing_s, commits + group
        for _ in range(group):
            heapq.heappush(back, begin + flush_s + chance.expovariate(1 / away_s))
    return commits / may_begin


@pytest.mark.parametrize(
    ("users", "away_ms", "flush_ms"), [(1, 4.0, 0.5), (8, 2.0, 0.5), (8, 2.0, 2.0), (32, 1.0, 1.0)]
)
def test_a_cap_hides_how_long_each_takes(users: int, away_ms: float, flush_ms: float) -> None:
    """One flush in 2.5 ms, each done sooner: who shared one is back for the next more often, as simulated."""
    found = group_commit(users, away_ms / 1000, flush_ms / 1000, 0.0025)
    assert found.per_s == pytest.approx(spaced(users, away_ms / 1000, flush_ms / 1000, 0.0025), rel=0.04)


def test_nobody_waits_alone() -> None:
    """One user never meets a flush of somebody else's."""
    assert throughput(circle(1, work(rest_s=0.001, commits=1.0), 0.004)) == pytest.approx(200, rel=1e-6)


def test_many_users_form_two_groups() -> None:
    """Who comes back while the others are flushed waits for that flush and for its own: N ÷ 2F."""
    found = throughput(circle(16, work(rest_s=1e-6, commits=1.0), 0.002))
    assert found == pytest.approx(16 / 0.004, rel=0.02)


def test_the_interactive_law_alone() -> None:
    """Nothing that queues: X = N ÷ (Z + R)."""
    assert throughput(circle(10, work(rest_s=0.02), think_s=0.03)) == pytest.approx(200)
    assert throughput(circle(10, work(rest_s=0.01, reads=2.0), read_s=0.005)) == pytest.approx(500)


def test_a_cap_holds_all() -> None:
    assert throughput(circle(10, work(rest_s=0.001)), most_per_s=300) == 300


def test_cores_hold_what_has_nothing_else_to_wait_for() -> None:
    """64 users of 10 ms of CPU each on two cores: 200 a second, and never more."""
    found = throughput(circle(64, work(cpu_s=0.01, cores=2)))
    assert 180 < found <= 200
    assert processor_s(0.01, 1, 100) == math.inf
    assert processor_s(0.01, 2, 0) == pytest.approx(0.01)


def test_the_rest_is_what_no_part_explains() -> None:
    """A circle that is fitted gets done what it was fitted to; its rest is what was put in."""
    there = circle(8, work(rest_s=0.003, cpu_s=0.0005, cores=1, commits=1.0, reads=1.0), 0.002, 0.001)
    per_s = throughput(there)
    bare = replace(there, work=replace(there.work, rest_s=0.0))
    found, shortened = fitted_rest(bare, per_s, 8 / per_s)
    assert shortened == 1.0
    assert found.work.rest_s == pytest.approx(0.003, rel=1e-3)
    assert throughput(found) == pytest.approx(per_s, rel=1e-6)


def test_waits_that_overlap_are_shortened() -> None:
    """Twenty reads of 1 ms in 10 ms: half of them overlap, and no time is left for a rest."""
    found, shortened = fitted_rest(circle(1, work(reads=20.0), read_s=0.001), 100, 0.01)
    assert found.work.rest_s == 0
    assert shortened == pytest.approx(0.5)


def test_how_many_ios_a_flush_takes_shows_in_the_writes() -> None:
    """Simulated with flushes of three I/Os: three are found; of a log that is never idle nothing is."""
    for users in (1, 4, 16):
        commits, flushes = simulated(users, 0.05, 0.003)
        assert flush_ios(users, commits, 3 * flushes, 0.001) == pytest.approx(3.0, rel=0.1)
    assert flush_ios(8, 1000, 999, 0.001) is None


def test_some_operations_commit() -> None:
    """One in four: four users' operations of 1 ms, a flush of 8 ms; as many flushes as a commit each."""
    asked = circle(1, work(rest_s=0.001, commits=0.25), 0.008)
    assert throughput(asked) == pytest.approx(1 / 0.003, rel=1e-3)
