"""The engine's timing: intended starts, closed users, drops, ends, and internal errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from pinchpoint.store.schema import GIVEN_UP, OPERATIONS_SCHEMA, SEND, UNFINISHED

SCRIPT = Path(__file__).with_name("engine_script.py")


def drive(load: dict[str, Any], seconds: float, service_s: float, **more: Any) -> dict[str, Any]:
    given = {"load": load, "seconds": seconds, "service_s": service_s, "stall": None, "end_after": None}
    given |= more
    done = subprocess.run(
        [sys.executable, SCRIPT, json.dumps(given)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    rows = [dict(zip(OPERATIONS_SCHEMA.names, row, strict=True)) for row in found["rows"]]
    found["rows"] = [row for row in rows if row["operation"] != SEND]
    found["send"] = [row for row in rows if row["operation"] == SEND]
    return found


def merged(rows: list[dict[str, Any]], column: str) -> HdrHistogram:
    whole = HdrHistogram(1, 3_600_000_000, 3)
    for row in rows:
        if row[column]:
            whole.add(HdrHistogram.decode(row[column]))
    return whole


@pytest.mark.alone
def test_a_stall_of_the_server_shows_in_the_response_times() -> None:
    """A stall of 2 s in 10 s at 100/s gives a p95 near 1.5 s, and no operation is lost."""
    found = drive({"model": "open", "rate_per_s": 100, "arrivals": "constant"}, 10, 0.002, stall=[4, 6])
    count = sum(row["count"] for row in found["rows"])
    assert count == pytest.approx(1000, abs=15)
    assert merged(found["rows"], "response").get_value_at_percentile(95) / 1e6 == pytest.approx(1.5, abs=0.25)
    # Service time counts from the actual start, so operations delayed by a lack of sessions saw no stall.
    assert merged(found["rows"], "service").get_value_at_percentile(50) / 1e6 < 0.05
    # The stall is the farm's: free sessions started on time.
    assert merged(found["send"], "service").get_value_at_percentile(50) / 1e6 < 0.002
    assert sum(row["count"] for row in found["send"]) == len(found["lags"]) < count


@pytest.mark.alone
def test_closed_users_follow_littles_law() -> None:
    """By N = X (R + Z), 8 users with 20 ms of service and 30 ms of think time do 160/s."""
    found = drive({"model": "closed", "users": 8, "think_s": 0.03}, 3, 0.02)
    rate = sum(row["count"] for row in found["rows"]) / 3
    assert rate == pytest.approx(160, rel=0.15)
    assert all(row["response"] is None for row in found["rows"])
    assert found["scheduled"] == 0


@pytest.mark.alone
def test_what_cannot_start_in_time_is_dropped_and_counted() -> None:
    """Ten sessions of 30 s cannot serve 100/s, so the operations that never start are dropped."""
    found = drive({"model": "open", "rate_per_s": 100, "arrivals": "constant"}, 3, 30.0)
    dropped = sum(row["dropped"] for row in found["rows"])
    assert found["started"] + dropped == pytest.approx(found["scheduled"], abs=1)
    assert dropped == pytest.approx(3 * 100 - found["users"], abs=15)


@pytest.mark.alone
def test_who_comes_late_drops_what_is_too_late_and_goes_on() -> None:
    """A worker that joins 12 s late drops the first two seconds' operations and does the rest."""
    load = {"model": "open", "rate_per_s": 100, "arrivals": "constant"}
    found = drive(load, 2, 0.002, begun_ago_s=12)
    dropped = sum(row["dropped"] for row in found["rows"])
    assert dropped == pytest.approx(2 * 100, abs=100)
    assert found["started"] == pytest.approx(12 * 100, abs=100)
    assert found["started"] + dropped == pytest.approx(found["scheduled"], abs=1)


def test_work_that_ends_ends_the_load() -> None:
    """When no session has work left, the scenario ends."""
    found = drive({"model": "closed", "users": 4}, 20, 0.001, end_after=50)
    assert found["finished"]
    assert sum(row["count"] for row in found["rows"]) == 50


def test_a_fault_of_ours_is_told_not_swallowed() -> None:
    """An exception in a session reaches the caller with its message."""
    found = drive({"model": "closed", "users": 2}, 5, 0.001, fail=True)
    assert found["failures"]
    assert "a fault of ours" in found["failures"][0]


@pytest.mark.alone
def test_what_does_not_end_is_recorded_for_as_long_as_it_went_on() -> None:
    """Three unfinished operations are recorded with the six seconds that they lasted so far."""
    found = drive({"model": "closed", "users": 3}, 1, 30.0)
    [operation] = {(row["operation"], row["outcome"]) for row in found["rows"]}
    assert operation == (UNFINISHED, GIVEN_UP)
    assert sum(row["count"] for row in found["rows"]) == 3
    assert merged(found["rows"], "service").get_min_value() / 1e6 == pytest.approx(6, abs=0.5)
    assert not found["failures"]
