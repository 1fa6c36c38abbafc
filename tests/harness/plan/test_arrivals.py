"""Open arrivals: the right number at the right times, reproducible, and shared without loss."""

from __future__ import annotations

import itertools
import statistics

import pytest

from pinchpoint.plan.arrivals import Bursts, Constant, arrival_times


def until(end_s: float, *args: object, **kwargs: object) -> list[float]:
    return list(itertools.takewhile(lambda t: t < end_s, arrival_times(*args, **kwargs)))  # type: ignore[arg-type]


def test_constant_arrivals_are_evenly_spaced() -> None:
    """100/s for 10 s are a thousand arrivals, 10 ms apart."""
    times = until(10.0001, Constant(100), "constant", 1)
    assert len(times) == 1000
    assert all(b - a == pytest.approx(0.01) for a, b in itertools.pairwise(times))


def test_poisson_gaps_are_exponential() -> None:
    """Mean and standard deviation of the gaps are 1/rate, and the count is within four sigma."""
    times = until(200, Constant(100), "poisson", 7)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert len(times) == pytest.approx(20_000, abs=4 * 20_000**0.5)
    assert statistics.mean(gaps) == pytest.approx(0.01, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_bursts_hold_their_rates(arrivals: str) -> None:
    """Between bursts the base rate holds, and in each period's last seconds the peak."""
    shape = Bursts(base_per_s=20, peak_per_s=400, every_s=10, for_s=2)
    times = until(300, shape, arrivals, 3)
    windows = shape.windows(300)
    assert windows[:2] == [(8, 10), (18, 20)]
    inside = sum(any(begin <= t < end for begin, end in windows) for t in times)
    assert inside == pytest.approx(30 * 2 * 400, rel=0.03)
    assert len(times) - inside == pytest.approx(30 * 8 * 20, rel=0.08)


def test_a_base_of_zero_waits_for_the_burst() -> None:
    """With a base of 0 there are arrivals in bursts only, and the schedule does not hang."""
    times = until(25, Bursts(0, 100, every_s=0.7, for_s=0.1), "poisson", 3)
    assert times
    assert all(t % 0.7 >= 0.6 - 1e-9 or t % 0.7 < 1e-9 for t in times)


def test_the_seed_decides_everything() -> None:
    """The same seed gives the same schedule, and another seed another one."""
    assert until(5, Constant(50), "poisson", 1) == until(5, Constant(50), "poisson", 1)
    assert until(5, Constant(50), "poisson", 1) != until(5, Constant(50), "poisson", 2)
