"""Bursts: their times, the backlog at their end, and the recovery, from the planned schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from harness.analysis.build import START_S, Build, utc

from pinchpoint.analysis import analyse
from pinchpoint.comparison.changes import _median_burst
from pinchpoint.plan.arrivals import LATEST_START_S, arrival_times, bursts, scenario_seed
from pinchpoint.report import verdict_tables

Floats = npt.NDArray[np.float64]

SEED = 1
CALM_S, BUSY_S = 0.001, 0.05


class Scheduled(Build):
    """A run with the plan's schedule as its load, begun ``begun_s`` seconds after the run's start."""

    def __init__(
        self,
        shape: Mapping[str, float],
        measure_s: int = 60,
        warm_up_s: int = 0,
        begun_s: float = 0.0,
        arrivals: str = "poisson",
    ) -> None:
        super().__init__(measure_s=measure_s, warm_up_s=warm_up_s, seed=SEED)
        self.host("nosql1", "nosql").cpu("nosql1", 0.3)
        self.burst("burst", **shape)
        self.event("load_begun", scenario="burst", at=utc(START_S + begun_s))
        seed = scenario_seed(SEED, "burst")
        profile = bursts(self.manifest["plan"]["scenarios"]["burst"]["load"], seed)
        self.windows = [(begun_s + low, begun_s + high) for low, high in profile.windows(self.seconds)]
        self.offered = np.zeros(self.seconds)
        for second in _seconds(arrival_times(profile, arrivals, seed), begun_s, self.seconds):
            self.offered[second] += 1

    def scheduled(self, offered: Floats | None = None) -> Scheduled:
        for metric in ("scheduled", "started"):
            level = self.offered if offered is None else offered
            self.metric("generator1", f"generator.{metric}_per_s", level, "burst", 0)
        # A generator writes no row for a second without scheduled operations.
        self.samples = [one for one in self.samples if "generator." not in one[3] or one[5]]
        return self

    def performed(self, done: Floats, latency_s: float | Floats = CALM_S, **more: Any) -> Scheduled:
        self.operations("burst", "update", done, latency_s, noise=0, **more)
        return self

    def found(self) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = analyse(self.run()).scenarios["burst"]["bursts"]
        return told


def _seconds(times: Iterator[float], begun_s: float, seconds: int) -> Iterator[int]:
    for time_s in times:
        if begun_s + time_s >= seconds:
            return
        yield int(begun_s + time_s)


SHAPES: dict[str, dict[str, float]] = {
    "half a second": {"base": 50, "peak": 1000, "every_s": 7.3, "for_s": 0.5},
    "hardly above the base": {"base": 20, "peak": 40, "every_s": 15, "for_s": 6},
    "all ramp": {"base": 5, "peak": 400, "every_s": 20, "for_s": 10, "ramp_s": 5},
    "at random": {"base": 30, "peak": 90, "every_s": 12, "for_s": 3, "jitter_ratio": 1},
    "back to back": {"base": 10, "peak": 50, "every_s": 20, "for_s": 3, "back_to_back": 3, "gap_s": 2},
    "nothing between": {"base": 0, "peak": 3, "every_s": 12, "for_s": 4},
}


@pytest.mark.parametrize("name", SHAPES)
def test_bursts_are_where_the_schedule_has_them(name: str) -> None:
    """All planned bursts are found whole, with their offered operations, for six burst shapes."""
    build = Scheduled(SHAPES[name], begun_s=0.37)
    rows = build.scheduled().performed(build.offered).found()
    assert len(rows) == len(build.windows) > 2
    for row, (begin, end) in zip(rows, build.windows, strict=True):
        start, after = row["start_s"], min(60, row["start_s"] + row["duration_s"])
        assert abs(start - begin) < 1.06
        assert abs(after - min(60, end)) < 1.06
        assert row["offered"] == build.offered[start:after].sum() == row["done"]
        assert row["backlog"] == 0


def test_what_is_dropped_waited_until_it_was() -> None:
    """Dropped operations count as backlog until they are given up, ten seconds after they were due."""
    shape = {"base": 10, "peak": 1000, "every_s": 40, "for_s": 4}
    build = Scheduled(shape, measure_s=80, arrivals="constant")
    inside = np.arange(80) % 40 >= 36
    done = np.where(inside, 100.0, 10.0)
    build.scheduled().performed(done, dropped=np.maximum(0, build.offered - done))
    first, second = build.found()
    assert first["dropped"] == pytest.approx(3600, abs=5)
    assert first["backlog"] == pytest.approx(3600, abs=5)
    assert second["backlog"] == pytest.approx(3600, abs=5), "those of the first are gone by now"
    assert LATEST_START_S < 36


def test_what_waited_when_measuring_began_counts() -> None:
    """The backlog of a burst in the warm-up is served in the first measured seconds and is counted."""
    shape = {"base": 10, "peak": 200, "every_s": 20, "for_s": 5}
    build = Scheduled(shape, measure_s=40, warm_up_s=20, arrivals="constant")
    second = np.arange(60) % 20
    # The farm does 100/s: half of the burst in its five seconds, then 90/s of the rest.
    done = np.where(second >= 15, 100.0, np.where(second < 5, 110.0, 10.0))
    done[:5] = 10.0
    build.scheduled().performed(done)
    assert [row["backlog"] for row in build.found()] == pytest.approx([500, 500], abs=10)


def test_what_fails_at_once_has_not_recovered() -> None:
    """Refused operations are no recovery, although they fail within microseconds."""
    shape = {"base": 50, "peak": 500, "every_s": 30, "for_s": 5}
    build = Scheduled(shape, measure_s=70, arrivals="constant").scheduled()
    second = np.arange(70)
    away = (second >= 30) & (second < 36)
    build.performed(np.where(away, 0.0, build.offered), np.where(second % 30 >= 25, BUSY_S, CALM_S))
    build.operations(
        "burst", "update", np.where(away, build.offered, 0.0), 0.00005, "connection_lost", noise=0
    )
    first, second_burst = build.found()
    assert 6 <= first["recovery_s"] <= 8
    assert second_burst["recovery_s"] <= 2


def test_a_generator_that_died_does_not_silence_the_others() -> None:
    """After one generator dies, the schedule of the other one is the offered load."""
    build = Scheduled({"base": 50, "peak": 500, "every_s": 20, "for_s": 5}, arrivals="constant")
    build.performed(build.offered).scheduled()
    share = build.offered.copy()
    build.samples = [one for one in build.samples if "scheduled" not in one[3]]
    for name, part, until in (("generator1", share / 2, 60), ("generator2", share / 2, 30)):
        for second in range(until):
            stamp = int((START_S + second + 1) * 1e9)
            value = float(part[second]) if second < 30 else float(share[second])
            build.samples.append((stamp, 1.0, name, "generator.scheduled_per_s", "burst", value, None))
    assert [row["offered"] for row in build.found()] == pytest.approx([2500, 2500, 2500], abs=5)


def words(build: Scheduled) -> list[str]:
    table = verdict_tables.bursts({"scenarios": {"burst": {"bursts": build.found()}}})
    place = [column.title for column in table.columns].index("time to recover")
    return [cells[place] for cells in table.cells()]


def test_why_no_recovery_is_known_is_said() -> None:
    """Not recovered in time, no time after the burst, and no calm time are three different texts."""
    shape = {"base": 50, "peak": 500, "every_s": 30, "for_s": 5}
    build = Scheduled(shape, arrivals="constant")
    slow = np.where(np.arange(60) >= 25, BUSY_S, CALM_S)
    slow[50:55] = CALM_S
    assert words(build.scheduled().performed(build.offered, slow)) == ["20 s", "not seen: no time after it"]
    slow[50:55] = BUSY_S
    build = Scheduled(shape, arrivals="constant")
    assert words(build.scheduled().performed(build.offered, slow))[0] == "not within 25 s"
    alone = Scheduled(shape | {"base": 0}, measure_s=70, arrivals="constant")
    assert words(alone.scheduled().performed(alone.offered)) == ["no calm between bursts"] * 2


def test_a_burst_whose_recovery_nobody_could_see_hides_no_other_s() -> None:
    """A burst without time to recover does not change the median; an unrecovered one makes it None."""
    seen = [{"recovery_s": 2.0, "watched_s": 20}, {"recovery_s": 4.0, "watched_s": 20}]
    assert _median_burst([*seen, {"recovery_s": None, "watched_s": 0}], "recovery_s") == 3.0
    assert _median_burst([*seen, {"recovery_s": None, "watched_s": 9}], "recovery_s") is None
    assert math.isclose(_median_burst([{"done": 1, "watched_s": 0}], "done") or 0, 1.0)


@pytest.mark.parametrize("whole", [True, False], ids=["nothing else", "a base before it"])
def test_a_window_inside_a_burst_is_judged(*, whole: bool) -> None:
    """A window inside a burst has one stage, the peak; with ten seconds before it, also a base."""
    build = Build(measure_s=30, warm_up_s=30 if whole else 10).host("nosql1", "nosql").cpu("nosql1", 0.4, 0.4)
    build.burst("burst", 50.0, 400.0, 60.0, 30.0)
    seconds = np.arange(build.seconds)
    rate = np.where(seconds >= (30 if whole else 25), 400.0, 50.0)
    build.operations("burst", "write", rate, 0.002)
    verdict = analyse(build.generator(burst=(rate, rate)).run())  # type: ignore[arg-type]  # one a second
    assert [stage["name"] for stage in verdict.stages] == (["peak"] if whole else ["base", "peak"])
