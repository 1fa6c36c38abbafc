"""The recorder: every operation counted once, in the second it ended, with three digits."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.store.schema import OPERATIONS_SCHEMA

COLUMNS = OPERATIONS_SCHEMA.names
MS = 1_000_000


def rows(recorder: Recorder) -> list[dict[str, object]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in recorder.take(2**62).rows("g1")]


def test_service_and_response_are_kept_apart() -> None:
    """Response time counts from the intended start, and a closed load has none."""
    recorder, now = Recorder(), time.perf_counter_ns()
    recorder.add("orders", "log_append", "ok", now, now + 5 * MS, 100, now - 20 * MS)
    recorder.add("crawl", "document:a", "ok", now, now + 7 * MS, 10, None)
    open_row, closed_row = rows(recorder)
    assert HdrHistogram.decode(open_row["service"]).get_max_value() == pytest.approx(5000, rel=0.001)
    assert HdrHistogram.decode(open_row["response"]).get_max_value() == pytest.approx(25_000, rel=0.001)
    assert closed_row["response"] is None
    assert (open_row["count"], open_row["bytes"]) == (1, 100)


def test_percentiles_match_the_exact_ones() -> None:
    """Percentiles equal those of the sorted raw times to three digits."""
    draw = random.Random(1)
    recorder, start = Recorder(), time.perf_counter_ns()
    times_ns = [round(draw.lognormvariate(0, 1.5) * MS) for _ in range(20_000)]
    for spent in times_ns:
        recorder.add("s", "o", "ok", start - spent, start, 0, None)
    [row] = rows(recorder)
    histogram = HdrHistogram.decode(row["service"])
    for percentile in (50, 95, 99, 99.9):
        exact_us = sorted(times_ns)[round(percentile / 100 * len(times_ns)) - 1] / 1000
        assert histogram.get_value_at_percentile(percentile) == pytest.approx(exact_us, rel=0.002, abs=1)


def test_only_seconds_that_are_over_are_handed_out() -> None:
    """The current second is handed out only after it has ended."""
    recorder, now = Recorder(), time.perf_counter_ns()
    second = recorder.utc_ns(now) // 1_000_000_000
    recorder.add("s", "o", "ok", now - MS, now, 0, None)
    assert recorder.take(second).rows("g1") == []
    assert len(recorder.take(second + 1).rows("g1")) == 1


def test_dropped_operations_have_rows_of_their_own() -> None:
    """Dropped operations have rows of count 0 in the second they were due."""
    recorder, now = Recorder(), time.perf_counter_ns()
    recorder.drop("orders", now)
    recorder.drop("orders", now)
    [row] = rows(recorder)
    assert (row["outcome"], row["count"], row["dropped"]) == ("dropped", 0, 2)


def test_an_hour_and_a_nanosecond_fit() -> None:
    """Times outside 1 µs to 1 h are recorded at the ends of the range."""
    recorder, now = Recorder(), time.perf_counter_ns()
    recorder.add("s", "o", "ok", now, now + 1, 0, None)
    recorder.add("s", "o", "ok", now - 7200 * 1000 * MS, now, 0, None)
    found = rows(recorder)
    assert sum(int(str(row["count"])) for row in found) == 2


def test_a_users_record_adds_what_the_recorder_adds() -> None:
    """The short interface for sessions gives the same rows, with the intended start set by the engine."""
    recorder, other, now = Recorder(), Recorder(), time.perf_counter_ns()
    user = recorder.user("orders")
    user.add("log_append", "ok", now, now + 5 * MS, 100)
    user.intended_ns = now - 20 * MS
    user.add("bulk_load", "timeout", now, now + 7 * MS)
    other.add("orders", "log_append", "ok", now, now + 5 * MS, 100, None)
    other.add("orders", "bulk_load", "timeout", now, now + 7 * MS, 0, now - 20 * MS)
    assert [list(row.values())[1:] for row in rows(recorder)] == [
        list(row.values())[1:] for row in rows(other)
    ]


def test_a_stage_has_no_response_time() -> None:
    """Only the whole operation has an intended start, so its stages have no response time."""
    recorder, now = Recorder(), time.perf_counter_ns()
    user = recorder.user("crawl")
    user.intended_ns = now - 20 * MS
    user.add("document:a/fetch", "ok", now, now + MS)
    user.add("document:a", "ok", now, now + 2 * MS)
    stage, whole = rows(recorder)
    assert stage["response"] is None
    assert whole["response"] is not None


def test_late_ends_keep_their_second() -> None:
    """An operation that ended in a second already handed out comes later, as a row of that second."""
    recorder, now = Recorder(), time.perf_counter_ns()
    second = recorder.utc_ns(now) // 1_000_000_000
    begins = recorder.counter_ns(second * 1_000_000_000)
    recorder.add("s", "o", "ok", begins - 9 * MS, begins - MS, 10, None)
    recorder.add("s", "o", "ok", begins, begins + MS, 20, None)
    taken = [row[:1] + row[6:8] for row in recorder.take(second).rows("g1")]
    recorder.add("s", "o", "ok", begins - 9 * MS, begins - 2 * MS, 30, None)
    taken += [row[:1] + row[6:8] for row in recorder.take(second + 1).rows("g1")]
    assert taken == [[second - 1, 1, 10], [second - 1, 1, 30], [second, 1, 20]]
    assert recorder.take(2**62).rows("g1") == []


def test_what_was_taken_is_not_touched_by_what_comes() -> None:
    """Rows that were handed out do not change while the load continues."""
    recorder, now = Recorder(), time.perf_counter_ns()
    user = recorder.user("s")
    user.add("o", "ok", now - MS, now)
    taken = recorder.take(2**62)
    user.add("o", "ok", now - MS, now)
    assert [row[6] for row in taken.rows("g1")] == [1]
    assert [row["count"] for row in rows(recorder)] == [1]


def test_recording_an_operation_is_cheap() -> None:
    """Recording takes at most half of the CPU of Locust's statistics, with histogram and row."""
    script = Path(__file__).with_name("recorder_script.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    spent = json.loads(done.stdout)
    assert spent["ours_ns"] <= 0.5 * spent["locust_ns"]
