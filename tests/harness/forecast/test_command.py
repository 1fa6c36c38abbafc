"""``pinchpoint what-if`` as a user calls it, on a run directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.analysis.disks import Capped, commits
from harness.comparison.example import saved
from harness.forecast.farms import LENGTH_S, log
from support import run_cli


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose log stands at its declared cap."""
    build = log(commits(Capped(240), LENGTH_S, users=8), 8, limits={"iops": 240.0})
    return saved(build.run(), tmp_path_factory.mktemp("runs") / "one")


def test_a_disk_of_the_catalogue_in_place_of_this_one(run: Path) -> None:
    """Text for people; JSON is one document and nothing else."""
    done = run_cli("what-if", run, "--set", "sql.log=azure/p30")
    assert done.returncode == 0, done.stderr
    assert "sql.log = azure/p30 (5,000 IOPS, 200 MB/s) (in this run: 240 IOPS)" in done.stdout
    done = run_cli("what-if", run, "--set", "sql.log.iops=480", "--set", "sql.log.latency=1ms", "--json")
    content = json.loads(done.stdout)
    assert content["scenarios"][0]["ratio"] == pytest.approx(2, rel=0.1)


def test_bad_input_is_said_in_sentences_and_writes_nothing(run: Path, tmp_path: Path) -> None:
    """Every bad setting at once, a folder that is no run: exit status 2."""
    before = sorted(run.iterdir())
    done = run_cli("what-if", run, "--set", "sql.lgo=azure/p30", "--set", "sql.log=azure/p31")
    assert done.returncode == 2
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first.startswith("--set sql.lgo=azure/p30: this run does not have")
    assert "nearest: sql.log" in first
    assert "nearest: azure/p3" in second
    assert run_cli("what-if", tmp_path, "--set", "sql.log=azure/p30").returncode == 2
    assert sorted(run.iterdir()) == before
