"""What was never measured is not fine: objectives, runs without an operation, samples without a value."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import START_S, Build
from harness.analysis.test_levels import EACH_S, WARM_UP_S, climb
from harness.analysis.verdicts import judged
from harness.report.example import screen

from pinchpoint.analysis import exit_status


def _loaded() -> Build:
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 50)
    return build.operations("orders", "log_append", 50, 0.004)


def test_an_objective_without_data_is_not_met() -> None:
    """A scenario that recorded nothing keeps no promise: exit status 1, and a warning that names it."""
    build = _loaded().open("reads", "sql-mix", 5).objective(scenario="reads", p95_s=0.05)
    verdict = judged(build.objective(scenario="orders", p95_s=10.0))
    assert [(row["met"], row["result"]) for row in verdict.objectives] == [
        (None, "not measured"),
        (True, "met"),
    ]
    assert exit_status(verdict) == 1
    assert "the p95 objective of reads was not measured, so it is not met" in verdict.warnings
    assert "not measured" in screen(verdict.to_json())


def test_objectives_that_are_met_are_fine() -> None:
    verdict = judged(_loaded().objective(scenario="orders", p95_s=10.0, throughput_per_s=1.0))
    assert (exit_status(verdict), verdict.measured) == (0, True)


def test_a_load_without_one_operation_measured_nothing() -> None:
    """With objectives or without: nothing was measured that a status could speak of."""
    for build in (_loaded(), _loaded().objective(scenario="orders", errors_ratio=0.1)):
        build.rows.clear()
        verdict = judged(build)
        assert (exit_status(verdict), verdict.measured) == (3, False)
        assert verdict.to_json()["measured"] is False


def test_a_run_that_never_came_to_its_measure_phase_measured_nothing() -> None:
    build = _loaded()
    del build.manifest["phases"][1]
    assert exit_status(judged(build)) == 3


def test_samples_alone_need_one_value() -> None:
    """Recordings of other tools have no operations: their samples are what was measured."""
    assert exit_status(judged(Build().host("sql1", "sql").cpu("sql1", 0.2))) == 0
    assert exit_status(judged(Build().host("sql1", "sql").metric("sql1", "cpu.busy_ratio", None))) == 3
    assert exit_status(judged(Build().host("sql1", "sql"))) == 3


@pytest.mark.parametrize(("silent", "result"), [(1, "met up to 300/s"), (3, "not measured")])
def test_a_level_at_which_nothing_ended_is_left_out(silent: int, result: str) -> None:
    """Of a climb the levels at which something ended answer; where there are none, nothing does."""
    levels = np.array([100.0, 200.0, 300.0])
    build = climb(levels, 900).objective(scenario="orders", p95_s=0.5)
    heard_s = START_S + WARM_UP_S + silent * EACH_S
    build.rows = [row for row in build.rows if row["time_s"] >= heard_s]
    [row] = judged(build).objectives
    assert row["result"] == result
    assert row["met"] is (True if silent < len(levels) else None)
