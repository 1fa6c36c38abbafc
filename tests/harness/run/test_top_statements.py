"""Top SQL statements of a whole run: recorded, reported everywhere, and redacted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from harness.report.example import saved_run, verdict
from postgresserver import older_postgres
from support import run_cli

from pinchpoint.report.redaction import redacted
from pinchpoint.report.report import Report, gather
from pinchpoint.report.statements import statements_text, top_statements
from pinchpoint.run.preflight import Connected
from pinchpoint.run.top_statements import TopStatements
from pinchpoint.store.read import StoredRun


@pytest.mark.farm
def test_a_run_reports_the_statements_that_took_most_time(tmp_path: Path) -> None:
    """sql-mix's statements, as PostgreSQL counts them, are in the report and in --explain."""
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    with older_postgres("shared_preload_libraries=pg_stat_statements") as server:
        with psycopg.connect(server.admin.replace("/postgres", "/loadtest"), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION pg_stat_statements")
        watched = {"kind": "postgres", "endpoint": "sql", "user": "monitor", "password": "sesame"}
        hosts = {"db1": {"collect": [watched]}}
        content = {"name": "counted", "environment": "test", "endpoints": {"sql": {"url": server.loader}}}
        farm.write_text(json.dumps({**content, "tiers": {"sql": {"hosts": hosts}}}))
        load = {"model": "closed", "users": 2}
        orders = {"use": "sql-mix", "load": load, "params": {"operations": {"log_append": 1}}}
        phases = {"warm_up": "1s", "measure": "1m"}
        plan.write_text(json.dumps({"name": "counted", "scenarios": {"orders": orders}, "phases": phases}))
        done = run_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs", "--measure", "4s")
    assert done.returncode in (0, 3), done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    [found] = json.loads((directory / "manifest.json").read_text())["statements"]
    [insert] = [one for one in found["statements"] if one["text"] and one["text"].startswith("INSERT INTO")]
    counted = json.loads((directory / "verdict.json").read_text())["scenarios"]["orders"]["count"]
    assert insert["calls"] == pytest.approx(counted, rel=0.3)
    assert insert["database"] == "loadtest"
    assert "sesame" not in json.dumps(found)
    assert insert["text"][:30] in (directory / "report.html").read_text()
    assert "Top SQL statements:" in run_cli("analyse", directory, "--explain").stdout


def with_statements(*servers: dict[str, Any]) -> StoredRun:
    run = saved_run()
    run.manifest["statements"] = list(servers)
    return run


LONG = {"text": "SELECT * FROM shop_acme.t WHERE " + "x" * 300, "database": "shop_acme"}
COUNTED = {
    "kind": "postgres",
    "host": "db-of-acme",
    "time_s": 10.0,
    "calls": 1000.0,
    "count": 12,
    "statements": [
        {**LONG, "calls": 400.0, "time_s": 6.0, "rows": 400.0},
        {"text": None, "database": "shop_acme", "calls": 100.0, "time_s": 1.0, "rows": None},
    ],
}
WITHOUT = {"kind": "mariadb", "host": "db2", "why": "performance_schema is off", "remedy": "say ON"}


def test_the_table_has_shares_and_what_was_not_measured() -> None:
    """Cut, hidden and remaining statements have rows; without counts the reason and remedy appear."""
    table = top_statements(with_statements(COUNTED, WITHOUT))
    first, hidden, rest = table.rows
    assert (first["ratio"], first["mean_s"], len(first["text"])) == (0.6, 0.015, 200)
    assert (hidden["text"], hidden["ratio"]) == ("(hidden from the collector's role)", 0.1)
    assert (rest["text"], rest["time_s"], rest["calls"]) == ("10 other statements", 3.0, 500.0)
    missing = "Not measured on db2: performance_schema is off. Say ON."
    assert missing in table.note
    alone = top_statements(with_statements(WITHOUT))
    assert (list(alone.rows), alone.empty) == ([], missing)
    assert missing in " ".join(statements_text(with_statements(WITHOUT)).split())
    assert statements_text(saved_run()) == top_statements(saved_run()).empty == ""


def test_names_in_statements_are_redacted() -> None:
    """A database's name in a statement has the same replacement as elsewhere."""
    report = redacted(gather(with_statements(COUNTED), verdict()))
    assert isinstance(report, Report)
    rows = report.tables["statements"].rows
    assert rows[0]["text"].startswith("SELECT * FROM database-")
    assert "acme" not in str(rows)


class Broken:
    """A server whose driver raises its own error."""

    def statement_counts(self, *, texts: bool) -> list[Any]:
        raise OSError(f"gone {texts}")

    def read(self) -> list[Any]:
        return []

    def inventory(self) -> dict[str, Any]:
        return {}

    def close(self) -> None: ...


def test_a_driver_s_own_error_costs_the_statements_only() -> None:
    """A driver's error costs the statements only; the reason is recorded, without a retry."""
    looks = TopStatements([Connected("postgres", ("db1",), Broken())])
    looks.begin()
    before = looks._servers[0].before
    assert before is not None
    before.join(5)
    assert looks.end() == [{"kind": "postgres", "host": "db1", "why": "OSError: gone False", "remedy": None}]
