"""``pinchpoint runs --trend`` as a nightly job calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.trend.histories import nightly, nights
from support import run_cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of runs that got worse."""
    return nightly(tmp_path_factory.mktemp("runs"), nights((200, 12), (150, 10)))


def test_a_nightly_job_fails_where_it_got_worse(folder: Path, tmp_path: Path) -> None:
    """Exit status 1 needs the option; the plan is given by name or by file."""
    done = run_cli("runs", "--trend", "nightly", folder)
    assert done.returncode == 0, done.stderr
    assert "worse" in done.stdout
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: nightly\nscenarios: {orders: {use: sql-mix, load: {model: closed, users: 8}}}\n"
        "phases: {measure: 30s}\n"
    )
    done = run_cli("runs", "--trend", plan, folder, "--fail-on", "worse", "--out", tmp_path / "out")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == str(tmp_path / "out" / "trend.html")
    assert "<svg" in (tmp_path / "out" / "trend.html").read_text()


def test_json_is_one_document(folder: Path) -> None:
    """--json prints one document with schema, lines and changes."""
    content = json.loads(run_cli("runs", "--trend", "nightly", folder, "--json").stdout)
    assert content["schema"] == "pinchpoint.trend/1"
    assert {line["key"]["metric"] for line in content["lines"]} == {"throughput_per_s", "service_p95_s"}
    assert all(line["changes"][-1]["call"] == "worse" for line in content["lines"])


def test_options_of_a_trend_without_one_are_bad_input(folder: Path) -> None:
    """Trend options without --trend give exit status 2; the list of runs is unchanged."""
    done = run_cli("runs", folder, "--fail-on", "worse")
    assert done.returncode == 2
    assert "--fail-on: only with --trend PLAN" in done.stderr
    assert "dev-00" in run_cli("runs", folder).stdout


def test_three_nights_cannot_fail_and_say_so(tmp_path: Path) -> None:
    """Three nights give exit status 0 and a message on stderr that they cannot fail."""
    done = run_cli(
        "runs", "--trend", "nightly", nightly(tmp_path, nights((200, 2), (50, 1))), "--fail-on", "worse"
    )
    assert done.returncode == 0
    assert "3 runs, at least 8 are needed" in done.stdout
    assert "No change of level" not in done.stdout
    assert "no figure has enough runs to detect a change" in done.stderr
