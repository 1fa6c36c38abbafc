"""SQL Server's Extended Events, however they were exported: what is a statement, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenarios.sql_replay.exported import Happened, exported_csv

from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay.capture import LogEntry, sessions_of
from pinchpoint_scenarios.sql_replay.reading import read_capture

PLACE = "SELECT name\nFROM dbo.account -- a < b & c\nWHERE name = N'it''s, é'"
EVENTS = [
    Happened(PLACE, 1.5, duration_s=0.25),
    Happened("exec dbo.place_order @customer=7", 2.0, session=52, name="rpc_completed"),
    Happened("SELECT 1/0", 2.5, result="Error"),
    Happened("SELECT name", 2.6, name="sp_statement_completed"),
    Happened("", 3.0, name="login"),
]


def entries(path: Path, content: str | bytes) -> list[LogEntry]:
    """The statements of a capture of that content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_capture([path]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_every_encoding_says_the_same(tmp_path: Path, encoding: str) -> None:
    """Times, sessions, texts with breaks and quotes; parts of a batch, and no statements, are left alone."""
    first, failed, second = entries(tmp_path / "capture", exported_csv(EVENTS).encode(encoding))
    assert (first.session, first.database, first.duration_s) == ("51", "shop", 0.25)
    assert first.text == PLACE
    assert failed.left_out == "failed_when_captured"
    assert second.text == "exec dbo.place_order @customer=7"
    assert second.ended_s - first.ended_s == pytest.approx(0.5)
    assert second.left_out is first.left_out is None


def test_a_large_export_is_read_piece_by_piece(tmp_path: Path) -> None:
    """Many events; a statement that is longer than a piece."""
    long = "SELECT '" + "x" * 1_500_000 + "'"
    many = [Happened(f"SELECT {at}", at / 1000, session=at % 7) for at in range(400)]
    found = entries(tmp_path / "capture", exported_csv([*many, Happened(long, 9.0)]))
    assert len(found) == 401
    assert {each.text for each in found} == {long, *(each.text for each in many)}


@pytest.mark.parametrize(
    ("happened", "left_out"),
    [
        (Happened("USE other; SELECT 1", 1), "changes_database"),
        (Happened("SET NOCOUNT ON USE other", 1), "changes_database"),
        (Happened("/* x */ USE [other]", 1), "changes_database"),
        (
            Happened("exec sp_executesql N'USE other; DELETE FROM t'", 1, name="rpc_completed"),
            "changes_database",
        ),
        (Happened("SELECT 'USE other', [use it] FROM t -- USE other", 1), None),
        (Happened("insert bulk dbo.t (x int)", 1), "bulk_data_not_captured"),
        (Happened("", 1), "no_text"),
        (Happened("SELECT 1", 1, result="Abort"), "failed_when_captured"),
        (Happened("exec sp_reset_connection", 1, name="rpc_completed"), "connections_housekeeping"),
        (
            Happened("exec sp_cursorfetch 180150003,2,0,1", 1, name="rpc_completed"),
            "server_cursor",
        ),
        (Happened("exec sp_execute 9,1", 1, name="rpc_completed"), "prepared_before_the_capture"),
        (
            Happened(
                "-- 'sp_password' was found in the text of this event.\n"
                "-- The text has been replaced with this comment for security reasons.",
                1,
            ),
            "hidden_by_the_server",
        ),
        (Happened("SELECT 'a\N{REPLACEMENT CHARACTER}b'", 1), "letters_lost"),
        (Happened("SELECT @who", 1, name="sp_statement_completed"), "variables_not_captured"),
        (Happened("SELECT '@who', @@SPID", 1, name="sql_statement_completed"), None),
        (Happened("SELECT * FROM t\nUSE INDEX (i)", 1), None),
    ],
)
def test_what_cannot_be_made_again_says_why(tmp_path: Path, happened: Happened, left_out: str | None) -> None:
    """Each by a name of its own."""
    [entry] = entries(tmp_path / "capture.csv", exported_csv([happened]))
    assert entry.left_out == left_out


def test_what_was_prepared_has_no_number_when_it_is_made_again(tmp_path: Path) -> None:
    """A session's own; numbers of others, and those given anew, are not mixed up."""

    def rpc(text: str, at_s: float, session: int = 51) -> Happened:
        return Happened(text, at_s, session=session, name="rpc_completed")

    declare = "declare @p1 int\r\n"
    insert = "N'insert into t values (@P0,@P1)'"
    types = "N'@P0 int,@P1 nvarchar(4000)'"
    found = entries(
        tmp_path / "capture.csv",
        exported_csv(
            [
                rpc(
                    f"{declare}set @p1=1  exec sp_prepexec @p1 output,{types},{insert},1,N'a'  select @p1",
                    1,
                ),
                rpc(
                    f"{declare}set @p1=2\r\nexec sp_prepare @p1 output,NULL,N'select 1',1\r\nselect @p1",
                    2,
                ),
                rpc("exec sp_execute 1,2,N'it''s'", 3),
                rpc("exec sp_execute 2", 4),
                rpc("exec sp_execute 1,3,N'b'", 5, session=52),
                rpc("exec sp_unprepare 1", 6),
            ]
        ),
    )
    assert [(each.session, each.text) for each in found if each.left_out is None] == [
        ("51", f"exec sp_executesql {insert},{types},1,N'a'"),
        ("51", f"exec sp_executesql {insert},{types},2,N'it''s'"),
        ("51", "exec sp_executesql N'select 1'"),
    ]
    assert [each.left_out for each in found if each.left_out] == [
        "connections_housekeeping",
        "connections_housekeeping",
        "prepared_before_the_capture",
    ]


def texts(found: list[LogEntry]) -> list[str | None]:
    """What one session does, in order."""
    [session] = sessions_of(found)
    return [each.text for each in session.statements]


def test_a_transaction_of_the_drivers_is_told_by_its_number(tmp_path: Path) -> None:
    """What shares one is one; what has its own is committed by itself; the pauses stay."""
    numbers = [0, 7, 7, 7, 8, 0, 9, 9]
    happened = [Happened(f"SELECT {at}", at, transaction=number) for at, number in enumerate(numbers)]
    found = entries(tmp_path / "capture.csv", exported_csv(happened))
    inside = ["SELECT 1", "SELECT 2", "SELECT 3"]
    assert texts(found) == [
        "SELECT 0",
        *("BEGIN TRANSACTION", *inside, "COMMIT"),
        *("SELECT 4", "SELECT 5"),
        *("BEGIN TRANSACTION", "SELECT 6", "SELECT 7", "COMMIT"),
    ]
    [session] = sessions_of(found)
    assert session.deduced == 4
    assert sum(each.think_s for each in session.statements) == pytest.approx(7 * 0.99, abs=0.01)


def test_a_transaction_that_was_captured_is_not_told_twice(tmp_path: Path) -> None:
    """The driver's requests as events of their own, or the application's own words."""
    managed = [
        Happened("", 1, name="begin_tran_completed", transaction=7),
        Happened("SELECT 1", 2, transaction=7),
        Happened("SELECT 2", 3, transaction=7),
        Happened("", 4, name="rollback_tran_completed", transaction=7),
    ]
    assert texts(entries(tmp_path / "a", exported_csv(managed))) == [
        "BEGIN TRANSACTION",
        "SELECT 1",
        "SELECT 2",
        "ROLLBACK",
    ]
    own = [Happened(text, at, transaction=7) for at, text in enumerate(["begin tran", "SELECT 1", "commit"])]
    assert texts(entries(tmp_path / "b", exported_csv(own))) == ["begin tran", "SELECT 1", "commit"]


def test_a_pools_reset_ends_temporary_tables(tmp_path: Path) -> None:
    """What the next user of the connection makes again is made in a session of its own; else it stays one."""

    def user(at_s: float, session: int, table: str) -> list[Happened]:
        return [
            Happened("exec sp_reset_connection", at_s, session, name="rpc_completed"),
            Happened(f"SELECT 1 AS a INTO {table}", at_s + 1, session),
            Happened("SELECT 2", at_s + 2, session),
        ]

    several = [
        each for at_s in (0, 10, 20) for each in [*user(at_s, 51, "#own"), *user(at_s + 3, 52, "kept")]
    ]
    found = sessions_of(entries(tmp_path / "capture.csv", exported_csv(several)))
    assert [len(session.statements) for session in found] == [2, 6, 2, 2]
    assert sum(session.left_out["connections_housekeeping"] for session in found) == 6


def test_a_connection_ends_with_its_logout(tmp_path: Path) -> None:
    """The next one of that number is another session; what a pool keeps is not ended. It is no statement."""

    def logout(at_s: float, cached: str) -> Happened:
        return Happened(cached, at_s, name="logout", duration_s=at_s, database="master")

    several = [Happened("SELECT 1", 1), logout(2, "true"), Happened("SELECT 2", 3), logout(4, "false")]
    export = exported_csv([*several, Happened("SELECT 3", 5)]).replace("statement", "is_cached")
    found = entries(tmp_path / "capture.csv", export)
    assert [(entry.session, entry.text, entry.database) for entry in found] == [
        ("51", "SELECT 1", "shop"),
        ("51", "SELECT 2", "shop"),
        ("51/1", "SELECT 3", "shop"),
    ]


def test_a_transaction_request_needs_no_duration(tmp_path: Path) -> None:
    """Those events tell that it was made, and may tell no more."""
    begun = exported_csv([Happened("", 1, name="begin_tran_completed")]).replace("10000", "NULL")
    [entry] = entries(tmp_path / "capture.csv", begun)
    assert (entry.text, entry.duration_s) == ("BEGIN TRANSACTION", 0.0)


def test_parts_in_any_order_are_one_capture(tmp_path: Path) -> None:
    """Files that rolled over; statements in the second are parts of batches in the first."""
    later, earlier = tmp_path / "1.csv", tmp_path / "0.csv"
    later.write_text(exported_csv([Happened("SELECT 2", 2), Happened("x", 2, name="sp_statement_completed")]))
    earlier.write_text(exported_csv([Happened("SELECT 1", 1)]))
    assert texts(list(read_capture([later, earlier]))) == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<event/>", r"capture: Extended Events as XML; allowed: as CSV"),
        ("event_data\n<event/>\n", r"capture: Extended Events as XML; allowed: as CSV"),
        (
            exported_csv(EVENTS).replace("2026-11-21 20:15:02.0000000", "noon"),
            r"capture:5: rpc_completed: the time 'noon'",
        ),
        (exported_csv(EVENTS).replace("250000", "NULL"), r"capture:4: sql_batch_completed with no dur"),
        (
            exported_csv(EVENTS).replace("session_id", "sid"),
            r"capture:4: sql_batch_completed without session_id; needed",
        ),
        (
            exported_csv(EVENTS).replace(",OK,", ",", 1),
            r"capture:4: 9 columns; allowed: 10, as in the header",
        ),
        (
            exported_csv(EVENTS).replace(",10000,", ",0.01,", 1),
            r"capture:5: rpc_completed with duration '0\.01'",
        ),
        (b"\x00\x01binary\xff", r"capture: a binary file; .* the events of a \.xel file as CSV"),
        (
            "event,who\nx,y\n",
            r"capture:1: 2 columns; allowed: a log that PostgreSQL wrote .* Extended Events",
        ),
    ],
)
def test_what_is_no_export_is_said_with_its_line(tmp_path: Path, content: str | bytes, said: str) -> None:
    """File, line, what was found, what is allowed."""
    with pytest.raises(ScenarioError, match=said):
        entries(tmp_path / "capture", content)


def test_a_log_and_an_export_are_two_captures(tmp_path: Path) -> None:
    """Both are named."""
    (tmp_path / "a.csv").write_text(exported_csv(EVENTS))
    (tmp_path / "b.json").write_text("{}\n")
    with pytest.raises(
        ScenarioError, match=r"a\.csv: Extended Events as CSV, and .*b\.json is a PostgreSQL log"
    ):
        list(read_capture([tmp_path / "b.json", tmp_path / "a.csv"]))
    with pytest.raises(ScenarioError, match="gone: cannot be read"):
        list(read_capture([tmp_path / "gone"]))
