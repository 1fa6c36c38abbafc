"""``run --dry-run``: its announcements compared with the run, and without any effect."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import run_cli
from valkey import Valkey

from pinchpoint_infra.embedded import status

PLAN = {
    "name": "quick",
    "scenarios": {
        "orders": {
            "use": "sql-mix",
            "load": {"model": "open", "rate": "50/s", "arrivals": "constant"},
            "params": {"operations": {"log_append": 1, "data_update": 1, "lock_contend": 1}, "scale": 0.05,
                       "hot_rows": 40},
        },
        "burst": {
            "use": "nosql-burst",
            "load": {"model": "closed", "users": 2, "think": "100ms"},
            "params": {"operations": {"read": 1}, "keys": 3000},
        },
    },
    "phases": {"warm_up": "1s", "measure": "5s"},
}  # fmt: skip


def written(folder: Path, farm: Any, plan: Any) -> list[str | Path]:
    (folder / "farm.yaml").write_text(json.dumps(farm))
    (folder / "plan.yaml").write_text(json.dumps(plan))
    return ["run", folder / "plan.yaml", "--farm", folder / "farm.yaml", "--out", folder / "runs"]


@pytest.mark.farm
def test_a_dry_run_says_what_the_run_then_makes(urls: tuple[str, str], tmp_path: Path) -> None:
    """The announced rows of each table and store are within 5 % of the run's; nothing was written."""
    sql, nosql = urls
    endpoints = {"sql": {"url": sql}, "nosql": {"url": nosql}}
    command = written(tmp_path, {"name": "mine", "environment": "test", "endpoints": endpoints}, PLAN)
    dry = run_cli(*command, "--dry-run", starts_nothing=True)
    assert dry.returncode == 0, dry.stderr
    told = " ".join(dry.stdout.split())
    found = re.findall(r"(?:table )?(\w+), ([\d,]+) rows, size", told)
    rows = {what: int(count.replace(",", "")) for what, count in found}
    password = sql.split(":")[2].split("@")[0]
    assert password not in dry.stdout + dry.stderr
    assert "about 300 operations in 6 s" in told
    assert "at most 120 operations in all" in told
    assert "writes 1 row, 200 B each, 100 rows in all" in told
    assert not (tmp_path / "runs").exists()
    store = Valkey.from_url(nosql)
    with psycopg.connect(sql) as connection:
        assert not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname ~ '^pinchpoint'").fetchall()
        assert store.dbsize() == 0
        done = run_cli(*command, "--keep-data")
        assert done.returncode in (0, 3), done.stderr
        connection.rollback()
        for table in ("data", "hot"):
            query = f"SELECT count(*) FROM pinchpoint_orders.{table}"  # noqa: S608 - names of the test's own
            [there] = connection.execute(query.encode()).fetchone() or [0]
            assert there == pytest.approx(rows[table], rel=0.05), table
        [logged] = connection.execute("SELECT count(*) FROM pinchpoint_orders.log").fetchone() or [0]
        assert rows["log"] == 0
        assert logged == pytest.approx(100, rel=0.25)
        assert len(list(store.scan_iter("pinchpoint:burst:*"))) == pytest.approx(rows["records"], rel=0.05)
        connection.execute("DROP SCHEMA pinchpoint_orders CASCADE")
        store.flushdb()
    store.connection_pool.disconnect()


def test_an_embedded_farm_that_is_down_is_not_started(tmp_path: Path) -> None:
    """A dry run of every scenario on an embedded farm that is down starts no farm."""
    (tmp_path / "own.py").write_text(
        "from locust import User, task\n\nclass Own(User):\n    @task\n    def go(self): pass\n"
    )
    (tmp_path / "pay.sql").write_text("UPDATE a SET n = 1;\n")
    load = {"model": "closed", "users": 2}
    uses: dict[str, dict[str, Any]] = {
        "crawl": {"use": "full-crawl"},
        "orders": {"use": "sql-mix"},
        "burst": {"use": "nosql-burst"},
        "probe": {"use": "storage-probe", "params": {"disk": "sql.log"}},
        "pay": {"use": "sql-script", "params": {"scripts": "pay.sql"}},
        "own": {"use": "own.py"},
    }
    plan = {
        "name": "all",
        "scenarios": {name: {**one, "load": load} for name, one in uses.items()},
        "phases": {"measure": {"until": "done", "at_most": "1m"}},
    }
    farm = {"name": "all", "environment": "test",
            "embedded": {"tiers": ["web", "sql", "search", "nosql", "files"]}}  # fmt: skip
    done = run_cli(*written(tmp_path, farm, plan), "--dry-run", starts_nothing=True)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert all(f"Scenario {name} (" in told for name in uses)
    assert "table data, 65,536 rows" in told
    assert "not known: own code" in told
    assert "embedded and down" in told
    assert status(tmp_path / "farm.yaml").state == "down"
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_on_production_is_refused_like_the_run(tmp_path: Path) -> None:
    """A dry run on production is refused with exit status 4 before any connection."""
    endpoints = {"sql": {"url": "postgresql://a@db.invalid/x"}, "nosql": {"url": "valkey://kv.invalid"}}
    farm = {"name": "prod", "environment": "production", "endpoints": endpoints}
    assert run_cli(*written(tmp_path, farm, PLAN), "--dry-run", starts_nothing=True).returncode == 4


def test_a_server_that_must_be_asked_and_does_not_answer_is_said(tmp_path: Path) -> None:
    """If a server that must be asked does not answer, exit status 5 names its endpoint."""
    endpoints = {
        "sql": {"url": "postgresql://a:canary@127.0.0.1:9/x"},
        "nosql": {"url": "valkey://127.0.0.1:9"},
    }
    farm = {"name": "mine", "environment": "test", "endpoints": endpoints}
    done = run_cli(*written(tmp_path, farm, PLAN), "--dry-run", starts_nothing=True)
    assert done.returncode == 5
    assert "endpoint sql (127.0.0.1:9)" in done.stderr
    assert "canary" not in done.stdout + done.stderr
