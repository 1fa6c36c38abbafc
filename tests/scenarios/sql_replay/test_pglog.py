"""PostgreSQL's logs: what is a statement, what it was given, and what cannot be made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay.captured import Captured, CapturedSession, Entry, at_once, sessions_of
from pinchpoint_scenarios.sql_replay.pglog import read_log, verb

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


def log(path: Path, text: str) -> list[Entry]:
    """The statements of a log of that text."""
    path.write_text(text, encoding="utf-8")
    return list(read_log(path))


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
        ("duration: 1.0 ms  execute s1: SELECT 1", "", None),
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
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
        list(read_log(tmp_path / "gone"))


def test_sessions_keep_their_times_and_pauses() -> None:
    """From the first statement on; a pause is what lies between an answer and the next statement."""
    entries = [
        Entry("b", "d", 103.0, 0.5, "SELECT 3"),
        Entry("a", "d", 101.0, 1.0, "SELECT 1"),
        Entry("a", "d", 104.0, 0.25, "SELECT 2", ("x",)),
        Entry("a", "d", 104.1, 0.0, None, left_out="no_text"),
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
    ("text", "found"),
    [("SELECT 1", "select"), (" /* hint */ -- x\n Insert into t", "insert"), ("(SELECT 1)", "statement")],
)
def test_an_operation_is_a_statements_first_word(text: str, found: str) -> None:
    """Comments before it do not matter."""
    assert verb(text) == found
