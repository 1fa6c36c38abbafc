"""Tests of a workload captured by a real server and replayed: same rows and pauses, nothing lost silently."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from scenarios.sql_mix.helpers import ask
from scenarios.sql_replay.conftest import Logged
from scenarios.sql_servers.targets import by_odbc, need_driver
from scenarios.support import Events, Recorder, crawl, made, quiet
from support import run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load_plan
from pinchpoint_scenarios.contract import Endpoint, Verified
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay.capture import sessions_of
from pinchpoint_scenarios.sql_replay.pglog import read_logs

USERS, TURNS, PAUSE_S = 3, 4, 0.15
WRITTEN_S = 0.4  # after this time the server's log collector has written everything
APPEND = [
    b"UPDATE seen SET note = note || '!' WHERE id = 0",
    b"UPDATE seen SET note = note || '!' WHERE id = 1",
    b"UPDATE seen SET note = note || '!' WHERE id = 2",
]
ROWS = "SELECT id, at, note FROM seen ORDER BY 1, 2"
TWICE = "INSERT INTO seen VALUES (0, 0, 'twice')"
LEFT_OUT = {"copy_data_not_logged": 1, "failed_when_captured": 2}
NOT_EXECUTED = 3


def _work(endpoint: Endpoint, user: int) -> None:
    """Run one application user: prepared and plain statements, transactions, pauses, types of values."""
    with psycopg.connect(endpoint.url, autocommit=True, application_name="application") as connection:
        for turn in range(TURNS):
            with connection.transaction():
                note = None if turn == 1 else f"it's {user}, $1 = 'é'\n"
                connection.execute("INSERT INTO seen VALUES (%s, %s, %s)", [user, turn, note])
                connection.execute(APPEND[user])
            connection.execute("SELECT count(*) FROM seen WHERE id = %s", [user], prepare=True)
            time.sleep(PAUSE_S)
        if user == 0:
            with pytest.raises(psycopg.errors.UniqueViolation):
                connection.execute(TWICE)
            with connection.cursor().copy("/* by rows */ COPY seen FROM STDIN") as copy:
                copy.write_row((0, 99, "copied"))
            connection.execute("-- is anybody there?")
            connection.execute("PREPARE double (int) AS SELECT $1 * 2")
            connection.execute("EXECUTE double (4)")
            connection.execute("BEGIN")
            connection.execute("INSERT INTO seen VALUES (0, 50, 'rolled back by a COMMIT')")
            with pytest.raises(psycopg.errors.UniqueViolation):
                connection.execute(TWICE)
            connection.execute("COMMIT")


def logs_of(logged: Logged, folder: Path, work: Callable[[], None]) -> tuple[Path, Path]:
    """Return the logs of this work only."""
    time.sleep(WRITTEN_S)
    begun = [path.stat().st_size for path in (logged.csv, logged.json)]
    work()
    time.sleep(WRITTEN_S)
    logs = []
    for path, size in zip((logged.csv, logged.json), begun, strict=True):
        logs.append(folder / path.name)
        with path.open("rb") as source, logs[-1].open("wb") as target:
            source.seek(size)
            shutil.copyfileobj(source, target)
    return logs[0], logs[1]


def captured(logged: Logged, folder: Path) -> tuple[list[tuple[Any, ...]], Path, Path]:
    """Return the application's rows and logs, and restore the table."""

    def work() -> None:
        users = [threading.Thread(target=_work, args=(logged.endpoint, user)) for user in range(USERS)]
        for each in users:
            each.start()
        for each in users:
            each.join(30)

    csv, json = logs_of(logged, folder, work)
    rows = ask(logged.endpoint, ROWS)
    ask(logged.endpoint, "DELETE FROM seen")
    return rows, csv, json


def replayed(
    logged: Logged, capture: Path, users: int = USERS, *, repeat_s: float | None = 0, **params: Any
) -> tuple[Recorder, dict[str, Any], float]:
    """Replay a capture; return the recorder, the account event and the duration in seconds."""
    events, recorder = Events(), Recorder()
    given = {"capture": str(capture), "database": "loadtest", **params}
    driver = made("sql-replay", {"sql": logged.endpoint}, given, event=events, repeat_s=repeat_s)
    driver.check()
    driver.prepare(quiet)
    begun_s = time.monotonic()
    crawl(driver, users, recorder, limit_s=30)
    took_s = time.monotonic() - begun_s
    assert isinstance(driver, Verified)
    driver.verify()
    driver.finish(keep_data=False)
    (account,) = events.named("replayed")
    return recorder, account, took_s


def test_a_replay_does_what_was_captured_and_takes_as_long(logged: Logged, tmp_path: Path) -> None:
    """A replay writes the same rows, executes or lists each statement, and keeps pauses divided by speed."""
    rows, csv, json = captured(logged, tmp_path)
    kept = [row for row in rows if row[1] != 99]
    length_s = max(session.ends_s for session in sessions_of(read_logs([csv])))
    seen = []
    for log in (csv, json):
        recorder, account, took_s = replayed(logged, log)
        assert ask(logged.endpoint, ROWS) == kept
        ask(logged.endpoint, "DELETE FROM seen")
        assert {outcome for _, outcome in recorder.counts()} == {"ok"}
        assert account["differences"] == LEFT_OUT
        assert (
            account["captured"]
            == account["executed"] + NOT_EXECUTED
            == recorder.counts().total() + NOT_EXECUTED
        )
        assert took_s >= length_s - 0.1 >= (TURNS - 1) * PAUSE_S - 0.1
        seen.append((recorder.counts(), account["captured"]))
    assert seen[0] == seen[1], "both kinds of log say the same"
    counts = seen[0][0]
    assert counts["update", "ok"] == counts["select", "ok"] == counts["commit", "ok"] == USERS * TURNS
    assert counts["insert", "ok"] == counts["begin", "ok"] == USERS * TURNS + 1
    assert [counts[word, "ok"] for word in ("rollback", "statement", "prepare", "execute")] == [1] * 4
    _, _, took_s = replayed(logged, csv, speed=4)
    assert took_s < length_s
    assert ask(logged.endpoint, ROWS) == kept


def test_a_log_is_replayed_by_odbc_too(logged: Logged, tmp_path: Path) -> None:
    """Over ODBC the statements, values and outcomes are the same."""
    need_driver("PostgreSQL", package="odbc-postgresql")
    rows, csv, _ = captured(logged, tmp_path)
    by_library, _, _ = replayed(logged, csv, speed=20)
    ask(logged.endpoint, "DELETE FROM seen")
    other = replace(logged, endpoint=Endpoint("sql", by_odbc(logged.endpoint.url)))
    recorder, account, _ = replayed(other, csv, speed=20)
    assert recorder.counts() == by_library.counts()
    assert account["differences"] == LEFT_OUT
    assert ask(logged.endpoint, ROWS) == [row for row in rows if row[1] != 99]


def test_fewer_users_than_sessions_start_late_and_lose_nothing(logged: Logged, tmp_path: Path) -> None:
    """With fewer users than sessions all sessions are replayed, and the delay is reported."""
    rows, csv, _ = captured(logged, tmp_path)
    _, account, _ = replayed(logged, csv, users=1, speed=10)
    assert ask(logged.endpoint, ROWS) == [row for row in rows if row[1] != 99]
    assert account["differences"] == LEFT_OUT
    assert account["latest_s"] > 0


def test_what_fails_now_is_told_by_its_name(logged: Logged, tmp_path: Path) -> None:
    """On a copy with the rows, failures are named; statements missing at the end are in the account."""
    _, csv, _ = captured(logged, tmp_path)
    ask(logged.endpoint, "INSERT INTO seen SELECT 0, at, 'before' FROM generate_series(0, 9) at")
    recorder, account, _ = replayed(logged, csv, speed=10)
    counts = recorder.counts()
    assert counts["insert", "sqlstate_23505"] == TURNS
    assert counts["update", "sqlstate_25P02"] == TURNS, "within the transaction that failed"
    assert account["failed"] == {"sqlstate_23505": TURNS, "sqlstate_25P02": TURNS}
    assert account["captured"] == account["executed"] + NOT_EXECUTED
    events = Events()
    given = {"capture": str(csv), "database": "loadtest"}
    driver = made("sql-replay", {"sql": logged.endpoint}, given, event=events)
    session, recorder = driver.session(0), Recorder()
    while not recorder.rows:
        session.perform(recorder)
    session.close()
    assert isinstance(driver, Verified)
    driver.verify()
    [account] = events.named("replayed")
    assert account["differences"]["ended_before"] == account["captured"] - 1 - NOT_EXECUTED


def test_what_was_prepared_is_so_again_and_nothing_else(logged: Logged, tmp_path: Path) -> None:
    """Prepared statements are prepared again, plain ones are not, also behind a pooler."""

    def work() -> None:
        with psycopg.connect(logged.endpoint.url, autocommit=True) as connection:
            for columns in (b"id int", b"id int, note text"):
                connection.execute(b"CREATE TEMP TABLE own (" + columns + b")")
                connection.execute("SELECT * FROM own WHERE id = %s", [1], prepare=False)
                connection.execute("DROP TABLE own")
                connection.execute("SELECT count(*) FROM seen WHERE id = %s", [1], prepare=True)
                connection.execute("DISCARD ALL")

    csv, _ = logs_of(logged, tmp_path, work)
    need_driver("PostgreSQL", package="odbc-postgresql")
    for url in (logged.endpoint.url, by_odbc(logged.endpoint.url)):
        recorder, account, _ = replayed(replace(logged, endpoint=Endpoint("sql", url)), csv, speed=10)
        assert {outcome for _, outcome in recorder.counts()} == {"ok"}
        assert recorder.counts()["discard", "ok"] == 2
        assert account["captured"] == account["executed"]


def test_a_capture_is_replayed_again_where_the_run_goes_on(logged: Logged, tmp_path: Path) -> None:
    """A measure phase longer than the capture repeats it, and each round is counted."""
    _, csv, _ = captured(logged, tmp_path)
    _, account, took_s = replayed(logged, csv, speed=20, repeat_s=0.8)
    assert account["cycles"] >= 2
    assert took_s >= 0.8
    assert account["captured"] == account["executed"] + NOT_EXECUTED * account["cycles"]


def test_only_a_marked_copy_is_replayed_into(logged: Logged, tmp_path: Path) -> None:
    """A database without the mark is refused, even an empty one."""
    _, csv, _ = captured(logged, tmp_path)
    ask(logged.endpoint, "COMMENT ON DATABASE loadtest IS 'production'")
    driver = made("sql-replay", {"sql": logged.endpoint}, {"capture": str(csv), "database": "loadtest"})
    for attempt in (driver.check, lambda: driver.prepare(quiet)):
        with pytest.raises(ScenarioError, match="is not marked as a copy that a load test may change"):
            attempt()
    assert ask(logged.endpoint, ROWS) == []


def test_a_capture_that_cannot_be_used_is_said(logged: Logged, tmp_path: Path) -> None:
    """A missing file, another or several databases, or no durations give an error."""
    _, csv, _ = captured(logged, tmp_path)
    other = tmp_path / "other.csv"
    other.write_text(csv.read_text().replace('"loadtest"', '"shop"'))
    empty = tmp_path / "empty.csv"
    empty.write_text("")

    def refused(said: str, **params: Any) -> None:
        with pytest.raises(ScenarioError, match=said):
            made("sql-replay", {"sql": logged.endpoint}, params).check()

    refused("no capture is named")
    refused("gone.csv: there is no such file", capture="gone.csv")
    refused("several databases: loadtest, shop; name one", capture=[str(csv), str(other)])
    refused("nothing of database 'shopp'; it has: loadtest", capture=str(csv), database="shopp")
    refused("no statement that could be replayed; needed: a log written with", capture=str(empty))


@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.slow  # twenty seconds; tests/scenarios/sql_servers/test_replays.py has another run that replays
def test_a_run_replays_a_capture_to_its_end(logged: Logged, tmp_path: Path) -> None:
    """Users of load generators replay a capture, the run ends with it, and the report has the account."""
    rows, _, log = captured(logged, tmp_path)
    params = {"capture": log.name, "database": "loadtest"}
    scenario = {"use": "sql-replay", "load": {"model": "closed", "users": USERS}, "params": params}
    phases = {"warm_up": "0s", "measure": {"until": "done", "at_most": "1m"}}
    plan = {"name": "again", "scenarios": {"monday": scenario}, "phases": phases}
    farm = {"name": "copy", "environment": "test", "endpoints": {"sql": {"url": logged.endpoint.url}}}
    for name, content in (("plan.yaml", plan), ("farm.yaml", farm)):
        (tmp_path / name).write_text(json.dumps(content, indent=1))
    done = run_cli(
        "run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path / "runs"
    )
    run = Path(done.stdout.splitlines()[-1])
    assert run_cli("report", run, "--format", "json").returncode == 0, done.stdout + done.stderr
    account = {
        row["what"]: row["statements"]
        for row in json.loads((run / "report.json").read_text())["tables"]["replayed"]
    }
    assert account == {
        "captured": account["executed"] + NOT_EXECUTED,
        "executed": account["executed"],
        "not executed: copy_data_not_logged": 1,
        "not executed: failed_when_captured": 2,
    }
    assert ask(logged.endpoint, ROWS) == [row for row in rows if row[1] != 99]


def test_only_users_may_be_said_of_a_replay(tmp_path: Path) -> None:
    """A replay accepts only users; a rate or a pause is refused."""
    (tmp_path / "log.csv").write_text("")
    for load in ({"model": "open", "rate": "5/s"}, {"model": "closed", "users": 2, "think": "1s"}):
        scenario = {"use": "sql-replay", "load": load, "params": {"capture": "log.csv"}}
        plan = {"name": "again", "scenarios": {"monday": scenario}, "phases": {"measure": "1m"}}
        (tmp_path / "plan.yaml").write_text(json.dumps(plan))
        with pytest.raises(
            InputError, match=r"scenarios\.monday\.load: a load with a rate, .*needed: load: {model"
        ):
            load_plan(tmp_path / "plan.yaml")


def test_a_check_says_what_the_copy_cannot_prepare(logged: Logged, tmp_path: Path) -> None:
    """``check`` reports how many statements the copy cannot prepare, and the first of them."""
    _, csv, _ = captured(logged, tmp_path)
    driver = made("sql-replay", {"sql": logged.endpoint}, {"capture": str(csv), "database": "loadtest"})

    def unprepared() -> list[str]:
        return [said for said in driver.check()["sql"]["warnings"] if "cannot be prepared" in said]

    before = unprepared()
    ask(logged.endpoint, "ALTER TABLE seen RENAME TO unseen")
    after = unprepared()
    ask(logged.endpoint, "ALTER TABLE unseen RENAME TO seen")
    assert before == []
    assert 'relation "seen" does not exist' in after[0]
