"""A farm that stops answering: operations outstanding at the end are evidence, although in no table."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import judged

USERS = 8


def silent(from_second: int, *, rate_per_s: float = 0.0, given_up: int = USERS) -> Build:
    """Build a SQL tier with spare capacity, whose operations stop ending from that second on."""
    build = Build(measure_s=60).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.3, 0.2, cores=(0, 1)).disk("sql1", "sdb", 100, 0.002, busy=0.2, pressure=0.1)
    if rate_per_s:
        build.open("orders", "sql-mix", rate_per_s)
    else:
        build.closed("orders", "sql-mix", USERS)
    answered = range(from_second)
    build.operations("orders", "log_append", rate_per_s or USERS / 0.01, 0.01, seconds=answered)
    return build.given_up("orders", given_up, from_second) if given_up else build


@pytest.mark.parametrize("from_second", [20, 40, 55, 63, 67])
def test_a_farm_that_stops_answering_is_not_the_generators_fault(from_second: int) -> None:
    """A farm that stops answering for 3 to 50 s is inconclusive; the generator is not at fault."""
    build = silent(from_second)
    verdict = judged(build.generator())
    waited_s = build.seconds - from_second
    assert verdict.outcome == "inconclusive", verdict.summary
    assert f"8 of 8 sessions of orders had waited {waited_s} s for an answer" in verdict.summary
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Measure what is missing")
    lost = [warning for warning in verdict.warnings if "had not ended" in warning]
    assert [text.partition("; the longest")[0] for text in lost] == [
        "orders: 8 operations had not ended some seconds after the load, not counted in any table"
    ]


def test_users_who_wait_for_nothing_are_the_generators_fault() -> None:
    """Without outstanding operations, a load that stops makes the run invalid."""
    verdict = judged(silent(40, given_up=0).generator())
    assert verdict.outcome == "invalid"
    assert "the load generator was delayed" in verdict.summary


def test_one_session_that_waits_is_told_and_is_no_silence() -> None:
    """One hanging session of eight is a warning, and the gate counts its waiting time."""
    build = silent(70, given_up=0)
    build.rows.clear()
    build.operations("orders", "log_append", 7 / 0.01, 0.01).given_up("orders", 1, 8)
    verdict = judged(build.generator())
    assert verdict.outcome != "invalid", verdict.summary
    assert "for an answer" not in verdict.summary
    assert any("orders: 1 operation had not ended" in warning for warning in verdict.warnings)


def test_sessions_that_get_no_answer_excuse_what_was_not_started() -> None:
    """Under an open load, sessions without an answer explain the operations that were not started."""
    build = silent(40, rate_per_s=100.0)
    answered = np.arange(build.seconds) < 40
    build.operations("orders", "log_append", 0.0, 0.01, dropped=np.where(answered, 0.0, 100.0))
    build.metric("generator1", "generator.users", USERS, "orders", 0.0)
    build.metric("generator1", "generator.scheduled_per_s", 100.0, "orders", 0.0)
    build.metric("generator1", "generator.started_per_s", np.where(answered, 100.0, 0.0), "orders", 0.0)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive", verdict.summary
    assert "8 of 8 sessions of orders had waited" in verdict.summary


def test_a_long_operation_under_way_at_the_end_is_no_silence() -> None:
    """Operations of 8 s that are outstanding at the end are not taken for a silent farm."""
    build = Build(measure_s=60).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.3, 0.2, cores=(0, 1)).disk("sql1", "sdb", 100, 0.002, busy=0.2, pressure=0.1)
    build.closed("orders", "sql-mix", USERS).operations("orders", "report", 1, 8.0)
    verdict = judged(build.given_up("orders", 4, 69).generator())
    assert verdict.outcome != "invalid"
    assert "for an answer" not in verdict.summary
