"""A run whose database stops answering in the middle: all that ended, ended before."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from servers import postgres
from support import end, frozen, start_cli, wait_for_line

from pinchpoint.store.read import open_run
from pinchpoint.store.schema import GIVEN_UP, UNFINISHED

pytestmark = [pytest.mark.farm, pytest.mark.alone]

USERS, MEASURE_S, ANSWERS_S, DRAIN_S = 6, 12, 5, 5
SERVERS = """SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query LIKE '%INSERT%'"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres() as sql:
        yield sql


def test_a_database_that_stops_answering_is_not_the_generators_fault(url: str, tmp_path: Path) -> None:
    """Every session's server process stands still from the fifth second on; nothing is used up."""
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
    assert any("are in no table: 6, the longest after " in warning for warning in verdict["warnings"])
