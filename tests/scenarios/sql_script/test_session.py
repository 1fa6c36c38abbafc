"""Tests of scripts on PostgreSQL; sql_servers/test_scripts.py has the tests for every server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scenarios.sql_mix.helpers import ask, number, performed
from scenarios.sql_script.helpers import prepared, written
from scenarios.support import Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError

TRANSFER = """\\set amount random(-5000, 5000)
BEGIN;
UPDATE account SET balance = balance + :amount WHERE id = :account;
SELECT balance, id AS number FROM account WHERE id = :account \\gset own_
INSERT INTO moved (client, at, amount, note) VALUES (:client_id, :own_number, :amount, :note);
END;
"""
VALUES = {
    "account": {"column": "account.id", "distribution": "zipfian"},
    "note": {"column": "account.name"},
}


def test_the_same_seed_does_the_same_whatever_the_protocol(bank: Endpoint, tmp_path: Path) -> None:
    """Scripts, values and numbers depend only on the seed and the session, in each protocol."""
    scripts = written(tmp_path, transfer=TRANSFER, look="SELECT balance FROM account WHERE id = :account;")
    seen = []
    for protocol, session in (("simple", 3), ("prepared", 3), ("simple", 4)):
        with prepared(bank, scripts=scripts, values=VALUES, protocol=protocol) as driver:
            operations = [row.operation for row in performed(driver, 40, session).rows]
        rows = ask(bank, "SELECT at, amount, note FROM moved")
        ask(bank, "DELETE FROM moved")
        seen.append((operations, rows))
    assert seen[0] == seen[1] != seen[2]


def test_scripts_come_by_weight(bank: Endpoint, tmp_path: Path) -> None:
    """Scripts are chosen by weight, here nine of ten."""
    often, rarely = written(tmp_path, often="SELECT 1;", rarely="SELECT 2;")
    with prepared(bank, scripts=[f"{often}@9", rarely]) as driver:
        counts = performed(driver, 500).counts()
    assert 0.85 < counts["often", "ok"] / 500 < 0.95
    assert counts["rarely", "ok"] > 0


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("INSERT INTO account VALUES (1, 'twice');", "sqlstate_23505"),
        ("SELECT 1 \\; SELECT 1/0;", "sqlstate_22012"),
    ],
)
def test_a_failure_has_its_name(bank: Endpoint, tmp_path: Path, text: str, outcome: str) -> None:
    """A failure is a named outcome, and the next operation works."""
    fails, works = written(tmp_path, fails=text, works="SELECT 1;")
    with prepared(bank, scripts=[fails, works], timeout_s="0.3s") as driver:
        counts = performed(driver, 8).counts()
    assert counts["fails", outcome] == 8 - counts["works", "ok"] > 0


def test_branches_sleeps_and_kept_values(bank: Endpoint, tmp_path: Path) -> None:
    """Variables persist between operations; a sleep is a stage and part of the operation's time."""
    text = """\\set n :n + 1
\\if :n % 2 = 0
SELECT max(id) AS most, NULL AS nothing, 'x' AS word FROM account \\aset
INSERT INTO moved (at, note) VALUES (:n * :most, ':word of :scale, :nothing');
\\else
/* a ping, which is an empty query */;
\\sleep :pause ms
INSERT INTO moved (at) VALUES (:n);
\\endif
"""
    (script,) = written(tmp_path, turns=text)
    with prepared(bank, scripts=script, define={"n": 0, "pause": "30"}, scale=7) as driver:
        recorder = performed(driver, 4)
    assert ask(bank, "SELECT at, note FROM moved") == [
        (1, None),
        (200, "x of 7, NULL"),
        (3, None),
        (400, "x of 7, NULL"),
    ]
    assert recorder.counts(stages=True)["turns/6:statement", "ok"] == 2
    assert recorder.counts(stages=True)["turns/7:sleep", "ok"] == 2
    slept = [row for row in recorder.rows if row.operation == "turns"][::2]
    assert all(row.end_ns - row.start_ns > 30e6 for row in slept)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1;\n\\set x 1 / (:n - 1)\n", r"wrong\.sql:2: 1 / 0: division by zero"),
        ("BEGIN;\nSELECT 1;\n", r"wrong\.sql: it ends within a transaction; add COMMIT"),
        ("SELECT 1;\n\\if :text + 1\n\\endif", r"wrong\.sql:2: the variable :text holds a text"),
    ],
)
def test_a_script_that_is_wrong_ends_the_run(bank: Endpoint, tmp_path: Path, text: str, said: str) -> None:
    """A wrong script ends the run with file and line, not as a failure of the farm."""
    (script,) = written(tmp_path, wrong=text)
    with prepared(bank, scripts=script, define={"n": 1, "text": "blue"}) as driver:
        session = driver.session(0)
        with pytest.raises(ScenarioError, match=said):
            session.perform(Recorder())
        session.close()


def test_setup_and_teardown_are_run_once(sql: Endpoint, tmp_path: Path) -> None:
    """Setup and teardown run once in an empty database, which is then marked; kept data is reused."""
    setup, teardown, use = written(
        tmp_path,
        setup="CREATE TABLE IF NOT EXISTS made (x int); INSERT INTO made VALUES (1);",
        teardown="DROP TABLE made;",
        use="SELECT x FROM made;",
    )
    given: dict[str, Any] = {"scripts": use, "setup": setup, "teardown": teardown}
    try:
        for rows in (1, 2):
            driver = made("sql-script", {"sql": sql}, given)
            driver.prepare(quiet)
            driver.finish(keep_data=True)
            assert number(sql, "SELECT count(*) FROM made") == rows
        with prepared(sql, **given) as driver:
            assert performed(driver, 3).counts() == {("use", "ok"): 3}
        assert ask(sql, "SELECT to_regclass('made')") == [(None,)]
    finally:
        ask(sql, "DROP TABLE IF EXISTS made")
        ask(sql, "COMMENT ON DATABASE loadtest IS NULL")


def test_another_server_is_refused_in_words(tmp_path: Path) -> None:
    """Another server is refused with a message of Pinchpoint, not of a driver."""
    (script,) = written(tmp_path, one="SELECT 1;")
    endpoint = Endpoint("sql", "oracle://u:geheim@sql1/loadtest")
    with pytest.raises(ScenarioError, match="run on no server of oracle://; give a url") as caught:
        made("sql-script", {"sql": endpoint}, {"scripts": script}).check()
    assert "geheim" not in str(caught.value)


def test_a_check_prepares_each_statement(bank: Endpoint, tmp_path: Path) -> None:
    """``check`` refuses an invalid statement with file and line, and reports a missing table."""
    good = "BEGIN;\nSELECT balance FROM account WHERE id = :id AND name = :name LIMIT :n;\nEND;"
    good += "\nSELECT DATE :day, interval ':n days' \\; SELECT 2;\nCREATE TABLE t_:n (i int);"
    bad, fine, later = written(tmp_path, bad="SELECT 1;\nSELEC 2;", fine=good, later="SELECT 1 FROM made;")
    values = {name: {"low": 1, "high": 2} for name in ("id", "name", "n", "day")}
    with pytest.raises(ScenarioError, match=f'^{bad}:2: syntax error at or near "SELEC"$'):
        made("sql-script", {"sql": bank}, {"scripts": [bad, fine, later], "values": values}).check()
    (said,) = made("sql-script", {"sql": bank}, {"scripts": [fine, later], "values": values}).check()["sql"][
        "warnings"
    ]
    assert said == f'{later}:1: relation "made" does not exist'
    (setup,) = written(tmp_path, setup="CREATE TABLE made (i int)")
    facts = made("sql-script", {"sql": bank}, {"scripts": [later], "setup": setup}).check()
    assert facts["sql"]["warnings"] == []
    assert ask(bank, "SELECT to_regclass('t_1')") == [(None,)], "nothing is executed"
