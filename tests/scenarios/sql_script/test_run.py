"""Tests of a user's scripts in a run: files next to the plan, load generators, early refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scenarios.sql_mix.helpers import ask, number
from support import run_cli

from pinchpoint.store.read import open_run
from pinchpoint_scenarios.contract import Endpoint

pytestmark = pytest.mark.farm

ORDER = """BEGIN;
INSERT INTO moved (client, at, note) VALUES (:client_id, :account, :word);
\\sleep 5 ms
UPDATE account SET balance = balance + 1 WHERE id = :account;
COMMIT;
"""
PARAMS = {
    "scripts": "sql",
    "weights": {"look": 2},
    "values": {"account": {"column": "account.id"}, "word": {"csv": "words.csv"}},
}


def run(
    folder: Path, endpoint: Endpoint, environment: str = "test", **params: Any
) -> subprocess.CompletedProcess[str]:
    """Run the scripts in ``sql/`` for a short time."""
    scenario = {"use": "sql-script", "load": {"model": "closed", "users": 3}, "params": PARAMS | params}
    plan = {"name": "own", "scenarios": {"shop": scenario}, "phases": {"warm_up": "1s", "measure": "2s"}}
    farm = {"name": "copy", "environment": environment, "endpoints": {"sql": {"url": endpoint.url}}}
    for name, content in (("plan.yaml", plan), ("farm.yaml", farm)):
        (folder / name).write_text(json.dumps(content, indent=1))
    (folder / "words.csv").write_text("word\nred\nblue\n")
    return run_cli("run", folder / "plan.yaml", "--farm", folder / "farm.yaml", "--out", folder / "runs")


def test_scripts_beside_the_plan_are_run_and_counted(bank: Endpoint, tmp_path: Path) -> None:
    """Each ok is a committed transaction, and the manifest has the scripts."""
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "order.sql").write_text(ORDER)
    (tmp_path / "sql" / "look.sql").write_text("SELECT balance FROM account WHERE id = :account;")
    done = run(tmp_path, bank)
    found = open_run(Path(done.stdout.splitlines()[-1]))
    counts: dict[tuple[str, str], int] = {}
    for row in found.operations.to_pylist():
        key = row["operation"], row["outcome"]
        counts[key] = counts.get(key, 0) + row["count"]
    assert {outcome for _, outcome in counts} == {"ok"}
    assert counts["look", "ok"] > counts["order", "ok"] > 20
    assert counts["order/2:insert", "ok"] == counts["order", "ok"]
    assert number(bank, "SELECT count(*) FROM moved") == counts["order", "ok"]
    assert number(bank, "SELECT sum(balance) FROM account") == counts["order", "ok"]
    assert ask(bank, "SELECT DISTINCT note, client BETWEEN 0 AND 2 FROM moved ORDER BY 1") == [
        ("blue", True),
        ("red", True),
    ]
    scripts = found.manifest["endpoints"]["shop"]["sql"]["scripts"]
    assert scripts["look"]["weight"] == 2
    assert scripts["order"]["file"] == str(tmp_path / "sql" / "order.sql")


def test_what_is_wrong_is_said_before_anything_starts(bank: Endpoint, tmp_path: Path) -> None:
    """A wrong script, production, or a database without the mark is refused before the load starts."""
    (tmp_path / "sql").mkdir()
    script = tmp_path / "sql" / "order.sql"
    script.write_text("SELECT 1;\n\\setshell x date\n")
    wrong = run(tmp_path, bank)
    assert wrong.returncode == 2
    assert f"scenarios.shop.params: {script}:2: \\setshell is refused" in wrong.stderr
    script.write_text(ORDER)
    (tmp_path / "sql" / "look.sql").write_text("SELECT 1;")
    production = run(tmp_path, bank, "production")
    assert production.returncode == 4
    assert "shop (sql-script)" in production.stderr
    ask(bank, "COMMENT ON DATABASE loadtest IS NULL")
    unmarked = run(tmp_path, bank)
    assert unmarked.returncode == 5
    assert "is not marked as a copy" in unmarked.stdout + unmarked.stderr
    assert not any("Traceback" in each.stderr for each in (wrong, production, unmarked))
    assert number(bank, "SELECT count(*) FROM moved") == 0
