"""Changing rates: the number of arrivals is right, also for continuous changes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.loadgen.load_schedule import is_closed, most, session_numbers, starts, user_start_s
from pinchpoint.loadgen.slots import SLOTS
from pinchpoint.plan import Plan, SilenceRule, StopRule
from pinchpoint.plan.arrivals import Bursts, Constant, RampRate, RateProfile, StepRates, arrival_times

EVERYTHING = frozenset(range(SLOTS))


def until(end_s: float, profile: RateProfile, arrivals: str = "constant") -> list[float]:
    return list(itertools.takewhile(lambda t: t < end_s, arrival_times(profile, arrivals, 1)))


def between(times: list[float], begin: float, end: float) -> int:
    return sum(begin <= time < end for time in times)


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_a_ramp_brings_as_many_as_its_rate_says(arrivals: str) -> None:
    """A ramp from 10/s to 110/s in 100 s has 6,000 arrivals, 1,750 of them in the first half."""
    times = until(120, RampRate(10, 110, 100), arrivals)
    sure = 1 if arrivals == "constant" else 4 * 6000**0.5
    assert between(times, 0, 100) == pytest.approx(6000, abs=sure)
    assert between(times, 0, 50) == pytest.approx(1750, abs=sure)
    assert between(times, 100, 120) == pytest.approx(2200, abs=sure)


def test_a_ramp_may_fall_to_nothing() -> None:
    """A ramp from 100/s to 0 in 50 s has 2,500 arrivals and none after."""
    times = list(arrival_times(RampRate(100, 0, 50), "constant", 1))
    assert len(times) == 2500
    assert times[-1] <= 50


def test_steps_hold_their_levels() -> None:
    """Each level of steps lasts its time, and the last one forever."""
    times = until(35, StepRates((10, 20, 30), 10))
    assert [between(times, begin, begin + 10) for begin in (0, 10, 20)] == pytest.approx(
        [100, 200, 300], abs=1
    )
    assert between(times, 30, 35) == pytest.approx(150, abs=1)


def test_a_long_constant_schedule_does_not_drift() -> None:
    """The millionth arrival at 1,000/s is due after 1,000 s."""
    millionth = next(itertools.islice(arrival_times(Constant(1000), "constant", 1), 999_999, None))
    assert millionth == pytest.approx(1000, abs=1e-6)


def test_bursts_with_a_base_of_zero_come_in_the_bursts_alone() -> None:
    """With a base of 0 there is no arrival outside of bursts."""
    shape = Bursts(0, 100, every_s=0.7, for_s=0.1)
    times = until(700, shape, "poisson")
    windows = shape.windows(700)
    assert len(times) == pytest.approx(10_000, abs=400)
    assert all(any(begin - 1e-6 <= t <= end + 1e-6 for begin, end in windows) for t in times[:200])


def ramp(unit: str, first: float, last: float) -> dict[str, Any]:
    return {"model": "ramp", "start": {unit: first}, "to": {unit: last}, "over_s": 60.0}


def steps(unit: str, first: float, step: float, top: float) -> dict[str, Any]:
    ends = {"start": {unit: first}, "step": {unit: step}, "at_most": {unit: top}}
    return {"model": "steps", "each_s": 15.0, **ends}


LOADS: dict[str, tuple[dict[str, Any], bool, int]] = {
    "ramp of rates": (ramp("per_s", 5.0, 50.0), False, 50),
    "ramp of users": (ramp("users", 2, 12), True, 12),
    "steps of rates": (steps("per_s", 10.0, 5.0, 30.0), False, 30),
    "steps of users": (steps("users", 4, 4, 18), True, 16),
    "soak": ({"model": "soak", "rate_per_s": 20.0}, False, 20),
}


@pytest.mark.parametrize("name", LOADS)
def test_every_model_is_open_or_closed_and_knows_its_highest_level(name: str) -> None:
    """Users make a closed load and rates an open one; sessions suffice for the highest level."""
    load, closed, highest = LOADS[name]
    assert is_closed(load) is closed
    assert (starts(load, 1) is None) is closed
    assert most(load) == highest
    if closed:
        assert session_numbers(load, 0, EVERYTHING) == list(range(highest))


def test_users_of_steps_and_ramps_start_when_their_level_does() -> None:
    """Users of steps start with their level, and users of a ramp one after the other."""
    steps = LOADS["steps of users"][0]
    assert [user_start_s(steps, number) for number in (0, 3, 4, 7, 8, 15)] == [0, 0, 15, 15, 30, 45]
    ramp = LOADS["ramp of users"][0]
    assert [user_start_s(ramp, number) for number in (0, 1, 2, 11)] == [0, 0, 6, 60]


def test_a_plan_says_the_same_in_a_file_and_in_json() -> None:
    """A plan has units in its file and base units in JSON."""
    given = {
        "name": "p",
        "scenarios": {
            "a": {"use": "sql-mix", "load": {"model": "ramp", "from": "30/min", "to": "2/s", "over": "1m"}},
            "b": {"use": "sql-mix", "load": {"model": "steps", "start": 4, "step": 2, "each": "20s"}},
            "c": {"use": "sql-mix", "load": {"model": "soak", "rate": "5/s", "arrivals": "constant"}},
        },
        "phases": {"warm_up": "auto", "measure": "1h"},
        "stop_when": [
            {"metric": "disk.write_latency_s", "role": "log", "above": "500ms", "for": "1m"},
            {"silent": "operations", "scenario": "a", "for": "30s"},
        ],
    }
    plan = Plan.from_file(given, Path())
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.to_json()["scenarios"]["a"]["load"]["start"] == {"per_s": 0.5}
    assert plan.scenarios["b"].load.levels == tuple(range(4, 27, 2))  # type: ignore[union-attr]
    assert plan.phases.warm_up.auto
    limit, silence = plan.stop_when
    assert isinstance(limit, StopRule)
    assert limit.above == 0.5
    assert silence == SilenceRule(silent="operations", scenario="a", for_s=30.0)


def test_a_climb_that_is_ended_stays_at_its_level() -> None:
    """A load in steps that is ended in its second level stays there; else it continues."""
    ended = iter((float("inf"), 15.0))  # asked at the end of the first level and of the second
    held = until(60, StepRates((10, 20, 30, 40, 50), 10, lambda: next(ended)))
    assert [between(held, begin, begin + 10) for begin in range(0, 60, 10)] == [
        pytest.approx(level, abs=1) for level in (100, 200, 200, 200, 200, 200)
    ]
    assert between(until(60, StepRates((10, 20, 30), 10)), 30, 40) == pytest.approx(300, abs=1)
