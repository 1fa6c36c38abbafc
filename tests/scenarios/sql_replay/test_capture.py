"""Tests of captured sessions and slow logs: times, pauses, and long captures."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scenarios.sql_replay.exported import Happened, exported_csv

from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay import read_capture
from pinchpoint_scenarios.sql_replay.capture import Captured, CapturedSession, LogEntry, at_once, sessions_of
from pinchpoint_scenarios.sql_replay.pglog import as_sent
from pinchpoint_scenarios.sql_replay.session import verb


def test_sessions_keep_their_times_and_pauses() -> None:
    """Times start at the first statement; a pause lasts from a reply to the next statement."""
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
    """A text with many comments or declarations is read in linear time."""
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
    """An operation is named after the first word behind any comments."""
    assert verb(text) == found


def test_a_large_export_is_read_piece_by_piece(tmp_path: Path) -> None:
    """A large export, with a statement longer than a piece, is read in pieces."""
    long = "SELECT '" + "x" * 1_500_000 + "'"
    many = [Happened(f"SELECT {at}", at / 1000, session=at % 7) for at in range(400)]
    path = tmp_path / "capture"
    path.write_text(exported_csv([*many, Happened(long, 9.0)]))
    found = list(read_capture([path]))
    assert len(found) == 401
    assert {each.text for each in found} == {long, *(each.text for each in many)}


# Output of `mariadb --batch` of MariaDB 10.11.
BATCH = (
    "start_time\tquery_time\tthread_id\tdb\tsql_text\n"
    "2026-11-21 23:54:06.685484\t00:00:00.000071\t41\t\tSET NAMES utf8mb4\n"
    "2026-11-21 23:54:06.686666\t00:00:01.005937\t41\tshop\t"
    "INSERT INTO moved (turn, note) VALUES (1, 'it\\\\'s \\\\\\\\ é\\\\n\\tx')\n"
    "2026-11-21 23:54:08.000000\t01:00:00.000000\t42\tshop\tSELECT 1,\r\\n  2\n"
    "2026-11-21 23:54:09.000000\t00:00:00.000001\t42\tshop\t# administrator command: Ping\n"
)
CSV = (
    '"start_time","user_host","query_time","db","sql_text","thread_id"\n'
    '"2026-11-21 23:54:06.686666","app","00:00:00.5","shop","SELECT ""a"",\n  2",41\n'
)


def log(path: Path, content: str) -> list[LogEntry]:
    """Return the statements of an export with this content."""
    path.write_text(content, encoding="utf-8")
    return list(read_capture([path]))


def test_what_the_client_writes_is_read(tmp_path: Path) -> None:
    """Line breaks, tabs and backslashes are unescaped; statements without a database are dropped."""
    first, second = log(tmp_path / "slow.tsv", BATCH)
    assert (first.session, first.database) == ("41", "shop")
    assert first.duration_s == pytest.approx(1.005937)
    assert first.text == "INSERT INTO moved (turn, note) VALUES (1, 'it\\'s \\\\ é\\n\tx')"
    assert second.text == "SELECT 1,\r\n  2"
    assert second.began_s - first.began_s == pytest.approx(1.313334, abs=1e-5)
    assert second.duration_s == 3600


def test_a_csv_export_is_read(tmp_path: Path) -> None:
    """A CSV export is read by its column names in any order."""
    [entry] = log(tmp_path / "slow.csv", CSV)
    assert (entry.session, entry.text, entry.duration_s) == ("41", 'SELECT "a",\n  2', 0.5)


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("USE `other`", "changes_database"),
        ("/* ApplicationName=DBeaver */ USE `other`", "changes_database"),
        ("SELECT `use it` FROM t USE INDEX (i)", None),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "copy_data_not_logged"),
        ("", "no_text"),
        ("SET NAMES utf8mb4", "connections_housekeeping"),
        ("SET @names = 1", None),
        ("SELECT 1", None),
    ],
)
def test_what_cannot_be_made_again_says_why(tmp_path: Path, text: str, left_out: str | None) -> None:
    """A statement that cannot be replayed has the reason."""
    head = "start_time\tquery_time\tthread_id\tdb\tsql_text\n2026-11-21 23:54:06\t00:00:00\t41\tshop\t"
    [entry] = log(tmp_path / "slow.tsv", f"{head}{text}\n")
    assert entry.left_out == left_out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BATCH.replace("00:00:01.005937", "1 s"), r"slow:3: the query_time '1 s'; allowed: as in 00:00:01"),
        (
            BATCH.replace("2026-11-21 23:54:08", "noon"),
            r"slow:4: the start_time 'noon.*'; allowed: as in",
        ),
        (BATCH.replace("\tSELECT 1", " SELECT 1"), r"slow:4: 4 columns; allowed: 5, as in the header"),
        (CSV.replace(",41\n", "\n"), r"slow:3: 5 columns; allowed: 6, as in the header"),
    ],
)
def test_what_is_no_export_is_said_with_its_line(tmp_path: Path, content: str, said: str) -> None:
    """A file that is no export gives an error with file, line, value and allowed values."""
    with pytest.raises(ScenarioError, match=said):
        log(tmp_path / "slow", content)
