"""A store killed during a burst and restarted: its acknowledged writes are read back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from servers import killable_valkey
from support import start_cli, wait_for_line

from pinchpoint.store.read import open_run

pytestmark = pytest.mark.farm


def _written(folder: Path, url: str) -> tuple[Path, Path]:
    farm, plan = folder / "farm.yaml", folder / "plan.yaml"
    hosts = {"kv1": {"collect": [{"kind": "local"}]}}
    farm.write_text(
        json.dumps(
            {
                "name": "mine",
                "environment": "test",
                "endpoints": {"nosql": {"url": url}},
                "tiers": {"nosql": {"hosts": hosts}},
            }
        )
    )
    load = {"model": "burst", "base": "50/s", "peak": "300/s", "every": "4s", "for": "2s"}
    params = {"operations": {"insert": 1}, "verify": "all", "verify_within": "20s"}
    scenario = {"use": "nosql-burst", "load": load, "params": params}
    phases = {"warm_up": "1s", "measure": "10s"}
    plan.write_text(json.dumps({"name": "kill", "scenarios": {"burst": scenario}, "phases": phases}))
    return farm, plan


@pytest.mark.parametrize("fsync", ["always", pytest.param(None, marks=pytest.mark.slow)])
def test_what_was_acknowledged_before_a_kill(tmp_path: Path, fsync: str | None) -> None:
    """Flushed writes are all there without a warning; without a file they are reported as lost, first."""
    with killable_valkey(fsync) as server:
        farm, plan = _written(tmp_path, server.url)
        process = start_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs")
        wait_for_line(process, "warm-up")
        time.sleep(5)  # about mid-burst; the exact moment does not matter
        server.kill()
        server.start()
        out, err = process.communicate(timeout=120)
        assert process.returncode in (0, 3), err
    directory = Path(out.splitlines()[-1])
    verdict: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
    row = verdict["scenarios"]["burst"]["writes"]
    assert row["acknowledged"] == row["records"] > 100
    assert verdict["scenarios"]["burst"]["outcomes"].get("connection_lost", 0) > 0
    report = (directory / "report.html").read_text()
    lost = [warning for warning in verdict["warnings"] if "acknowledged writes are lost" in warning]
    if fsync:
        assert (row["missing"], row["different"], row["confirmed"]) == (0, 0, row["records"])
        assert lost == []
    else:
        assert 0 < row["missing"] < row["records"]
        assert lost
        assert "Acknowledged writes of burst are lost" in report
        assert "appendonly is off, so a write is not durable" in report
    assert [event["event"] for event in open_run(directory).events].count("writes_read_back") == 1
