"""Captured sessions, their times and pauses; captures that are long.

What is read of each kind of capture is compared by the golden answers ``inputs``.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scenarios.sql_replay.exported import Happened, exported_csv

from pinchpoint_scenarios.sql_replay import read_capture
from pinchpoint_scenarios.sql_replay.capture import Captured, CapturedSession, LogEntry, at_once, sessions_of
from pinchpoint_scenarios.sql_replay.pglog import as_sent
from pinchpoint_scenarios.sql_replay.session import verb


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


def test_a_large_export_is_read_piece_by_piece(tmp_path: Path) -> None:
    """Many events; a statement that is longer than a piece."""
    long = "SELECT '" + "x" * 1_500_000 + "'"
    many = [Happened(f"SELECT {at}", at / 1000, session=at % 7) for at in range(400)]
    path = tmp_path / "capture"
    path.write_text(exported_csv([*many, Happened(long, 9.0)]))
    found = list(read_capture([path]))
    assert len(found) == 401
    assert {each.text for each in found} == {long, *(each.text for each in many)}
