"""Bursts that ramp, come back to back or move: the right number of arrivals at the right times."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.base.errors import InputError
from pinchpoint.loadgen.load_schedule import starts
from pinchpoint.plan import load_plan
from pinchpoint.plan.arrivals import Bursts, arrival_times
from pinchpoint.report.run_tables import load_words


def until(end_s: float, shape: Bursts) -> list[float]:
    times = arrival_times(shape, "constant", 1)
    return list(itertools.takewhile(lambda t: t < end_s, times))


def between(times: list[float], low: float, high: float) -> int:
    return sum(low <= t < high for t in times)


def test_a_ramp_lies_within_the_burst() -> None:
    """A ramp of 2 s up and down within 10 s halves the work during the ramps."""
    times = until(20, Bursts(0, 100, every_s=20, for_s=10, ramp_s=2))
    found = [between(times, *span) for span in ((0, 10), (10, 11), (11, 12), (12, 18), (18, 20))]
    assert found == pytest.approx([0, 25, 75, 600, 100], abs=2)


def test_bursts_back_to_back_end_the_period_together() -> None:
    """Three bursts of 2 s, 1 s apart, end the period, and arrivals stay within their windows."""
    shape = Bursts(10, 100, every_s=20, for_s=2, back_to_back=3, gap_s=1)
    assert shape.windows(20) == [(12, 14), (15, 17), (18, 20)]
    times = until(20, shape)
    assert [between(times, *span) for span in ((0, 12), (12, 14), (14, 15))] == pytest.approx(
        [120, 200, 10], abs=2
    )


def test_jitter_moves_bursts_within_their_period() -> None:
    """Each period has its whole burst at another place, the same for the same seed."""
    shape = Bursts(0, 100, every_s=10, for_s=2, jitter_ratio=0.5, seed=3)
    windows = shape.windows(100)
    begins = [begin % 10 for begin, _ in windows]
    assert len(windows) == 10
    assert all(4 <= begin <= 8 for begin in begins)
    assert max(begins) - min(begins) > 1
    assert windows == Bursts(0, 100, 10, 2, jitter_ratio=0.5, seed=3).windows(100)
    assert windows != Bursts(0, 100, 10, 2, jitter_ratio=0.5, seed=4).windows(100)
    times = until(100, shape)
    assert len(times) == pytest.approx(2000, abs=5)
    assert all(any(low - 1e-6 <= t <= high + 1e-6 for low, high in windows) for t in times)


LOAD = {"model": "burst", "base": "10/s", "peak": "100/s", "every": "20s", "for": "4s"}


def planned(folder: Path, **more: Any) -> Any:
    scenario = {"use": "nosql-burst", "load": LOAD | more}
    path = folder / "plan.yaml"
    path.write_text(json.dumps({"name": "p", "scenarios": {"burst": scenario}, "phases": {"measure": "60s"}}))
    return load_plan(path).scenarios["burst"].load


def test_a_plan_says_the_shape(tmp_path: Path) -> None:
    """Every field of a plan's burst reaches the schedule and its wording."""
    load = planned(tmp_path, ramp="1s", back_to_back=2, gap="3s", jitter="20%").to_json()
    arrivals = starts(load, seed=5)
    assert arrivals is not None
    times = list(itertools.takewhile(lambda t: t < 2000, arrivals))
    assert len(times) == pytest.approx(100 * (2 * (100 * 2 + 110) + 12 * 10), rel=0.03)
    assert load_words(load) == (
        "10/s, bursts of 100/s for 4 s every 20 s, 2 back to back, 3 s apart, rising in 1 s, 20 % jitter"
    )


def test_a_plan_without_them_is_as_it_was(tmp_path: Path) -> None:
    """Without shape fields there is one burst at the end of every period."""
    load = planned(tmp_path).to_json()
    assert load_words(load) == "10/s, bursts of 100/s for 4 s every 20 s"
    shape = starts(load, seed=5)
    assert shape is not None
    times = list(itertools.takewhile(lambda t: t < 20, shape))
    assert between(times, 16, 20) > 300


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ramp": "3s"}, "a ramp longer than half its burst"),
        ({"back_to_back": 5}, "5 bursts back to back that last as long as their period"),
        ({"jitter": "120%"}, "jitter"),
        ({"back_to_back": 0}, "back_to_back"),
        ({"gap": "0s"}, "gap"),
    ],
)
def test_shapes_that_cannot_be_are_refused(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    """An impossible shape is refused with the field's place and the requirement."""
    with pytest.raises(InputError, match=words):
        planned(tmp_path, **more)
