"""Top waits: what a database's sessions waited for during the measure phase."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build

from pinchpoint.data.timeaxis import clock_of
from pinchpoint.report.report import RUNNING, waits
from pinchpoint.report.tables import Table


def table(build: Build) -> Table:
    run = build.run()
    return waits(run, clock_of(run))


def sessions(**of: float) -> Build:
    build = (
        Build(measure_s=60)
        .host("sql1", "sql")
        .closed("orders", "sql-mix", 4)
        .operations("orders", "log_append", 10, 0.01)
    )
    for name, value in of.items():
        build.metric("sql1", f"db.sessions_{name}", value, noise=0.0)
    return build


def test_waits_are_ranked_with_their_share_of_active_session_time() -> None:
    """Waits are ranked by share of active session time, and rare waits are one row."""
    build = sessions(active=4.0, running=0.9)
    build.metric("sql1", "db.sessions_waiting", 3.0, "Lock:transactionid", noise=0.0)
    for number in range(12):
        build.metric("sql1", "db.sessions_waiting", 0.001 * (number + 1), f"IO:Rare{number}", noise=0.0)
    found = table(build).rows
    assert [row["wait"] for row in found[:3]] == [
        "waiting for Lock:transactionid",
        RUNNING,
        "waiting for IO:Rare11",
    ]
    assert len(found) == 11
    assert found[-1]["wait"] == "4 other waits"
    assert found[0]["time_s"] == pytest.approx(180)
    assert found[0]["ratio"] == pytest.approx(0.75)
    assert found[-1]["time_s"] == pytest.approx(60 * 0.010)


def test_what_was_not_sampled_is_not_shown_and_hidden_sessions_are_said() -> None:
    """Waits without a number of active sessions have no share, and hidden sessions are mentioned."""
    unknown = sessions().metric("sql1", "db.sessions_waiting", 3.0, "Lock:transactionid", noise=0.0)
    assert table(unknown).rows == []
    assert "sql1" not in table(sessions(active=1.0, running=1.0)).note
    assert "On sql1 the collector's role may not see all" in table(sessions(active=1.0, hidden=2.0)).note
