"""The demo sizes its load to the machine, and a machine with too little CPU is not a failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.analysis.build import Build
from harness.analysis.test_contention import late
from harness.analysis.verdicts import judged

from pinchpoint.base.errors import ExitStatus
from pinchpoint.cli import demo
from pinchpoint.run.controller import RunEnd
from pinchpoint.run.demo_calibration import Calibration, calibrate

CALM = Calibration(cores=2, left_cores=1.98, late_s=0.0004)


@pytest.mark.parametrize(
    ("found", "ratio"),
    [
        (CALM, 1.0),
        (replace(CALM, left_cores=1.0), 0.5),
        (replace(CALM, late_s=0.02), 0.25),
        (Calibration(1, 1.0, 0.0), 1.0),
        (replace(CALM, left_cores=0.0, late_s=3.0), 0.05),
    ],
    ids=["calm", "half of the CPU", "late timers", "one core", "nothing left"],
)
def test_the_load_is_what_the_machine_can_bear(found: Calibration, ratio: float) -> None:
    """The load follows the scarcer of CPU and timers; sentence, plan and documents give the same figure."""
    assert found.load_ratio == pytest.approx(ratio)
    loads = {name: given["load"] for name, given in demo.plan(found.load_ratio)["scenarios"].items()}
    assert loads["orders"]["rate"] == f"{round(100 * ratio)}/s"
    assert loads["burst"]["peak"] == f"{round(500 * ratio)}/s"
    assert 1 <= loads["crawl"]["users"] == max(1, round(8 * ratio))
    assert demo.farm(found.load_ratio)["embedded"]["content"]["documents"] == round(4000 * ratio)


def run_demo(
    monkeypatch: pytest.MonkeyPatch, folder: Path, build: Build, ended: RunEnd
) -> tuple[int, str, str]:
    verdict = judged(build)
    monkeypatch.setattr(demo, "calibrate", lambda: replace(CALM, left_cores=1.0))
    monkeypatch.setattr(demo, "run_and_print_verdict", lambda *_: (ended, verdict))
    done = CliRunner().invoke(demo.demo, ["--out", str(folder)], standalone_mode=False)
    assert done.exception is None
    return int(done.return_value), done.stdout, done.stderr


def test_a_demo_that_others_disturbed_shows_its_report_and_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A demo disturbed by other processes ends with 0, and its last line is the report's path alone."""
    status, out, err = run_demo(monkeypatch, tmp_path, late(), RunEnd(tmp_path / "run"))
    assert status == 0
    assert out.splitlines()[-1] == str(tmp_path / "run" / "report.html")
    assert (
        "This machine gave 1.0 of the 2 cores that the demo asked for, and woke a timer 400 µs late (p99): "
        "the demo lowers its load to 50 % (crawl 4 users, orders 50/s, burst 25/s to 250/s)." in err
    )


@pytest.mark.parametrize("status", [ExitStatus.INTERRUPTED, ExitStatus.ENVIRONMENT, ExitStatus.NOT_EVIDENCE])
def test_what_is_no_want_of_cpu_keeps_its_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: ExitStatus
) -> None:
    """Ctrl-C, a crashed tier and a failed recorder keep their exit status on a busy machine."""
    ended = RunEnd(tmp_path / "run", [status])
    assert run_demo(monkeypatch, tmp_path, late(), ended)[0] == status


def test_a_recorder_that_failed_is_a_fault_in_a_demo_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A failed recorder is an error in a demo, too, and not a lack of CPU."""
    build = late().metric("generator1", "generator.recorder_ok", 0.0, noise=0.0)
    assert run_demo(monkeypatch, tmp_path, build, RunEnd(tmp_path / "run"))[0] == 3


def test_calibrating_measures_this_machine() -> None:
    """Calibration measures real CPU and timers, and gives plausible figures in a few seconds."""
    found = calibrate()
    assert 0 < found.left_cores <= found.cores + 0.1
    assert 0 <= found.late_s < 5
    assert 0.05 <= found.load_ratio <= 1
