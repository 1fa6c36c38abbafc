"""`run --prove` on real farms, as a user calls it; eight windows take a minute, so not in CI."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from servers import postgres
from support import end, require, run_cli, start_cli, until

from pinchpoint.farm.embedded import status
from pinchpoint.run.prove import ORDER, ORDER_WITH_CONTROL

pytestmark = [
    pytest.mark.farm,
    pytest.mark.alone,
    pytest.mark.slow,  # the windows alone take a minute
    pytest.mark.timeout(600),
]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: emulated disks, control groups")


def write(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


def plan(folder: Path, use: str, users: int, measure: str = "35s", **params: Any) -> Path:
    load = {"model": "closed", "users": users}
    return write(
        folder / "plan.yaml",
        {
            "name": "prove",
            "seed": 1,
            "scenarios": {"load": {"use": use, "load": load, "params": params}},
            "phases": {"warm_up": "3s", "measure": measure},
        },
    )


def proved(folder: Path, plan_file: Path, farm_file: Path) -> dict[str, Any]:
    """Return the verdict of a run with --prove."""
    done = run_cli("run", plan_file, "--farm", farm_file, "--out", folder / "runs", "--prove", timeout_s=500)
    assert done.returncode == 0, done.stderr[-3000:]
    directory = Path(done.stdout.splitlines()[-1])
    verdict: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
    manifest = json.loads((directory / "manifest.json").read_text())
    phases = {phase["name"]: phase for phase in manifest["phases"]}
    if verdict["proof"]["windows"]:
        # The judged window ended before anything was slowed down.
        assert phases["measure"]["to"] <= phases["prove"]["from"] <= verdict["proof"]["windows"][0]["from"]
    return verdict


@AS_ROOT
def test_a_log_disk_at_its_cap_answers(tmp_path: Path) -> None:
    """75 % of the log disk's cap gives 75 % of the commits."""
    require("fusermount3", "fuse3")
    embedded = {"tiers": ["sql"], "disks": {"sql.log": {"limits": {"iops": 200}}}}
    declared = {"sql": {"hosts": {"sql1": {"disks": {"log": {"limits": {"iops": 200}}}}}}}
    content = {"name": "capped", "environment": "test", "embedded": embedded, "tiers": declared}
    farm = write(tmp_path / "farm.yaml", content)
    proof = proved(tmp_path, plan(tmp_path, "sql-mix", 8, operations={"log_append": 1}), farm)["proof"]
    order = ORDER_WITH_CONTROL if proof["control"] else ORDER
    assert [window["what"] for window in proof["windows"]] == list(order)
    assert proof["change"] == {"what": "the log disk of sql", "capacity_ratio": 0.75}
    assert proof["result"] == "agrees", proof
    assert proof["measured_ratio"] == pytest.approx(0.75, abs=0.08)


@AS_ROOT
def test_a_capped_cpu_answers(tmp_path: Path) -> None:
    """75 % of the database's used CPU quota gives fewer reads, never more."""
    embedded = {"tiers": ["sql"], "cpus": {"sql": 0.3}}
    farm = write(tmp_path / "farm.yaml", {"name": "cpu", "environment": "test", "embedded": embedded})
    verdict = proved(tmp_path, plan(tmp_path, "sql-mix", 8, operations={"point_read": 1}), farm)
    assert verdict["proof"]["resource"]["kind"] == "cpu"
    assert verdict["proof"]["measured_ratio"] < 0.9
    assert verdict["proof"]["result"] in {"agrees", "undecided"}  # other programs use the same cores


def test_a_command_that_slows_nothing_down_contradicts(tmp_path: Path) -> None:
    """Commands without an effect on an existing farm contradict the named bottleneck."""
    log = tmp_path / "commands"
    changes_nothing = {"slower": f"echo slower >> {log}", "restore": f"echo restore >> {log}", "by": "40%"}
    watched = {"collect": [{"kind": "local"}], "disks": {"data": {"path": "/"}}}
    with postgres() as url:
        content = {
            "name": "mine",
            "environment": "test",
            "endpoints": {"sql": {"url": url}},
            "tiers": {"sql": {"hosts": {"db1": watched}}},
            "prove": {f"sql.{part}": changes_nothing for part in ("cpu", "data", "endpoint")},
        }
        farm = write(tmp_path / "farm.yaml", content)
        verdict = proved(tmp_path, plan(tmp_path, "sql-mix", 4, operations={"point_read": 1}), farm)
    assert verdict["proof"]["result"] in {"contradicts", "undecided"}, verdict["proof"]
    if verdict["proof"]["result"] == "contradicts":
        assert verdict["bottleneck"] is None or verdict["bottleneck"]["confidence"] == "low"
    assert log.read_text().split() == ["slower", "restore"] * 4


def test_ctrl_c_in_the_middle_puts_everything_back(tmp_path: Path) -> None:
    """Ctrl-C during a proof restores the farm, reports the measurements, and exits with 130."""
    embedded = {"tiers": ["nosql"], "delays": {"nosql": "20ms"}}
    content = {"name": "far", "environment": "test", "embedded": embedded}
    farm, records = write(tmp_path / "farm.yaml", content), plan(tmp_path, "nosql-burst", 4, "12s")
    assert run_cli("farm", "up", farm).returncode == 0
    try:
        process = start_cli("run", records, "--farm", farm, "--out", tmp_path / "runs", "--prove")
        until(
            lambda: status(farm).slower is not None,
            "nothing was ever made slower",
            within_s=240,
            process=process,
        )
        code, out, err = end(process, signal.SIGINT, timeout_s=120)
        assert code == 130, err[-2000:]
        assert status(farm).state == "up"
        assert status(farm).slower is None
        verdict = json.loads((Path(out.splitlines()[-1]) / "verdict.json").read_text())
        assert verdict["proof"]["result"] == "failed"
        assert "before the test was complete" in verdict["proof"]["why"]
    finally:
        run_cli("farm", "down", farm)
