"""A workload recorded on a real server is fitted from its statistics and replayed: both are compared."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import psycopg
import pytest
from planted import Counting
from servers import running
from support import run_cli

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.fit.fit import fit
from pinchpoint.fit.mix import APPEND_LOG_BYTES, BATCH_LOG_BYTES, BATCH_ROW_LOG_BYTES, UPDATE_LOG_BYTES

pytestmark = pytest.mark.farm

INSERTS, UPDATES, READS = 60, 150, 150
"""Operations per second of the recorded application."""
ALIKE = ("reads_per_write", "rows_per_write", "log_bytes_per_write")


@pytest.fixture(scope="module")
def server() -> Iterator[Counting]:
    """Yield one server for all tests of this module; the load test's user may read all statistics."""
    with running(Counting) as tier:
        assert isinstance(tier, Counting)
        _ask(tier.admin, "GRANT pg_monitor TO loader")
        yield tier


def _ask(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Return the result of the last of several statements."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def application(url: str) -> Iterator[None]:
    """Place orders and change and read accounts at a steady rate during the block."""
    _ask(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, customer int NOT NULL, note text NOT NULL)",
        "CREATE INDEX ON orders (customer)",
        "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL, name text NOT NULL)",
        "INSERT INTO account SELECT id, 0, repeat('x', 100) FROM generate_series(1, 1000) id",
    )
    stop, random, errors = threading.Event(), Random(3), list[BaseException]()
    works = (
        (
            INSERTS,
            "INSERT INTO orders (customer, note) VALUES (%s, %s)",
            lambda: (random.randrange(5000), "n" * 300),
        ),
        (
            UPDATES,
            "UPDATE account SET balance = balance + 1 WHERE id = %s",
            lambda: (random.randint(1, 1000),),
        ),
        (READS, "SELECT balance FROM account WHERE id = %s", lambda: (random.randint(1, 1000),)),
    )

    def work(rate: float, statement: str, values: object) -> None:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                begun, done = time.monotonic(), 0
                while not stop.is_set():
                    connection.execute(statement.encode(), values(), prepare=True)  # type: ignore[operator]
                    done += 1
                    time.sleep(max(0.0, begun + done / rate - time.monotonic()))
        except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=each) for each in works]
    for thread in threads:
        thread.start()
    try:
        time.sleep(3)  # since the last checkpoint every account's page has been written once
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
        _ask(url, "DROP TABLE orders, account")
    assert not errors, errors


def written(url: str) -> float:
    """Return the application's number of writes: a row per order, plus one per change."""
    ((orders, changes),) = _ask(
        url, "SELECT (SELECT count(*) FROM orders), (SELECT sum(balance) FROM account)"
    )
    return float(str(orders)) + float(str(changes))


@pytest.mark.slow  # half a minute of two servers; the parts have tests of their own
def test_a_replay_is_like_what_it_was_fitted_to(server: Counting, tmp_path: Path) -> None:
    """Reads, rows and log bytes per write agree within 10 %, from the server's statistics alone."""
    url = server.endpoint()["url"]
    _ask(server.admin, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements", "CHECKPOINT")
    said: list[str] = []
    with application(url):
        begun, before = time.monotonic(), written(url)
        text = fit([url], 5, said.append)
        per_s = (written(url) - before) / (time.monotonic() - begun)  # a busy machine may not keep the rate
    assert said == [f"watching {url.replace(url.split(':')[2].split('@')[0], '***')} for 5 s"]
    (tmp_path / "plan.yaml").write_text(text.replace("measure: 120s", "measure: 8s").replace("10s", "5s"))
    collect = [{"kind": "postgres", "endpoint": "sql"}]
    farm = {"name": "copy", "environment": "test", "endpoints": {"sql": {"url": url}}}
    farm |= {"tiers": {"sql": {"hosts": {"sql1": {"collect": collect}}}}}
    (tmp_path / "farm.yaml").write_text(json.dumps(farm))
    done = run_cli("run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = Path(done.stdout.splitlines()[-1])
    assert "Production and this run" in run_cli("analyse", run, "--explain").stdout
    assert run_cli("report", run, "--format", "json,md").returncode == 0
    tables = json.loads((run / "report.json").read_text())["tables"]
    found = {row["name"]: row for row in tables["similarity"]}
    assert "Production and this run" in (run / "report.md").read_text()
    for name in ALIKE:
        assert found[name]["ratio"] == pytest.approx(1, abs=0.1), (text, found)
    assert found["writes_per_s"]["production"] == pytest.approx(per_s, rel=0.2)
    assert found["writes_per_s"]["ratio"] == pytest.approx(1, abs=0.15), "arrivals come by chance"


@pytest.mark.slow  # the figures in mix.py by which plans are fitted, to be checked for a new server version
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"operations": {"log_append": 1}, "row_bytes": 50}, APPEND_LOG_BYTES + 50),
        ({"operations": {"log_append": 1}, "row_bytes": 1000}, APPEND_LOG_BYTES + 1000),
        (
            {"operations": {"log_batch": 1}, "batch_rows": 5},
            BATCH_LOG_BYTES + 5 * (BATCH_ROW_LOG_BYTES + 200),
        ),
        ({"operations": {"data_update": 1}, "scale": 0.01}, UPDATE_LOG_BYTES),
    ],
)
def test_what_an_operation_writes_to_the_log(
    server: Counting, params: dict[str, object], expected: float
) -> None:
    """An operation writes about as many log bytes as mix.py states."""
    from scenarios.support import Recorder, made, quiet  # noqa: PLC0415 - of the scenarios' tests

    from pinchpoint_scenarios.contract import Endpoint  # noqa: PLC0415

    driver = made("sql-mix", {"sql": Endpoint("sql", server.endpoint()["url"])}, params)
    driver.prepare(quiet)
    session = driver.session(0)
    question = "SELECT pg_current_wal_insert_lsn() - '0/0'"
    try:
        for _ in range(3000):  # every page is written once
            session.perform(Recorder())
        ((before,),) = _ask(server.admin, question)
        for _ in range(1000):
            session.perform(Recorder())
        ((after,),) = _ask(server.admin, question)
    finally:
        session.close()
        driver.finish(keep_data=False)
    assert float(str(after)) - float(str(before)) == pytest.approx(1000 * expected, rel=0.15)


def test_a_server_that_keeps_no_statements_is_said_before_the_wait(server: Counting) -> None:
    """With the extension but without its setting, the message says what to set before any wait."""
    off = "ALTER DATABASE loadtest SET pg_stat_statements.track = 'none'"
    _ask(server.admin, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements", off)
    _ask(server.admin, "SELECT pg_stat_statements_reset()")
    said: list[str] = []
    try:
        with pytest.raises(InputError, match=r"is empty; set pg_stat_statements\.track = top \(or all\)"):
            fit([server.endpoint()["url"]], 60, said.append)
    finally:
        _ask(server.admin, "ALTER DATABASE loadtest RESET pg_stat_statements.track")
    assert said == []


def test_a_server_that_cannot_be_asked_is_said(server: Counting) -> None:
    """A server without the extension or without an answer gives a message without the password."""
    url = server.endpoint()["url"]
    _ask(server.admin, "DROP EXTENSION IF EXISTS pg_stat_statements")
    with pytest.raises(
        InputError, match="pg_stat_statements is not installed; needed: shared_preload_libraries"
    ):
        fit([url], 0.1, lambda _: None)
    with pytest.raises(FarmUnavailable, match=r"[Cc]onnection refused") as caught:
        fit(["postgresql://loader:geheim@127.0.0.1:1/loadtest"], 0.1, lambda _: None)
    assert "geheim" not in str(caught.value)
