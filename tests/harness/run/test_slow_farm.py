"""Runs on a farm with emulated disks, limits and delays: the samples show the configured values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from support import require, run_cli

from pinchpoint.store.read import StoredRun, open_run
from pinchpoint_infra.disks import emulated
from pinchpoint_infra.embedded.place import farm_directory, farm_id

pytestmark = [
    pytest.mark.farm,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices, mounts, control groups"),
]


def run(folder: Path, embedded: dict[str, object], scenarios: dict[str, object], measure: str) -> StoredRun:
    """Return the run of a plan on a farm that is built for it and removed afterwards."""
    require("fusermount3", "fuse3")
    farm, plan = folder / "farm.yaml", folder / "plan.yaml"
    farm.write_text(json.dumps({"name": "slow", "environment": "test", "embedded": embedded}))
    phases = {"warm_up": "3s", "measure": measure}
    plan.write_text(json.dumps({"name": "slow", "scenarios": scenarios, "phases": phases}))
    done = run_cli("run", plan, "--farm", farm, "--out", folder / "runs", timeout_s=200)
    assert done.returncode in (0, 3), done.stderr
    directory = farm_directory(farm)
    assert not directory.exists()
    assert emulated.devices_of(farm_id(farm), directory) == []
    return open_run(Path(done.stdout.splitlines()[-1]))


def values(stored: StoredRun, host: str, metric: str, instance: str) -> list[float]:
    """Return a metric's values in the measure phase, in order."""
    rows = [
        (row["time_ns"], row["value"])
        for row in stored.samples.to_table().to_pylist()
        if (row["host"], row["metric"], row["instance"]) == (host, metric, instance)
        and row["value"] is not None
    ]
    return [value for _, value in sorted(rows)]


def device(stored: StoredRun, host: str, role: str) -> str:
    name = stored.manifest["hosts"][host]["roles"][role]["device"]
    assert name.startswith("loop")
    return str(name)


@pytest.mark.slow
def test_the_database_presses_its_disks_to_the_cap(tmp_path: Path) -> None:
    """PostgreSQL's load brings the data disk to within 3 % of its limit by the kernel's count."""
    stored = run(
        tmp_path,
        {"tiers": ["sql"], "disks": {"sql.data": {"limits": {"iops": 330}}, "sql.log": {"latency": "1ms"}}},
        {
            "orders": {
                "use": "sql-mix",
                "load": {"model": "closed", "users": 8},
                "params": {"operations": {"data_update": 1, "point_read": 1}, "scale": 6},
            }
        },
        "15s",
    )
    data = device(stored, "sql1", "data")
    reads = values(stored, "sql1", "disk.reads_per_s", data)[-14:]
    writes = values(stored, "sql1", "disk.writes_per_s", data)[-14:]
    assert np.mean(reads) + np.mean(writes) == pytest.approx(330, rel=0.03)
    assert min(np.mean(reads), np.mean(writes)) > 30, "data is read and written"
    floor = values(stored, "sql1", "disk.write_latency_s", device(stored, "sql1", "log"))
    assert min(floor[3:]) >= 0.001


@pytest.mark.slow
def test_credits_run_out_in_the_run_and_are_told(tmp_path: Path) -> None:
    """The log falls from burst to base rate at the time in events.jsonl; loading used no credits."""
    stored = run(
        tmp_path,
        {
            "tiers": ["sql"],
            "disks": {
                "sql.log": {
                    "limits": {"iops": 150, "burst": {"iops": 600, "credit": "10m"}},
                    "time_scale": 75,
                }
            },
        },
        {
            "orders": {
                "use": "sql-mix",
                "load": {"model": "closed", "users": 8},
                "params": {"operations": {"log_append": 1}},
            }
        },
        "17s",
    )
    told = [event for event in stored.events if event["event"] == "emulated_disk"]
    assert [(event["disk"], event["what"]) for event in told] == [("sql.log", "burst_credits_exhausted")]
    writes = values(stored, "sql1", "disk.writes_per_s", device(stored, "sql1", "log"))
    assert np.mean(writes[-5:]) == pytest.approx(150, rel=0.05)
    assert max(writes[:10]) > 400


@pytest.mark.slow
def test_caps_and_delays_hold_in_the_run(tmp_path: Path) -> None:
    """A third of a core for search and a delay to the site show in CPU and repository latency."""
    stored = run(
        tmp_path,
        {
            "tiers": ["web", "sql", "search"],
            "cpus": {"search": 0.35},
            "delays": {"web": "120ms"},
            "content": {"documents": 200},
        },
        {"crawl": {"use": "full-crawl", "load": {"model": "closed", "users": 12}}},
        "15s",
    )
    cores = values(stored, "search1", "cpu.cores", "tier:search")
    assert cores[-1] == pytest.approx(0.35, rel=0.01)
    verdict = json.loads((stored.directory / "verdict.json").read_text())
    [site] = [row for row in verdict["crawl"] if row["source"] == "sharepoint"]
    assert 0.12 <= site["repository_latency_s"] < 0.2
