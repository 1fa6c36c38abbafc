"""A generator's health: the lag of its event loop, and the number of working users."""

from __future__ import annotations

from pathlib import Path

from support import run_script

SCRIPT = Path(__file__).with_name("health_script.py")


def test_what_keeps_the_loop_waiting_is_told_in_its_second_alone() -> None:
    """A driver that blocks for 0.6 s gives that lag in its second, less the rest of the probe's pause."""
    found = run_script(SCRIPT, "0.6")
    lags = found["generator.loop_lag_s"]
    assert 0.45 < max(lags) < 1.5
    assert sorted(lags)[-2] < 0.3, "it happened once"
    assert min(lags) >= 0
    assert set(found["generator.users"]) == {1}
    assert set(found["generator.recorder_ok"]) == {1.0}
    assert all(0 <= cpu < 1.5 for cpu in found["generator.cpu_ratio"])
