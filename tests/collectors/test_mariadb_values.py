"""Tests of MariaDB's and MySQL's answers as metrics, and of the statements, with recorded rows."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from pinchpoint_collectors.databases import mariadb
from pinchpoint_collectors.errors import CollectorError

MYSQL = {
    "innodb_redo_log_current_lsn": 5_000_000.0,
    "innodb_redo_log_checkpoint_lsn": 3_000_000.0,
    "innodb_redo_log_capacity_resized": 100_000_000.0,
}


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ("Waiting for table level lock", "Lock:table level"),
        ("Waiting for global read lock", "Lock:global read"),
        ("Waiting for stored function metadata lock", "Lock:stored function metadata"),
        ("User lock", "Lock:user"),
        ("Waiting for prior transaction to commit", "Log:group commit"),
        ("Waiting for semi-sync ACK from slave", "Replica:acknowledgement"),
        ("statistics", None),
        ("Creating sort index", None),
    ],
)
def test_states_of_sessions(state: str, waits: str | None) -> None:
    """Session states of the server's documentation are mapped to their waits."""
    assert mariadb.waits_for(state, "RUNNING") == waits


def test_the_age_of_the_checkpoint_is_told_by_both() -> None:
    """MariaDB reports the checkpoint age, MySQL its two ends; without either it is not measured."""
    both = {"innodb_checkpoint_age": 20.0, "innodb_checkpoint_max_age": 80.0}
    assert mariadb.checkpoint_age(both) == (20, 80)
    assert mariadb.checkpoint_age(MYSQL) == (2_000_000, 100_000_000)
    assert mariadb.checkpoint_age({}) == (None, None)
    values = {each.metric: each.value for each in mariadb.levels(MYSQL)}
    assert values == {"db.checkpoint_age_bytes": 2_000_000, "db.checkpoint_age_ratio": 0.02}


@pytest.mark.parametrize(
    ("before", "after", "interval_s", "same"),
    [(100, 101, 1, True), (100, 100, 1.2, True), (100, 1, 1, False), (1, 2, 4.5, False), (50, 110, 60, True)],
)
def test_a_restart_is_told_by_the_uptime(before: float, after: float, interval_s: float, same: bool) -> None:
    """A restart is a lower uptime, or one that grew clearly less than the interval, in whole seconds."""
    found = mariadb.is_same_server({"uptime": before}, {"uptime": after}, interval_s)
    assert found is same


def test_status_variables_that_are_no_numbers_are_left_out() -> None:
    """Status variables without a number are left out."""
    rows = [("Uptime", "17"), ("Innodb_buffer_pool_dump_status", ""), ("Threads_connected", "3")]
    given = [dict(zip(("Variable_name", "Value"), row, strict=True)) for row in rows]
    assert mariadb.numbers(given) == {"uptime": 17, "threads_connected": 3}


@pytest.mark.parametrize(
    ("text", "server", "number"),
    [
        ("10.11.6-MariaDB-0+deb12u1", "mariadb", (10, 11)),
        ("5.5.5-10.6.16-MariaDB", None, None),
        ("8.0.39", "mysql", (8, 0)),
        ("8.4.2-commercial", "mysql", (8, 4)),
        ("10.4.33-MariaDB", None, None),
        ("5.7.44-log", None, None),
    ],
)
def test_versions(text: str, server: str | None, number: tuple[int, int] | None) -> None:
    """Old versions are refused, and the error names the version."""
    if server is None:
        with pytest.raises(CollectorError, match=r"MariaDB from 10\.5 and MySQL from 8\.0"):
            mariadb.version_of(text)
    else:
        assert mariadb.version_of(text) == mariadb.Version(server, number or (0, 0))


def test_what_a_server_lacks_is_listed_once_with_its_place() -> None:
    """Each missing metric is listed once with its source; missing rights with the grant."""
    everything = dict.fromkeys(mariadb.STATUS, 1.0)
    fine: dict[str, Any] = {"sees_all": True, "log_apart": False, "summaries": None, "remedy": None}
    assert list(mariadb.not_measured(everything, "w@%", **fine)) == []
    little = {name: 1.0 for name in everything if name != "innodb_log_waits"}
    (missing,) = mariadb.not_measured(little, "w@%", **fine)
    assert missing.metric == "db.log_buffer_full_per_s"
    (missing,) = mariadb.not_measured(everything, "w@%", **fine | {"log_apart": True})
    assert (missing.metric, missing.instance, missing.remedy) == ("db.*_s", "log", None)
    without = fine | {"sees_all": False, "summaries": "off", "remedy": "on"}
    found = list(mariadb.not_measured(everything, "w@%", **without))
    assert found[-1].remedy == "run: GRANT PROCESS ON *.* TO 'w'@'%'"
    listed = [(each.metric, each.instance) for each in found[:3]]
    assert listed == [("db.*_s", name) for name in ("data", "temp", "log")]


@pytest.mark.parametrize(
    "statement",
    [
        *(mariadb.ABOUT, mariadb.SUMMARIES, mariadb.FILES, mariadb.SESSIONS),
        *(mariadb.TRANSACTIONS, *mariadb.BLOCKERS.values()),
        *(mariadb.greeting("mariadb") + mariadb.greeting("mysql")),
        *(mariadb.SETTINGS, mariadb.COUNTERS),
    ],
)
def test_every_statement_is_of_their_dialect(statement: str) -> None:
    """Every statement parses as MySQL and only reads."""
    (parsed,) = sqlglot.parse(statement, read="mysql")
    assert parsed is not None
    assert parsed.key in {"select", "set", "show"}
