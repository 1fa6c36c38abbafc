"""Observation gaps and clock errors in a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.report.example import saved_run

from pinchpoint.data.timeaxis import clock_of
from pinchpoint.report.run_tables import blind, clocks, collectors
from pinchpoint.store.read import StoredRun

GAP = {
    "from": "2026-01-01T00:00:10.000Z",
    "to": "2026-01-01T00:00:40.000Z",
    "missed": 29,
    "interval_s": 1.0,
    "why": "sql1: the link was cut",
}


def watched(**told: Any) -> StoredRun:
    run = saved_run()
    seen = {
        "clock_offset_s": -0.25,
        "clock_error_s": 0.004,
        "clock_offset_between_s": [-0.3, -0.2],
        "gaps": [],
        "more_gaps": 0,
    }
    return replace(run, manifest={**run.manifest, "data_quality": {"sql1": {"ssh": {**seen, **told}}}})


def test_a_gap_says_who_was_not_seen_when_and_why() -> None:
    """Each gap is a row with host, time and reason."""
    (row,) = blind(watched(gaps=[GAP])).cells()
    assert row == ["sql1", "ssh", GAP["from"], GAP["to"], "30 s", "29", "sql1: the link was cut"]


def test_a_run_without_gaps_has_no_such_table() -> None:
    """A run without gaps, or of an older version, has no such table."""
    assert blind(watched()).rows == []
    assert blind(saved_run()).rows == []
    assert blind(saved_run()).empty == ""


def test_a_clock_says_how_far_it_is_off_how_well_that_is_known_and_how_it_moved() -> None:
    """A clock row has offset, uncertainty and drift; a host without an answer has no row."""
    (row,) = clocks(watched()).cells()
    assert row == ["sql1", "ssh", "-250 ms", "4 ms", "100 ms"]
    assert clocks(watched(clock_offset_s=None)).rows == []


def test_what_watching_from_afar_costs() -> None:
    """Remote observation has its cost in CPU and bytes; without it the columns are absent."""
    run = saved_run()
    titles = [column.title for column in collectors(run, clock_of(run)).columns]
    assert "received" not in titles
    far = {"kind": "ssh", "hosts": ["sql1"], "readings": 60, "failed": 2, "cpu_s": 0.1}
    rows = [{**far, "host_cpu_s": 0.3, "received_bytes": 512_000.0, "interval_s": 1.0}]
    run = replace(run, manifest={**run.manifest, "collectors": rows})
    table = collectors(run, clock_of(run))
    shown = dict(zip([column.title for column in table.columns], table.cells()[0], strict=True))
    assert (shown["CPU used there"], shown["received"], shown["failed"]) == ("300 ms", "512 kB", "2")
