"""docs/own-scenario.md: the page's scenario runs in the package from `init --scenario`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import run_cli

import pinchpoint

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
FARM = {"name": "orders", "environment": "test", "endpoints": {}}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the package with the page's scenario; return the folder of farm and plan."""
    monkeypatch.chdir(tmp_path)
    assert run_cli("init", "--scenario", "my_app").returncode == 0
    page = (ROOT / "docs" / "own-scenario.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "my_app" / "my_app" / "scenario.py").write_text(code, encoding="utf-8")
    (tmp_path / "farm.yaml").write_text(json.dumps(FARM))
    orders = {"use": "my_app", "load": {"model": "closed", "users": 3}, "params": {"file": "orders.db"}}
    plan = {"name": "p", "scenarios": {"orders": orders}, "phases": {"warm_up": "1s", "measure": "3s"}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--no-deps", "--target", "site", tmp_path / "my_app"], check=True
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path


def test_the_dry_run_prints_what_the_page_says_of_intent(package: Path) -> None:
    """The dry run prints target, created data, sent operations and removal, and writes nothing."""
    done = run_cli("run", "plan.yaml", "--farm", "farm.yaml", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("orders.db", "table orders", "INSERT and COMMIT", "the file is removed"):
        assert words in done.stdout
    assert not (package / "orders.db").exists()


def test_three_users_that_block_append_orders(package: Path) -> None:
    """Each blocking user has a thread; the file is removed, and a foreign file is refused."""
    done = run_cli("run", "plan.yaml", "--farm", "farm.yaml")
    # 3: this machine was too busy for valid evidence
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = pinchpoint.Run(package / done.stdout.splitlines()[-1])
    operations = run.operations().to_pylist()
    assert {one["operation"] for one in operations} == {"append"}
    assert sum(one["count"] for one in operations if one["outcome"] == "ok") > 20
    assert not (package / "orders.db").exists()
    (package / "orders.db").write_bytes(b"of another")
    refused = run_cli("run", "plan.yaml", "--farm", "farm.yaml")
    assert refused.returncode == 5
    assert "may not be ours; remove it, or name another" in refused.stderr
    assert (package / "orders.db").read_bytes() == b"of another"
