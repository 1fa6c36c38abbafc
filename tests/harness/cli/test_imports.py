"""Commands that only show or refuse something start fast, because they import little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MOST = 500
SCRIPT = """
import sys
from pinchpoint.cli import main
try:
    main()
finally:
    print(len(sys.modules), "modules", file=sys.stderr)
"""
PLAN = """
name: p
scenarios: {orders: {use: sql-mixed, load: {model: closed, users: 1}}}
phases: {measure: 1s}
"""
FARM = "{name: f, environment: test, embedded: {tiers: [sql]}}"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--help",), 0, "what-if"),
        (("--version",), 0, "pinchpoint"),
        (("runs",), 0, "no runs in runs"),
        (("check", "broken.yaml", "--farm", "farm.yaml"), 2, "broken.yaml:1"),
        (("check", "plan.yaml", "--farm", "farm.yaml"), 2, "sql-mixed"),
    ],
    ids=["help", "version", "runs", "broken file", "unknown scenario"],
)
def test_modules(arguments: tuple[str, ...], status: int, words: str, tmp_path: Path) -> None:
    """Such a command imports at most 500 modules: no charts, tables or drivers."""
    for name, content in (("broken.yaml", "["), ("plan.yaml", PLAN), ("farm.yaml", FARM)):
        (tmp_path / name).write_text(content)
    (tmp_path / "runs").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert words in done.stdout + done.stderr
    assert int(done.stderr.split()[-2]) <= MOST, done.stderr
