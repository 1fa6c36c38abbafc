"""A run whose database stops answering halfway: all ended operations ended before."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from servers import postgres
from support import end, frozen, run_cli, start_cli, wait_for_line

from pinchpoint.store.read import open_run
from pinchpoint.store.schema import GIVEN_UP, UNFINISHED

pytestmark = pytest.mark.farm

SILENT_S = 3
USERS, MEASURE_S, ANSWERS_S, DRAIN_S = 6, 12, 5, 5
SERVERS = """SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query LIKE '%INSERT%'"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres() as sql:
        yield sql


@pytest.mark.alone
def test_a_database_that_stops_answering_is_not_the_generators_fault(url: str, tmp_path: Path) -> None:
    """With every server process stopped after five seconds, the generator is not at fault."""
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    hosts = {"db1": {"collect": [{"kind": "local"}], "disks": {"data": {"path": "/"}}}}
    content = {"name": "silent", "environment": "test", "endpoints": {"sql": {"url": url}}}
    farm.write_text(json.dumps({**content, "tiers": {"sql": {"hosts": hosts}}}))
    orders = {
        "use": "sql-mix",
        "load": {"model": "closed", "users": USERS},
        "params": {"operations": {"log_append": 1}},
    }
    phases = {"warm_up": "2s", "measure": f"{MEASURE_S}s"}
    plan.write_text(json.dumps({"name": "silent", "scenarios": {"orders": orders}, "phases": phases}))
    process = start_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs")
    wait_for_line(process, "measuring")
    time.sleep(ANSWERS_S)
    with psycopg.connect(url) as database:
        pids = [pid for (pid,) in database.execute(SERVERS)]
    assert len(pids) == USERS
    with frozen(*pids):
        time.sleep(MEASURE_S - ANSWERS_S + DRAIN_S + 3)
    code, out, err = end(process)
    assert code in (0, 3), err
    directory = Path(out.splitlines()[-1])
    rows = [r for r in open_run(directory).operations.to_pylist() if r["operation"] == UNFINISHED]
    assert {row["outcome"] for row in rows} == {GIVEN_UP}
    assert sum(row["count"] for row in rows) == USERS
    verdict = json.loads((directory / "verdict.json").read_text())
    assert verdict["outcome"] == "inconclusive", verdict["summary"]
    assert f"{USERS} of {USERS} sessions of orders had waited " in verdict["summary"]
    assert any("orders: 6 operations had not ended" in warning for warning in verdict["warnings"])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("operations", "stop_when: no operation of any scenario completed for 3 s"),
        ("collectors", "stop_when: the collector postgres of db1 gave no reading for 3 s: "),
    ],
)
def test_silence_ends_a_run_that_says_so(url: str, tmp_path: Path, rule: str, said: str) -> None:
    """A stopped server ends the run within seconds, with the reason and exit status 4."""
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    hosts = {"db1": {"collect": [{"kind": "postgres", "endpoint": "sql"}]}}
    content = {"name": "silent", "environment": "test", "endpoints": {"sql": {"url": url}}}
    farm.write_text(json.dumps({**content, "tiers": {"sql": {"hosts": hosts}}}))
    load = {"model": "closed", "users": 2}
    orders = {"use": "sql-mix", "load": load, "params": {"operations": {"log_append": 1}}}
    rules = [{"silent": rule, "for": f"{SILENT_S}s"}, {"silent": "collectors", "host": "db1", "for": "1h"}]
    phases = {"warm_up": "1s", "measure": "10m", "cool_down": "10m"}
    planned: dict[str, Any] = {
        "name": "silent",
        "scenarios": {"orders": orders},
        "phases": phases,
        "stop_when": rules,
    }
    plan.write_text(json.dumps(planned))
    process = start_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs", "--measure", "40s")
    wait_for_line(process, "measuring")
    with psycopg.connect(url) as database:
        [(pid,)] = database.execute("SELECT pg_backend_pid()")
        server = psutil.Process(psutil.Process(pid).ppid())
    with frozen(server.pid, *(each.pid for each in server.children())):
        wait_for_line(process, "stopping the load")
    code, out, err = end(process)
    assert code == 4, err
    assert said in err, err
    directory = Path(out.splitlines()[-1])
    manifest = json.loads((directory / "manifest.json").read_text())
    assert any(warning.startswith(f"incomplete: {said}") for warning in manifest["warnings"])
    assert manifest["overrides"] == {"measure": "40s"}
    assert manifest["plan"]["phases"]["measure"] == {"at_most_s": 40.0, "at_least_s": 0.0}
    assert run_cli("report", directory, "--format", "junit").returncode == 0
    cases = (directory / "report.xml").read_text()
    assert f'name="{rule} not silent for 3 s"' in cases
    assert f'<failure message="{said}' in cases
