"""Effect of checkpoints on the load, from synthetic runs with a known effect."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build

from pinchpoint.analysis import Verdict, analyse

LENGTH = 90


def run(during_s: float, between_s: float, *, written: int = 20, told: bool = True) -> Verdict:
    """Return the verdict on a checkpoint in the first ``written`` of every 30 s, with those times."""
    under_way = np.arange(LENGTH) % 30 < written
    build = Build(measure_s=LENGTH, warm_up_s=0).host("sql1", "sql", disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", 0.3, 0.3).disk("sql1", "sdb", 200, 0.001).disk("sql1", "sdc", 50, 0.001)
    if told:
        build.metric("sql1", "db.checkpoint_buffers_per_s", np.where(under_way, 80.0, 0.0), noise=0.0)
        begun = np.where(np.arange(LENGTH) % 30 == 0, 1.0, 0.0)
        build.metric("sql1", "db.checkpoints_per_s", begun, "requested", noise=0.0)
        build.metric("sql1", "db.checkpoints_per_s", np.zeros(LENGTH), "timed", noise=0.0)
    times = np.where(under_way, during_s, between_s)
    return analyse(
        build.open("orders", "sql-mix", 100).operations("orders", "update", 100, times).generator().run()
    )


def test_operations_that_take_longer_meanwhile_are_told() -> None:
    """Operations that take twice as long during checkpoints give a row and a warning."""
    verdict = run(0.020, 0.010)
    [row] = verdict.checkpoints
    assert (row["host"], row["scenario"], row["timed"], row["requested"]) == ("sql1", "orders", 0, 3)
    assert row["written_s"] == 60
    assert row["written_ratio"] == pytest.approx(2 / 3, abs=0.02)
    assert row["p95_ratio"] == pytest.approx(2, rel=0.1)
    [told] = [warning for warning in verdict.warnings if "checkpoints" in warning]
    assert "sql1 wrote checkpoints (67 % of the time; 0 scheduled, 3 requested" in told
    assert "p95 of orders" in told


def test_checkpoints_that_nobody_notices_are_a_row_only() -> None:
    """Equal times with and without a checkpoint give a row and no warning."""
    verdict = run(0.010, 0.010)
    assert verdict.checkpoints[0]["p95_ratio"] == pytest.approx(1, abs=0.1)
    assert not [warning for warning in verdict.warnings if "checkpoint" in warning]


def test_too_little_of_either_kind_is_not_compared() -> None:
    """A checkpoint during all of the run gives no comparison: not measured, and no warning."""
    [row] = run(0.020, 0.010, written=29).checkpoints
    assert row["p95_between_s"] is None
    assert row["p95_ratio"] is None


def test_no_view_of_the_database_no_table() -> None:
    """Without samples of the database the checkpoint table is absent, not zero."""
    assert run(0.020, 0.010, told=False).checkpoints == ()
