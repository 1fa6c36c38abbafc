"""Health checks: a farm that fails, stalls or slows down gets no all-clear despite spare capacity."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import judged

from pinchpoint.analysis import Verdict


def idle() -> Build:
    """Return a SQL tier with spare capacity and a schedule of 1,000 operations per second."""
    build = Build(measure_s=60).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.3, 0.2, cores=(0, 1)).disk("sql1", "sdb", 100, 0.002, busy=0.2, pressure=0.1)
    return build.open("orders", "sql-mix", 1000)


def failing(share: float, outcome: str = "connection_lost", **objective: float) -> Verdict:
    """Return the verdict where that share of the operations fails."""
    build = idle()
    build.operations("orders", "log_append", 1000 * (1 - share), 0.01)
    build.operations("orders", "log_append", 1000 * share, 0.01, outcome=outcome)
    if objective:
        build.objective(scenario="orders", **objective)
    return judged(build.generator(orders=(1000.0, 1000.0)))


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_a_farm_that_fails_at_what_is_asked_gets_no_all_clear(share: float) -> None:
    """A farm that fails 2 % or 30 % of its operations is inconclusive, with the failures named."""
    verdict = failing(share)
    assert verdict.outcome == "inconclusive"
    assert verdict.summary.startswith("Inconclusive: ")
    assert "saturated; " in verdict.summary
    assert "of the operations of orders failed (connection_lost)." in verdict.summary
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Find out why they fail")


@pytest.mark.parametrize(
    ("share", "outcome", "objective"),
    [
        (0.002, "connection_lost", {}),  # one in five hundred
        (0.3, "connection_lost", {"errors_ratio": 0.4}),  # below the allowed ratio
        (0.3, "not_found", {}),  # depends on the request, not on the load
    ],
)
def test_what_fails_now_and_then_or_may_fail_takes_no_all_clear(
    share: float, outcome: str, objective: dict[str, float]
) -> None:
    """Rare, allowed or content-related failures are warnings and keep the all-clear."""
    verdict = failing(share, outcome, **objective)
    assert verdict.outcome == "not_reached", verdict.summary
    assert any("of the operations failed" in warning for warning in verdict.warnings)


def test_an_objective_that_is_missed_by_failures_says_so() -> None:
    """With an objective missed by failures, the summary names the objective and the failures."""
    verdict = failing(0.3, errors_ratio=0.1)
    assert verdict.outcome == "inconclusive"
    assert "orders missed an objective, yet no measured resource was saturated; " in verdict.summary
    assert "of the operations of orders failed (connection_lost)" in verdict.summary


@pytest.mark.parametrize(("silent_s", "outcome"), [(20, "inconclusive"), (3, "not_reached")])
def test_a_farm_that_was_silent_for_a_while_gets_no_all_clear(silent_s: int, outcome: str) -> None:
    """A stall of 20 s takes the all-clear; one of 3 s shows in the percentiles only."""
    build, begin = idle(), 30
    end = begin + silent_s
    build.operations("orders", "log_append", 1000, 0.01, seconds=range(begin))
    build.operations("orders", "log_append", 1000 * silent_s, silent_s / 2, seconds=range(end, end + 1))
    build.operations("orders", "log_append", 1000, 0.01, seconds=range(end + 1, build.seconds))
    verdict = judged(build.generator(orders=(1000.0, 1000.0)))
    assert verdict.outcome == outcome, verdict.summary
    if outcome == "inconclusive":
        assert "no operation of orders ended in 20 s of 60 s" in verdict.summary


@pytest.mark.parametrize(
    ("last_s", "outcome"), [(0.5, "inconclusive"), (0.015, "not_reached"), (0.001, "not_reached")]
)
def test_times_that_grow_at_the_same_rate_take_the_all_clear(last_s: float, outcome: str) -> None:
    """Times that grow from 10 ms to 0.5 s at a constant rate take the all-clear."""
    build = idle()
    build.operations("orders", "log_append", 1000, np.linspace(0.01, last_s, build.seconds))
    verdict = judged(build.generator(orders=(1000.0, 1000.0)))
    assert verdict.outcome == outcome, verdict.summary
    if outcome == "inconclusive":
        assert "in the last, at the same rate" in verdict.summary
        assert verdict.experiment is not None
        assert verdict.experiment.startswith("Run the same plan for longer, and at half the rate")


@pytest.mark.parametrize(
    ("limit", "outcome"), [(300, "inconclusive"), (600, "not_reached"), (150, "not_reached")]
)
def test_a_disk_at_its_declared_limit_takes_the_all_clear(limit: int, outcome: str) -> None:
    """300 of 300 declared IOPS take the all-clear; at half or twice that limit it stays."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"data": "sdb"}, limits={"data": {"iops": limit}})
    build.cpu("sql1", 0.3, 0.2, cores=(0, 1)).disk("sql1", "sdb", 300, 0.004, noise=0.005)
    build.open("orders", "sql-mix", 300).operations("orders", "log_append", 300, 0.016)
    verdict = judged(build.generator(orders=(300.0, 300.0)))
    assert verdict.outcome == outcome, verdict.summary
    said = "the data disk of the sql tier (sql1, sdb) is at 99.5 % of its declared limit"
    assert (said in verdict.summary) == (limit == 300)


@pytest.mark.parametrize(
    ("busy", "outcome"), [(0.7, "not_reached"), (0.78, "inconclusive"), (0.87, "inconclusive")]
)
def test_a_cpu_without_room_takes_the_all_clear(busy: float, outcome: str) -> None:
    """A CPU below 75 % is clear; between 75 % and saturation the run is inconclusive."""
    build = Build().host("web1", "web", cores=(0, 1)).cpu("web1", busy, busy, cores=(0, 1))
    build.open("pages", "sql-mix", 300).operations("pages", "point_read", 300, 0.003)
    verdict = judged(build.generator(pages=(300.0, 300.0)))
    assert verdict.outcome == outcome, verdict.summary
    if outcome == "inconclusive":
        assert "the CPU of the web tier (web1) is at " in verdict.summary
        assert verdict.candidates[0].kind == "cpu"
        assert verdict.experiment is not None
        assert verdict.experiment.startswith("Run the same plan with a fifth more load")


@pytest.mark.parametrize("share", [0.905, 0.93, 0.94, 0.96, 0.99])
@pytest.mark.parametrize("grows", [False, True], ids=["steady", "growing"])
@pytest.mark.parametrize("role", ["log", "data"])
def test_a_disk_near_its_declared_limit_is_named_or_a_candidate(role: str, share: float, grows: bool) -> None:
    """A disk at 90 % or more of its declared limit is named or is the first candidate."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={role: "sdb"}, limits={role: {"iops": 300}})
    took_s = np.linspace(0.004, 0.06, build.seconds) if grows else np.full(build.seconds, 0.004)
    build.cpu("sql1", 0.3, 0.2, cores=(0, 1)).disk("sql1", "sdb", 300 * share, took_s, noise=0.004)
    build.open("orders", "sql-mix", 280).operations("orders", "log_append", 280, took_s + 0.002)
    verdict = judged(build.generator(orders=(280.0, 280.0)))
    assert verdict.outcome in {"bottleneck", "inconclusive"}, verdict.summary
    (first, *_) = (verdict.bottleneck,) if verdict.bottleneck else verdict.candidates
    assert first is not None
    assert (first.resource, first.host, first.role) == ("disk", "sql1", role)
