"""A run beside a real program that uses the CPU: the run's files name that program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import run_cli

from pinchpoint.store.read import open_run

pytestmark = [pytest.mark.farm, pytest.mark.alone]


def test_who_took_the_cpu_is_in_the_run_s_samples(tmp_path: Path) -> None:
    """Busy loops on every core are named in the samples; the run's own processes are not."""
    hog = tmp_path / "busy_neighbour"
    hog.symlink_to(Path(sys.executable).resolve())
    farm = {"name": "small", "environment": "test", "embedded": {"tiers": ["nosql"]}}
    plan = {
        "name": "small",
        "scenarios": {"burst": {"use": "nosql-burst", "load": {"model": "open", "rate": "100/s"}}},
        "phases": {"warm_up": "1s", "measure": "6s"},
    }
    (tmp_path / "farm.yaml").write_text(json.dumps(farm))
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    spin = "import signal; signal.alarm(120)\nwhile True: pass"
    hogs = [subprocess.Popen([hog, "-S", "-c", spin]) for _ in range(os.cpu_count() or 1)]
    try:
        done = run_cli(
            "run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path / "runs"
        )
    finally:
        for one in hogs:
            one.kill()
            one.wait()
    assert done.returncode in (0, 3), done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    found = open_run(directory).samples.to_table().to_pylist()
    taken = [one["value"] for one in found if one["instance"] == "process:busy_neighbour"]
    assert len(taken) >= 3
    assert min(taken) > 0.1
    names = {one["instance"] for one in found if one["metric"] == "generator.others_ratio"}
    assert not {name for name in names if "valkey" in name or "pinchpoint" in name}
    assert "generator.cpu_wait_ratio" in {one["metric"] for one in found}
    warnings = json.loads((directory / "verdict.json").read_text())["warnings"]
    assert any("busy_neighbour" in warning for warning in warnings)
