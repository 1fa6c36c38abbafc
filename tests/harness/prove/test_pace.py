"""The length and the order of the windows of a proof."""

from __future__ import annotations

from typing import Any

import pytest

from pinchpoint.plan import Plan
from pinchpoint.run.prove import ORDER, ORDER_WITH_CONTROL, WindowPlan, pace


def plan(**load: Any) -> Plan:
    return Plan.from_json(
        {
            "name": "p",
            "seed": 1,
            "scenarios": {"orders": {"use": "sql-mix", "load": load, "params": {}}},
            "phases": {"warm_up": {"at_most_s": 1.0, "auto": False}, "measure": {"at_most_s": 10.0}},
        }
    )


def took(p50_s: float | None, p95_s: float | None) -> dict[str, Any]:
    return {"scenarios": {"orders": {"service_p50_s": p50_s, "service_p95_s": p95_s}}}


@pytest.mark.parametrize("order", [ORDER, ORDER_WITH_CONTROL])
def test_every_kind_of_window_lies_in_the_middle(order: tuple[str, ...]) -> None:
    """A linear drift adds the same to the mean of each kind of window."""
    places = {kind: [at for at, one in enumerate(order) if one == kind] for kind in order}
    assert {sum(at) / len(at) for at in places.values()} == {(len(order) - 1) / 2}


def test_windows_are_as_long_as_operations_ask_for() -> None:
    """Windows are 2 s for short operations, longer for long ones, and 10 s at most."""
    closed = plan(model="closed", users=4)
    assert pace(closed, took(0.002, 0.01), 1) == WindowPlan(2.0, 6, 1)
    assert pace(closed, took(0.5, 1.0), 1) == WindowPlan(3.0, 10, 1)
    assert pace(closed, took(20.0, 60.0), 1) == WindowPlan(10.0, 15, 1)
    assert pace(closed, took(None, None), 1) == WindowPlan(2.0, 6, 1)


def test_a_long_run_has_windows_of_what_it_keeps() -> None:
    """In a long run the windows contain whole ten-second rows, aligned to UTC."""
    found = pace(plan(model="closed", users=4), took(0.002, 0.01), 10)
    assert found == WindowPlan(2.0, 20, 10)
    assert isinstance(found, WindowPlan)
    assert found.begin_s(1000.5) == 1010
    assert found.begin_s(1008.5) == 1020


def test_bursts_are_proved_by_whole_periods_or_not_at_all() -> None:
    """Bursts need windows of whole periods, or else there is no proof."""
    load = {"model": "burst", "base_per_s": 1.0, "peak_per_s": 9.0, "for_s": 2.0}
    assert pace(plan(**load, every_s=8.0), took(0.002, 0.01), 1) == WindowPlan(2.0, 8, 1)
    found = pace(plan(**load, every_s=60.0), took(0.002, 0.01), 1)
    assert isinstance(found, str)
    assert "every 60 s" in found
