"""A farm that has room for everything, and fails at some of it: nothing gave way, and nothing is well."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import judged

from pinchpoint.analysis import Verdict


def failing(share: float, outcome: str = "connection_lost", **objective: float) -> Verdict:
    """A hundred operations a second, of which so many fail, on an idle farm."""
    build = Build(measure_s=60).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.3, 0.2, cores=(0, 1)).disk("sql1", "sdb", 100, 0.002, busy=0.2, pressure=0.1)
    build.open("orders", "sql-mix", 1000).operations("orders", "log_append", 1000 * (1 - share), 0.01)
    build.operations("orders", "log_append", 1000 * share, 0.01, outcome=outcome)
    if objective:
        build.objective(scenario="orders", **objective)
    return judged(build.generator(orders=(1000.0, 1000.0)))


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_a_farm_that_fails_at_what_is_asked_gets_no_all_clear(share: float) -> None:
    """It served the rest as planned; that its limit is above that, nobody has seen."""
    verdict = failing(share)
    assert verdict.outcome == "inconclusive"
    assert verdict.summary.startswith("What limits the farm cannot be told from this run: ")
    assert "of the operations of orders failed (connection_lost), and nothing that was" in verdict.summary
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Find out why they fail")
    assert "served as planned" not in verdict.summary


@pytest.mark.parametrize(
    ("share", "outcome", "objective"),
    [
        (0.002, "connection_lost", {}),  # one in five hundred
        (0.3, "connection_lost", {"errors_ratio": 0.4}),  # as many as are allowed
        (0.3, "not_found", {}),  # what was asked for, not how much
    ],
)
def test_what_fails_now_and_then_or_may_fail_takes_no_all_clear(
    share: float, outcome: str, objective: dict[str, float]
) -> None:
    """It stays in the warnings."""
    verdict = failing(share, outcome, **objective)
    assert verdict.outcome == "not_reached", verdict.summary
    assert any("of the operations failed" in warning for warning in verdict.warnings)


def test_an_objective_that_is_missed_by_failures_says_so() -> None:
    """More failed than is allowed: the farm was slower than is wanted, as before, and what failed is told."""
    verdict = failing(0.3, errors_ratio=0.1)
    assert verdict.outcome == "inconclusive"
    assert "orders missed an objective, yet nothing that was measured is used up; " in verdict.summary
    assert "of the operations of orders failed (connection_lost)" in verdict.summary
