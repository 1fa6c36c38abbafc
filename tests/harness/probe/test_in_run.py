"""A probe as a scenario of a plan: figures in the report, the verdict in a folder of the run."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.analysis.build import START_S, Build
from harness.probe.build import Disk, cells_of, trial_of
from sshd_hosts import sshd_host
from support import PINCHPOINT, disk_folder, require, run_cli, until

from pinchpoint.analysis import analyse
from pinchpoint.cli.report import report as report_command
from pinchpoint.probe.figures import trial_figures
from pinchpoint.probe.in_run import probes_of
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import DeclaredDisk
from pinchpoint.report.judged import judge_probes
from pinchpoint.report.probe import probes
from pinchpoint.report.registry import FORMATS
from pinchpoint.report.report import gather
from pinchpoint.store.read import StoredRun
from pinchpoint_scenarios.storage_probe.folder import FOLDER

DISK = Disk(0.0005, 500, 60e6)


def run_with_a_probe(folder: Path, repeat: int = 2) -> StoredRun:
    """Return a run whose only scenario probed that simulated disk."""
    build = Build(measure_s=40).host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", busy=0.1)
    build.closed("disks", "storage-probe", 1).generator(cpu=0.05)
    build.manifest["plan"]["scenarios"]["disks"]["params"] = {"suite": "crystaldiskmark", "disk": "sql.log"}
    for trial in range(1, repeat + 1):
        for number, cell in enumerate(cells_of("crystaldiskmark")):
            one = asdict(trial_of(cell, trial, DISK(cell, trial)))
            figures = {key: one[key] for key in one if key.endswith(("_per_s", "_s")) or key == "seconds"}
            build.event(
                "probed",
                second=number,
                scenario="disks",
                worker="generator1",
                suite="crystaldiskmark",
                disk="sql.log",
                folder="/srv/log",
                host="sql1",
                size_bytes=2**30,
                cell=asdict(cell),
                name=cell.name,
                trial=trial,
                started_s=START_S + number,
                device="sdb",
                series=None,
                times_ns=[[round(one["mean_s"] * 1e9), 990], [round(one["mean_s"] * 1e9) * 10 * trial, 10]],
                **figures,
            )
    build.operations("disks", "RND4K write, 32 outstanding", 1, 0.9, noise=0.0)
    return replace(build.run(), directory=folder)


def test_its_verdict_lies_beside_the_run(tmp_path: Path) -> None:
    """The run's probe is judged and reported as any probe, and says that other load was running."""
    [written] = judge_probes(run_with_a_probe(tmp_path))
    assert written == tmp_path / "probe-disks"
    content = json.loads((written / "probe.json").read_text())
    assert content["verdict"]["caps"]["iops"]["value"] == pytest.approx(500, rel=0.01)
    assert (content["where"]["disk"], content["where"]["device"]) == ("sql.log", "sdb")
    assert content["options"]["repeat"] == 2
    assert any("while the other scenarios ran" in warning for warning in content["warnings"])
    done = CliRunner().invoke(report_command, [str(written)], catch_exceptions=False)
    assert done.output.strip() == str(written / "report.html")


def test_its_percentiles_are_of_all_repetitions(tmp_path: Path) -> None:
    """Percentiles merge all repetitions: the p99.9 is that of the slower one, not a mean."""
    [(_, probe)] = probes_of(run_with_a_probe(tmp_path))
    cell = next(cell for cell in probe.cells if cell.name == "RND4K write, 32 outstanding")
    one = trial_figures(probe.cells[cell])
    each_s = 32 / 500
    assert one.p50_s == pytest.approx(each_s, rel=0.002)
    assert one.p99_s == pytest.approx(each_s, rel=0.002)
    assert one.p999_s == pytest.approx(20 * each_s, rel=0.002)
    [row] = [row for row in probes(run_with_a_probe(tmp_path)).rows if row["cell"] == cell.name]
    assert (row["p50_s"], row["p999_s"]) == (one.p50_s, one.p999_s)


def test_what_the_farm_declares_is_what_it_is_held_against(tmp_path: Path) -> None:
    """The probe is compared with the farm's declared limit of 1,000, or with none if withheld."""
    run = run_with_a_probe(tmp_path)
    assert next(probes_of(run))[1].declared == DeclaredDisk()
    disks = run.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"].setdefault("disks", {})
    disks["log"] = {"limits": {"iops": 1000, "bytes_per_s": None}, "resolved_limits": {"iops": 1000}}
    [(_, probe)] = probes_of(run)
    assert probe.declared.limits is not None
    verdict = judge(probe)
    assert verdict.declared_used["iops"] == pytest.approx(0.5, rel=0.01)
    assert verdict.contradicted is not None


def test_a_cell_that_failed_has_its_reason(tmp_path: Path) -> None:
    """A failed cell has its reason in the probe and in the report; other cells still count."""
    run = run_with_a_probe(tmp_path)
    first = next(event for event in run.events if event["event"] == "probed")
    kept = ("time", "scenario", "suite", "disk", "folder", "host", "size_bytes", "cell", "name", "started_s")
    failed = {**{key: first[key] for key in kept}, "event": "probe_failed", "trial": 3, "why": "fio: no"}
    run = replace(run, events=[*run.events, failed])
    [(_, probe)] = probes_of(run)
    one = trial_figures(probe.cells[next(cell for cell in probe.cells if cell.name == first["name"])])
    assert (one.trials, one.failed) == (2, ("fio: no",))
    [row] = [row for row in probes(run).rows if row["cell"] == first["name"]]
    assert (row["trials"], row["failed"]) == (2, "fio: no")


def test_its_cells_are_rows_of_the_report(tmp_path: Path) -> None:
    run = run_with_a_probe(tmp_path)
    table = probes(run)
    assert len(table.rows) == len(cells_of("crystaldiskmark"))
    [row] = [row for row in table.rows if row["cell"] == "RND4K write, 32 outstanding"]
    assert (row["trials"], row["disk"], row["scenario"]) == (2, "sql.log", "disks")
    assert row["iops"] == pytest.approx(500)
    verdict = analyse(run).to_json()
    for name in ("html", "md"):
        assert "Storage probes in this run" in FORMATS[name](gather(run, verdict))


def test_a_run_without_probes_shows_none(tmp_path: Path) -> None:
    run = replace(Build().closed("a", "sql-mix", 1).run(), directory=tmp_path)
    assert judge_probes(run) == []
    assert not list(probes_of(run))
    assert "Storage probes in this run" not in FORMATS["md"](gather(run, analyse(run).to_json()))


def test_any_line_can_be_asked_for_in_a_plan(tmp_path: Path) -> None:
    """``params: {line: 1ms}`` sets the latency line: 20 ms hold with one outstanding, 1 ms does not."""
    run = run_with_a_probe(tmp_path)
    for line, holds in ((None, 1), ("1ms", None), ("100ms", 32)):
        run.manifest["plan"]["scenarios"]["disks"]["params"]["line"] = line
        [(_, probe)] = probes_of(run)
        [found] = [one for one in judge(probe).workloads if one.workload == "RND4K write"]
        assert found.line_holds_to == holds


def test_what_was_cut_short_is_not_finished(tmp_path: Path) -> None:
    run = run_with_a_probe(tmp_path)
    [(_, probe)] = probes_of(replace(run, events=run.events[:5]))
    assert probe.state == "interrupted"


@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.slow  # a farm, thirteen cells and their run: most of a minute
@pytest.mark.parametrize("where", ["disk", "folder"])
def test_a_plan_that_probes_a_farm_s_disk(tmp_path: Path, where: str) -> None:
    """A plan that probes a farm's disk ends when all cells are measured, and removes the folder."""
    require("fio", "fio")
    farm, plan, folder = tmp_path / "farm.yaml", tmp_path / "plan.yaml", tmp_path / "disk"
    folder.mkdir()
    farm.write_text(json.dumps({"name": "dev", "environment": "test", "embedded": {"tiers": ["nosql"]}}))
    place = {"disk": "nosql.data"} if where == "disk" else {"folder": str(folder)}
    params = {"suite": "database", "repeat": 1, "time_per_cell": "300ms", "size": "16MiB", **place}
    scenario = {"use": "storage-probe", "load": {"model": "closed", "users": 1}, "params": params}
    phases = {"warm_up": "0s", "measure": {"until": "done", "at_most": "120s"}}
    plan.write_text(json.dumps({"name": "probing", "scenarios": {"disks": scenario}, "phases": phases}))
    done = run_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs", timeout_s=170)
    assert done.returncode in (0, 3), done.stderr[-3000:]
    directory = Path(done.stdout.splitlines()[-1])
    content = json.loads((directory / "probe-disks" / "probe.json").read_text())
    assert content["state"] == "finished"
    assert len(content["cells"]) == 13
    assert all(row["figures"]["iops"]["mean"] > 0 for row in content["cells"])
    assert "Storage probes in this run" in (directory / "report.html").read_text()
    assert not list(folder.iterdir())
    assert "invalid" not in json.loads((directory / "verdict.json").read_text())["outcome"]


@pytest.mark.alone
@pytest.mark.slow  # two runs of about twenty seconds
@pytest.mark.parametrize("ended", ["done", "Ctrl-C"])
def test_a_plan_that_probes_a_disk_over_ssh(tmp_path: Path, ended: str) -> None:
    """A probe over a real sshd leaves its verdict in the run's folder and nothing on the host."""
    require("fio", "fio")
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    folder = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))
    params = {"suite": "database", "repeat": 1, "time_per_cell": "300ms", "size": "16MiB"}
    if ended == "Ctrl-C":
        params["time_per_cell"] = "30s"
    scenario = {"use": "storage-probe", "load": {"model": "closed", "users": 1}, "params": params}
    phases = {"warm_up": "0s", "measure": {"until": "done", "at_most": "120s"}}
    plan.write_text(json.dumps({"name": "probing", "scenarios": {"disks": scenario}, "phases": phases}))
    try:
        with sshd_host() as host:
            disks = {"log": {"path": str(folder), "limits": {"iops": 1_000_000}}}
            hosts = {"sql1": {"collect": [{"kind": "ssh", **host.options()}], "disks": disks}}
            described = {
                "name": "dev",
                "environment": "test",
                "endpoints": {"sql": {"url": "postgresql://loader@127.0.0.1/loadtest"}},  # not recorded
                "tiers": {"sql": {"hosts": hosts}},
            }
            farm.write_text(json.dumps(described))
            checked = run_cli("check", plan, "--farm", farm)
            assert checked.returncode == 0, checked.stderr[-3000:]
            assert "fio-" in checked.stdout
            command = [str(each) for each in (PINCHPOINT, "run", plan, "--farm", farm)]
            command += ["--out", str(tmp_path / "runs")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
                if ended == "Ctrl-C":
                    until(
                        lambda: list(folder.glob(f"{FOLDER}/running")), "fio did not begin there", process=run
                    )
                    run.send_signal(signal.SIGINT)
                stdout, stderr = run.communicate(timeout=170)
            assert run.returncode == (130 if ended == "Ctrl-C" else 0), stderr[-3000:]
        assert not list(folder.iterdir())
    finally:
        shutil.rmtree(folder)
    if ended == "done":
        directory = Path(stdout.splitlines()[-1])
        content = json.loads((directory / "probe-disks" / "probe.json").read_text())
        assert content["state"] == "finished"
        assert content["where"]["host"] == socket.gethostname()
        assert content["where"]["disk"] == "sql.log"
        assert content["declared"]["limits"]["iops"] == 1_000_000
        assert all(row["figures"]["iops"]["mean"] > 0 for row in content["cells"])
