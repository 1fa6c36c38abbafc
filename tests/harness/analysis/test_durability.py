"""Reports lost acknowledged writes, and computes a burst's backlog as the due but unfinished operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build

from pinchpoint.analysis.analyse import analyse
from pinchpoint.analysis.verdict import Verdict

READ: dict[str, Any] = {"acknowledged": 900, "records": 100, "confirmed": 100}
READ |= {"missing": 0, "different": 0, "expired": 0}
READ |= {"sample": "sample", "examples": [], "not_read": ""}


def judged(*told: dict[str, Any], lost: dict[str, Any] | None = None) -> Verdict:
    build = Build(measure_s=60, warm_up_s=0).host("nosql1", "nosql").cpu("nosql1", 0.3)
    build.burst("burst", base=50, peak=200, every_s=30, for_s=10)
    inside = np.arange(60) % 30 >= 20
    offered = np.where(inside, 200.0, 50.0)
    build.operations("burst", "update", np.where(inside, 150.0, 50.0), 0.001, noise=0)
    for metric in ("scheduled", "started"):
        build.metric("generator1", f"generator.{metric}_per_s", offered, "burst", 0)
    for number, fields in enumerate(told, 1):
        build.event("writes_read_back", 61, scenario="burst", worker=f"generator{number}", **READ | fields)
    if lost:
        build.event("worker_lost", 30, worker="generator9", why="killed", taken_over_after_s=1.0, **lost)
    return analyse(build.run())


def about_writes(verdict: Verdict) -> list[str]:
    return [warning for warning in verdict.warnings if "acknowledged" in warning]


def test_all_there_is_no_warning() -> None:
    """Writes that were all read back give a row over both generators and no warning."""
    verdict = judged({}, {"records": 50, "confirmed": 45, "expired": 5})
    row = verdict.scenarios["burst"]["writes"]
    assert (row["acknowledged"], row["records"], row["confirmed"], row["expired"]) == (1800, 150, 145, 5)
    assert about_writes(verdict) == []


def test_lost_writes_are_a_warning_with_their_number() -> None:
    """Missing and different records of all generators are one warning with their numbers and examples."""
    lost = {"confirmed": 90, "missing": 7, "different": 3, "examples": [11, 12]}
    (said,) = about_writes(judged({}, lost))
    assert "acknowledged writes are lost: 7 missing and 3 different of 200 records" in said
    assert "record 11, 12" in said


def test_what_could_not_be_read_back_is_said() -> None:
    """Writes that could not be read back are reported as such, neither as lost nor as confirmed."""
    (said,) = about_writes(judged({"records": 0, "confirmed": 0, "not_read": "the store did not answer"}))
    assert said == "burst: acknowledged writes were not all read back: the store did not answer"


def test_a_lost_generator_s_writes_are_not_said_to_be_there() -> None:
    """The writes of a lost generator are reported as not read back, unless it had other scenarios."""
    (said,) = about_writes(judged({}, lost={"scenarios": ["burst", "crawl"]}))
    assert "burst: acknowledged writes were not all read back: load generator generator9 was lost" in said
    assert about_writes(judged({}, lost={"scenarios": ["crawl"]})) == []


def test_who_reads_nothing_back_has_no_row() -> None:
    """A scenario without read-back has no row for it, not a zero."""
    assert "writes" not in judged().scenarios["burst"]


def test_a_bursts_backlog_is_what_was_due_and_not_done() -> None:
    """An excess of 50/s for ten seconds is a backlog of 500, which the second burst doubles."""
    rows = judged().scenarios["burst"]["bursts"]
    assert [row["backlog"] for row in rows] == pytest.approx([500, 1000])
