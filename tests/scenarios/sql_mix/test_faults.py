"""Tests of a failing server: each failure is a named outcome, counts stay right, and the load continues."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from scenarios.sql_mix.helpers import (
    LOG_ONLY,
    ask,
    loaded,
    number,
    prepared,
    with_options,
)
from scenarios.sql_mix.server import Server, small_tablespace
from scenarios.sql_servers.targets import by_odbc, need_driver
from scenarios.support import Recorder
from support import until

from pinchpoint_scenarios.contract import Endpoint

LOG_ROWS = "SELECT count(*) FROM pinchpoint_test.log"


@pytest.mark.parametrize(
    ("how", "odbc"),
    [(signal.SIGINT, False), (signal.SIGQUIT, False), (signal.SIGINT, True)],
    ids=["restart", "crash", "restart by ODBC"],
)
def test_the_load_outlives_a_restart_of_the_server(server: Server, how: signal.Signals, odbc: bool) -> None:
    """During a restart errors are counted at growing intervals; the load continues and ok rows survive."""
    if odbc:
        need_driver("PostgreSQL", package="odbc-postgresql")
    endpoint = Endpoint("sql", by_odbc(server.endpoint.url)) if odbc else server.endpoint
    users = 4
    with prepared(endpoint, LOG_ONLY) as driver:
        with loaded(driver, users, 30.0) as recorder:
            until(lambda: len(recorder.rows) >= 30)
            server.stop(how)
            time.sleep(0.8)
            server.start()
            back = len(recorder.rows)
            until(lambda: [row.outcome for row in recorder.rows[back:]].count("ok") >= 100)
        counts = recorder.counts()
        rows = number(server.endpoint, LOG_ROWS)
    ok, lost = counts["log_append", "ok"], counts["log_append", "connection_lost"]
    assert {outcome for _, outcome in counts} == {"ok", "connection_lost", "unreachable"}
    assert ok <= rows <= ok + lost
    assert 1 <= lost <= 3 * users
    assert counts["log_append", "unreachable"] <= 10 * users, "it pauses between attempts"


TWO_LOCKS: dict[str, Any] = {
    "operations": {"lock_contend": 1},
    "hot_rows": 2,
    "lock_rows": 2,
    "hold": "5ms",
}
CHANGES = "SELECT sum(version) FROM pinchpoint_test.hot"


@pytest.fixture
def quick_to_see_deadlocks(server: Server) -> Iterator[Server]:
    """Yield a server that detects deadlocks after 20 ms instead of a second."""
    ask(server.admin, "ALTER ROLE loader SET deadlock_timeout = '20ms'")
    yield server
    ask(server.admin, "ALTER ROLE loader RESET deadlock_timeout")


@pytest.mark.parametrize("retries", [50, 0])
def test_deadlocks_are_made_again_and_counted(quick_to_see_deadlocks: Server, retries: int) -> None:
    """Deadlocks are retried: each attempt is a stage, and each operation succeeds once.

    Without retries a deadlock is the outcome, and its transaction has changed nothing.
    """
    sql = quick_to_see_deadlocks.endpoint
    with prepared(sql, TWO_LOCKS | {"retries": retries}) as driver:
        with loaded(driver, 4, 1.5) as recorder:
            time.sleep(1.5)
        changes = number(sql, CHANGES)
    counts, stages = recorder.counts(), recorder.counts(stages=True)
    assert set(counts) == {("lock_contend", each) for each in (["ok"] if retries else ["ok", "deadlock"])}
    assert changes == 2 * counts["lock_contend", "ok"]
    assert set(stages) == ({("lock_contend/retried", "deadlock")} if retries else set())
    assert not retries or stages["lock_contend/retried", "deadlock"] >= 5


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
def test_serialization_failures_are_made_again_and_counted(sql: Endpoint, isolation: str) -> None:
    """Serialization failures are retried, each as a stage, and counts stay right."""
    params = {"operations": {"lock_contend": 1}, "hold": "2ms", "isolation": isolation, "retries": 2}
    with prepared(sql, params) as driver:
        with loaded(driver, 4, 1.0) as recorder:
            time.sleep(1.0)
        changes = number(sql, CHANGES)
    counts, stages = recorder.counts(), recorder.counts(stages=True)
    assert counts["lock_contend", "ok"] == changes > 0
    assert set(counts) <= {("lock_contend", "ok"), ("lock_contend", "serialization")}
    assert set(stages) == {("lock_contend/retried", "serialization")}
    assert stages["lock_contend/retried", "serialization"] >= 2 * counts["lock_contend", "serialization"]


def test_read_committed_has_no_serialization_failures(sql: Endpoint) -> None:
    """The default isolation level waits and has no serialization failures."""
    params = {"operations": {"lock_contend": 1}, "hold": "2ms"}
    with prepared(sql, params) as driver, loaded(driver, 4, 0.5) as recorder:
        time.sleep(0.5)
    assert set(recorder.counts()) == {("lock_contend", "ok")}
    assert recorder.counts(stages=True) == {}


def test_sessions_beyond_the_connection_limit_fail_by_name_and_come_in_later(sql: Endpoint) -> None:
    """Sessions above the connection limit get too_many_connections until there is room; others continue."""
    with psycopg.connect(sql.url, autocommit=True) as outside, prepared(sql, LOG_ONLY) as driver:
        # this session, the schema's session, and two more
        outside.execute("ALTER DATABASE loadtest CONNECTION LIMIT 4")
        try:
            with loaded(driver, 4, 8.0) as recorder:
                time.sleep(0.8)
                outside.execute("ALTER DATABASE loadtest CONNECTION LIMIT -1")
                sessions, end = set[int](), time.monotonic() + 6
                while len(sessions) < 4:
                    assert time.monotonic() < end, sessions
                    time.sleep(0.1)
                    sessions = {
                        row[0] for row in outside.execute("SELECT DISTINCT session FROM pinchpoint_test.log")
                    }
        finally:
            outside.execute("ALTER DATABASE loadtest CONNECTION LIMIT -1")
        rows = outside.execute(LOG_ROWS).fetchone()
    counts = recorder.counts()
    assert set(counts) == {("log_append", "ok"), ("log_append", "too_many_connections")}
    assert rows == (counts["log_append", "ok"],)
    assert 2 <= counts["log_append", "too_many_connections"] <= 20


def test_a_limit_of_temporary_files_is_named(server: Server) -> None:
    """A limit of temporary files is a named outcome, and the session stays in use."""
    ask(server.admin, "ALTER ROLE loader SET temp_file_limit = '1MB'")
    try:
        params = {"operations": {"spill": 1}, "spill_bytes": "4MiB"}
        with prepared(server.endpoint, params) as driver:
            session, recorder = driver.session(0), Recorder()
            session.perform(recorder)
            session.perform(recorder)
            session.close()
    finally:
        ask(server.admin, "ALTER ROLE loader RESET temp_file_limit")
    assert recorder.counts() == {("spill", "temp_file_limit"): 2}


def test_a_transaction_cut_off_in_its_middle_changes_nothing(server: Server) -> None:
    """A transaction killed between its two changes is connection_lost and changes nothing."""
    with prepared(server.endpoint, TWO_LOCKS | {"hold": "300ms"}) as driver:
        with loaded(driver, 1, 5.0) as recorder:
            time.sleep(0.45)
            ask(
                server.admin,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'pinchpoint_test' AND query LIKE 'UPDATE%%'",
            )
            while len(recorder.rows) < 2:
                time.sleep(0.05)
        changes = number(server.endpoint, CHANGES)
    outcomes = [row.outcome for row in recorder.rows]
    assert outcomes[0] == "connection_lost"
    assert set(outcomes[1:]) == {"ok"}
    assert changes == 2 * (len(outcomes) - 1)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a small file system is mounted for the server")
def test_a_full_disk_is_an_outcome_until_there_is_room_again(server: Server) -> None:
    """On a full disk the stored rows are the counted ones, and all sessions continue afterwards."""
    params = {"operations": {"log_batch": 1}, "batch_rows": 200, "row_bytes": "1KiB"}
    with small_tablespace(server, 16):
        endpoint = with_options(server.endpoint, default_tablespace="small")
        with prepared(endpoint, params) as driver:
            session, recorder = driver.session(0), Recorder()
            while recorder.counts()["log_batch", "disk_full"] < 3:
                assert len(recorder.rows) < 200
                session.perform(recorder)
            full = number(endpoint, LOG_ROWS)
            assert set(recorder.counts()) == {("log_batch", "ok"), ("log_batch", "disk_full")}
            assert full == 200 * recorder.counts()["log_batch", "ok"] > 0
            ask(server.endpoint, "ALTER TABLE pinchpoint_test.log SET TABLESPACE pg_default")
            after = Recorder()
            session.perform(after)
            session.close()
            assert after.counts() == {("log_batch", "ok"): 1}
            assert number(endpoint, LOG_ROWS) == full + 200


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a small file system is mounted for the server")
def test_by_odbc_a_full_disk_is_an_outcome_and_what_is_there_was_counted(server: Server) -> None:
    """Over ODBC a full disk has the same outcome, and the session continues."""
    need_driver("PostgreSQL", package="odbc-postgresql")
    params = {"operations": {"bulk_load": 1}, "copy_rows": 200, "row_bytes": "1KiB"}
    with small_tablespace(server, 12):
        ask(server.admin, "ALTER ROLE loader SET default_tablespace = 'small'")
        try:
            with prepared(Endpoint("sql", by_odbc(server.endpoint.url)), params) as driver:
                session, recorder = driver.session(0), Recorder()
                while recorder.counts()["bulk_load", "disk_full"] < 2:
                    assert len(recorder.rows) < 200
                    session.perform(recorder)
                session.close()
                rows = number(server.endpoint, "SELECT count(*) FROM pinchpoint_test.bulk")
        finally:
            ask(server.admin, "ALTER ROLE loader RESET default_tablespace")
    assert set(recorder.counts()) == {("bulk_load", "ok"), ("bulk_load", "disk_full")}
    assert rows == 200 * recorder.counts()["bulk_load", "ok"] > 0
