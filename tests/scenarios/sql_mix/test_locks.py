"""Tests of lock_contend on a real server: a lock admits one transaction at a time."""

from __future__ import annotations

import psycopg
import pytest
from scenarios.sql_mix.helpers import ask, prepared, press, tables, with_options
from scenarios.support import Recorder

from pinchpoint_scenarios.contract import Endpoint

HOT_ONLY = {"operations": {"lock_contend": 1}}


@pytest.mark.parametrize(("hot_rows", "users"), [(1, 8), (1, 3), (4, 16)])
def test_a_hot_row_lets_one_transaction_through_at_a_time(sql: Endpoint, hot_rows: int, users: int) -> None:
    """The throughput is that of the row locks for any number of users, and sessions mostly wait for locks."""
    hold_s, length_s = 0.02, 2.0
    with prepared(sql, HOT_ONLY | {"hot_rows": hot_rows, "hold": "20ms"}) as driver:
        assert tables(sql) == {"hot"}
        recorder, waits = press(sql, driver, users, length_s)
        ((versions, rows),) = ask(sql, "SELECT sum(version)::int, count(*) FROM pinchpoint_test.hot")
    assert recorder.counts() == {("lock_contend", "ok"): versions}, "every ok is a committed change"
    assert rows == hot_rows
    # Users that still wait at the end are admitted afterwards. How far below the limit of the locks the rate
    # is depends on the machine.
    rate = (versions - users) / length_s
    assert 0 < rate < 1.02 * hot_rows / hold_s
    assert waits.most_common(1)[0][0] == "Lock", waits
    assert all(row.end_ns - row.start_ns >= hold_s * 1e9 for row in recorder.rows), "the hold is service time"


def test_a_lock_that_does_not_come_is_named(sql: Endpoint) -> None:
    """The server's lock timeout and the statement timeout are different outcomes; the session continues."""
    impatient = with_options(sql, lock_timeout="100")
    for endpoint, params, outcome in (
        (impatient, {}, "lock_timeout"),
        (sql, {"timeout_s": 0.2}, "statement_timeout"),
    ):
        with prepared(endpoint, HOT_ONLY | params) as driver:
            session, recorder = driver.session(0), Recorder()
            with psycopg.connect(sql.url) as holding:
                holding.execute("UPDATE pinchpoint_test.hot SET version = 7")
                session.perform(recorder)
            session.perform(recorder)
            session.close()
            assert [row.outcome for row in recorder.rows] == [outcome, "ok"]
