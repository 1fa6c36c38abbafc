"""Tests of failing or refusing servers: each failure has its name, and counts stay right."""

# ruff: noqa: S608 - the tests use SQL texts of their own

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mariadbserver import MariaDb, mariadb
from scenarios.sql_mix.helpers import LOG_ONLY, loaded, performed, prepared
from scenarios.sql_servers.targets import SCHEMA, Maria, Postgres, Target, need_driver
from scenarios.support import Events, Recorder, made
from support import require, run_cli, until

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable

COUNT = f"SELECT COUNT(*) FROM {SCHEMA}.log"
HOT: dict[str, Any] = {"operations": {"lock_contend": 1}, "hold": "2ms"}


def test_a_killed_connection_is_an_outcome_and_the_session_goes_on(target: Target) -> None:
    """After a killed connection no ok row is missing, and only a lost operation may have an extra row."""
    with prepared(target.endpoint, LOG_ONLY) as driver:
        killed = 0
        with loaded(driver, 3, 60.0) as recorder:
            while killed < 3:
                time.sleep(0.2)
                killed += target.kill_sessions()
            back = len(recorder.rows)
            until(lambda: [row.outcome for row in recorder.rows[back:]].count("ok") >= 40)
        counts = recorder.counts()
        ((rows,),) = target.ask(COUNT)
    ok, lost = counts["log_append", "ok"], counts["log_append", "connection_lost"]
    assert {outcome for _, outcome in counts} == {"ok", "connection_lost"}
    assert 1 <= lost <= killed
    assert ok <= rows <= ok + lost
    assert [row.outcome for row in recorder.rows[-10:]] == ["ok"] * 10, "every session came back"


def test_a_row_that_is_locked_is_given_up_and_the_session_goes_on(odbc_target: Target) -> None:
    """A statement on a locked row ends after ``timeout_s`` with a name, and the next one succeeds."""
    with prepared(odbc_target.endpoint, {**HOT, "timeout_s": 1}) as driver:
        session, recorder = driver.session(0), Recorder()
        with odbc_target.open_transaction(f"UPDATE {SCHEMA}.hot SET version = 7"):
            session.perform(recorder)
        session.perform(recorder)
        session.close()
    assert [row.outcome for row in recorder.rows] == ["statement_timeout", "ok"]
    assert 0.9e9 < recorder.rows[0].end_ns - recorder.rows[0].start_ns < 4e9


def test_a_lock_timeout_of_the_servers_own_is_named(maria: Maria) -> None:
    """MariaDB's ``innodb_lock_wait_timeout`` is a named outcome."""
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


def test_without_retries_a_deadlock_is_the_outcome(odbc_target: Target) -> None:
    """Without retries a deadlock is the outcome, and its victim has changed nothing."""
    params = {**HOT, "hot_rows": 2, "lock_rows": 2, "hold": "20ms", "retries": 0}
    events = Events()
    with prepared(odbc_target.endpoint, params, event=events) as driver:
        with loaded(driver, 3, 60.0) as recorder:
            until(lambda: bool(recorder.counts()["lock_contend", "deadlock"]) and len(recorder.rows) >= 4)
        ((changes,),) = odbc_target.ask(f"SELECT SUM(version) FROM {SCHEMA}.hot")
    counts = recorder.counts()
    assert set(counts) == {("lock_contend", "ok"), ("lock_contend", "deadlock")}
    assert int(changes) == 2 * counts["lock_contend", "ok"]
    (reported,) = events.named("statement_failed")
    assert (reported["operation"], reported["outcome"]) == ("lock_contend", "deadlock")
    assert "deadlock" in reported["said"].lower(), "the server's words, reported once"


def test_a_row_that_was_changed_meanwhile_is_a_serialization_failure(odbc_target: Target) -> None:
    """With snapshot isolation the second change of a row is retried as a stage, and no change is lost."""
    params = {**HOT, "isolation": "snapshot", "retries": 3}
    probe = made("sql-mix", {"sql": odbc_target.endpoint}, params)
    try:
        probe.check()
    except Exception as error:  # noqa: BLE001 - which of them it is the contract's test says
        pytest.skip(str(error))
    with prepared(odbc_target.endpoint, params) as driver:
        with loaded(driver, 4, 1.0) as recorder:
            time.sleep(1.0)
        ((changes,),) = odbc_target.ask(f"SELECT SUM(version) FROM {SCHEMA}.hot")
    assert int(changes) == recorder.counts()["lock_contend", "ok"] > 0
    assert set(recorder.counts(stages=True)) <= {("lock_contend/retried", "serialization")}
    if (
        "mysql" not in odbc_target.endpoint.url
    ):  # MariaDB's single statement takes its snapshot when it has the row
        assert recorder.counts(stages=True)


@pytest.mark.parametrize("scheme", ["mssql+odbc", "mysql+odbc", "postgresql+odbc", "postgresql"])
def test_a_server_that_is_away_is_an_outcome_with_pauses(scheme: str) -> None:
    """A session opens while the server is away, and failures are recorded at growing intervals."""
    if "+odbc" in scheme:
        drivers = {"mssql+odbc": "FreeTDS", "mysql+odbc": "MariaDB"}
        need_driver(drivers.get(scheme, "PostgreSQL"), package="odbc")
    driver = made("sql-mix", {"sql": Endpoint("sql", f"{scheme}://u:p@127.0.0.1:1/db")}, LOG_ONLY)
    begun = time.monotonic()
    recorder = performed(driver, 4)
    assert recorder.counts() == {("log_append", "unreachable"): 4}
    assert time.monotonic() - begun > 0.3, "it pauses between attempts"
    assert "+odbc" in scheme or all(row.end_ns - row.start_ns < 0.2e9 for row in recorder.rows), (
        "the pauses are not service time"
    )


def test_the_load_outlives_a_crash_of_mariadb(maria_server: MariaDb, maria: Maria) -> None:
    """After a kill and restart errors are counted, the load continues, and ok rows survive."""
    with prepared(maria.endpoint, LOG_ONLY) as driver:
        with loaded(driver, 3, 60.0) as recorder:
            until(lambda: len(recorder.rows) >= 30)
            maria_server.process.kill()
            time.sleep(0.4)
            maria_server.process.start()
            back = len(recorder.rows)
            until(lambda: [row.outcome for row in recorder.rows[back:]].count("ok") >= 40)
        counts = recorder.counts()
        ((rows,),) = maria.ask(COUNT)
    ok, lost = counts["log_append", "ok"], counts["log_append", "connection_lost"]
    assert {outcome for _, outcome in counts} == {"ok", "connection_lost", "unreachable"}
    assert ok <= rows <= ok + lost


def test_a_password_is_in_no_message(odbc_target: Target) -> None:
    """A refused login's message has no password, whatever the driver reports."""
    scheme, _, rest = odbc_target.endpoint.url.partition("://")
    host = rest.rpartition("@")[2]
    for secret in ("hunter2", "hunt;er}2", "hun@ter/2"):
        quoted = secret.replace(";", "%3B").replace("}", "%7D").replace("@", "%40").replace("/", "%2F")
        endpoint = Endpoint("sql", f"{scheme}://nobody:{quoted}@{host}")
        with pytest.raises(EndpointUnreachable) as caught:
            made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
        assert "refused the user or the password" in str(caught.value)
        assert secret not in str(caught.value)
        assert quoted not in str(caught.value)


def test_without_libodbc_one_sentence_names_the_package(tmp_path: Path) -> None:
    """Without pyodbc ``check`` gives one sentence with the package and exit status 5, without a traceback."""
    (tmp_path / "pyodbc.py").write_text("raise ImportError('libodbc.so.2: cannot open shared object file')\n")
    (tmp_path / "farm.yaml").write_text(
        "name: f\nenvironment: test\nendpoints: {sql: {url: 'mssql+odbc://u:p@127.0.0.1:1/d'}}\n"
    )
    (tmp_path / "plan.yaml").write_text(
        "name: p\nseed: 1\nscenarios: {orders: {use: sql-mix, load: {model: closed, users: 1}}}\n"
        "phases: {warm_up: 1s, measure: 1s, cool_down: 0s}\n"
    )
    done = run_cli(
        *("check", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml"),
        env={"PYTHONPATH": str(tmp_path)},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 5, said
    assert "ODBC's driver manager cannot be loaded on this machine (libodbc.so.2: cannot open" in said
    assert "apt-get install unixodbc" in said
    assert "Traceback" not in said


def test_freetds_says_that_nobody_is_there() -> None:
    """The real FreeTDS reports a port without a listener."""
    need_driver("FreeTDS", package="tdsodbc")
    endpoint = Endpoint("sql", "mssql+odbc://u:hunter2@127.0.0.1:1/d?driver=FreeTDS")
    with pytest.raises(EndpointUnreachable, match="connection refused") as caught:
        made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
    assert "hunter2" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="the wheel's driver is looked for by its Linux path")
def test_microsofts_driver_of_the_wheel_is_loaded_by_its_path() -> None:
    """The wheel's driver is loaded by its path and reports a port without a listener."""
    pytest.importorskip(
        "mssql_python_odbc", reason="the wheel mssql-python-odbc is missing (extra microsoft-odbc)"
    )
    endpoint = Endpoint("sql", "mssql+odbc://u:hunter2@127.0.0.1:1/d")
    with pytest.raises(EndpointUnreachable, match="connection refused") as caught:
        made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def own_certificate() -> Iterator[tuple[Path, Path]]:
    """Yield a self-signed key and certificate that another user's server can read."""
    with tempfile.TemporaryDirectory(prefix="certificate-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        key, certificate = place / "key.pem", place / "certificate.pem"
        subprocess.run(
            [
                *(require("openssl", "openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
                *("-days", "2", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=elsewhere"),
            ],
            check=True,
            capture_output=True,
            timeout=30,
        )
        key.chmod(0o644)
        yield key, certificate


def test_a_certificate_nobody_vouches_for_is_explained(own_certificate: tuple[Path, Path]) -> None:
    """A self-signed certificate is refused with the remedy, and accepted without verification."""
    need_driver("MariaDB", package="odbc-mariadb")
    key, certificate = own_certificate
    with mariadb(f"--ssl-cert={certificate}", f"--ssl-key={key}") as server:
        url = f"{server.url}?FORCETLS=1&SSLVERIFY="
        for keywords in ("1", f"1&SSLCA={certificate}"):
            with pytest.raises(EndpointUnreachable, match="TLS certificate is not trusted here") as caught:
                made("sql-mix", {"sql": Endpoint("sql", url + keywords)}, LOG_ONLY).check()
            assert "or accept any certificate (?SSLVERIFY=0)" in str(caught.value)
        assert made("sql-mix", {"sql": Endpoint("sql", url + "0")}, LOG_ONLY).check()["sql"]["version"]


def test_a_server_without_encryption_is_explained(postgres_odbc: Postgres) -> None:
    """A driver that requires TLS reports a server without TLS."""
    endpoint = Endpoint("sql", postgres_odbc.endpoint.url + "?SSLmode=require")
    with pytest.raises(EndpointUnreachable, match=r"do not agree on encryption .*write .SSLmode=disable"):
        made("sql-mix", {"sql": endpoint}, LOG_ONLY).check()


def test_a_crawl_on_a_server_that_is_not_driven_so_is_bad_input(tmp_path: Path) -> None:
    """A crawl on a server that only sql-mix supports gives one sentence and exit status 2."""
    (tmp_path / "farm.yaml").write_text(
        "name: f\nenvironment: test\nendpoints: {sql: {url: 'postgresql+odbc://u:p@127.0.0.1:1/d'}, "
        "web: {url: 'http://127.0.0.1:1'}, search: {kind: none}}\n"
    )
    (tmp_path / "plan.yaml").write_text(
        "name: p\nseed: 1\nscenarios: {crawl: {use: full-crawl, load: {model: closed, users: 1}}}\n"
        "phases: {warm_up: 1s, measure: 1s, cool_down: 0s}\n"
    )
    done = run_cli("check", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert (
        "a crawl database on a server of kind postgresql is not driven by ODBC; allowed: postgresql://,"
        in done.stderr
    )
