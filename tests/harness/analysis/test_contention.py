"""Operations that came late: whether other processes took the CPU, or the load generator was the cause."""

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
    """A farm with room, a load worker that sends 40 ms too late, and what others take of its machine."""
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
    """The three that took most, with their shares; not a word that the generator did wrong."""
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
    """Others may be busy, too: a load worker at 95 % of its core would have been late without them."""
    assert kind(judged(late(cpu=0.95))) == "generator"


@pytest.mark.parametrize(
    ("waited", "taken"),
    [(0.0, TAKEN), (0.2, {"cron": 0.02}), (None, {"cc1": 0.2})],
    ids=["never waited for a core", "others idle", "others use little"],
)
def test_a_late_generator_that_nobody_disturbed_is_the_cause(
    waited: float | None, taken: dict[str, float]
) -> None:
    """Who takes CPU that the generator did not wait for, or hardly any, did not make it late."""
    assert kind(judged(late(waited=waited, taken=taken))) == "generator"


def test_what_the_hypervisor_took_is_named_with_a_remedy_that_fits() -> None:
    """Nobody can end the hypervisor: another machine is what helps."""
    verdict = judged(late(stolen=0.4, taken={"cc1": 0.05}))
    assert kind(verdict) == "contention"
    assert "(the hypervisor 40 % and cc1 5 %)" in verdict.summary
    assert "does not share its CPU" in verdict.advice[0].text


def test_processes_whose_names_cannot_be_read_are_not_measured() -> None:
    """Seen in the machine's total alone (hidepid, another container): the share is told, the name is not."""
    build = late(taken={"cc1": 0.2})
    build.samples = [row for row in build.samples if (row[3], row[4]) != (METRIC, "")]
    verdict = judged(build.metric("generator1", METRIC, 0.9, noise=0.0))
    assert "(cc1 20 % and 70 % by processes whose names were not measured)" in verdict.summary


def test_a_valid_run_beside_busy_processes_is_warned_of() -> None:
    """Nothing was late, yet a third of the machine's CPU went elsewhere: a warning, with names."""
    build = late()
    build.rows = [row for row in build.rows if row["outcome"] != "sent"]
    verdict = judged(build)
    assert verdict.outcome != "invalid"
    assert any("cc1 50 %" in warning for warning in verdict.warnings)
