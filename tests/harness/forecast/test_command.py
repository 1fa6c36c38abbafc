"""``pinchpoint what-if`` on a run directory as a user calls it, and the allowed settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.analysis.disks import Capped, commits
from harness.comparison.example import saved
from harness.forecast.farms import LENGTH_S, log
from support import run_cli

from pinchpoint.analysis.model.settings import Known, read_settings
from pinchpoint.base.errors import InputError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose log is at its declared cap."""
    build = log(commits(Capped(240), LENGTH_S, users=8), 8, limits={"iops": 240.0})
    return saved(build.run(), tmp_path_factory.mktemp("runs") / "one")


def test_a_disk_of_the_catalogue_in_place_of_this_one(run: Path) -> None:
    """A catalogue disk can be set; the output is text, or exactly one JSON document."""
    done = run_cli("what-if", run, "--set", "sql.log=azure/p30")
    assert done.returncode == 0, done.stderr
    assert "sql.log = azure/p30 (5,000 IOPS, 200 MB/s) (in this run: 240 IOPS)" in done.stdout
    done = run_cli("what-if", run, "--set", "sql.log.iops=480", "--set", "sql.log.latency=1ms", "--json")
    content = json.loads(done.stdout)
    assert content["scenarios"][0]["ratio"] == pytest.approx(2, rel=0.1)


def test_bad_input_is_said_in_sentences_and_writes_nothing(run: Path, tmp_path: Path) -> None:
    """All bad settings and a folder that is no run are reported at once: exit status 2, no file."""
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


KNOWN = Known(
    ("sql.log", "sql.data"),
    ("sql", "search"),
    ("sql",),
    {"orders": False, "burst": True},
    ("sql.lock", "nosql.processes", "sql.network"),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sql.lgo=azure/p30", ("sql.lgo", "allowed: sql.log, ", "nearest: sql.log")),
        ("sql.log", ("is no setting", "NAME=VALUE")),
        ("=azure/p30", ("is no setting",)),
        ("sql.log=", ("is no setting",)),
        ("sql.log=azure/p31", ("no disk", "azure/p30", "nearest: azure/p3")),
        ("sql.machine=azure/p30", ("no machine", "azure/ds12")),
        ("sql.log.latency=2", ("has no unit", "write 2s")),
        ("sql.log.latency=-2ms", ("less than 0",)),
        ("sql.log.iops=many", ("no number", "I/Os per second")),
        ("sql.log.iops=0", ("cannot be",)),
        ("sql.log.iops=nan", ("cannot be",)),
        ("sql.log.stripes=2.5", ("cannot be", "whole number of disks")),
        ("sql.log.bytes=200MB", ("byte rate",)),
        ("search.cpu=-1", ("cannot be", "cores")),
        ("search.cpu=1e9", ("cannot be", "4,096")),
        ("orders.rate=5/s", ("orders.rate", "allowed:")),
        ("burst.users=5", ("burst.users", "allowed:")),
        ("burst.rate=0", ("cannot be", "more than 0")),
        ("sql.lock=5", ("has no unit", "write 5s")),
        ("nosql.processes=1.5", ("cannot be", "whole number of processes")),
        ("sql.network=10MB", ("byte rate",)),
        ("search.lock=0ms", ("search.lock", "allowed:")),
    ],
)
def test_a_bad_setting_is_a_sentence(text: str, words: tuple[str, ...]) -> None:
    """The message about a bad setting begins with that setting."""
    with pytest.raises(InputError) as refused:
        read_settings([text], KNOWN)
    assert str(refused.value).startswith(f"--set {text}: ")
    for word in words:
        assert word in str(refused.value)


def test_all_bad_settings_are_told_at_once() -> None:
    """All bad settings are listed one per line, including those that exclude each other."""
    with pytest.raises(InputError) as refused:
        read_settings(
            ["a=1", "sql.log=azure/p30", "sql.log.iops=5000", "search.cpu=1", "search.cpu=2"], KNOWN
        )
    assert len(refused.value.problems) == 3
    assert "has a profile as well" in str(refused.value)
    assert "given twice, as 1 and 2" in str(refused.value)


def test_settings_are_in_base_units() -> None:
    """Settings are stored in base units, and their text is kept."""
    found = read_settings(
        ["sql.log=azure/p30", "sql.data.latency=2ms", "sql.data.bytes=200MB/s", "burst.rate=60/min"], KNOWN
    )
    assert [one.value for one in found] == ["azure/p30", 0.002, 200e6, 1.0]
    assert [one.what for one in found] == ["profile", "latency_s", "bytes_per_s", "rate_per_s"]
    assert found[3].text == "60/min"
