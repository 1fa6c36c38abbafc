"""sql-mix against a real PostgreSQL: what is counted as done is done, and nothing else is touched."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from scenarios.support import Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.databases.postgresql import outcome_of
from pinchpoint_scenarios.databases.schema import MARKER
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError

LOG_ONLY = {"operations": {"log_append": 1}}
SMALL = 0.05  # of the data table that suits the server: the tests need rows, not volume


def ask(endpoint: Endpoint, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(endpoint.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def prepared(endpoint: Endpoint, params: dict[str, Any], name: str = "test") -> Iterator[Scenario]:
    driver = made("sql-mix", {"sql": endpoint}, params, name=name)
    driver.prepare(quiet)
    try:
        yield driver
    finally:
        driver.finish(keep_data=False)


def tables(endpoint: Endpoint, schema: str = "pinchpoint_test") -> set[str]:
    return {row[0] for row in ask(endpoint, "SELECT tablename FROM pg_tables WHERE schemaname = %s", schema)}


def test_every_operation_counted_ok_is_a_committed_row(sql: Endpoint) -> None:
    """Counts are of commits: as many rows as ok log_appends, as many versions as ok data_updates."""
    recorder = Recorder()
    with prepared(sql, {"preset": "balanced", "scale": SMALL}) as driver:
        session = driver.session(0)
        for _ in range(400):
            assert session.perform(recorder)
        session.close()
        counts = recorder.counts()
        assert {outcome for _, outcome in counts} == {"ok"}
        assert ask(sql, "SELECT count(*) FROM pinchpoint_test.log") == [(counts["log_append", "ok"],)]
        assert ask(sql, "SELECT sum(version) FROM pinchpoint_test.data") == [(counts["data_update", "ok"],)]
    assert min(counts.values()) > 50, "the mix holds every operation"
    assert counts["point_read", "ok"] > counts["log_append", "ok"]


def test_a_killed_backend_is_an_outcome_and_the_session_goes_on(sql: Endpoint) -> None:
    """No ok row is missing, and only a lost operation may have left a row that was not counted."""
    recorder = Recorder()
    with prepared(sql, LOG_ONLY) as driver:
        sessions = [driver.session(number) for number in range(4)]
        end = time.monotonic() + 2

        def work(number: int) -> None:
            while time.monotonic() < end:
                sessions[number].perform(recorder)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            time.sleep(0.4)
            ask(
                sql,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'pinchpoint_test' AND query LIKE 'INSERT%%'",
            )
        for thread in threads:
            thread.join()
        after = Recorder()
        for session in sessions:
            session.perform(after)
            session.close()
        counts = recorder.counts()
        (rows,) = ask(sql, "SELECT count(*), count(DISTINCT (session, sequence)) FROM pinchpoint_test.log")
    assert after.counts() == {("log_append", "ok"): 4}
    lost = counts["log_append", "connection_lost"]
    assert set(counts) == {("log_append", "ok"), ("log_append", "connection_lost")}
    assert 4 <= lost <= 16
    assert counts["log_append", "ok"] + 4 <= rows[0] <= counts["log_append", "ok"] + 4 + lost
    assert rows[0] == rows[1]


def test_the_same_seed_and_number_do_the_same(sql: Endpoint) -> None:
    """A session is deterministic; another number is another session."""
    drawn = []
    with prepared(sql, {"scale": SMALL}) as driver:
        for number in (3, 3, 4):
            recorder = Recorder()
            session = driver.session(number)
            for _ in range(50):
                session.perform(recorder)
            session.close()
            drawn.append([row.operation for row in recorder.rows])
    assert drawn[0] == drawn[1] != drawn[2]


def test_only_the_tables_that_are_needed_are_made_and_all_go(sql: Endpoint) -> None:
    """No table for an operation that is not in the mix; nothing is left at the end."""
    with prepared(sql, LOG_ONLY):
        assert tables(sql) == {"log"}
    assert ask(sql, "SELECT FROM pg_namespace WHERE nspname = 'pinchpoint_test'") == []


def test_kept_data_is_used_again_and_the_log_starts_empty(sql: Endpoint) -> None:
    """``keep_data`` keeps; the next run takes the data table as it is, and an empty log."""
    driver = made("sql-mix", {"sql": sql}, {"scale": SMALL})
    driver.prepare(quiet)
    session = driver.session(0)
    for _ in range(50):
        session.perform(Recorder())
    session.close()
    driver.finish(keep_data=True)
    before = ask(
        sql, "SELECT 'pinchpoint_test.data'::regclass::oid::int, sum(version) FROM pinchpoint_test.data"
    )
    with prepared(sql, {"scale": SMALL}):
        query = "SELECT 'pinchpoint_test.data'::regclass::oid::int, sum(version) FROM pinchpoint_test.data"
        assert ask(sql, query) == before
        assert ask(sql, "SELECT count(*) FROM pinchpoint_test.log") == [(0,)]
    with prepared(sql, {"scale": 2 * SMALL}):
        query = "SELECT 'pinchpoint_test.data'::regclass::oid::int FROM pinchpoint_test.data LIMIT 1"
        assert ask(sql, query)[0][0] != before[0][0], "another size is loaded anew"


def test_the_data_table_is_larger_than_the_servers_cache(sql: Endpoint) -> None:
    """At scale 1 the table is twice shared_buffers (at most 256 MiB), so reads must reach the disk."""
    with prepared(sql, {"operations": {"point_read": 1}}):
        ((size, cache),) = ask(
            sql,
            "SELECT pg_relation_size('pinchpoint_test.data'), setting::bigint * 8192 "
            "FROM pg_settings WHERE name = 'shared_buffers'",
        )
        target = min(2 * cache, 256 * 2**20)
        assert 0.95 * target < size < 1.1 * target


def test_a_schema_without_our_mark_is_left_alone(sql: Endpoint) -> None:
    """Somebody's schema of that name stops the run, and survives ``finish``."""
    ask(sql, "CREATE SCHEMA pinchpoint_test")
    ask(sql, "CREATE TABLE pinchpoint_test.log (theirs int)")
    driver = made("sql-mix", {"sql": sql}, LOG_ONLY)
    for action in (driver.check, lambda: driver.prepare(quiet), lambda: driver.finish(keep_data=False)):
        with pytest.raises(ScenarioError, match="'pinchpoint_test' is there already and was not made by"):
            action()
    assert tables(sql) == {"log"}


def test_what_others_put_into_our_schema_survives(sql: Endpoint) -> None:
    """Only our tables are dropped; the schema stays while anything else lies in it, and that is said."""
    driver = made("sql-mix", {"sql": sql}, LOG_ONLY)
    driver.prepare(quiet)
    ask(sql, "CREATE TABLE pinchpoint_test.theirs (id int)")
    with pytest.raises(ScenarioError, match="was kept: something that is not Pinchpoint's"):
        driver.finish(keep_data=False)
    assert tables(sql) == {"theirs"}


def test_two_runs_do_not_share_a_schema(sql: Endpoint) -> None:
    """The second run of the same scenario name is told so; after the first has finished it may."""
    with prepared(sql, LOG_ONLY):
        second = made("sql-mix", {"sql": sql}, LOG_ONLY)
        with pytest.raises(ScenarioError, match="another run is using schema 'pinchpoint_test'"):
            second.prepare(quiet)
        second.finish(keep_data=True)
    with prepared(sql, LOG_ONLY):
        pass


def test_names_with_dashes_and_capitals_work(sql: Endpoint) -> None:
    """A scenario's name is quoted, not spelt into SQL."""
    with prepared(sql, LOG_ONLY, name="My-Orders") as driver:
        session = driver.session(0)
        recorder = Recorder()
        session.perform(recorder)
        session.close()
        assert recorder.counts() == {("log_append", "ok"): 1}
        assert tables(sql, "pinchpoint_My-Orders") == {"log"}
    with pytest.raises(ScenarioError, match="shorter name"):
        made("sql-mix", {"sql": sql}, LOG_ONLY, name="x" * 60)


def test_check_tells_version_and_settings_and_changes_nothing(sql: Endpoint) -> None:
    """Facts for the manifest; afterwards the database is as before."""
    facts = made("sql-mix", {"sql": sql}).check()["sql"]
    assert facts["version"].startswith("18")
    assert {"shared_buffers", "fsync", "synchronous_commit"} <= facts["settings"].keys()
    assert facts["warnings"] == []
    assert ask(sql, "SELECT FROM pg_namespace WHERE nspname LIKE 'pinchpoint%%'") == []


def test_a_server_that_does_not_wait_for_the_disk_is_said(sql: Endpoint) -> None:
    """A non-durable setting is a warning of the check."""
    url = sql.url + ("&" if "?" in sql.url else "?") + "options=-csynchronous_commit%3Doff"
    facts = made("sql-mix", {"sql": Endpoint("sql", url)}).check()["sql"]
    assert ["synchronous_commit is off" in warning for warning in facts["warnings"]] == [True]


def _other_url(sql: Endpoint, **changes: str) -> Endpoint:
    given = psycopg.conninfo.conninfo_to_dict(sql.url) | changes
    where = f"{given['host']}:{given['port']}/{given['dbname']}"
    return Endpoint("sql", f"postgresql://{given['user']}:{given['password']}@{where}")


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"password": "se%26cret"}, "the server refused the user or the password; correct them in farm.yaml"),
        ({"port": "1"}, "connection refused; start the server, or correct host and port in farm.yaml"),
        ({"dbname": "nowhere"}, "the database of the url does not exist; create it"),
        ({"host": "no-such-host.invalid"}, "the host name cannot be resolved"),
    ],
)
def test_a_server_that_lets_us_not_in_is_explained(
    sql: Endpoint, changes: dict[str, str], cause: str
) -> None:
    """One sentence: endpoint, address, cause, remedy; never the password."""
    endpoint = _other_url(sql, **changes)
    with pytest.raises(EndpointUnreachable) as caught:
        made("sql-mix", {"sql": endpoint}).check()
    message = str(caught.value)
    assert message.startswith("endpoint sql (")
    assert cause in message
    assert "\n" not in message
    for secret in ("se%26cret", "se&cret", str(psycopg.conninfo.conninfo_to_dict(sql.url)["password"])):
        assert secret not in message


def test_a_user_without_the_right_to_make_a_schema_is_told_the_grant(sql: Endpoint) -> None:
    """The remedy is the statement to run."""
    ((database, user),) = ask(sql, "SELECT current_database(), current_user")
    ask(sql, f'REVOKE CREATE ON DATABASE "{database}" FROM "{user}"')
    try:
        with pytest.raises(EndpointUnreachable) as caught:
            made("sql-mix", {"sql": sql}).check()
    finally:
        ask(sql, f'GRANT CREATE ON DATABASE "{database}" TO "{user}"')
    assert "may not create a schema" in str(caught.value)
    assert f'run: GRANT CREATE ON DATABASE "{database}" TO "{user}"' in str(caught.value)


def test_a_server_that_is_away_is_an_outcome_with_pauses(sql: Endpoint) -> None:
    """A session can be opened while the server is away; failures are recorded, slower and slower."""
    driver = made("sql-mix", {"sql": _other_url(sql, port="1")}, LOG_ONLY)
    session, recorder = driver.session(0), Recorder()
    begun = time.monotonic()
    for _ in range(4):
        assert session.perform(recorder)
    session.close()
    assert recorder.counts() == {("log_append", "unreachable"): 4}
    assert time.monotonic() - begun > 0.3, "it pauses between attempts"
    assert all(row.end_ns - row.start_ns < 0.2e9 for row in recorder.rows), "the pauses are not service time"


def test_failures_have_their_names(sql: Endpoint) -> None:
    """A locked row times out, a missing table keeps its SQLSTATE; the session stays usable."""
    with prepared(sql, {"operations": {"data_update": 1}, "scale": SMALL, "timeout_s": 0.2}) as driver:
        session, recorder = driver.session(0), Recorder()
        with psycopg.connect(sql.url) as locking:
            locking.execute("LOCK pinchpoint_test.data")
            session.perform(recorder)
        session.perform(recorder)
        ask(sql, "DELETE FROM pinchpoint_test.data")
        session.perform(recorder)
        ask(sql, "ALTER TABLE pinchpoint_test.data RENAME TO gone")
        session.perform(recorder)
        ask(sql, "ALTER TABLE pinchpoint_test.gone RENAME TO data")
        session.close()
    outcomes = [row.outcome for row in recorder.rows]
    assert outcomes == ["statement_timeout", "ok", "missing_row", "sqlstate_42P01"]


HOT_ONLY = {"operations": {"hot_row_update": 1}}


def press(endpoint: Endpoint, driver: Scenario, users: int, length_s: float) -> tuple[Recorder, Counter[str]]:
    """Load with so many users, each a thread: what they recorded, and what server sessions waited for."""
    recorder, waits = Recorder(), Counter[str]()
    sessions = [driver.session(number) for number in range(users)]
    end = time.monotonic() + length_s

    def work(number: int) -> None:
        while time.monotonic() < end:
            sessions[number].perform(recorder)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(users)]
    for thread in threads:
        thread.start()
    with psycopg.connect(endpoint.url, autocommit=True) as watching:
        while time.monotonic() < end - 0.1:
            seen = watching.execute(
                "SELECT coalesce(wait_event_type, 'none') FROM pg_stat_activity "
                "WHERE application_name = 'pinchpoint_test' AND state = 'active'"
            )
            waits.update(row[0] for row in seen)
            time.sleep(0.05)
    for thread in threads:
        thread.join()
    for session in sessions:
        session.close()
    return recorder, waits


@pytest.mark.parametrize(("hot_rows", "users"), [(1, 8), (1, 3), (4, 16)])
def test_a_hot_row_lets_one_transaction_through_at_a_time(sql: Endpoint, hot_rows: int, users: int) -> None:
    """Throughput is that of the rows' locks whatever the users; the sessions wait for locks above all."""
    hold_s, length_s = 0.02, 2.0
    with prepared(sql, HOT_ONLY | {"hot_rows": hot_rows, "hold": "20ms"}) as driver:
        assert tables(sql) == {"hot"}
        recorder, waits = press(sql, driver, users, length_s)
        ((versions, rows),) = ask(sql, "SELECT sum(version)::int, count(*) FROM pinchpoint_test.hot")
    assert recorder.counts() == {("hot_row_update", "ok"): versions}, "every ok is a committed change"
    assert rows == hot_rows
    # The users still waiting when the time is up are let through after it. With several rows some stand idle
    # at times: users choose them by chance.
    rate = (versions - users) / length_s
    assert (0.6 if hot_rows == 1 else 0.4) * hot_rows / hold_s < rate < 1.02 * hot_rows / hold_s
    assert waits.most_common(1)[0][0] == "Lock", waits
    assert all(row.end_ns - row.start_ns >= hold_s * 1e9 for row in recorder.rows), "the hold is service time"


def test_a_lock_that_does_not_come_is_named(sql: Endpoint) -> None:
    """The server's lock timeout and our statement timeout are two outcomes; the session goes on."""
    separator = "&" if "?" in sql.url else "?"
    impatient = Endpoint("sql", f"{sql.url}{separator}options=-clock_timeout%3D100")
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


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (psycopg.errors.DeadlockDetected, "deadlock"),
        (psycopg.errors.SerializationFailure, "serialization"),
        (psycopg.errors.QueryCanceled, "statement_timeout"),
        (psycopg.errors.DiskFull, "disk_full"),
        (psycopg.errors.TooManyConnections, "too_many_connections"),
        (psycopg.errors.InsufficientPrivilege, "permission"),
        (psycopg.errors.AdminShutdown, "connection_lost"),
        (psycopg.errors.ConnectionFailure, "connection_lost"),
        (psycopg.errors.DivisionByZero, "sqlstate_22012"),
        (psycopg.OperationalError, "connection_lost"),
    ],
)
def test_sqlstates_become_outcomes(error: type[psycopg.Error], outcome: str) -> None:
    """The names a report shows."""
    assert outcome_of(error("message")) == outcome


def test_the_marker_is_what_is_written(sql: Endpoint) -> None:
    """What lets a later run recognise its schema is the comment on it."""
    with prepared(sql, LOG_ONLY):
        query = "SELECT obj_description('pinchpoint_test'::regnamespace, 'pg_namespace')"
        assert ask(sql, query) == [(MARKER,)]
