"""A run whose remote workers do not come has measured nothing, and leaves nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from servers import valkey

from pinchpoint_infra.ports import free_port

_IMPATIENT = """
import sys
from pinchpoint import cli
from pinchpoint.run import controller
controller._GATHER_S = 0.2
sys.exit(cli._status())
"""


@pytest.mark.farm
def test_no_worker_comes(tmp_path: Path) -> None:
    """Exit status 5, and no folder that looks like a run."""
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    with valkey() as url:
        farm.write_text(
            json.dumps({"name": "f", "environment": "test", "endpoints": {"nosql": {"url": url}}})
        )
        burst = {"use": "nosql-burst", "load": {"model": "closed", "users": 2}}
        plan.write_text(json.dumps({"name": "p", "scenarios": {"burst": burst}, "phases": {"measure": "5s"}}))
        listen = ("--listen", f"127.0.0.1:{free_port()}", "--workers", "1", "--remote-workers", "1")
        done = subprocess.run(
            [sys.executable, "-c", _IMPATIENT, "run", plan, "--farm", farm,
             "--out", tmp_path / "runs", *listen],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "0 of 1 workers joined within" in done.stderr
    assert not list((tmp_path / "runs").glob("*"))
