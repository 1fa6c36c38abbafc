"""Tests of a farm with a Windows machine: farm.yaml, ``check``, and a run with a cut link."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from collectors.windows.standin import Machine
from collectors.windows.winrmhost import WinRmHost, winrm_host
from support import end, run_cli, start_cli, until
from winrmserver import PASSWORD

from pinchpoint.base.errors import InputError
from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import load_farm
from pinchpoint.store.read import open_run

FILE = """
from locust import User, constant, task

class Idle(User):
    wait_time = constant(0.1)

    @task
    def nothing(self):
        self.environment.events.request.fire(
            request_type="none", name="nothing", response_time=1, response_length=0, exception=None,
            context={},
        )
"""
DISKS = {"log": {"device": "L:"}, "tempdb": {"path": "C:\\mnt\\tempdb\\files"}, "data": {"path": "C:/data"}}


def write(
    folder: Path, collect: dict[str, Any], disks: dict[str, Any], measure_s: int = 9
) -> tuple[Path, Path]:
    """Write the plan and the farm; return their paths."""
    (folder / "idle.py").write_text(FILE)
    farm, plan = folder / "farm.yaml", folder / "plan.yaml"
    host = {"collect": [{"kind": "windows", **collect}], "disks": disks}
    content = {
        "name": "f",
        "environment": "test",
        "endpoints": {"web": {"url": "http://127.0.0.1:9"}},
        "tiers": {"sql": {"hosts": {"sql1": host}}},
    }
    farm.write_text(json.dumps(content))
    scenario = {"use": "./idle.py", "load": {"model": "closed", "users": 1}}
    phases = {"warm_up": "1s", "measure": f"{measure_s}s"}
    plan.write_text(json.dumps({"name": "quick", "scenarios": {"idle": scenario}, "phases": phases}))
    return plan, farm


def measures(runs: Path) -> bool:
    """Return True if a run in the folder has begun its measure phase."""
    return any('"measure"' in path.read_text() for path in runs.glob("*/events.jsonl"))


def collect_of(server: WinRmHost) -> dict[str, Any]:
    """Return the ``collect`` entry, with a variable as the password."""
    return server.options(password="${WATCHER_PASSWORD}")


def test_variables_are_filled_in_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and farm contain variable names, the watch their values; an unset variable is named."""
    entry = {"address": "sql1.example", "user": "${WATCHER}", "password": "${WATCHER_PASSWORD}"}
    _, path = write(tmp_path, entry, DISKS)
    farm = load_farm(path)
    assert "hunter2" not in json.dumps(farm.to_json())
    monkeypatch.setenv("WATCHER", "FARM\\watcher")
    monkeypatch.delenv("WATCHER_PASSWORD", raising=False)
    with pytest.raises(
        InputError, match=r"tiers\.sql\.hosts\.sql1\.collect\.windows\.password: .*WATCHER_PASSWORD"
    ):
        standing_farm(farm)
    monkeypatch.setenv("WATCHER_PASSWORD", "hunter2")
    live = standing_farm(farm)
    assert live is not None
    ((kind, watch),) = live.watches
    assert kind == "windows"
    assert (watch.options["user"], watch.options["password"]) == ("FARM\\watcher", "hunter2")
    assert watch.disks == {"log": "L:", "tempdb": "C:\\mnt\\tempdb\\files", "data": "C:/data"}


def test_a_path_of_windows_must_be_whole_too(tmp_path: Path) -> None:
    """A Windows path needs a drive letter and an absolute folder."""
    for path in ("C:data", "\\data", "data"):
        _, farm = write(tmp_path, {"address": "sql1"}, {"log": {"path": path}})
        with pytest.raises(InputError, match="an absolute path on that host"):
            load_farm(farm)


def test_an_option_of_no_kind_is_named(tmp_path: Path) -> None:
    """An unknown option's error lists the known ones."""
    _, farm = write(tmp_path, {"adress": "sql1"}, {})
    with pytest.raises(InputError, match=r"adress: unknown field; allowed: .*nearest: address"):
        load_farm(farm)


def test_check_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``check`` connects, reads and finds the tier, and shows no password."""
    with winrm_host(Machine(), tmp_path) as server:
        plan, farm = write(tmp_path, {**collect_of(server), "service": "MSSQLSERVER"}, DISKS)
        monkeypatch.setenv("WATCHER_PASSWORD", PASSWORD)
        done = run_cli("check", plan, "--farm", farm, starts_nothing=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "collector windows (sql1)" in done.stdout
        assert "cpu.busy_ratio thread:*" in done.stdout
        assert "tier:sql" not in done.stdout, "it is measured"
        assert PASSWORD not in done.stdout + done.stderr


@pytest.mark.slow  # a whole run of half a minute
@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.timeout(300)
def test_a_run_watches_a_windows_machine_through_a_cut_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a cut link the run continues, the gap is marked, and the metrics are Windows' own."""
    monkeypatch.setenv("WATCHER_PASSWORD", PASSWORD)
    with winrm_host(Machine(), tmp_path, every_s=1.0) as server:
        plan, farm = write(tmp_path, collect_of(server), DISKS)
        process = start_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs")
        try:
            until(
                lambda: measures(tmp_path / "runs"),
                "it never came to measuring",
                within_s=120,
                process=process,
            )
            time.sleep(3)
            server.forget()
            out, err = process.communicate(timeout=120)
        finally:
            if process.poll() is None:
                end(process, signal.SIGINT)
    assert process.returncode in (0, 3), err
    assert "Traceback" not in err
    assert PASSWORD not in out + err
    run = open_run(Path(out.splitlines()[-1]))
    assert PASSWORD not in json.dumps(run.manifest)
    facts = run.manifest["hosts"]["sql1"]
    assert facts["roles"]["tempdb"]["device"] == "C:\\mnt\\tempdb"
    assert facts["roles"]["data"]["device"] == "C:"
    latencies = [
        row["value"]
        for row in run.samples.to_table().to_pylist()
        if (row["metric"], row["instance"]) == ("disk.write_latency_s", "L:")
    ]
    assert len(latencies) >= 5
    assert {round(value, 6) for value in latencies} == {0.008}
    gaps = [event for event in run.events if event["event"] == "gap" and event.get("kind") == "windows"]
    assert gaps, run.events
    assert {"from", "to", "why"} <= set(gaps[0])
    verdict = json.loads((Path(out.splitlines()[-1]) / "verdict.json").read_text())
    (log,) = [row for row in verdict["disks"] if row["role"] == "log"]
    assert log["write_latency_mean_s"] == pytest.approx(0.008)
    assert log["iops_mean"] == pytest.approx(150)
