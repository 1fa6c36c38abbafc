"""A server that fails in many ways: each is an outcome of the same name, what is counted stays true."""

# ruff: noqa: S608 - the tests ask in SQL of their own

from __future__ import annotations

import time
from typing import Any

import pytest
from mariadbserver import MariaDb
from scenarios.sql_mix.helpers import LOG_ONLY, loaded, performed, prepared
from scenarios.sql_servers.targets import SCHEMA, Maria, Target, need_driver
from scenarios.support import Recorder, made

from pinchpoint_scenarios.contract import Endpoint

COUNT = f"SELECT COUNT(*) FROM {SCHEMA}.log"
HOT: dict[str, Any] = {"operations": {"lock_contend": 1}, "hold": "2ms"}


def test_a_killed_connection_is_an_outcome_and_the_session_goes_on(target: Target) -> None:
    """No ok row is missing, and only a lost operation may have left a row that was not counted."""
    with prepared(target.endpoint, LOG_ONLY) as driver:
        killed = 0
        with loaded(driver, 3, 12.0) as recorder:
            while killed < 3:
                time.sleep(0.2)
                killed += target.kill_sessions()
            back = len(recorder.rows)
            while [row.outcome for row in recorder.rows[back:]].count("ok") < 60:
                time.sleep(0.05)
        counts = recorder.counts()
        ((rows,),) = target.ask(COUNT)
    ok, lost = counts["log_append", "ok"], counts["log_append", "connection_lost"]
    assert {outcome for _, outcome in counts} == {"ok", "connection_lost"}
    assert 1 <= lost <= killed
    assert ok <= rows <= ok + lost
    assert [row.outcome for row in recorder.rows[-10:]] == ["ok"] * 10, "every session came back"


def test_a_row_that_is_locked_is_given_up_and_the_session_goes_on(target: Target) -> None:
    """After ``timeout_s`` the statement is over, with a name; the next one succeeds."""
    with prepared(target.endpoint, {**HOT, "timeout_s": 1}) as driver:
        session, recorder = driver.session(0), Recorder()
        with target.open_transaction(f"UPDATE {SCHEMA}.hot SET version = 7"):
            session.perform(recorder)
        session.perform(recorder)
        session.close()
    assert [row.outcome for row in recorder.rows] == ["statement_timeout", "ok"]
    assert 0.9e9 < recorder.rows[0].end_ns - recorder.rows[0].start_ns < 4e9


def test_a_lock_timeout_of_the_servers_own_is_named(maria: Maria) -> None:
    """MariaDB's ``innodb_lock_wait_timeout``."""
    maria.ask("SET GLOBAL innodb_lock_wait_timeout = 1")
    try:
        with prepared(maria.endpoint, HOT) as driver:
            session, recorder = driver.session(0), Recorder()
            with maria.open_transaction(f"UPDATE {SCHEMA}.hot SET version = 7"):
                session.perform(recorder)
            session.perform(recorder)
            session.close()
    finally:
        maria.ask("SET GLOBAL innodb_lock_wait_timeout = 50")
    assert [row.outcome for row in recorder.rows] == ["lock_timeout", "ok"]


def test_without_retries_a_deadlock_is_the_outcome(target: Target) -> None:
    """Rows locked in any order deadlock: a victim changed nothing, and that is its outcome."""
    params = {**HOT, "hot_rows": 2, "lock_rows": 2, "hold": "20ms", "retries": 0}
    with prepared(target.endpoint, params) as driver:
        with loaded(driver, 3, 20.0) as recorder:
            while not recorder.counts()["lock_contend", "deadlock"] or len(recorder.rows) < 12:
                time.sleep(0.05)
        ((changes,),) = target.ask(f"SELECT SUM(version) FROM {SCHEMA}.hot")
    counts = recorder.counts()
    assert set(counts) == {("lock_contend", "ok"), ("lock_contend", "deadlock")}
    assert int(changes) == 2 * counts["lock_contend", "ok"]


def test_a_row_that_was_changed_meanwhile_is_a_serialization_failure(target: Target) -> None:
    """With snapshot isolation whoever comes second begins again: a stage each; no change is lost."""
    params = {**HOT, "isolation": "snapshot", "retries": 3}
    probe = made("sql-mix", {"sql": target.endpoint}, params)
    try:
        probe.check()
    except Exception as error:  # noqa: BLE001 - which of them it is the contract's test says
        pytest.skip(str(error))
    with prepared(target.endpoint, params) as driver:
        with loaded(driver, 4, 1.0) as recorder:
            time.sleep(1.0)
        ((changes,),) = target.ask(f"SELECT SUM(version) FROM {SCHEMA}.hot")
    assert int(changes) == recorder.counts()["lock_contend", "ok"] > 0
    assert set(recorder.counts(stages=True)) <= {("lock_contend/retried", "serialization")}
    if (
        "mysql" not in target.endpoint.url
    ):  # one statement of MariaDB's begins its snapshot when it has the row
        assert recorder.counts(stages=True)


@pytest.mark.parametrize("scheme", ["mssql+odbc", "mysql+odbc", "postgresql+odbc"])
def test_a_server_that_is_away_is_an_outcome_with_pauses(scheme: str) -> None:
    """A session can be opened while the server is away; failures are recorded, slower and slower."""
    need_driver(
        *{"mssql+odbc": ("FreeTDS",), "mysql+odbc": ("MariaDB",)}.get(scheme, ("PostgreSQL",)), package="odbc"
    )
    driver = made("sql-mix", {"sql": Endpoint("sql", f"{scheme}://u:p@127.0.0.1:1/db")}, LOG_ONLY)
    begun = time.monotonic()
    recorder = performed(driver, 3)
    assert recorder.counts() == {("log_append", "unreachable"): 3}
    assert time.monotonic() - begun > 0.1, "it pauses between attempts"


def test_the_load_outlives_a_crash_of_mariadb(maria_server: MariaDb, maria: Maria) -> None:
    """Killed and started again: errors are counted, the load goes on, every ok row survived."""
    with prepared(maria.endpoint, LOG_ONLY) as driver:
        with loaded(driver, 3, 30.0) as recorder:
            while len(recorder.rows) < 30:
                time.sleep(0.05)
            maria_server.process.kill()
            time.sleep(0.4)
            maria_server.process.start()
            back = len(recorder.rows)
            while [row.outcome for row in recorder.rows[back:]].count("ok") < 60:
                time.sleep(0.05)
        counts = recorder.counts()
        ((rows,),) = maria.ask(COUNT)
    ok, lost = counts["log_append", "ok"], counts["log_append", "connection_lost"]
    assert {outcome for _, outcome in counts} == {"ok", "connection_lost", "unreachable"}
    assert ok <= rows <= ok + lost
