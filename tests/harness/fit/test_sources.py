"""Exports of statistics and recordings: what is read, and the messages for those that fail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.fit.exports import (
    BEFORE,
    LATER,
    fitted,
    pair,
    statements,
)

from pinchpoint.base.errors import InputError
from pinchpoint.cli.init import init
from pinchpoint.fit.fit import fit
from pinchpoint.fit.snapshots import changes, read_csv, seconds
from pinchpoint.plan import load, load_plan

NOTHING = ("page_reads_per_operation", "temp_bytes_per_operation")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-21 20:15:00.5+00", "2026-11-21T20:15:00.500000+00:00"),
        ("2026-11-21 21:15:00+01:00", "2026-11-21T20:15:00+00:00"),
        ("2026-11-21 20:15:00.1234567 +00:00", "2026-11-21T20:15:00.123456+00:00"),
        ("2026-11-21 20:15:00.5000000", "2026-11-21T20:15:00.500000+00:00"),
    ],
)
def test_times_are_read_as_both_servers_write_them(text: str, at: str) -> None:
    """PostgreSQL's two-digit zones and SQL Server's seven decimal digits of a second are read."""
    assert datetime.fromtimestamp(seconds(text, "x"), UTC).isoformat() == at
    with pytest.raises(InputError, match="x: found 'noon'; allowed: a time such as"):
        seconds("noon", "x")


def test_what_changed_between_two_snapshots(tmp_path: Path) -> None:
    """The difference of two snapshots in any order handles new statements and reset counters."""
    before = statements(tmp_path / "b", BEFORE, {"calls": 5}, {"calls": 900})
    after = statements(tmp_path / "a", LATER, {"calls": 12}, {"calls": 40}, {"calls": 7, "query": "SELECT 1"})
    found = [read_csv(Path(each)) for each in (after, before)]
    (change,) = changes(each for each in found if each).values()
    assert change.length_s == 100.5
    assert [float(row["calls"]) for row in change.rows] == [7, 40, 7]


def test_a_statement_may_be_long(tmp_path: Path) -> None:
    """A statement of any length is read, as with long lists of values."""
    long = {"query": "INSERT INTO t VALUES ($1)" + ", ($1)" * 50_000, "calls": 10, "rows": 500_010}
    plan, _ = fitted(tmp_path, *pair(tmp_path, long))
    assert plan["scenarios"]["production"]["params"]["batch_rows"] == 50_001


def test_a_reset_is_known_by_what_the_server_says_of_it(tmp_path: Path) -> None:
    """A reset is known from the server (PostgreSQL 17), also where counters have grown beyond it."""
    since = {"stats_since": "2026-11-20 00:00:00+00"}
    again = {"stats_since": "2026-11-21 20:01:00+00"}
    before = statements(tmp_path / "b", BEFORE, {"calls": 5, **since}, {"calls": 5, **since})
    after = statements(tmp_path / "a", LATER, {"calls": 12, **since}, {"calls": 40, **again})
    found = [read_csv(Path(each)) for each in (before, after)]
    (change,) = changes(each for each in found if each).values()
    assert [float(row["calls"]) for row in change.rows] == [7, 40]
    (note,) = change.notes
    assert "counters of 1 of 2 rows were reset" in note
    assert "their rates are too low" in note


def test_init_writes_the_fitted_plan(tmp_path: Path) -> None:
    """``init`` reads sources up to the next option, and writes plan and farm.yaml or nothing."""
    sources = pair(tmp_path, {"query": "SELECT 1", "calls": 1005, "rows": 1005, "shared_blks_hit": 1005})
    place = tmp_path / "fitted"
    done = CliRunner().invoke(init, [str(place), "--from", *sources, "--over", "5s"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    farm, plan = load(place / "farm.yaml", place / "plan.yaml")
    assert plan.production == {"writes_per_s": 0, "reads_per_s": 10, **dict.fromkeys(NOTHING, 0)}
    assert farm.name == "my-farm"
    for said, arguments in (
        ("1 snapshot of", ["--from", sources[0]]),
        ("--over: ", ["--from", *sources, "--over", "soon"]),
    ):
        with pytest.raises(InputError, match=said):
            CliRunner().invoke(
                init, [str(tmp_path / "new"), *arguments], catch_exceptions=False, standalone_mode=False
            )
    assert not (tmp_path / "new").exists()


def test_a_figure_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    """An impossible figure in a handwritten plan is refused by name."""
    text = fit(pair(tmp_path, {"query": "SELECT 1", "calls": 1005}), 1, lambda _: None)
    (tmp_path / "plan.yaml").write_text(text.replace("reads_per_s:", "read_per_s:"))
    with pytest.raises(InputError, match=r'unknown figure "read_per_s"; allowed: .*; nearest: reads_per_s'):
        load_plan(tmp_path / "plan.yaml")
