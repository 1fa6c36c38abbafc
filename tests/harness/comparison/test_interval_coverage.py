"""Coverage of the block bootstrap's 95 % interval within a run, for means and percentiles."""

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
    """Return series of a first-order autoregression with mean 0 and variance 1."""
    shocks = chance.normal(0, math.sqrt(1 - near**2), (runs, steps))
    waves = np.empty((runs, steps))
    last = chance.normal(size=runs)
    for step in range(steps):
        last = near * last + shocks[:, step]
        waves[:, step] = last
    return waves


def held(base: FigureCourse, other: FigureCourse, ratio: float) -> bool:
    """Return whether the interval of two runs' ratio contains the true ratio."""
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
    """Of 2,000 pairs of autocorrelated runs, at least 93 % of the intervals contain the true ratio."""
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
    """Blocks of one second cover about half only, so the simulation can detect a bad interval."""
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
    """The intervals of p50 and p95 contain the true ratio for latencies with a wandering level."""
    assert covered_percentiles(percent, DRAWS) >= NOMINAL


def test_some_percentiles_cover_too() -> None:
    """A shorter version for CI: with 150 pairs a true 94 % exceeds 88 % in 999 of 1,000 cases."""
    assert covered_percentiles(50.0, 150) >= 0.88


def covered_percentiles(percent: float, draws: int, steps: int = 200) -> float:
    """Return the share of two runs' percentile intervals that contain their true ratio of 1."""
    chance = np.random.default_rng(23)
    edges = np.exp(np.linspace(-3, 3, 601))  # 1 % each: coarser bins would be the largest error
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
    """A run's percentile is that of the merged histogram, not a mean of the seconds' percentiles."""
    counts = np.array([[9.0, 1.0, 0.0], [0.0, 5.0, 5.0]])
    one = Percentile(counts, np.array([0.001, 0.01, 0.1]), 50.0)
    assert one.value == 0.01
    assert one.resampled(np.array([[0, 1], [0, 0], [1, 1]]), 1).tolist() == [0.01, 0.001, 0.01]
    assert Percentile(counts, one.values, 95.0).value == 0.1


def test_blocks_grow_with_what_neighbours_share() -> None:
    """The block length is √n for independent seconds, longer with autocorrelation, at most a quarter."""
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
    """A short, idle or mostly idle run has no interval."""
    ones = np.ones(10)
    assert spread_of(RatioOfSums(ones, ones)) is None
    idle = np.zeros(100)
    assert spread_of(RatioOfSums(idle, np.ones(100))) is None
    idle[3] = 5.0
    assert spread_of(RatioOfSums(idle, np.ones(100))) is None
    assert widest([RatioOfSums(np.ones(50), np.ones(50)), None]) is None


def test_of_several_runs_the_widest_counts() -> None:
    """The widest of several runs' intervals counts."""
    chance = np.random.default_rng(25)
    calm, wild = (RatioOfSums(100 + width * chance.normal(size=100), np.ones(100)) for width in (1, 20))
    assert widest([calm, wild, calm]) == spread_of(wild)


def test_long_runs_are_added_up() -> None:
    """A day of ten-second rows is added up to at most a thousand steps without loss."""
    steps = np.arange(8640.0)
    assert len(joined(steps)) <= MOST_STEPS
    assert joined(steps).sum() == steps.sum()
    assert joined(steps[:50]).tolist() == steps[:50].tolist()


def test_a_resample_is_made_of_whole_blocks() -> None:
    """A resample consists of blocks of successive steps, which wrap around at the end."""
    one = RatioOfSums(np.arange(10.0), np.ones(10))
    found = one.resampled(np.array([[0, 5], [8, 8]]), 5)
    assert found.tolist() == [4.5, np.mean([8, 9, 0, 1, 2])]
