"""A run against a database without access to its host, from farm.yaml to the verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import require, run_cli

from pinchpoint.farm import embedded
from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import load_farm
from pinchpoint_infra.embedded.tiers.sql import Sql

pytestmark = [pytest.mark.farm, pytest.mark.alone]
CAP = 250


def farm_file(folder: Path, url: str, log: dict[str, Any]) -> Path:
    """Return a farm of one database: its address, its collector, and its declared disk limits."""
    folder.mkdir(exist_ok=True)
    host = {
        "machine": "azure/ds12",
        "collect": [{"kind": "postgres", "user": "monitor", "password": "${WATCHER}"}],
        "disks": {"log": log, "data": {"profile": "azure/p30"}},
    }
    path = folder / "managed.yaml"
    content = {"name": "managed", "environment": "test", "endpoints": {"sql": {"url": url}}}
    path.write_text(json.dumps({**content, "tiers": {"sql": {"hosts": {"db1": host}}}}))
    return path


def measured(folder: Path, farm: Path, measure: str, users: int) -> dict[str, Any]:
    """Return the verdict on a run of commits."""
    scenario = {
        "use": "sql-mix",
        "load": {"model": "closed", "users": users},
        "params": {"operations": {"log_append": 1}},
    }
    plan = folder / "plan.yaml"
    phases = {"warm_up": "1s", "measure": measure}
    plan.write_text(json.dumps({"name": "commits", "scenarios": {"orders": scenario}, "phases": phases}))
    done = run_cli("run", plan, "--farm", farm, "--out", folder / "runs", timeout_s=150)
    assert done.returncode in (0, 3), done.stderr
    verdict: dict[str, Any] = json.loads((Path(done.stdout.splitlines()[-1]) / "verdict.json").read_text())
    return verdict


@pytest.mark.slow  # eighteen seconds; test_watched_database has a run with the database only
def test_what_the_database_counts_stands_for_its_disks(
    sql: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a declared limit far above its rate, the database's count is used and marked as such."""
    url = sql.endpoint()["url"]
    monkeypatch.setenv("WATCHER", sql._monitor)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("GRANT CONNECT ON DATABASE loadtest TO monitor")
    verdict = measured(tmp_path, farm_file(tmp_path, url, {"limits": {"iops": 1_000_000}}), "10s", 4)
    rows = {row["role"]: row for row in verdict["disks"]}
    done = verdict["scenarios"]["orders"]["throughput_per_s"]
    assert 0 < rows["log"]["iops_mean"] <= 1.2 * done, "commits that come together share a write"
    assert rows["log"]["iops_source"] == rows["data"]["iops_source"] == "database"
    assert rows["log"]["flush_latency_mean_s"] > 0
    considered = {
        one["role"]: one for one in verdict["explanation"]["considered"] if one["resource"] == "disk"
    }
    assert 0 < considered["log"]["used_ratio"] < 0.1
    saturation = considered["log"]["checks"][0]["fact"]
    assert saturation["fact"].endswith("as counted by the database: nobody looked at the disk")
    assert saturation["metric"] in ("db.writes_per_s", "db.fsync_latency_s"), "its rate, or that it is slow"
    assert saturation["instance"] == "wal"
    assert "db1 was not measured, only its database" in verdict["warnings"]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a disk with a cap")
def test_a_capped_log_is_named_from_the_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log disk that is really limited is named from the database's count alone."""
    require("fusermount3", "fuse3")
    real = tmp_path / "real.yaml"
    built = {"tiers": ["sql"], "disks": {"sql.log": {"limits": {"iops": CAP}}}}
    real.write_text(json.dumps({"name": "real", "environment": "test", "embedded": built}))
    try:
        assert run_cli("farm", "up", real).returncode == 0
        farm = load_farm(real)
        live = standing_farm(farm)
        assert live is not None
        url, monitor = live.endpoints["sql"]["url"], dict(live.watches)["postgres"].options["url"]
        monkeypatch.setenv("WATCHER", monitor.split("://monitor:")[1].split("@")[0])
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("GRANT CONNECT ON DATABASE loadtest TO monitor")
        embedded.limit(farm.identity, hold=True)
        verdict = measured(tmp_path, farm_file(tmp_path, url, {"limits": {"iops": CAP}}), "40s", 16)
    finally:
        run_cli("farm", "down", real)
    found = verdict["bottleneck"]
    assert found is not None, verdict["summary"]
    assert (found["tier"], found["host"], found["role"]) == ("sql", "db1", "log")
    assert found["kind"] in ("disk_cap", "disk_latency", "disk_device")
    assert found["confidence"] == "low"
    assert any("as counted by the database" in fact["fact"] for fact in found["evidence"])
