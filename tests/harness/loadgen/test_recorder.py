"""The recorder: every operation counted once, in the second it ended, timed to three digits."""

from __future__ import annotations

import random
import time

import pytest
from hdrh.histogram import HdrHistogram

from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.store.schema import OPERATIONS_SCHEMA

COLUMNS = OPERATIONS_SCHEMA.names
MS = 1_000_000


def rows(recorder: Recorder) -> list[dict[str, object]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in recorder.take(2**62).rows("g1")]


def test_service_and_response_are_kept_apart() -> None:
    """Response counts from the intended start; closed load has none."""
    recorder, now = Recorder(), time.perf_counter_ns()
    recorder.add("orders", "log_append", "ok", now, now + 5 * MS, 100, now - 20 * MS)
    recorder.add("crawl", "document:a", "ok", now, now + 7 * MS, 10, None)
    open_row, closed_row = rows(recorder)
    assert HdrHistogram.decode(open_row["service"]).get_max_value() == pytest.approx(5000, rel=0.001)
    assert HdrHistogram.decode(open_row["response"]).get_max_value() == pytest.approx(25_000, rel=0.001)
    assert closed_row["response"] is None
    assert (open_row["count"], open_row["bytes"]) == (1, 100)


def test_percentiles_match_the_exact_ones() -> None:
    """Three significant digits against the sorted raw times."""
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
    """The running second stays until it has ended."""
    recorder, now = Recorder(), time.perf_counter_ns()
    second = recorder.utc_ns(now) // 1_000_000_000
    recorder.add("s", "o", "ok", now - MS, now, 0, None)
    assert recorder.take(second).rows("g1") == []
    assert len(recorder.take(second + 1).rows("g1")) == 1


def test_dropped_operations_have_rows_of_their_own() -> None:
    """In the second they were meant for, with count 0."""
    recorder, now = Recorder(), time.perf_counter_ns()
    recorder.drop("orders", now)
    recorder.drop("orders", now)
    [row] = rows(recorder)
    assert (row["outcome"], row["count"], row["dropped"]) == ("dropped", 0, 2)


def test_an_hour_and_a_nanosecond_fit() -> None:
    """Times outside 1 µs to 1 h are held at the ends, not lost."""
    recorder, now = Recorder(), time.perf_counter_ns()
    recorder.add("s", "o", "ok", now, now + 1, 0, None)
    recorder.add("s", "o", "ok", now - 7200 * 1000 * MS, now, 0, None)
    found = rows(recorder)
    assert sum(int(str(row["count"])) for row in found) == 2
