"""Late operations: the cause is either other processes on the machine or the load generator."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import judged
from harness.report.example import screen

from pinchpoint.analysis import Verdict, exit_status
from pinchpoint.base import wording
from pinchpoint_collectors.linux.others import HYPERVISOR, METRIC, PROCESS

TAKEN = {"cc1": 0.5, "train": 0.3, "backup": 0.1, "cron": 0.02}


def late(
    cpu: float = 0.2, waited: float | None = 0.2, stolen: float = 0.0, taken: dict[str, float] | None = None
) -> Build:
    """Return a farm with spare CPU, a worker that sends 40 ms late, and other processes' CPU use."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.3, 0.3).open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", 200, 0.01).generator(
        cpu=cpu, send_lag_s=0.04, orders=(200.0, 200.0)
    )
    taken = TAKEN if taken is None else taken
    build.metric("generator1", METRIC, sum(taken.values()), noise=0.0)
    build.metric("generator1", METRIC, stolen, HYPERVISOR, 0.0)
    for name, share in taken.items():
        build.metric("generator1", METRIC, share, f"{PROCESS}{name}", 0.0)
    if waited is not None:
        build.metric("generator1", "generator.cpu_wait_ratio", waited, noise=0.0)
    return build


def kind(verdict: Verdict) -> str:
    assert verdict.outcome == "invalid", verdict.summary
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence is None, "an invalid run says nothing of the farm"
    assert "onfidence" not in screen(verdict.to_json())
    return verdict.bottleneck.kind


@pytest.mark.parametrize("waited", [0.2, None], ids=["waited", "waiting not measured"])
def test_a_late_generator_with_room_on_its_core_names_who_took_the_cpu(waited: float | None) -> None:
    """Three other processes with their CPU shares are named, and the generator is not blamed."""
    verdict = judged(late(waited=waited))
    assert kind(verdict) == "contention"
    assert exit_status(verdict) == 3
    assert "took 92 % of the CPU" in verdict.summary
    assert "(cc1 50 %, train 30 % and backup 10 %)" in verdict.summary
    assert "cron" not in verdict.summary
    assert "End the other processes on the load generator's machine" in verdict.advice[0].text
    assert "more cores or workers" not in verdict.advice[0].text
    assert wording.MEANING["contention"]


def test_a_generator_whose_own_core_is_full_by_its_own_work_is_the_cause() -> None:
    """A load worker at 95 % of its core is the cause, although other processes are busy, too."""
    assert kind(judged(late(cpu=0.95))) == "generator"


@pytest.mark.parametrize(
    ("waited", "taken"),
    [(0.0, TAKEN), (0.2, {"cron": 0.02}), (None, {"cc1": 0.2})],
    ids=["never waited for a core", "others idle", "others use little"],
)
def test_a_late_generator_that_nobody_disturbed_is_the_cause(
    waited: float | None, taken: dict[str, float]
) -> None:
    """The generator is the cause where it hardly waited for a CPU, whatever else was running."""
    assert kind(judged(late(waited=waited, taken=taken))) == "generator"


def test_what_the_hypervisor_took_is_named_with_a_remedy_that_fits() -> None:
    """CPU time taken by the hypervisor is named, and the remedy is another machine."""
    verdict = judged(late(stolen=0.4, taken={"cc1": 0.05}))
    assert kind(verdict) == "contention"
    assert "(the hypervisor 40 % and cc1 5 %)" in verdict.summary
    assert "does not share its CPU" in verdict.advice[0].text


def test_processes_whose_names_cannot_be_read_are_not_measured() -> None:
    """Processes with unreadable names (hidepid, another container) have a share but no name."""
    build = late(taken={"cc1": 0.2})
    build.samples = [row for row in build.samples if (row[3], row[4]) != (METRIC, "")]
    verdict = judged(build.metric("generator1", METRIC, 0.9, noise=0.0))
    assert "(cc1 20 % and 70 % by processes whose names were not measured)" in verdict.summary


def test_a_valid_run_beside_busy_processes_is_warned_of() -> None:
    """A valid run with a third of the CPU used by other processes has a warning with their names."""
    build = late()
    build.rows = [row for row in build.rows if row["outcome"] != "sent"]
    verdict = judged(build)
    assert verdict.outcome != "invalid"
    assert any("cc1 50 %" in warning for warning in verdict.warnings)
