"""Farms without a saturated resource: an all-clear with a lower bound, or a gap in the measurement."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import SEEDS, healthy, judged, named

from pinchpoint.analysis import exit_status


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_farm_at_low_open_load_gives_a_lower_bound(seed: int) -> None:
    """A farm below its capacity is not_reached, with a lower bound and the highest utilisation."""
    verdict = judged(healthy(seed))
    assert verdict.outcome == "not_reached"
    assert verdict.bottleneck is None
    assert verdict.capacity_at_least_per_s["orders"] == pytest.approx(100, rel=0.05)
    assert verdict.summary.startswith("No limit reached: the farm served")
    assert verdict.next is not None
    assert verdict.next.tier == "sql"
    assert exit_status(verdict) == 0


@pytest.mark.parametrize(("steal", "outcome"), [(0.1, "not_reached"), (0.45, "inconclusive")])
def test_a_machine_that_waits_for_its_host_has_no_room(steal: float, outcome: str) -> None:
    """With 45 % steal, spare capacity is unknown, so there is no all-clear."""
    build = healthy()
    build.samples = [row for row in build.samples if (row[2], row[3]) != ("sql1", "cpu.steal_ratio")]
    verdict = judged(build.metric("sql1", "cpu.steal_ratio", steal, noise=0))
    assert verdict.outcome == outcome
    assert ("the hypervisor took 45 % of the CPU time of sql1" in verdict.summary) is (steal > 0.2)


def test_a_missed_objective_is_said_and_exits_with_1() -> None:
    """An objective is met, missed or not measured; a missed one gives exit status 1."""
    build = (
        healthy().objective(scenario="orders", p95_s=0.001).objective(scenario="orders", errors_ratio=0.01)
    )
    build.objective(scenario="orders", throughput_per_s=90.0)
    build.open("reports", "sql-mix", 1).objective(scenario="reports", p99_s=1.0)
    verdict = judged(build)
    assert [row["result"] for row in verdict.objectives] == ["missed", "met", "met", "not measured"]
    assert verdict.outcome == "inconclusive"
    assert exit_status(verdict) == 1


def test_a_closed_load_with_long_think_time_does_not_press() -> None:
    """Closed users who mostly think limit the load themselves: not_reached."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.1)
    build.closed("orders", "sql-mix", 10, think_s=1.0).operations(
        "orders", "log_append", 9.95, 0.005, noise=0.02
    )
    assert judged(build.generator()).outcome == "not_reached"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_closed_load_that_is_too_slow_presses_however_long_its_users_think(seed: int) -> None:
    """A missed objective makes a closed load count as waiting, despite a think time of 0.5 s."""
    build = (
        Build(seed=seed)
        .host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
        .cpu("sql1", 0.1, cores=(0, 1))
    )
    build.disk("sql1", "sdb", 16, 0.06, 0.1, busy=0.95, pressure=0.9)
    build.closed("orders", "sql-mix", 20, think_s=0.5).objective(scenario="orders", p95_s=0.05)
    verdict = judged(build.operations("orders", "log_append", 33, 0.105, noise=0.02).generator())
    assert named(verdict)[:3] == ("disk_latency", "sql", "sql1")


def test_thinking_users_who_are_served_too_slowly_are_not_served() -> None:
    """A missed objective without a saturated resource gives no all-clear but an experiment."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.1).objective(scenario="orders", p95_s=0.05)
    build.closed("orders", "sql-mix", 10, think_s=1.0)
    verdict = judged(build.operations("orders", "log_append", 8.3, 0.2, noise=0.02).generator())
    assert verdict.outcome == "inconclusive"
    assert "orders missed an objective, yet no measured resource was saturated" in verdict.summary
    assert verdict.experiment is not None
    assert "at half its load" in verdict.experiment


def test_more_throughput_than_was_asked_for_is_no_fault_of_the_farm() -> None:
    """A throughput goal above the scheduled rate is missed without blaming the farm."""
    verdict = judged(healthy().objective(scenario="orders", throughput_per_s=150.0))
    assert verdict.outcome == "not_reached"
    assert exit_status(verdict) == 1
