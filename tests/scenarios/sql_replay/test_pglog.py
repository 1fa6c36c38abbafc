"""PostgreSQL's logs: what is a statement, what it was given, and what cannot be made again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay.capture import Captured, CapturedSession, LogEntry, at_once, sessions_of
from pinchpoint_scenarios.sql_replay.pglog import as_sent, read_logs
from pinchpoint_scenarios.sql_replay.reading import read_capture
from pinchpoint_scenarios.sql_replay.session import verb

# Written by PostgreSQL 18.6 (addresses and identifiers shortened).
LOADER = '"loader","shop",71,"127.0.0.1:5"'
SINCE = "2026-11-21 20:15:00 UTC,3/4,0"
CLIENT = ',,,,,,,,"app","client backend",,0\n'
CSV = (
    f'2026-11-21 20:15:00.100 UTC,{LOADER},6a.47,1,"SELECT",{SINCE},'  # noqa: S608 - a log
    f'LOG,00000,"duration: 2.500 ms  statement: SELECT \'a, ""b""\'",{CLIENT}'
    f'2026-11-21 20:15:00.200 UTC,{LOADER},6a.47,2,"BIND",{SINCE},'
    'LOG,00000,"duration: 0.050 ms  bind <unnamed>: INSERT INTO t VALUES ($1)","Parameters: $1 = \'1\'"'
    f"{CLIENT}"
    f'2026-11-21 20:15:00.201 UTC,{LOADER},6a.47,3,"INSERT",{SINCE},'
    'LOG,00000,"duration: 0.400 ms  execute <unnamed>: INSERT INTO t\n VALUES ($1, $2, $3)",'
    f"\"Parameters: $1 = '1', $2 = 'it''s, $3 = ', $3 = NULL\"{CLIENT}"
    f'2026-11-21 20:15:00.300 UTC,{LOADER},6a.48,1,"INSERT",{SINCE},'
    'ERROR,23505,"duplicate key",,,,,,"INSERT INTO t VALUES (1)",,,"app","client backend",,0\n'
    "2026-11-21 20:15:00.400 UTC,,,60,,6a.40,1,,2026-11-21 20:00:00 UTC,,0,"
    'LOG,00000,"checkpoint starting: time",,,,,,,,,"","checkpointer",,0\n'
)
JSON = (
    '{"timestamp":"2026-11-21 20:15:00.100 UTC","dbname":"shop","session_id":"6a.47","error_severity":"LOG",'
    '"message":"duration: 2.500 ms  statement: SELECT 1","backend_type":"client backend"}\n'
)


def log(path: Path, text: str) -> list[LogEntry]:
    """The statements of a log of that text."""
    path.write_text(text, encoding="utf-8")
    return list(read_logs([path]))


def test_a_csv_log_is_read(tmp_path: Path) -> None:
    """Texts over several lines, values with quotes and commas, nulls; what is no statement is none."""
    first, second, third = log(tmp_path / "log.csv", CSV)
    assert (first.session, first.database, first.duration_s) == ("6a.47", "shop", 0.0025)
    assert (first.text, first.parameters) == ("SELECT 'a, \"b\"'", None)
    assert second.text == "INSERT INTO t\n VALUES ($1, $2, $3)"
    assert second.parameters == ("1", "it's, $3 = ", None)
    assert second.ended_s - first.ended_s == pytest.approx(0.101)
    assert (third.session, third.left_out) == ("6a.48", "failed_when_captured")


@pytest.mark.parametrize(
    ("message", "detail", "left_out"),
    [
        ("duration: 1.0 ms", "", "no_text"),
        ("duration: 1.0 ms  fastpath function call: x", "", "function_call"),
        ("duration: 1.0 ms  statement: COPY t FROM STDIN", "", "copy_data_not_logged"),
        ("duration: 1.0 ms  execute fetch from <unnamed>: SELECT 1", "", "further_rows_of_a_portal"),
        ("duration: 1.0 ms  execute s1: SELECT $1", "", "parameters_not_logged"),
        ("duration: 1.0 ms  execute s1: SELECT $1", "Parameters: $1 = 'abc...'", "parameters_cut"),
        ("duration: 1.0 ms  statement: /* app */ copy t from stdin(format csv)", "", "copy_data_not_logged"),
        ("duration: 1.0 ms  statement: BEGIN; COPY t TO STDOUT", "", "copy_data_not_logged"),
        ("duration: 1.0 ms  statement: SELECT 'COPY t FROM STDIN' AS copied", "", None),
        ("duration: 1.0 ms  statement: SELECT 'caf\N{REPLACEMENT CHARACTER}'", "", "letters_lost"),
        ("duration: 1.0 ms  execute s1: SELECT 1", "", None),
        ("duration: 1.0 ms  statement: SET client_encoding TO 'LATIN1'", "", "other_letters"),
        ("duration: 1.0 ms  statement: SELECT 1; set session names win1252", "", "other_letters"),
        ("duration: 1.0 ms  statement: SET client_encoding='utf-8'; SET DateStyle=ISO", "", None),
        ("duration: 1.0 ms  statement: SET names_seen.x = latin1", "", None),
        ("duration: 1.0 ms  execute s1: SELECT 'for $5', $tag$ $6 $tag$ -- $7", "", None),
        ("duration: 1.0 ms  execute s1: SELECT $1", "parameters: $1 = '5'", None),
    ],
)
def test_what_cannot_be_made_again_says_why(
    tmp_path: Path, message: str, detail: str, left_out: str | None
) -> None:
    """In JSON as in CSV, of older versions as of newer ones."""
    row = {
        "timestamp": "2026-11-21 20:15:00.100 UTC",
        "dbname": "shop",
        "session_id": "6a.47",
        "error_severity": "LOG",
        "message": message,
        "detail": detail,
        "backend_type": "client backend",
    }
    [entry] = log(tmp_path / "log.json", json.dumps(row) + "\n")
    assert entry.left_out == left_out


def rows_of(path: Path, *rows: tuple[str, str, str] | tuple[str, str, str, str]) -> list[LogEntry]:
    """A JSON log of one session, a row each 10 ms: severity, message, statement, and what it was about."""
    lines = []
    for number, (severity, message, statement, *tag) in enumerate(rows):
        row = {
            "timestamp": f"2026-11-21 20:15:00.{number:02}0 UTC",
            "dbname": "shop",
            "session_id": "6a.47",
            "ps": (tag or [""])[0],
            "error_severity": severity,
            "message": message,
            "statement": statement,
            "backend_type": "client backend",
        }
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return list(read_capture([path]))


def test_a_statement_that_was_logged_when_it_began_has_its_duration(tmp_path: Path) -> None:
    """With log_statement the duration comes without the text; what never ended, or failed, is one, too."""
    found = rows_of(
        tmp_path / "log.json",
        ("LOG", "duration: 1.000 ms", "", "PARSE"),
        ("LOG", "execute s: INSERT INTO t VALUES (1)", "", "INSERT"),
        ("LOG", "duration: 5.000 ms", "", "INSERT"),
        ("LOG", "duration: 2.000 ms  statement: SELECT 1", ""),
        ("LOG", "statement: COPY t FROM STDIN", ""),
        ("LOG", "duration: 3.000 ms", "", "COPY"),
        ("LOG", "statement: UPDATE t SET x = 1", ""),
        ("ERROR", "deadlock detected", "UPDATE t SET x = 1"),
        ("LOG", "statement: DELETE FROM t", ""),
        ("LOG", "duration: 4.000 ms", ""),
        ("LOG", "statement: DROP TABLE t", ""),
    )
    assert [(each.text, round(each.duration_s, 4), each.left_out) for each in found] == [
        ("INSERT INTO t VALUES (1)", 0.005, None),
        ("SELECT 1", 0.002, None),
        ("COPY t FROM STDIN", 0.003, "copy_data_not_logged"),
        ("UPDATE t SET x = 1", 0.0, "failed_when_captured"),
        ("DELETE FROM t", 0.004, None),
        ("DROP TABLE t", 0.0, "no_duration"),
    ]
    assert found[0].began_s == pytest.approx(found[1].began_s - 0.013, abs=1e-6)


def test_a_transaction_that_was_rolled_back_by_its_commit_is_so_again(tmp_path: Path) -> None:
    """What failed is not made again: a COMMIT would keep what the server had thrown away."""

    def ok(text: str) -> tuple[str, str, str]:
        return ("LOG", f"duration: 1.000 ms  statement: {text}", "")

    def failed(text: str) -> tuple[str, str, str]:
        return ("ERROR", "no", text)

    found = rows_of(
        tmp_path / "log.json",
        *(ok("BEGIN"), failed("SELECT 1/0"), failed("SELECT 2"), ok("/* app */ commit work AND CHAIN")),
        *(failed("SELECT 3"), ok("ROLLBACK TO a"), ok("END")),
        *(ok("BEGIN"), failed("COMMIT"), failed("SELECT 4"), ok("SELECT 5"), ok("COMMIT")),
        ("FATAL", "terminating connection", "SELECT 6"),
    )
    made = [each.text for each in found if each.left_out is None]
    assert made == [
        "BEGIN",
        "ROLLBACK AND CHAIN",
        "ROLLBACK TO a",
        "END",
        "BEGIN",
        "ROLLBACK",
        "SELECT 5",
        "COMMIT",
    ]
    assert [each.text for each in found if each.left_out == "failed_when_captured"] == [
        *("SELECT 1/0", "SELECT 2", "SELECT 3", "SELECT 4", "SELECT 6")
    ]


def test_an_error_without_its_statement_fails_its_transaction_too(tmp_path: Path) -> None:
    """By log_min_error_statement the log may say that something failed, and not what."""
    found = rows_of(
        tmp_path / "log.json",
        ("LOG", "duration: 1.0 ms  statement: BEGIN", ""),
        ("LOG", "duration: 1.0 ms  statement: INSERT INTO t VALUES (1)", ""),
        ("ERROR", "duplicate key", ""),
        ("LOG", "duration: 1.0 ms  statement: COMMIT", ""),
    )
    assert [entry.text for entry in found] == ["BEGIN", "INSERT INTO t VALUES (1)", None, "ROLLBACK"]
    assert found[2].left_out == "failed_when_captured"


def test_what_had_been_prepared_is_told_from_what_was_not(tmp_path: Path) -> None:
    """By its name: a driver parses what has none each time."""
    for name, prepared in (("<unnamed>", False), ("<unnamed>/C_1", False), ("S_1", True), ("S_1/C_2", True)):
        [entry] = rows_of(tmp_path / "log.json", ("LOG", f"duration: 1.0 ms  execute {name}: SELECT 1", ""))
        assert entry.prepared is prepared, name


def test_a_value_that_ends_in_dots_is_whole_where_longer_ones_are(tmp_path: Path) -> None:
    """The server cuts all values at one length: where it is below a whole one's, nothing was cut there."""

    def row(value: str) -> str:
        said = {"message": "duration: 1.0 ms  execute s1: SELECT $1", "detail": f"Parameters: $1 = '{value}'"}
        return json.dumps({**json.loads(JSON), **said}) + "\n"

    path = tmp_path / "log.json"
    path.write_text(row("and so on...") + row("a" * 13) + row("b" * 10 + "..."))
    found = list(read_capture([path]))
    assert [(entry.parameters, entry.left_out) for entry in found] == [
        (("and so on...",), None),
        (("a" * 13,), None),
        (("b" * 10 + "...",), "parameters_cut"),
    ]


def test_the_same_log_in_two_forms_is_not_read_twice(tmp_path: Path) -> None:
    """A server that writes both has each statement in both."""
    for name, text in (("all.csv", CSV), ("all.json", JSON)):
        (tmp_path / name).write_text(text)
    with pytest.raises(
        ScenarioError, match=r"all.json: a PostgreSQL log as JSON, and .*all.csv is .* as CSV"
    ):
        list(read_capture([tmp_path / "all.csv", tmp_path / "all.json"]))


def test_times_of_two_zones_are_refused(tmp_path: Path) -> None:
    """When clocks go back an hour is there twice: sessions of both would be mixed."""
    summer, winter = JSON.replace("UTC", "CEST"), JSON.replace("UTC", "CET")
    (tmp_path / "1.json").write_text(summer)
    (tmp_path / "2.json").write_text(winter)
    assert len(list(read_logs([tmp_path / "1.json"]))) == 1
    with pytest.raises(ScenarioError, match=r"2.json:1: a time of CET, after those of CEST.*log_timezone"):
        list(read_logs([tmp_path / "1.json", tmp_path / "2.json"]))


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_log_that_ends_within_a_line_is_read_to_there(tmp_path: Path, kind: str) -> None:
    """As one that was copied while the server wrote it; the line that is lost is counted."""
    text, ends = (CSV, "Parameters: $1 = '") if kind == "csv" else (JSON * 2, '"message":')
    whole = log(tmp_path / "whole", text)
    cut = log(tmp_path / "cut", text[: text.rindex(ends)])
    assert [each.text for each in cut if each.left_out is None] == [
        each.text for each in whole if each.left_out is None
    ][:-1]
    assert cut[-1].left_out == "line_cut_off"
    assert (cut[-1].session, cut[-1].database) == (whole[0].session, whole[0].database)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            CSV + '2026-11-21 20:15:00.500 UTC,"a quote\n2026-11-21 20:15:00.600 UTC,,,\n',
            r"log:8: 2 columns; allowed: a log",
        ),
        ("time,event\n", r"log:1: 2 columns; allowed: a log that PostgreSQL wrote"),
        ("{nothing\n", r"log:1: no JSON object"),
        (CSV.replace("20:15:00.100 UTC", "at noon", 1), r"log:1: the time '2026-11-21 at noon'; allowed"),
    ],
)
def test_what_is_no_log_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """File, line, what is allowed."""
    with pytest.raises(ScenarioError, match=said):
        log(tmp_path / "log", text)
    with pytest.raises(ScenarioError, match="gone: cannot be read"):
        list(read_logs([tmp_path / "gone"]))


def test_sessions_keep_their_times_and_pauses() -> None:
    """From the first statement on; a pause is what lies between an answer and the next statement."""
    entries = [
        LogEntry("b", "d", 103.0, 0.5, "SELECT 3"),
        LogEntry("a", "d", 101.0, 1.0, "SELECT 1"),
        LogEntry("a", "d", 104.0, 0.25, "SELECT 2", ("x",)),
        LogEntry("a", "d", 104.1, 0.0, None, left_out="no_text"),
    ]
    first, second = sessions_of(entries)
    assert first.statements == [
        Captured(0.0, 0.0, 1.0, "SELECT 1", None),
        Captured(3.75, 2.75, 0.25, "SELECT 2", ("x",)),
    ]
    assert first.left_out == {"no_text": 1}
    assert (second.begins_s, second.ends_s) == (2.5, 3.0)
    assert at_once([first, second]) == 2
    assert at_once([second, CapturedSession()]) == 1
    assert sessions_of([]) == []


@pytest.mark.parametrize(
    "text",
    [
        "/* a */ -- b\n" * 40 + "1",
        "declare @a int\r\n" * 40 + "select 1",
        "set @a = 'x' ;  " * 40 + "select 1",
    ],
)
def test_a_long_beginning_is_read_in_no_time(text: str) -> None:
    """Whatever comes after many comments, or declarations: in one way alone, not in 2^40."""
    begun_s = time.process_time()
    assert verb(text) in ("statement", "declare", "set")
    [entry] = as_sent([LogEntry("a", "d", 1.0, 0.5, text)])
    assert entry.text == text
    assert time.process_time() - begun_s < 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1", "select"),
        (" /* hint */ -- x\n Insert into t", "insert"),
        ("(SELECT 1)", "select"),
        ("-- ping", "statement"),
        ("exec sp_executesql N'UPDATE t SET x = 1'", "update"),
        ("EXECUTE [dbo].[Place_Order] @customer = 7", "exec dbo.place_order"),
        ("declare @p2 int set @p2=default exec d.dbo.P @p1=N'x',@p2=@p2 output select @p2", "exec d.dbo.p"),
        ("exec ('SELECT 1')", "exec"),
        ("EXECUTE prepared_00000017 (4)", "execute"),
    ],
)
def test_an_operation_is_a_statements_first_word(text: str, found: str) -> None:
    """Comments before it do not matter."""
    assert verb(text) == found
