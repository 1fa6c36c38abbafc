"""Tests of a user's scripts on every server: counted transactions are stored, failed ones are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scenarios.sql_mix.helpers import loaded, performed
from scenarios.sql_script.helpers import prepared, written
from scenarios.sql_servers.copied import ACCOUNTS, Copied, copied
from scenarios.sql_servers.targets import Maria, Target
from scenarios.support import Events, Recorder, made, quiet
from support import until

from pinchpoint_scenarios.contract import Blocking, Endpoint
from pinchpoint_scenarios.databases.odbc.address import MARIADB, OdbcDriver, parse
from pinchpoint_scenarios.databases.odbc.link import as_markers
from pinchpoint_scenarios.databases.servers.contract import POSTGRESQL
from pinchpoint_scenarios.errors import ScenarioError

try:
    import pyodbc  # noqa: F401 - whether it can be imported is the question
except ImportError as missing:
    pytest.skip(f"ODBC's driver manager is missing: {missing} (Debian: unixodbc)", allow_module_level=True)

from pinchpoint_scenarios.databases.odbc.access import Transactions
from pinchpoint_scenarios.databases.odbc.link import keywords

TRANSFER = """\\set amount random(-5000, 5000)
{begin};
UPDATE account SET balance = balance + :amount WHERE id = :account;
SELECT balance, id AS number FROM account WHERE id = :account \\gset own_
INSERT INTO moved (client, turn, amount, note) VALUES (:client_id, :own_number, :amount, :note);
COMMIT;
"""
VALUES = {
    "account": {"column": "account.id", "distribution": "zipfian"},
    "note": {"column": "account.name"},
}


@pytest.fixture
def copy(target: Target) -> Iterator[Copied]:
    """Yield a marked copy on every server in turn."""
    with copied(target) as found:
        yield found


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_a_transaction_counted_ok_is_committed_whole(copy: Copied, tmp_path: Path, protocol: str) -> None:
    """Each ok is a complete transaction, each statement is a stage, and texts arrive unchanged."""
    (script,) = written(tmp_path, transfer=TRANSFER.format(begin=copy.begin))
    with prepared(copy.endpoint, scripts=script, values=VALUES, protocol=protocol) as driver:
        assert (isinstance(driver, Blocking) and driver.blocks) is ("+odbc" in copy.endpoint.url)
        recorder = performed(driver, 40, session_number=3)
    assert recorder.counts() == {("transfer", "ok"): 40}
    begin = copy.begin.split()[0].lower()
    stages = (f"2:{begin}", "3:update", "4:select", "5:insert", "6:commit")
    assert recorder.counts(stages=True) == {(f"transfer/{stage}", "ok"): 40 for stage in stages}
    moved = "SELECT COUNT(*) FROM ~moved m JOIN ~account a ON a.name = m.note WHERE m.client = 3"
    assert copy.number(moved) == 40
    assert copy.number("SELECT SUM(balance) FROM ~account") == copy.number("SELECT SUM(amount) FROM ~moved")
    assert 1 < copy.number("SELECT COUNT(DISTINCT turn) FROM ~moved") <= ACCOUNTS


def test_a_failed_statement_rolls_its_transaction_back(copy: Copied, tmp_path: Path) -> None:
    """A failed statement rolls back its transaction, is the outcome, and is reported once in words."""
    fails, works = written(
        tmp_path,
        fails=f"{copy.begin};\nINSERT INTO moved (turn) VALUES (1);\nSELECT * FROM nowhere;\nCOMMIT;\n",
        works="INSERT INTO moved (turn) VALUES (2);",
    )
    events = Events()
    with prepared(copy.endpoint, events, scripts=[fails, works]) as driver:
        recorder = performed(driver, 20)
    counts, stages = recorder.counts(), recorder.counts(stages=True)
    state = "42P01" if copy.kind == "postgresql" else "42S02"
    assert set(counts) == {("fails", f"sqlstate_{state}"), ("works", "ok")}
    assert stages["fails/3:select", f"sqlstate_{state}"] == counts["fails", f"sqlstate_{state}"]
    assert copy.ask("SELECT turn, COUNT(*) FROM ~moved GROUP BY turn") == [(2, counts["works", "ok"])]
    (line,) = events.named("statement_failed")
    assert (line["script"], line["line"]) == (fails, 3)
    assert "nowhere" in line["said"]
    assert not line["said"].startswith("("), "the server's words, without the driver's codes"


def test_a_transaction_that_is_left_open_ends_the_run(copy: Copied, tmp_path: Path) -> None:
    """A transaction that stays open ends the run; the server is asked if the text is not clear."""
    (said,) = written(tmp_path, said="SELECT 1 /* begin */;")
    with prepared(copy.endpoint, scripts=said) as driver:
        assert performed(driver, 3).counts() == {("said", "ok"): 3}
    begins = f"{copy.begin} /* now */;\nINSERT INTO moved (turn) VALUES (1);\n"
    (wrong,) = written(tmp_path, wrong=begins)
    with prepared(copy.endpoint, scripts=wrong) as driver:
        session = driver.session(0)
        with pytest.raises(ScenarioError, match=r"wrong\.sql: it ends within a transaction; add COMMIT"):
            session.perform(Recorder())
        session.close()
    assert copy.number("SELECT COUNT(*) FROM ~moved") == 0


SLOW = {
    "mysql": "SELECT COUNT(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b, "
    "information_schema.COLUMNS c;",
    "postgresql": "SELECT pg_sleep(9);",
    "mssql": "WAITFOR DELAY '00:00:09';",
}
ENDING = {
    "mysql": "KILL CONNECTION_ID();",
    "postgresql": "SELECT pg_terminate_backend(pg_backend_pid());",
    "mssql": "RAISERROR('gone', 20, 1) WITH LOG;",
}


def test_a_failure_has_its_name(copy: Copied, tmp_path: Path) -> None:
    """A failure has the name of PostgreSQL's own library, and the next operation works."""
    outcomes = {
        "slow": "statement_timeout",
        "ending": "connection_lost",
        "nothing": "missing_row",
        "several": "too_many_rows",
    }
    *failing, works = written(
        tmp_path,
        slow=SLOW[copy.kind],
        ending=ENDING[copy.kind],
        nothing="SELECT id FROM account WHERE id < 0 \\gset",
        several="SELECT id FROM account \\gset",
        works="SELECT 1;",
    )
    for (name, outcome), script in zip(outcomes.items(), failing, strict=True):
        with prepared(copy.endpoint, scripts=[script, works], timeout_s="1s") as driver:
            session, recorder = driver.session(0), Recorder()
            while [row.operation for row in recorder.rows][-2:] != [name, "works"]:
                session.perform(recorder)
            session.close()
        assert set(recorder.counts()) == {(name, outcome), ("works", "ok")}


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_what_looks_like_a_marker_is_none(copy: Copied, tmp_path: Path, protocol: str) -> None:
    """Placeholder-like text in quotes and comments stays unchanged."""
    text = "INSERT INTO moved (turn, note) VALUES (:n, 'is it $1, {x} or ?') /* who knows? {y} */;"
    (script,) = written(tmp_path, asked=text)
    with prepared(copy.endpoint, scripts=script, define={"n": 7}, protocol=protocol) as driver:
        assert performed(driver, 2).counts() == {("asked", "ok"): 2}
    assert [tuple(row) for row in copy.ask("SELECT turn, note FROM ~moved")] == [
        (7, "is it $1, {x} or ?")
    ] * 2


def test_several_statements_travel_as_one(copy: Copied, tmp_path: Path) -> None:
    r"""Statements joined by ``\;`` are all executed; the last row is kept, with ``\aset`` every row."""
    text = """INSERT INTO moved (turn) VALUES (:client_id) \\; SELECT COUNT(*) AS rows_there FROM moved \\gset
INSERT INTO moved (turn) VALUES (:rows_there * 100);
SELECT 3 AS three \\; SELECT 4 AS four \\aset
INSERT INTO moved (turn) VALUES (:three * :four * 1000);
"""
    (script,) = written(tmp_path, both=text)
    with prepared(copy.endpoint, scripts=script) as driver:
        assert performed(driver, 2, session_number=5).counts() == {("both", "ok"): 2}
    turns = [row[0] for row in copy.ask("SELECT turn FROM ~moved ORDER BY turn")]
    assert turns == [5, 5, 100, 400, 12000, 12000]


def test_a_deadlock_is_made_again_as_the_same_transaction(copy: Copied, tmp_path: Path) -> None:
    """After deadlocks each ok is one movement, none is lost or doubled, and each attempt is a stage."""
    text = """\\set one random(1, 2)
{begin};
UPDATE account SET balance = balance + 1 WHERE id = :one;
\\sleep 20 ms
UPDATE account SET balance = balance - 1 WHERE id = 3 - :one;
INSERT INTO moved (turn) VALUES (:one);
COMMIT;
"""
    (script,) = written(tmp_path, crossing=text.format(begin=copy.begin))
    with prepared(copy.endpoint, scripts=script, retries=100) as driver, loaded(driver, 3, 30) as recorder:
        until(lambda: recorder.counts(stages=True)["crossing/retried", "deadlock"] > 0)
    counts = recorder.counts()
    assert set(counts) == {("crossing", "ok")}
    assert copy.number("SELECT COUNT(*) FROM ~moved") == counts["crossing", "ok"]
    assert copy.number("SELECT SUM(balance) FROM ~account") == 0


def test_only_a_marked_or_empty_database_is_changed(copy: Copied, tmp_path: Path) -> None:
    """The refusal's remedy works, and an empty database is marked before its setup."""
    setup, teardown, use = written(
        tmp_path,
        setup="CREATE TABLE made (x int);\nINSERT INTO made VALUES (1);\nINSERT INTO made VALUES (2);\n",
        teardown="DROP TABLE made;",
        use="SELECT x FROM made;",
    )
    given: dict[str, Any] = {"scripts": use, "setup": setup, "teardown": teardown}
    copy.unmark()
    driver = made("sql-script", {"sql": copy.endpoint}, given)
    for attempt in (driver.check, lambda: driver.prepare(quiet)):
        with pytest.raises(ScenarioError, match=r"holds .*account.*, .*moved.* and is not marked as a copy"):
            attempt()
    copy.mark()
    facts = driver.check()["sql"]
    assert facts["version"][0].isdigit()
    assert ("driver" in facts) is ("+odbc" in copy.endpoint.url)
    assert len(facts["scripts"]["use"]["sha256"]) == 64
    copy.unmark()
    copy.ask("DROP TABLE ~account")
    copy.ask("DROP TABLE ~moved")
    driver.prepare(quiet)
    driver.finish(keep_data=True)
    assert copy.number("SELECT COUNT(*) FROM ~made") == 2
    copy.ask("DROP TABLE ~made")
    with prepared(copy.endpoint, **given) as driver:
        assert performed(driver, 3).counts() == {("use", "ok"): 3}
    with pytest.raises(Exception, match="made"):
        copy.ask("SELECT x FROM ~made")


def test_two_runs_of_one_name_keep_apart(copy: Copied, tmp_path: Path) -> None:
    """A second run with the same name is refused until the first has ended."""
    (script,) = written(tmp_path, one="SELECT 1;")
    with prepared(copy.endpoint, scripts=script):
        second = made("sql-script", {"sql": copy.endpoint}, {"scripts": script})
        with pytest.raises(ScenarioError, match="another run of 'pinchpoint_test' is going on"):
            second.prepare(quiet)
    for _ in range(20):  # servers notice a closed connection only after some time
        second.prepare(quiet)
        second.finish(keep_data=False)


def test_a_setup_that_fails_is_said(copy: Copied, tmp_path: Path) -> None:
    """A failing setup gives an error with file and the server's message, and releases the name."""
    setup, script = written(tmp_path, setup="CREATE TABLE account (x int);", one="SELECT 1;")
    driver = made("sql-script", {"sql": copy.endpoint}, {"scripts": script, "setup": setup})
    with pytest.raises(ScenarioError, match=r"setup\.sql could not be run to its end: .*account.* already"):
        driver.prepare(quiet)
    driver.finish(keep_data=False)
    with prepared(copy.endpoint, scripts=script):
        pass


def test_a_check_prepares_each_statement(copy: Copied, tmp_path: Path) -> None:
    """``check`` refuses an invalid statement with file and line; SQL Server cannot prepare."""
    text = "SELECT balance FROM account WHERE id = :account AND name = 'it''s' LIMIT 1;\nSELECT FROM WHERE;"
    (script,) = written(tmp_path, bad=text)
    driver = made("sql-script", {"sql": copy.endpoint}, {"scripts": [script], "values": VALUES})
    with pytest.raises(ScenarioError, match=r"bad\.sql:2: .*syntax"):
        driver.check()


def test_a_column_gives_its_values(copy: Copied, tmp_path: Path) -> None:
    """A column gives an even sample of its values; a wrong name, or bytes or nulls only, gives an error."""
    (script,) = written(tmp_path, one="INSERT INTO moved (turn) VALUES (:x);")
    values = {"x": {"column": "account.id", "sample": 5, "distribution": "sequence"}}
    with prepared(copy.endpoint, scripts=script, values=values) as driver:
        performed(driver, 5)
    turns = [row[0] for row in copy.ask("SELECT turn FROM ~moved ORDER BY turn")]
    assert turns == [4, 8, 12, 16, 20]
    for column, said in (("account.nothing", "cannot be read: .*nothing"), ("moved.note", "holds no value")):
        driver = made(
            "sql-script", {"sql": copy.endpoint}, {"scripts": script, "values": {"x": {"column": column}}}
        )
        with pytest.raises(ScenarioError, match=rf"values\.x: column '{column}' {said}"):
            driver.prepare(quiet)
        driver.finish(keep_data=False)


def test_a_url_without_a_database_is_said(maria: Maria, tmp_path: Path) -> None:
    """A URL without a database is refused, and nothing is changed in the server's default."""
    (script,) = written(tmp_path, one="SELECT 1;")
    endpoint = Endpoint("sql", maria.endpoint.url.removesuffix("/loadtest"))
    with pytest.raises(ScenarioError, match="the url names no database; write the copy's after the host"):
        made("sql-script", {"sql": endpoint}, {"scripts": script}).check()


def test_a_database_of_the_servers_own_is_no_copy(maria: Maria, tmp_path: Path) -> None:
    """A server's own database is no copy, even without user tables."""
    (script,) = written(tmp_path, one="SELECT 1;")
    endpoint = Endpoint("sql", maria.endpoint.url.replace("/loadtest", "/information_schema"))
    with pytest.raises(ScenarioError, match="'information_schema' is one of the server's own databases"):
        made("sql-script", {"sql": endpoint}, {"scripts": script}).check()


@pytest.mark.parametrize(
    ("url", "family", "keyword", "value"),
    [
        ("mysql+odbc://h/d", MARIADB, "OPTION", "67108864"),
        ("mysql+odbc://h/d?option=3", MARIADB, "option", "3"),
        ("postgresql+odbc://h/d", POSTGRESQL, "Protocol", "7.4-0"),
        ("postgresql+odbc://h/d?Protocol=7.4-2", POSTGRESQL, "Protocol", "7.4-2"),
    ],
)
def test_a_driver_leaves_transactions_and_texts_to_the_user(
    url: str, family: str, keyword: str, value: str
) -> None:
    """For a user's SQL the driver leaves texts and transactions unchanged, unless the URL sets the option."""
    address, driver = parse(Endpoint("sql", url)), OdbcDriver("a driver", family, "a driver")
    assert keywords(address, driver, "test", own_sql=True)[keyword] == value
    ours = keywords(address, driver, "test")
    assert ours.get("OPTION") is None
    assert ours.get("Protocol") != "7.4-0"


def test_markers_stand_where_placeholders_do() -> None:
    """Placeholders are replaced outside quotes and comments, also if one is used twice."""
    statement = (
        "SELECT '$1', \"$2\", `$3`, $$ $4 $$, $a$ $5 $a$ -- $6\n/* $7 */ WHERE x = $2 OR y = $1 OR z = $2"
    )
    text, order = as_markers(statement)
    assert text == statement.replace("x = $2 OR y = $1 OR z = $2", "x = ? OR y = ? OR z = ?")
    assert order == (1, 0, 1)


@pytest.mark.parametrize(
    ("texts", "none"),
    [
        ((), True),
        (("SELECT 1", "UPDATE t SET beginning = 1"), True),
        (("BEGIN",), False),
        (("begin tran", "UPDATE t SET x = 1", " COMMIT TRANSACTION; "), True),
        (("BEGIN", "BEGIN", "COMMIT"), False),
        (("BEGIN", "BEGIN", "ROLLBACK"), True),
        (("START TRANSACTION READ ONLY",), False),
        (("SET autocommit = 0", "COMMIT"), False),
        (("BEGIN TRY SELECT 1 END TRY BEGIN CATCH END CATCH",), False),
    ],
)
def test_a_transaction_that_may_be_open_is_never_taken_for_none(texts: tuple[str, ...], none: bool) -> None:
    """If the texts leave the state of a transaction unclear, the server is asked."""
    transactions = Transactions()
    for text in texts:
        transactions.sent(text)
    assert transactions.surely_none is none


def test_after_a_failure_a_transaction_may_be_open_or_not() -> None:
    """After a failure a transaction may be open; a failed statement alone opens none."""
    transactions = Transactions()
    transactions.failed("SELECT 1/0")
    assert transactions.surely_none
    transactions.sent("BEGIN")
    transactions.failed("SELECT 1/0")
    transactions.sent("COMMIT")
    assert not transactions.surely_none
    transactions.observed(is_open=False)
    assert transactions.surely_none
