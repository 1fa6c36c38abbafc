"""The probe's driver with missing or failing tools: a reason per cell, or an error if none is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from harness.probe.build import Disk, probe_of, trial_of
from support import require

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.probe import words
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Options, Probe
from pinchpoint.probe.suite_run import ProbeProgress, SuiteDriver, estimate, version_of
from pinchpoint_scenarios.storage_probe import SUITES, Job, Tool, process, tool
from pinchpoint_scenarios.storage_probe.place import LocalFacts, LocalMachine
from pinchpoint_scenarios.storage_probe.process import ToolOutput


def local(folder: Path) -> LocalMachine:
    return LocalMachine(folder, LocalFacts(folder))


def probe_in(folder: Path, suite: str) -> Probe:
    probe = probe_of(Disk(), [], suite)
    probe.options = Options(1, 0.2, 16 * 2**20, 0.02)
    return probe


def watching(said: list[str], stop: Callable[[], bool] = lambda: False) -> ProbeProgress:
    return ProbeProgress(stop, said.append, lambda *_: None, lambda *_: None, lambda _: None)


def without(monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Make these programs look not installed."""
    find = tool.find
    monkeypatch.setattr(tool, "find", lambda name: None if name in programs else find(name))


def test_a_suite_whose_only_tool_is_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A suite whose only tool is missing is an error with program and Debian package; nothing ran."""
    without(monkeypatch, "fio")
    driver = SuiteDriver(
        SUITES["database"],
        probe_in(tmp_path, "database"),
        local(tmp_path),
        watching([]),
    )
    with pytest.raises(FarmUnavailable, match=r"fio is not installed here.*apt-get install fio"):
        driver.run()
    assert not list(tmp_path.iterdir())


def test_one_of_several_tools_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without hdparm, dd still measures; the row and a warning name the missing package."""
    without(monkeypatch, "hdparm")
    probe, said = probe_in(tmp_path, "sequential"), list[str]()
    SuiteDriver(SUITES["sequential"], probe, local(tmp_path), watching(said)).run()
    assert probe.state == "finished"
    failed = {cell.name: trials[0].failed for cell, trials in probe.cells.items()}
    assert "apt-get install hdparm" in (failed["hdparm read"] or "")
    assert failed["dd read"] is None
    assert any("hdparm" in line for line in said)
    assert any("hdparm" in line for line in probe.warnings)


def test_a_failing_tool_s_own_words_are_kept(tmp_path: Path) -> None:
    """A tool's own error message is the error, here dd's about a removed folder."""
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "probe.data").mkdir()  # no file to write to
    with pytest.raises(FarmUnavailable, match=r"dd failed with exit status 1: .*Is a directory"):
        SuiteDriver(
            SUITES["sequential"],
            probe_in(gone, "sequential"),
            local(gone),
            watching([]),
        ).run()


class Lost(LocalMachine):
    """A machine whose link is cut after the first cell."""

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        """Prepare, and measure one cell."""
        if any("runtime" in word for word in command):
            if (self.folder / "measured").exists():
                raise FarmUnavailable("sql1: the link is cut")
            (self.folder / "measured").touch()
        return super().run(tool, command, stop)


def test_a_machine_that_is_lost_ends_the_probe_and_keeps_what_it_has(tmp_path: Path) -> None:
    """A lost machine interrupts the probe, which can be resumed, instead of failing every cell."""
    require("fio", "fio")
    probe, kept, said = probe_in(tmp_path, "database"), list[str](), list[str]()
    watch = ProbeProgress(
        lambda: False, said.append, lambda *_: None, lambda *_: None, lambda made: kept.append(made.state)
    )
    with pytest.raises(FarmUnavailable, match="the link is cut"):
        SuiteDriver(SUITES["database"], probe, Lost(tmp_path, LocalFacts(tmp_path)), watch).run()
    assert (probe.state, kept[-1]) == ("interrupted", "interrupted")
    assert sum(len(trials) for trials in probe.cells.values()) == 1


def test_stopping_ends_the_process_at_once(tmp_path: Path) -> None:
    with pytest.raises(process.ProbeStopped):
        process.run(["sleep", "60"], tmp_path, lambda: True)


def test_what_a_process_says(tmp_path: Path) -> None:
    said = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path, lambda: False)
    assert (said.stdout, said.stderr, said.status) == ("out\n", "err\n", 3)


def test_versions_as_the_tools_tell_them() -> None:
    """The version of bonnie++ is read from the last line of its usage."""
    assert version_of("fio-3.33\n") == "fio-3.33"
    assert version_of("dd (coreutils) 9.1\nCopyright\n") == "dd (coreutils) 9.1"
    assert version_of("bonnie++: invalid option\nusage:\n\nVersion: 2.00a\n") == "Version: 2.00a"
    assert version_of("") == "not reported"


def test_the_estimate_counts_cells_repetitions_and_pauses() -> None:
    """The estimate counts cells, repetitions, settling times and pauses."""
    found = estimate(SUITES["crystaldiskmark"], probe_of(Disk(), [], "crystaldiskmark"))
    assert (found["jobs"], found["untimed"], found["bytes"]) == (60, 0, 2**30)
    assert found["seconds"] == pytest.approx(60 * 6.5)
    found = estimate(SUITES["sequential"], probe_of(Disk(), [], "sequential", repeat=12))
    assert (found["jobs"], found["untimed"], found["seconds"], found["pauses_s"]) == (36, 36, 0.0, 110.0)
    assert "timed ones" not in words.estimate(found)
    assert "110 s of pauses" in words.estimate(found)


def test_the_estimate_of_what_is_gone_on_with_is_of_what_is_left() -> None:
    """The estimate of a resumed probe counts the 33 remaining cells only."""
    probe = probe_of(Disk(0.001), repeat=5, course=False)
    for number, trials in enumerate(probe.cells.values()):
        del trials[3 if number < 3 else 2 :]
    found = estimate(SUITES["crystaldiskmark"], probe)
    assert (found["jobs"], found["bytes"]) == (33, 2**30)
    assert found["seconds"] == pytest.approx(33 * 6.5)
    begun = probe_of(Disk(), suite="sequential", repeat=12, course=False)
    for trials in begun.cells.values():
        del trials[10:]
    found = estimate(SUITES["sequential"], begun)
    assert (found["jobs"], found["pauses_s"]) == (6, 20.0)


def test_a_file_that_memory_holds_is_said_where_the_page_cache_takes_part() -> None:
    """A file that fits into memory gives a warning only for tools that use the page cache."""
    [why] = words.in_memory(SUITES["bonnie"], 2**30, 16 * 2**30)
    assert "(1.07 GB) is smaller than twice the memory (17.2 GB)" in why
    assert words.in_memory(SUITES["bonnie"], 33 * 2**30, 16 * 2**30) == []
    assert words.in_memory(SUITES["database"], 2**30, 16 * 2**30) == []


@dataclass(slots=True)
class Formula(SuiteDriver):
    """Measure a simulated disk."""

    disk: Disk = field(default_factory=Disk)

    def _missing(self, _: Sequence[Job]) -> dict[str, str]:
        return {}

    def _prepare(self, _: Sequence[Job]) -> None:
        pass

    def _one(self, job: Job, trial: int, _: str | None) -> None:
        done = trial_of(job.cell, trial, self.disk(job.cell, trial))
        self.probe.cells[job.cell].append(done)


@pytest.mark.parametrize(
    "disk",
    [
        *(Disk(service_s=lambda _: 1 / 288), Disk(0.0004, 15600), Disk(0.0004, 500), Disk(0.03)),
        *(Disk(0.00001), Disk(0.002, 120), Disk(service_s=lambda _: 1 / 75), Disk(0.001, None, 30e6)),
    ],
    ids=["device", "fast", "cap", "always above", "never above", "low cap", "slow device", "bytes"],
)
@pytest.mark.parametrize("line_s", [0.02, 0.005, 0.1])
def test_a_bisection_finds_the_line_where_the_whole_matrix_has_it(
    disk: Disk, line_s: float, tmp_path: Path
) -> None:
    """Bisection finds the same crossing of the line and the same kinds as the whole matrix."""
    suite = SUITES["iometer-knee"]
    probes = []
    for chosen in (suite, replace(suite, bisected=False)):
        probe = probe_in(tmp_path, suite.name)
        probe.options = Options(2, 5.0, 16 * 2**20, line_s)
        Formula(chosen, probe, local(tmp_path), watching([]), disk=disk).run()
        probes.append(probe)
    few, whole = ({one.workload: one for one in judge(probe).workloads} for probe in probes)
    assert {name: (one.line_holds_to, one.line_crossed_at, one.kind) for name, one in few.items()} == {
        name: (one.line_holds_to, one.line_crossed_at, one.kind) for name, one in whole.items()
    }
    assert len(probes[1].cells) == 44
    assert len(probes[0].cells) <= 6 * 4
    assert {len(trials) for trials in probes[0].cells.values()} == {2}
    [said] = [one for one in probes[0].warnings if "left out" in one]
    assert said.startswith(f"left out {44 - len(probes[0].cells)} of 44 cells")
