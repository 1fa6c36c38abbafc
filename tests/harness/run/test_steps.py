"""Load in steps on a real server: levels held, recorded, judged and reported; a guard ends a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import valkey
from support import run_cli

from pinchpoint.store.read import open_run

pytestmark = pytest.mark.farm

START, STEP, EACH_S = 20, 30, 15


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with valkey() as nosql:
        yield nosql


def run(folder: Path, url: str, **plan: Any) -> tuple[int, Path, str]:
    """Return (exit status, run directory, stdout) of one plan on one Valkey."""
    farm = {
        "name": "kv",
        "environment": "test",
        "endpoints": {"nosql": {"url": url}},
        "tiers": {"nosql": {"hosts": {"kv1": {"collect": [{"kind": "local"}]}}}},
    }
    for name, content in (("farm.yaml", farm), ("plan.yaml", {"name": "climb", **plan})):
        (folder / name).write_text(json.dumps(content))
    done = run_cli("run", folder / "plan.yaml", "--farm", folder / "farm.yaml", "--out", folder / "runs")
    return done.returncode, Path(done.stdout.splitlines()[-1]), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.alone
def test_levels_are_held_noted_and_judged(url: str, tmp_path: Path) -> None:
    """20/s and 50/s are held for 15 s each, and the run ends before its time limit."""
    levels = {
        "start": f"{START}/s",
        "step": f"{STEP}/s",
        "each": f"{EACH_S}s",
        "at_most": "50/s",
    }
    status, directory, said = run(
        tmp_path,
        url,
        scenarios={
            "burst": {"use": "nosql-burst", "load": {"model": "steps", **levels, "arrivals": "constant"}}
        },
        phases={"warm_up": "auto", "measure": "5m"},
        objectives=[{"scenario": "burst", "p95": "1s"}],
    )
    assert status in (0, 3), said
    found = open_run(directory)
    verdict = json.loads((directory / "verdict.json").read_text())
    assert [step["level"] for step in found.manifest["steps"]] == [START, START + STEP]
    assert [event["level"] for event in found.events if event["event"] == "step"] == [START, START + STEP]
    [ended] = [event for event in found.events if event["event"] == "steps_ended"]
    assert ended["why"] == "it was the last step"
    rates = [level["throughput_per_s"] for level in verdict["levels"]]
    assert rates == pytest.approx([START, START + STEP], rel=0.1)
    assert verdict["objectives_held"]["burst"]["level"] == START + STEP
    assert verdict["scenarios"]["burst"]["throughput_per_s"] == pytest.approx(START + STEP, rel=0.1)
    assert "2 load levels, at least 6 are needed" in verdict["knee"]["why"]
    assert "50/s" in (directory / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.alone
def test_users_of_levels_to_come_are_none_yet(url: str, tmp_path: Path) -> None:
    """A load in steps that ends at its first level is judged with the users of that level."""
    load = {
        "model": "steps",
        "start": 2,
        "step": 2,
        "each": f"{EACH_S}s",
        "until": "objective",
        "at_most": 10,
    }
    status, directory, said = run(
        tmp_path,
        url,
        scenarios={"burst": {"use": "nosql-burst", "load": {**load, "think": "200ms"}}},
        phases={"warm_up": "0s", "measure": {"until": "done", "at_most": "5m"}},
        objectives=[{"scenario": "burst", "p50": "1us"}],
    )
    assert status == 1, said
    found = open_run(directory)
    assert [step["level"] for step in found.manifest["steps"]] == [2]
    [ended] = [event for event in found.events if event["event"] == "steps_ended"]
    assert ended["why"] == "an objective was missed: p50"
    users = [
        row["value"] for row in found.samples.to_table().to_pylist() if row["metric"] == "generator.users"
    ]
    assert users[len(users) // 2] == 2
    verdict = json.loads((directory / "verdict.json").read_text())
    assert verdict["outcome"] != "invalid", verdict["summary"]
    assert verdict["objectives"][0]["result"] == "missed, from 2 users on"


def test_a_broken_rule_ends_the_run_as_a_guard(url: str, tmp_path: Path) -> None:
    """A broken guard ends the run with exit status 4; the report has its rule and value."""
    status, directory, said = run(
        tmp_path,
        url,
        scenarios={"burst": {"use": "nosql-burst", "load": {"model": "soak", "rate": "20/s"}}},
        phases={"warm_up": "1s", "measure": "5m"},
        stop_when=[{"metric": "response_p95_s", "above": "1us", "for": "3s"}],
    )
    assert status == 4, said
    found = open_run(directory)
    assert found.manifest["state"] == "interrupted"
    [guard] = [event for event in found.events if event["event"] == "guard"]
    assert "response_p95_s of all scenarios was above 1 µs for 3 s" in guard["why"]
    assert guard["stop_rule"] == 0
    assert any("stop_when" in warning for warning in found.manifest["warnings"])
    assert found.operations.num_rows
