"""Tests of the runner: the machine's needs, arguments, shared farms, and clean-up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from ground_truth import machine, run
from ground_truth.burner import burning, measuring_since
from ground_truth.cases import Case, farms, select
from ground_truth.made import make_case
from ground_truth.variants import VARIANTS
from harness.analysis.build import Build

from pinchpoint.store.read import StoredRun

TESTS = Path(__file__).parents[1]


def test_the_farms_cores_are_used_up_in_the_middle_third_of_the_measurement(tmp_path: Path) -> None:
    """A process saturates the given core only during the middle third, and none is left afterwards."""
    core = max(os.sched_getaffinity(0))
    run = tmp_path / "run"
    run.mkdir()
    assert measuring_since(tmp_path) is None
    phases = [{"name": "measure", "from": datetime.now(UTC).isoformat()}]

    before = psutil.Process().children()  # servers that other tests share

    def burners() -> list[psutil.Process]:
        return [process for process in psutil.Process().children() if process not in before]

    with burning(tmp_path, [core], measure_s=4.5):
        time.sleep(0.6)
        assert burners() == []  # the run does not yet measure
        (run / "manifest.json").write_text(json.dumps({"phases": phases}))
        deadline = time.monotonic() + 10
        while not burners() and time.monotonic() < deadline:
            time.sleep(0.05)
        (burner,) = burners()
        time.sleep(0.3)
        assert burner.cpu_affinity() == [core]
    assert burners() == []


def test_what_the_machine_lacks_is_said_once_and_is_an_error_as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root an unmet need is an error; for other users the row states once why the case is not possible."""
    why = lambda: "no root rights"  # noqa: E731 -- two needs, one reason
    assert machine.lacking(["root", "disks"], {"root": why, "disks": why}) == "no root rights"
    assert machine.lacking(["root"], {"root": lambda: None}) == ""
    for root, words in ((True, "error: no root rights"), (False, "not possible here: no root rights")):
        monkeypatch.setattr(machine, "is_root", lambda root=root: root)
        assert run._not_run("no root rights") == words


@pytest.mark.parametrize(
    "words", [["--shard", "3/2"], ["--shard", "0/2"], ["--shard", "x"], ["--repeat", "0"]]
)
def test_a_wrong_argument_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong argument gives exit status 2 and the allowed values before anything starts."""
    with pytest.raises(SystemExit) as ended:
        run.main(words)
    assert ended.value.code == 2
    assert "allowed:" in capsys.readouterr().err


def test_an_unknown_case_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown case gives exit status 2, its name and the known names."""
    assert run.main(["--cases", "no-such-case"]) == 2
    assert "no-such-case: is no case" in capsys.readouterr().err


# Replaces `python -m ground_truth.run` with cases and results of its own. The runs and analyses are real.
# Their verdicts on such short runs on a busy machine do not matter here, so one fixed answer replaces them.
SCRIPT = """
import sys
from pathlib import Path
from ground_truth import cases, judge, run
healthy = judge.Found(cases.Answer("not_reached"), None)
true_judge = judge.judge
def judged(directory):
    found = true_judge(directory)
    return judge.Judged(dict.fromkeys(found.variants, healthy), dict.fromkeys(found.noises, healthy))
run.judge = judged
run.BUILD = Path(sys.argv[1]) / "build"
run.pairs.PAIRS = Path(sys.argv[1]) / "pairs"
found = cases.select
run.select = lambda patterns: found(patterns, Path(sys.argv[1]) / "cases", Path(sys.argv[1]))
sys.exit(run.main(sys.argv[2:]))
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the runner in a process of its own on the cases below ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), *arguments],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(folder)},  # a killed runner leaves only its work folder
    )


class Disturbed:
    """Simulates a farm; the hypervisor takes the given CPU time from each of its runs in turn."""

    def __init__(self, folder: Path, *steal: float) -> None:
        self._left, self._folder, self.steal = list(steal), folder, dict[Path, float]()

    def run(self, case: Case, *, burn: bool, neighbours: int) -> Path:
        assert not burn
        assert not neighbours
        directory = self._folder / f"run{len(self.steal)}"
        directory.mkdir()
        self.steal[directory] = self._left.pop(0)
        return directory

    def stored(self, directory: Path) -> StoredRun:
        build = Build().host("sql1", "sql")
        return build.metric("sql1", "cpu.steal_ratio", self.steal[directory], noise=0).run()


@pytest.mark.parametrize(
    ("steal", "taken", "said"),
    [((0.0,), "run0", 0), ((0.25, 0.02), "run1", 1), ((0.25, 0.3, 0.25), "run2", 2)],
)
def test_a_case_that_the_hypervisor_disturbed_is_run_again(
    steal: tuple[float, ...],
    taken: str,
    said: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A disturbed run is repeated until one is undisturbed, three runs at most, and the last is judged."""
    make_case(tmp_path / "cases", "fine")
    [[case]] = farms(select(["fine"], tmp_path / "cases", tmp_path))
    farm = Disturbed(tmp_path, *steal)
    monkeypatch.setattr(run, "open_run", farm.stored)
    runner = run.GroundTruth([[case]], tmp_path / "build")
    assert runner._undisturbed(case, farm).name == taken  # type: ignore[arg-type]
    assert [place.name for place in tmp_path.glob("run*")] == [taken]
    assert capsys.readouterr().out.count("of the CPU time of sql1 (steal): run again") == said


def farm_processes(folder: Path) -> list[int]:
    """Return the ids of farm processes below the state folder of this test."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PINCHPOINT_STATE") == str(folder) and process.pid != os.getpid():
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.slow
@pytest.mark.farm
@pytest.mark.alone
def test_one_farm_serves_its_cases_and_a_miss_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cases on one farm, one with a wrong label, give a hit, a kept miss, and exit status 1."""
    state = tmp_path / "state"
    monkeypatch.setenv("PINCHPOINT_STATE", str(state))
    make_case(tmp_path / "cases", "fine")
    make_case(
        tmp_path / "cases", "wrong", expected="outcome: bottleneck\nkind: cpu\ntier: nosql\nwhy: it is not\n"
    )
    process = start(tmp_path)
    out, _ = process.communicate(timeout=150)
    assert process.returncode == 1, out
    rows = json.loads((tmp_path / "build/ground-truth.json").read_text())
    assert [(row["case"], row["found"], row["right"]) for row in rows] == [
        ("fine", "not_reached", True),
        ("wrong", "not_reached", False),
    ]
    assert [*rows[1]["variants"]] == [*VARIANTS]
    assert {"without local of nosql1", "every 5 s", "20% lost"} <= set(rows[1]["noises"])
    kept = tmp_path / "build/ground-truth-runs"
    assert [place.name for place in kept.iterdir()] == ["wrong"]
    assert {"manifest.json", "report.html", "run.log", "samples.parquet"} <= {
        place.name for place in (kept / "wrong").iterdir()
    }
    assert "is used, and left up" in (kept / "wrong" / "run.log").read_text()
    assert "1 of 2 right" in out
    again, _ = start(tmp_path, "--again").communicate(timeout=60)
    assert "0 of 2 right" in again  # the hit was not kept
    rows = json.loads((tmp_path / "build/ground-truth.json").read_text())
    assert [row["found"] for row in rows][1] == "not_reached"
    assert "does not exist" in rows[0]["found"]
    assert farm_processes(state) == []
    assert not state.exists() or not any(state.rglob("*"))


@pytest.mark.farm
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Ctrl-C ends the run and removes the farm; after a kill, the farm's lifeline removes it."""
    state = tmp_path / "state"
    monkeypatch.setenv("PINCHPOINT_STATE", str(state))
    make_case(tmp_path / "cases", "long", measure="60s")
    process = start(tmp_path)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("pinchpoint-ground-truth-*/1/run1/*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)  # during the run's warm-up
    process.send_signal(number)
    process.communicate(timeout=90)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    while (left := farm_processes(state)) and time.monotonic() < deadline + 60:
        time.sleep(0.2)
    assert left == []
    assert not any(place.is_file() for place in state.rglob("*"))
