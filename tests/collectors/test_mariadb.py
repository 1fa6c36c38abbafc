"""Tests of the collector `mariadb` with a real server, with and without its performance schema."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

import pymysql
import pytest
from collectors.asking import around_a_wait, asking, blocked, found
from collectors.mariadb_server import LOADER, PLAIN, WATCHER, MariaDb, mariadb
from collectors.server_contract import README, Peer, ServerContract

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.registry import kind


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with mariadb("--performance-schema=ON") as running:
        yield running


@pytest.fixture(scope="module")
def peer(server: MariaDb) -> Peer:
    def count() -> int:
        with server.session(WATCHER) as session:
            session.execute("SHOW PROCESSLIST")
            return [row["User"] for row in session.fetchall()].count(WATCHER) - 1  # this one's own connection

    return Peer(server.url(WATCHER), lambda: [server.process.pid], count)


class TestContract(ServerContract):
    KIND = "mariadb"
    UNREACHABLE: ClassVar = {
        "mysql://watcher:wrong-secret@{place}/": "correct user and password in farm.yaml",
        "mysql://watcher:{password}@127.0.0.1:1/": "start the server, or correct host and port",
        "mysql://watcher:{password}@{place}/?tls=true": "TLS",
        "mysql://watcher:{password}@{place}/?tls_ca=/nowhere.pem": "tls_ca=/nowhere.pem",
        "mysql://watcher:{password}@127.0.0.1:nowhere/": "the url cannot be read",
    }


watching = partial(asking, "mariadb", "sql1", "sql")


def times(samples: Sequence[Sample], metric: str, instance: str = "") -> float:
    """Return the number of events in the interval."""
    value = found(samples)[metric, instance]
    assert value is not None
    return value * samples[0].interval_s


def test_sessions_that_wait_for_a_row_are_counted_and_who_holds_it(server: MariaDb) -> None:
    """Three sessions blocked by an idle transaction are counted; before and afterwards none."""
    with watching(server.url(WATCHER)) as collector:
        during, after = around_a_wait(collector, server.session)
    values = found(during)
    assert values["db.sessions_waiting", "Lock:row"] == 3
    assert values["db.connections_ratio", ""] == pytest.approx(5 / 151)
    held = {name: value for (metric, name), value in values.items() if metric == "db.sessions_blocked_by"}
    assert f"{LOADER}:idle" in held
    assert sum(value or 0 for value in held.values()) >= 3
    assert after["db.sessions_waiting", "Lock:row"] == 0, "a wait once seen is 0 from then on"
    assert after["db.sessions_blocked_by", f"{LOADER}:idle"] == 0


def test_a_table_that_is_locked_is_told_from_a_row(server: MariaDb) -> None:
    """A wait for a table lock and a wait for a row lock are separate."""
    with server.session() as holder, server.session() as waiting, watching(server.url(WATCHER)) as collector:
        holder.execute("CREATE OR REPLACE TABLE locked (id INT)")
        holder.execute("LOCK TABLES locked WRITE")
        thread = threading.Thread(target=waiting.execute, args=("SELECT * FROM locked",))
        thread.start()
        time.sleep(0.5)
        values = found(collector.read())
        holder.execute("UNLOCK TABLES")
        thread.join()
        holder.execute("DROP TABLE locked")
    assert values["db.sessions_waiting", "Lock:table metadata"] == pytest.approx(1, abs=0.8)


def test_commits_are_seen_as_bytes_and_flushes_of_the_log(server: MariaDb) -> None:
    """The commits of one session are in the counters of log bytes and flushes."""
    with server.session() as session, watching(server.url(WATCHER)) as collector:
        session.execute("CREATE OR REPLACE TABLE notes (payload VARCHAR(300))")
        collector.read()
        for _ in range(300):
            session.execute("INSERT INTO notes VALUES (REPEAT('x', 200))")
        samples = collector.read()
        session.execute("DROP TABLE notes")
    assert 300 <= times(samples, "db.commits_per_s") <= 360
    assert times(samples, "db.statements_per_s") >= 300
    assert times(samples, "db.log_bytes_per_s") > 300 * 200
    assert times(samples, "db.writes_per_s", "log") >= 250
    assert times(samples, "db.write_bytes_per_s", "log") > 300 * 200
    assert times(samples, "db.fsyncs_per_s", "innodb") >= 250


def test_what_sessions_read_from_files_has_its_time(server: MariaDb) -> None:
    """Reads of a table larger than the buffer are counted by kind of file, with the server's times."""
    with server.session() as session, watching(server.url(WATCHER)) as collector:
        session.execute("CREATE OR REPLACE TABLE wide (id INT AUTO_INCREMENT PRIMARY KEY, payload CHAR(250))")
        session.execute("INSERT INTO wide (payload) SELECT REPEAT('x', 250) FROM seq_1_to_80000")
        collector.read()
        session.execute("SELECT COUNT(*) FROM wide WHERE payload LIKE '%y%'")
        samples = collector.read()
        session.execute("DROP TABLE wide")
    values = found(samples)
    assert times(samples, "db.reads_per_s", "data") > 50
    assert times(samples, "db.read_bytes_per_s", "data") > 1e6
    assert (values["db.read_latency_s", "data"] or 0) > 0
    assert values["db.sessions_waiting", "Data:read"] == values["db.read_s_per_s", "data"]
    assert 0 <= (values["db.buffer_hit_ratio", ""] or 0) < 1
    assert 0 < (values["db.buffer_ratio", ""] or 0) <= 1


def test_levels_of_log_and_buffer(server: MariaDb) -> None:
    """The checkpoint's age and the buffer's dirty pages are reported."""
    with watching(server.url(WATCHER)) as collector:
        values = found(collector.read())
    assert (values["db.checkpoint_age_bytes", ""] or 0) >= 0
    assert 0 <= (values["db.checkpoint_age_ratio", ""] or 0) < 1
    assert 0 <= (values["db.buffer_dirty_ratio", ""] or 0) < 1
    assert (values["db.memory_used_bytes", ""] or 0) > 1e6
    assert values["db.io_pending", "read"] is not None


def test_the_documented_user_sees_all_and_may_do_nothing_else(server: MariaDb) -> None:
    """PROCESS and the performance schema are enough, and give no access to user data."""
    with watching(server.url(WATCHER)) as collector:
        facts = collector.inventory()["sql1"]
    with server.session(WATCHER) as session:
        for refused in ("SELECT * FROM mysql.user", "CREATE TABLE loadtest.mine (id INT)", "USE loadtest"):
            with pytest.raises(pymysql.Error, match="denied"):
                session.execute(refused)
    database = facts["database"]
    assert database["sees"] == "all sessions"
    assert database["server"] == "mariadb"
    assert database["settings"]["innodb_flush_log_at_trx_commit"] == "1"
    assert [each for each in facts["not_measured"] if each["remedy"]] == []


def test_a_user_without_rights_sees_its_own_and_says_so(server: MariaDb) -> None:
    """A user without rights gets the counters but not others' sessions; each missing grant is a remedy."""
    url = server.url(WATCHER)
    with blocked(server.session, 2), watching(url, user=PLAIN, password="sesame") as plain:
        plain.read()
        time.sleep(0.3)
        values = found(plain.read())
        facts = plain.inventory()["sql1"]
    assert values["db.lock_waiters", ""] == 0
    assert values["db.connections", ""] == 4, "that sessions are there is no secret"
    assert values["db.commits_per_s", ""] is not None
    assert facts["database"]["sees"] == f"sessions of {PLAIN}@127.0.0.1 only"
    remedies = {each["remedy"] for each in facts["not_measured"]}
    assert f"run: GRANT PROCESS ON *.* TO '{PLAIN}'@'127.0.0.1'" in remedies
    assert f"run: GRANT SELECT ON performance_schema.* TO '{PLAIN}'@'127.0.0.1'" in remedies


def test_every_metric_of_sessions_that_wait_is_in_the_readme(server: MariaDb) -> None:
    """The documentation lists the additional metrics of waiting sessions."""
    with blocked(server.session, 1), watching(server.url(WATCHER)) as collector:
        time.sleep(0.3)
        assert {each.metric for each in collector.read() if f"`{each.metric}`" not in README} == set()


def test_statements_that_hold_any_bytes_hide_nothing(server: MariaDb) -> None:
    """Statements with binary data, which the session list shows, hide no session."""
    with server.session(charset="utf8mb4") as session, watching(server.url(WATCHER)) as collector:
        statement = b"SELECT SLEEP(3), _binary '\xff\x00\xc3\x28'"
        sleeping = threading.Thread(target=session.execute, args=(statement,))
        sleeping.start()
        try:
            time.sleep(1.0)
            active = found(collector.read())["db.sessions_active", ""]
        finally:
            sleeping.join()
    assert active is not None
    assert active > 0.3


def test_a_lost_connection_costs_one_reading(server: MariaDb) -> None:
    """After a kill of the collector's session one reading fails, and the next has its differences."""
    with watching(server.url(WATCHER)) as collector:
        collector._sampler.stop()  # type: ignore[attr-defined]  # else it may be what meets the loss
        server.admin(f"KILL USER {WATCHER}")
        with pytest.raises(CollectorError, match="host 'sql1', collector 'mariadb'") as caught:
            collector.read()
        assert "sesame" not in str(caught.value)
        assert found(collector.read())["db.commits_per_s", ""] is not None


def test_an_endpoint_s_other_ways_to_say_it(server: MariaDb) -> None:
    """The ODBC URL of scenarios, an address, and a server's socket all work."""
    options = {
        "url": f"mysql+odbc://{WATCHER}:sesame@nowhere/loadtest",
        "address": f"127.0.0.1:{server.port}",
    }
    for given in (options, {"url": f"mariadb://{WATCHER}:sesame@h/?unix_socket={server.socket}"}):
        if "unix_socket" in given["url"]:
            server.admin(f"CREATE OR REPLACE USER {WATCHER}@localhost IDENTIFIED BY 'sesame'")
        collector = kind("mariadb").connect([Watch("sql1", "sql", options=given)])
        try:
            assert collector.inventory()["sql1"]["database"]["server"] == "mariadb"
        finally:
            collector.close()
    server.admin(f"DROP USER {WATCHER}@localhost")


@pytest.mark.slow  # a second server, started twice
def test_without_the_performance_schema_there_are_counts_and_no_times() -> None:
    """Without the performance schema there are counts for all InnoDB files together, without times."""
    with mariadb() as server, watching(server.url(WATCHER)) as collector:
        with server.session() as session:
            session.execute("CREATE TABLE notes (payload VARCHAR(300))")
            for _ in range(50):
                session.execute("INSERT INTO notes VALUES (REPEAT('x', 200))")
        time.sleep(3)  # a restart within seconds of the first start cannot be detected
        samples = collector.read()
        facts = collector.inventory()["sql1"]
        server.process.kill()
        server.process.start()
        anew = found(collector.read())
    values = found(samples)
    assert times(samples, "db.fsyncs_per_s", "innodb") > 40
    assert ("db.fsync_latency_s", "log") not in values
    missing = {(each["metric"], each["instance"]): each["remedy"] for each in facts["not_measured"]}
    assert "performance_schema=ON" in (missing["db.*_s", "data"] or "")
    assert times(samples, "db.writes_per_s", "log") > 40
    assert ("db.commits_per_s", "") not in anew
