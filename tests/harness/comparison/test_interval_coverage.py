"""Chance within a run: the block bootstrap's interval holds what it should, of means and of percentiles."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from pinchpoint.comparison import intervals
from pinchpoint.comparison.intervals import (
    MOST_STEPS,
    FigureCourse,
    Percentile,
    RatioOfSums,
    blocks_of,
    joined,
    spread_of,
    widest,
)
from pinchpoint.comparison.statistics import combined

Floats = npt.NDArray[np.float64]

DRAWS = 2000
NOMINAL = 0.93


def autocorrelated(chance: np.random.Generator, runs: int, steps: int, near: float) -> Floats:
    """Runs of a first-order autoregression with mean 0 and variance 1."""
    shocks = chance.normal(0, math.sqrt(1 - near**2), (runs, steps))
    waves = np.empty((runs, steps))
    last = chance.normal(size=runs)
    for step in range(steps):
        last = near * last + shocks[:, step]
        waves[:, step] = last
    return waves


def held(base: FigureCourse, other: FigureCourse, ratio: float) -> bool:
    """Whether the interval of two runs' ratio holds the true one."""
    spreads = spread_of(base), spread_of(other)
    assert spreads[0]
    assert spreads[1]
    one = combined(
        math.log(other.value / base.value),
        [spreads[0][0], spreads[1][0]],
        [spreads[0][1], spreads[1][1]],
    )
    return one.ci95[0] <= ratio <= one.ci95[1]


@pytest.mark.parametrize(("near", "steps"), [(0.0, 120), (0.8, 120), (0.8, 300)], ids=str)
def test_the_interval_of_two_runs_covers_their_ratio(near: float, steps: int) -> None:
    """2,000 pairs of runs of one level whose seconds resemble each other: 93 % of the intervals at least."""
    chance = np.random.default_rng(21)
    waves = autocorrelated(chance, 2 * DRAWS, steps, near)
    below = np.ones(steps)
    done = [
        held(
            RatioOfSums(100 + 10 * waves[2 * at], below),
            RatioOfSums(150 + 15 * waves[2 * at + 1], below),
            1.5,
        )
        for at in range(DRAWS)
    ]
    assert np.mean(done) >= NOMINAL


def test_without_blocks_it_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation can fail: blocks of one second cover about half (METHOD: a plain bootstrap 53 %)."""
    monkeypatch.setattr(intervals, "blocks_of", lambda _: 1)
    waves = autocorrelated(np.random.default_rng(22), 400, 300, 0.8)
    below = np.ones(300)
    done = [
        held(
            RatioOfSums(100 + 10 * waves[2 * at], below),
            RatioOfSums(100 + 10 * waves[2 * at + 1], below),
            1.0,
        )
        for at in range(200)
    ]
    assert np.mean(done) < 0.7


@pytest.mark.slow(reason="2,000 pairs of histograms take a minute")
@pytest.mark.parametrize("percent", [50.0, 95.0])
def test_percentiles_cover_too(percent: float) -> None:
    """Latencies whose level wanders from second to second: the run's p50 and p95 against the true ones."""
    assert covered_percentiles(percent, DRAWS) >= NOMINAL


def test_some_percentiles_cover_too() -> None:
    """The same in CI, fewer: at 150 pairs a true 94 % is above 88 % in 999 of 1,000 cases."""
    assert covered_percentiles(50.0, 150) >= 0.88


def covered_percentiles(percent: float, draws: int, steps: int = 200) -> float:
    """How often the interval of two runs' percentiles holds their true ratio, 1."""
    chance = np.random.default_rng(23)
    edges = np.exp(np.linspace(-3, 3, 601))  # 1 % each: coarser ones would be the largest error
    values = np.sqrt(edges[1:] * edges[:-1])
    waves = autocorrelated(chance, 2 * draws, steps, 0.8)
    found = 0
    for at in range(draws):
        sides = []
        for wave in waves[2 * at : 2 * at + 2]:
            times = np.exp(0.3 * wave[:, None] + chance.normal(0, 0.5, (steps, 40)))
            column = np.clip(np.searchsorted(edges, times) - 1, 0, len(values) - 1)
            flat = (np.arange(steps)[:, None] * len(values) + column).ravel()
            counts = np.bincount(flat, minlength=steps * len(values)).reshape(steps, len(values))
            sides.append(Percentile(counts.astype(np.float64), values, percent))
        found += held(sides[0], sides[1], 1.0)
    return found / draws


def test_a_percentile_is_that_of_all_operations() -> None:
    """Of the merged histogram, not of the seconds' percentiles; a resample of itself is itself."""
    counts = np.array([[9.0, 1.0, 0.0], [0.0, 5.0, 5.0]])
    one = Percentile(counts, np.array([0.001, 0.01, 0.1]), 50.0)
    assert one.value == 0.01
    assert one.resampled(np.array([[0, 1], [0, 0], [1, 1]]), 1).tolist() == [0.01, 0.001, 0.01]
    assert Percentile(counts, one.values, 95.0).value == 0.1


def test_blocks_grow_with_what_neighbours_share() -> None:
    """√n where they share nothing, longer where they do, never more than a quarter of the run."""
    chance = np.random.default_rng(24)
    free, near, trend = (
        chance.normal(size=400),
        autocorrelated(chance, 1, 400, 0.95)[0],
        np.arange(400.0),
    )
    assert 20 <= blocks_of(free) < 30
    assert 50 < blocks_of(near) <= 100
    assert blocks_of(trend) == 100
    assert blocks_of(np.zeros(400)) == 20, "no variance at all"


def test_what_says_nothing_has_no_spread() -> None:
    """A short run, one that did nothing, one that did nothing for most of its time."""
    ones = np.ones(10)
    assert spread_of(RatioOfSums(ones, ones)) is None
    idle = np.zeros(100)
    assert spread_of(RatioOfSums(idle, np.ones(100))) is None
    idle[3] = 5.0
    assert spread_of(RatioOfSums(idle, np.ones(100))) is None
    assert widest([RatioOfSums(np.ones(50), np.ones(50)), None]) is None


def test_of_several_runs_the_widest_counts() -> None:
    """Three runs beside one do not narrow what chance within a run does."""
    chance = np.random.default_rng(25)
    calm, wild = (RatioOfSums(100 + width * chance.normal(size=100), np.ones(100)) for width in (1, 20))
    assert widest([calm, wild, calm]) == spread_of(wild)


def test_long_runs_are_added_up() -> None:
    """A day of ten-second rows becomes a thousand steps at most, and nothing is lost."""
    steps = np.arange(8640.0)
    assert len(joined(steps)) <= MOST_STEPS
    assert joined(steps).sum() == steps.sum()
    assert joined(steps[:50]).tolist() == steps[:50].tolist()


def test_a_resample_is_made_of_whole_blocks() -> None:
    """Blocks of neighbours, round the end where it is reached."""
    one = RatioOfSums(np.arange(10.0), np.ones(10))
    found = one.resampled(np.array([[0, 5], [8, 8]]), 5)
    assert found.tolist() == [4.5, np.mean([8, 9, 0, 1, 2])]
