"""Missing measurements are not passes: objectives, runs without operations, samples without values."""

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
    """An objective of a scenario without data gives exit status 1 and a warning."""
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


@pytest.mark.parametrize(
    ("objective", "met", "where", "words"),
    [
        ({"metric": "disk.write_latency_s", "role": "log", "mean": 0.005}, False, "sql2 sdb", "5 ms: 8 ms"),
        ({"metric": "disk.write_latency_s", "role": "log", "host": "sql1", "p99": 0.1}, True, "sql1 sdb", ""),
        ({"metric": "disk.write_latency_s", "device": "sdb", "max": 0.009}, True, "sql2 sdb", ""),
        ({"metric": "cpu.busy_ratio", "tier": "sql", "p95": 0.5}, True, "sql2", ""),
        ({"metric": "cpu.busy_ratio", "tier": "web", "max": 0.5}, False, "web1 tier:web", "80 % (web1 "),
        ({"metric": "mem.available_ratio", "min": 0.3}, False, "web1", "at least 30 %: 20 %"),
        ({"metric": "mem.available_ratio", "host": "sql1", "mean": 0.3}, None, "", "not measured"),
        ({"metric": "db.page_life_s", "tier": "sql", "min": 300.0}, None, "", "not measured"),
        ({"metric": "disk.read_latency_s", "tier": "sql", "mean": 0.01}, None, "", "not measured"),
    ],
)  # fmt: skip
def test_an_objective_of_servers_is_decided_by_the_worst_of_them(
    objective: dict[str, object], met: bool | None, where: str, words: str
) -> None:
    """An objective on server metrics is decided by the worst host or disk that it matches."""
    build = (
        Build().host("sql1", "sql", "m1", (), {"log": "sdb"}).host("sql2", "sql", "m2", (), {"log": "sdb"})
    )
    build.host("web1", "web", "m3").open("orders", "sql-mix", 50).operations(
        "orders", "log_append", 50, 0.004
    )
    for host, busy, latency_s in (("sql1", 0.2, 0.002), ("sql2", 0.4, 0.008)):
        build.metric(host, "cpu.busy_ratio", busy, noise=0.0)
        build.metric(host, "disk.write_latency_s", latency_s, "sdb", 0.0, np.full(build.seconds, 50.0))
        build.metric(host, "disk.read_latency_s", None, "sdb", weight=np.zeros(build.seconds))
        build.metric(host, "mem.available_ratio", None if host == "sql1" else 0.9, noise=0.0)
    build.metric("web1", "cpu.busy_ratio", 0.3, noise=0.0).metric(
        "web1", "cpu.busy_ratio", 0.8, "tier:web", 0.0
    )
    build.metric("web1", "mem.available_ratio", 0.2, noise=0.0)
    verdict = judged(build.objective(**objective))
    [row] = verdict.objectives
    assert (row["met"], row["where"]) == (met, where), row
    assert exit_status(verdict) == (0 if met else 1)
    said = " ".join(screen(verdict.to_json()).split())
    assert words in said, said
    warned = any("neither met nor missed" in warning for warning in verdict.warnings)
    assert warned is (met is None)


def test_a_host_that_was_not_measured_keeps_an_objective_of_servers_open() -> None:
    """An unmeasured host keeps an objective open, unless another host misses it."""
    build = _loaded().host("sql2", "sql", "m2")
    goal = {"metric": "cpu.busy_ratio", "tier": "sql"}
    met, missed = judged(build.objective(**goal, max=0.9).objective(**goal, max=0.1)).objectives
    assert (met["met"], met["result"]) == (
        None, "not measured: no value of cpu.busy_ratio on sql2; met on sql1"
    )  # fmt: skip
    assert (missed["met"], missed["result"]) == (False, "missed")


def test_an_objective_of_servers_is_met_up_to_a_level() -> None:
    """In a load in steps, an objective on server metrics is met up to a level."""
    build = climb(np.array([100.0, 200.0, 300.0, 400.0]), 10_000.0)
    seconds = np.arange(build.seconds) - WARM_UP_S
    build.metric("sql1", "cpu.wait_ratio", np.clip(seconds // EACH_S, 0, 3) / 10, noise=0.0)
    goals = [{"metric": "cpu.wait_ratio", "mean": mean} for mean in (0.15, 0.9)]
    goals.append({"metric": "cpu.busy_ratio", "max": 0.001})
    for goal in goals:
        build.objective(**goal)
    assert [(row["met"], row["result"]) for row in judged(build).objectives] == [
        (True, "met up to 200/s"), (True, "met up to 400/s"), (False, "missed, from 100/s on")
    ]  # fmt: skip


def test_a_load_without_one_operation_measured_nothing() -> None:
    """A load without a single operation ends with exit status 3, with and without objectives."""
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
    """Recordings have no operations, so a single measured sample is enough for exit status 0."""
    assert exit_status(judged(Build().host("sql1", "sql").cpu("sql1", 0.2))) == 0
    assert exit_status(judged(Build().host("sql1", "sql").metric("sql1", "cpu.busy_ratio", None))) == 3
    assert exit_status(judged(Build().host("sql1", "sql"))) == 3


@pytest.mark.parametrize(("silent", "result"), [(1, "met up to 300/s"), (3, "not measured")])
def test_a_level_at_which_nothing_ended_is_left_out(silent: int, result: str) -> None:
    """Levels without an ended operation are left out of an objective; without any level it is open."""
    levels = np.array([100.0, 200.0, 300.0])
    build = climb(levels, 900).objective(scenario="orders", p95_s=0.5)
    heard_s = START_S + WARM_UP_S + silent * EACH_S
    build.rows = [row for row in build.rows if row["time_s"] >= heard_s]
    [row] = judged(build).objectives
    assert row["result"] == result
    assert row["met"] is (True if silent < len(levels) else None)
