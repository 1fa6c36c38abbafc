"""Bursts are found in a load with known bursts, however these fall on the readings."""

from __future__ import annotations

from random import Random

import pytest

from pinchpoint.fit.rates import Rate, bursts
from pinchpoint.plan.arrivals import Bursts, Constant, RateProfile, arrival_times


def readings(profile: RateProfile, length_s: float, every_s: float, seed: int = 1) -> list[Rate]:
    """Return a load's arrivals, counted per interval of that many seconds."""
    counts = [0] * int(length_s / every_s)
    for at in arrival_times(profile, "poisson", seed):
        if at >= len(counts) * every_s:
            break
        counts[int(at / every_s)] += 1
    return [Rate((n + 1) * every_s, every_s, count / every_s) for n, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("load", "every_s"),
    [
        (Bursts(50, 500, 15, 5), 1),
        (Bursts(20, 100, 60, 10), 1),
        (Bursts(50, 2000, 60, 10), 5),
        (Bursts(50, 2000, 60, 10), 7),
        (Bursts(0, 300, 30, 10), 1),
        (Bursts(100, 200, 60, 30), 2),
        (Bursts(50, 1000, 60, 20, ramp_s=5), 1),
        (Bursts(20, 400, 120, 60, ramp_s=20), 2),
    ],
)
def test_a_load_is_found_as_it_was_made(load: Bursts, every_s: float) -> None:
    """Base and peak are found within 10 %, period and length within a reading or 10 %, the mean exactly."""
    rates = readings(load, 8 * load.every_s, every_s)
    found = bursts(rates)
    assert found is not None
    mean = sum(rate.per_s for rate in rates) / len(rates)
    assert found.base_ratio * mean == pytest.approx(load.base_per_s, rel=0.1, abs=0.02 * load.peak_per_s)
    assert found.peak_ratio * mean == pytest.approx(load.peak_per_s, rel=0.1)
    assert found.every_s == pytest.approx(load.every_s, rel=0.02)
    assert found.for_s == pytest.approx(load.for_s, rel=0.1, abs=every_s / 2)
    assert found.ramp_s == pytest.approx(load.ramp_s, rel=0.25, abs=every_s)
    share = (found.for_s - found.ramp_s) / found.every_s
    assert found.base_ratio * (1 - share) + found.peak_ratio * share == pytest.approx(1)


@pytest.mark.parametrize(("jitter", "found_at_most"), [(0.0, 0.05), (0.5, 0.8), (1.0, 1.0)])
def test_bursts_that_come_as_they_like_are_told(jitter: float, found_at_most: float) -> None:
    """Regular bursts have no jitter, and irregular ones about their true jitter."""
    load = Bursts(20, 400, 60, 5, jitter_ratio=jitter, seed=3)
    found = bursts(readings(load, 60 * 60, 1))
    assert found is not None
    assert found.jitter_ratio == pytest.approx(jitter, abs=0.3)
    assert found.jitter_ratio <= found_at_most


def test_halts_of_the_machine_are_no_bursts() -> None:
    """Halts of the machine, the work made up for after them, and a missing burst are not bursts."""
    rates = readings(Bursts(60, 240, 20, 8), 400, 1)
    halted = list(rates)
    for second in (35, 75, 150, 151):  # in the middle of bursts, with the work made up for later
        halted[second] = Rate(second + 1, 1, 10)
        halted[second + 2] = Rate(second + 3, 1, 2 * rates[second].per_s)
    halted[104] = Rate(105, 1, 250)  # between two bursts
    for second in range(212, 220):
        halted[second] = Rate(second + 1, 1, 60)
    found = bursts(halted)
    assert found is not None
    assert found.every_s == pytest.approx(20, rel=0.02)
    assert found.for_s == pytest.approx(8, abs=1)
    assert found.peak_ratio / found.base_ratio == pytest.approx(4, rel=0.1)
    assert found.jitter_ratio < 0.2


def test_an_even_load_has_no_bursts() -> None:
    """Random variation and a lasting rise of the load are not bursts."""
    for seed in range(8):
        for rate in (1, 3, 10, 60):
            assert bursts(readings(Constant(rate), 600, 1, seed)) is None, (seed, rate)
    random = Random(1)
    rising = [Rate(second, 1, second + random.gauss(0, 5)) for second in range(1, 600)]
    assert bursts(rising) is None
    assert bursts([Rate(1, 1, 5.0)]) is None
    assert bursts([]) is None
