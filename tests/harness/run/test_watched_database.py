"""A database observed by its collector: with a late endpoint, and on an embedded farm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import run_cli

from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import load_farm
from pinchpoint.store.read import open_run
from pinchpoint_infra.embedded.tiers.sql import Sql

pytestmark = pytest.mark.farm


def farm_file(folder: Path, url: str, **collect: str) -> Path:
    path = folder / "farm.yaml"
    host = {"collect": [{"kind": "postgres", **collect}]}
    content = {
        "name": "mine",
        "environment": "test",
        "endpoints": {"sql": {"url": url}},
        "tiers": {"sql": {"hosts": {"db1": host}}},
    }
    path.write_text(json.dumps(content))
    return path


def plan_file(folder: Path, measure_s: int) -> Path:
    path = folder / "plan.yaml"
    scenario = {
        "use": "sql-mix",
        "load": {"model": "closed", "users": 6},
        "params": {"operations": {"lock_contend": 1}, "hold": "20ms"},
    }
    phases = {"warm_up": "1s", "measure": f"{measure_s}s"}
    path.write_text(json.dumps({"name": "hot", "scenarios": {"fight": scenario}, "phases": phases}))
    return path


def means(directory: Path) -> dict[tuple[str, str, str], float]:
    """Return the mean of every series by host, metric and instance."""
    rows = open_run(directory).samples.to_table().to_pylist()
    series: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row["value"] is not None:
            series.setdefault((row["host"], row["metric"], row["instance"]), []).append(row["value"])
    return {key: sum(values) / len(values) for key, values in series.items()}


def test_a_declared_database_is_watched_alone(
    sql: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host known by its database alone is measured with a monitoring role from a variable."""
    url = sql.endpoint()["url"]
    monkeypatch.setenv("WATCHER", sql._monitor)
    with psycopg.connect(sql._url("admin", sql._admin, "postgres")) as admin:
        admin.execute("GRANT CONNECT ON DATABASE loadtest TO monitor")
    farm = farm_file(tmp_path, url, user="monitor", password="${WATCHER}")
    done = run_cli("run", plan_file(tmp_path, 5), "--farm", farm, "--out", tmp_path / "runs")
    assert done.returncode in (0, 3), done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    found = means(directory)
    assert found["db1", "db.lock_waiters", ""] > 2
    assert found["db1", "collector.ok", "postgres"] == 1
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["hosts"]["db1"]["database"]["role"] == "monitor"
    for path in directory.iterdir():
        assert sql._monitor.encode() not in path.read_bytes(), f"the password stands in {path.name}"
        assert url.split(":")[2].split("@")[0].encode() not in path.read_bytes()


def test_a_variable_that_is_not_set_is_said_with_its_place(tmp_path: Path) -> None:
    """An unset variable is reported with its place in farm.yaml, without a traceback."""
    plan = plan_file(tmp_path, 5)
    for collect, url, place in (
        ({}, "postgresql://loader:${NO_SUCH}@127.0.0.1:1/x", "endpoints.sql.url"),
        ({"password": "${NO_SUCH}"}, "postgresql://127.0.0.1:1/x", "tiers.sql.hosts.db1.collect[0].password"),
    ):
        command = ("run", plan, "--farm", farm_file(tmp_path, url, **collect), "--out", tmp_path / "r")
        done = run_cli(*command, starts_nothing=True)
        assert done.returncode == 2, done.stderr
        assert place in done.stderr
        assert "the environment variable NO_SUCH is not set" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_embedded_database_is_watched_by_itself(tmp_path: Path) -> None:
    """An embedded database is observed with its own role, beside the machine's samples."""
    path = tmp_path / "farm.yaml"
    content: dict[str, Any] = {"name": "own", "environment": "test", "embedded": {"tiers": ["sql"]}}
    path.write_text(json.dumps(content))
    try:
        assert run_cli("farm", "up", path).returncode == 0
        live = standing_farm(load_farm(path))
        assert live is not None
        assert set(live.endpoints["sql"]) == {"url"}
        assert [kind for kind, _ in live.watches] == ["local", "postgres"]
        done = run_cli("run", plan_file(tmp_path, 5), "--farm", path, "--out", tmp_path / "runs")
        assert done.returncode in (0, 3), done.stderr
    finally:
        run_cli("farm", "down", path)
    directory = Path(done.stdout.splitlines()[-1])
    found = means(directory)
    assert found["sql1", "db.lock_waiters", ""] > 2
    assert ("sql1", "cpu.busy_ratio", "tier:sql") in found
    facts = json.loads((directory / "manifest.json").read_text())["hosts"]["sql1"]
    assert facts["database"]["sees"] == "all sessions"
    assert set(facts["roles"]) == {"log", "data"}
    assert [each for each in facts["not_measured"] if each["metric"].startswith("db.")] == []
