"""Tests of ``run --resume`` on a farm that stays up while its run is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from support import end, run_cli, start_cli, wait_for_line

from pinchpoint.store.read import open_run

DOCUMENTS = 150

pytestmark = [
    pytest.mark.farm,
    pytest.mark.alone,
    pytest.mark.slow,  # starts a farm and three whole runs
    pytest.mark.timeout(400),
]


def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    """After SIGKILL in the middle of a crawl, the resumed run has every document once."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(DOCUMENTS):
        (corpus / f"{number:03}.txt").write_text(f"document number {number}")
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    content = {"corpus": str(corpus), "documents": DOCUMENTS}
    built = {"tiers": ["web", "sql", "search"], "content": content, "delays": {"web": "150ms"}}
    farm.write_text(json.dumps({"name": "resumed", "environment": "test", "embedded": built}))
    crawl = {"use": "full-crawl", "load": {"model": "closed", "users": 2}}
    phases = {"warm_up": "0s", "measure": {"until": "done", "at_most": "3m"}, "cool_down": "0s"}
    plan.write_text(json.dumps({"name": "crawl", "scenarios": {"crawl": crawl}, "phases": phases}))
    runs = ("--farm", farm, "--out", tmp_path / "runs")
    assert run_cli("farm", "up", farm, timeout_s=150).returncode == 0
    try:
        nothing = run_cli("run", plan, *runs, "--resume", timeout_s=100)
        assert nothing.returncode == 5
        assert "no crawl was left to go on with" in nothing.stderr
        killed = start_cli("run", plan, *runs)
        try:
            wait_for_line(killed, "measuring", 100)
            time.sleep(4)
        finally:
            os.kill(killed.pid, signal.SIGKILL)
            end(killed)
        again = run_cli("run", plan, *runs, "--resume", timeout_s=200)
        assert again.returncode == 0, again.stderr
        assert "going on with the crawl that was left" in again.stderr
        run = open_run(Path(again.stdout.strip().splitlines()[-1]))
        (source,) = json.loads((run.directory / "verdict.json").read_text())["crawl"]
        assert (source["count"], source["failures"], source["complete"]) == (DOCUMENTS, 0, True)
        (ended,) = [event for event in run.events if event["event"] == "crawl_ended"]
        assert ended["sources"][0]["paused_s"] > 0
    finally:
        assert run_cli("farm", "down", farm, timeout_s=100).returncode == 0
