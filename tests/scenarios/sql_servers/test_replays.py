"""Tests of captures from SQL Server and MariaDB, exported and replayed over ODBC."""

# ruff: noqa: S608 - the captured SQL is written by the tests

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mariadbserver import MariaDb
from scenarios.sql_replay.exported import Happened, exported_csv
from scenarios.sql_script.helpers import written
from scenarios.sql_servers.copied import Copied, copied
from scenarios.sql_servers.targets import Maria, Target
from scenarios.sql_servers.test_scripts import TRANSFER, VALUES
from scenarios.support import Events, Recorder, crawl, made, quiet
from support import require, run_cli

from pinchpoint.store.read import open_run
from pinchpoint_scenarios.contract import Blocking, Verified
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay import read_capture
from pinchpoint_scenarios.sql_replay.capture import sessions_of

USERS, TURNS, PAUSE_S = 3, 4, 0.2
NOTE = "it''s é"
ROWS = "SELECT client, turn, note FROM ~moved ORDER BY client, turn"


@pytest.fixture
def copy(odbc_target: Target) -> Iterator[Copied]:
    """Yield a marked copy on every server in turn."""
    with copied(odbc_target) as found:
        yield found


def application() -> list[Happened]:
    """Return the events of several users, each with two rounds of a transaction, a query and a pause."""
    found = []
    for user in range(USERS):
        for turn in range(TURNS):
            at_s, number = 1 + user * 0.03 + turn * PAUSE_S, 100 + user * TURNS + turn
            insert = f"INSERT INTO moved (client, turn, note)\nVALUES ({user}, {turn}, '{NOTE}')"
            update = f"UPDATE account SET balance = balance + 1 WHERE id = {user + 1}"
            found += [
                Happened(insert, at_s, 51 + user, transaction=number),
                Happened(update, at_s + 0.02, 51 + user, transaction=number),
                Happened("SELECT COUNT(*) FROM moved", at_s + 0.04, 51 + user),
            ]
    return found


def captured(folder: Path, events: list[Happened]) -> Path:
    """Write an export of the events, not in order, as SQL Server writes its buffers."""
    path = folder / "events.csv"
    path.write_text(exported_csv(events[::-1]), encoding="utf-16")
    return path


def replayed(
    copy: Copied, capture: Path, users: int = USERS, **params: Any
) -> tuple[Recorder, dict[str, Any], float]:
    """Replay a capture; return the recorder, the account event and the duration in seconds."""
    events, recorder = Events(), Recorder()
    driver = made("sql-replay", {"sql": copy.endpoint}, {"capture": str(capture), **params}, event=events)
    assert isinstance(driver, Blocking)
    assert driver.blocks
    driver.check()
    driver.prepare(quiet)
    crawl(driver, users, recorder, limit_s=60)
    assert isinstance(driver, Verified)
    driver.verify()
    driver.finish(keep_data=False)
    (account,) = events.named("replayed")
    took_s = (max(row.end_ns for row in recorder.rows) - min(row.start_ns for row in recorder.rows)) / 1e9
    return recorder, account, took_s


def test_an_export_is_replayed_with_its_sessions_and_pauses(copy: Copied, tmp_path: Path) -> None:
    """A replay writes the same rows, executes each statement, and keeps pauses divided by speed."""
    capture = captured(tmp_path, application())
    length_s = max(session.ends_s for session in sessions_of(read_capture([capture])))
    recorder, account, took_s = replayed(copy, capture)
    counts = recorder.counts()
    assert {outcome for _, outcome in counts} == {"ok"}
    made_ = dict.fromkeys(("insert", "update", "select", "begin", "commit"), USERS * TURNS)
    assert {operation: count for (operation, _), count in counts.items()} == made_
    assert account["captured"] == account["executed"] == recorder.counts().total()
    assert account["differences"] == account["failed"] == {}
    expected = [(user, turn, NOTE.replace("''", "'")) for user in range(USERS) for turn in range(TURNS)]
    assert [tuple(row) for row in copy.ask(ROWS)] == expected
    assert copy.number("SELECT SUM(balance) FROM ~account") == USERS * TURNS
    assert took_s >= length_s - 0.1 >= (TURNS - 1) * PAUSE_S - 0.1
    copy.ask("DELETE FROM ~moved")
    _, faster, _ = replayed(copy, capture, users=1, speed=100)
    assert faster["executed"] == account["executed"]
    assert [tuple(row) for row in copy.ask(ROWS)] == expected


def test_what_is_not_executed_is_listed_by_its_cause(copy: Copied, tmp_path: Path) -> None:
    """Captured equals executed plus the listed differences; other databases' statements are dropped."""
    events = [
        *application(),
        Happened("USE master; DELETE FROM account", 3.0),
        Happened("exec sp_reset_connection", 3.1, name="rpc_completed"),
        Happened("exec sp_execute 7,1", 3.2, name="rpc_completed"),
        Happened("DELETE FROM account", 3.3, result="Abort"),
        Happened("DELETE FROM account", 3.4, database="other"),
    ]
    capture = captured(tmp_path, events)
    with pytest.raises(ScenarioError, match="several databases: other, shop; name one"):
        replayed(copy, capture)
    _, account, _ = replayed(copy, capture, database="shop", speed=100)
    assert account["differences"] == {
        "changes_database": 1,
        "connections_housekeeping": 1,
        "failed_when_captured": 1,
        "prepared_before_the_capture": 1,
    }
    assert account["captured"] == account["executed"] + 4
    assert copy.number("SELECT COUNT(*) FROM ~account") > 0
    driver = made("sql-replay", {"sql": copy.endpoint}, {"capture": str(capture), "database": "shop"})
    warnings = driver.check()["sql"]["warnings"]
    assert any("of the capture is left out: changes_database 1, conn" in each for each in warnings)
    told = f"{2 * USERS * TURNS} begins and commits follow from transaction_id alone"
    assert any(told in each for each in warnings)


def test_what_fails_now_is_told_by_its_name(copy: Copied, tmp_path: Path) -> None:
    """A failure is named, and the server decides on the rest of its transaction, as for the application."""
    copy.ask("ALTER TABLE ~moved ADD CONSTRAINT once UNIQUE (client, turn)")
    copy.ask("INSERT INTO ~moved (client, turn, note) VALUES (0, 0, 'before')")
    recorder, account, _ = replayed(copy, captured(tmp_path, application()), speed=20)
    counts = recorder.counts()
    state = "23505" if copy.kind == "postgresql" else "23000"
    assert counts["insert", f"sqlstate_{state}"] == 1
    failed = {f"sqlstate_{state}": 1}
    if copy.kind == "postgresql":
        assert counts["update", "sqlstate_25P02"] == 1
        failed["sqlstate_25P02"] = 1
    assert account["failed"] == failed
    assert account["captured"] == account["executed"]


def test_only_a_marked_copy_is_replayed_into(copy: Copied, tmp_path: Path) -> None:
    """A database without the mark is refused, and nothing is executed."""
    copy.unmark()
    given = {"capture": str(captured(tmp_path, application()))}
    driver = made("sql-replay", {"sql": copy.endpoint}, given)
    for attempt in (driver.check, lambda: driver.prepare(quiet)):
        with pytest.raises(ScenarioError, match="is not marked as a copy that a load test may change"):
            attempt()
    assert copy.ask(ROWS) == []


def _use(server: MariaDb, user: int) -> None:
    """Run one application user on MariaDB: values, transactions, pauses."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        connection.select_db("pinchpoint_copy")
        for turn in range(TURNS):
            connection.begin()
            note = None if turn == 1 else f"it's {user} \\ é\n\t?"
            cursor.execute("INSERT INTO moved (client, turn, note) VALUES (%s, %s, %s)", (user, turn, note))
            cursor.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", (user + 1,))
            connection.commit()
            time.sleep(PAUSE_S)


@pytest.fixture
def logging_maria(maria: Maria) -> Iterator[Maria]:
    """Yield a MariaDB that logs every statement of new sessions."""
    before = {"log_output": "'FILE'", "slow_query_log": "0", "long_query_time": "10"}
    for name, value in {"log_output": "'TABLE'", "slow_query_log": "1", "long_query_time": "0"}.items():
        maria.ask(f"SET GLOBAL {name} = {value}")
    yield maria
    for name, value in before.items():
        maria.ask(f"SET GLOBAL {name} = {value}")


def test_what_mariadb_wrote_down_itself_is_replayed(logging_maria: Maria, tmp_path: Path) -> None:
    """A capture of a real MariaDB, exported by its client, gives the same rows and pauses."""
    client, server = require("mariadb", "mariadb-client"), logging_maria.server
    with copied(logging_maria) as copy:
        logging_maria.ask("TRUNCATE TABLE mysql.slow_log")
        users = [threading.Thread(target=_use, args=(server, user)) for user in range(USERS)]
        for each in users:
            each.start()
        for each in users:
            each.join(60)
        query = "SELECT start_time, query_time, thread_id, db, sql_text FROM mysql.slow_log"
        where = f"--socket={server.process.directory}/sock"
        command = [client, "--no-defaults", where, "--user=root", "--batch", f"--execute={query}"]
        done = subprocess.run(command, capture_output=True, check=True, timeout=30)
        capture = tmp_path / "slow.tsv"
        capture.write_bytes(done.stdout)
        rows, balance = copy.ask(ROWS), copy.number("SELECT SUM(balance) FROM ~account")
        assert balance == USERS * TURNS
        copy.ask("DELETE FROM ~moved")
        recorder, account, took_s = replayed(copy, capture, database="pinchpoint_copy")
        assert copy.ask(ROWS) == rows
        assert copy.number("SELECT SUM(balance) FROM ~account") == 2 * balance
    counts = recorder.counts()
    expected = dict.fromkeys(("begin", "insert", "update", "commit"), USERS * TURNS)
    assert {operation: count for (operation, _), count in counts.items()} == expected
    assert account["captured"] == account["executed"] == recorder.counts().total()
    assert account["differences"] == account["failed"] == {}
    assert took_s >= (TURNS - 1) * PAUSE_S - 0.1


@pytest.mark.farm
def test_a_run_of_scripts_and_of_an_export_by_odbc(maria: Maria, tmp_path: Path) -> None:
    """In a run over ODBC each ok of a script is stored, and the capture's account is complete."""
    with copied(maria) as copy:
        (tmp_path / "events.csv").write_text(exported_csv(application()))
        written(tmp_path, transfer=TRANSFER.format(begin=copy.begin))
        load = {"model": "closed", "users": USERS}
        again = {"use": "sql-replay", "load": load, "params": {"capture": "events.csv", "speed": 2}}
        own = {"use": "sql-script", "load": load, "params": {"scripts": "transfer.sql", "values": VALUES}}
        phases = {"warm_up": "0s", "measure": "3s"}
        plan = {"name": "both", "scenarios": {"monday": again, "shop": own}, "phases": phases}
        farm = {"name": "copy", "environment": "test", "endpoints": {"sql": {"url": copy.endpoint.url}}}
        for name, content in (("plan.yaml", plan), ("farm.yaml", farm)):
            (tmp_path / name).write_text(json.dumps(content, indent=1))
        done = run_cli(
            "run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path / "runs"
        )
        assert done.returncode in (0, 3), done.stderr  # 3: on a busy machine the load generator may be late
        found = open_run(Path(done.stdout.splitlines()[-1]))
        counts: Counter[tuple[str, str, str]] = Counter()
        for row in found.operations.to_pylist():
            counts[row["scenario"], row["operation"], row["outcome"]] += row["count"]
        assert {outcome for *_, outcome in counts} == {"ok"}
        transferred, inserted = counts["shop", "transfer", "ok"], counts["monday", "insert", "ok"]
        # Operations cut off at the end of the run were done but are not counted.
        rows = copy.number("SELECT COUNT(*) FROM ~moved WHERE amount IS NOT NULL")
        assert 0 < transferred <= rows <= transferred + USERS
        rows = copy.number("SELECT COUNT(*) FROM ~moved WHERE amount IS NULL")
        assert USERS * TURNS <= rows <= inserted + USERS
        for account in (event for event in found.events if event["event"] == "replayed"):
            assert set(account["differences"]) <= {"ended_before"}
            assert account["captured"] == account["executed"] + account["differences"].get("ended_before", 0)
