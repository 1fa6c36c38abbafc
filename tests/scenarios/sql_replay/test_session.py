"""Users and rounds: who is free waits for the next round, and none is lost before the last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest
from scenarios.support import Recorder

from pinchpoint_scenarios.contract import PAUSE
from pinchpoint_scenarios.sql_replay.capture import Captured, CapturedSession
from pinchpoint_scenarios.sql_replay.session import ReplaySession, Tape


class Database:
    """Copy and connection of a server that does everything at once."""

    def translated(self, statement: str) -> str:
        return statement

    def nothing(self, *_: object) -> None:
        """Say nothing."""

    wait_until_due = try_open = query = close = nothing


def users(repeat_s: float | None) -> tuple[Tape, ReplaySession, ReplaySession]:
    """Two users of a capture of one session with one statement."""
    tape = Tape([CapturedSession([Captured(0.0, 0.0, 0.0, "SELECT 1", None)])], repeat_s)
    database: Any = Database()
    first, second = (ReplaySession(tape, database, lambda: database, 1.0, MagicMock()) for _ in range(2))
    return tape, first, second


def napping(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """What happens while a user naps."""
    monkeypatch.setattr(time, "sleep", lambda _: meanwhile())


def test_who_naps_while_a_round_ends_plays_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other user ends the round and takes the next session only later: in between nobody plays."""
    tape, first, second = users(None)
    record = Recorder()
    assert first.perform(record)
    napping(monkeypatch, lambda: first.perform(record))
    assert second.perform(record), "there will be another round"
    napping(monkeypatch, lambda: None)
    assert second.perform(record)
    assert (tape.cycles, tape.executed) == (2, 2)
    assert first.perform(record), "now it is this one that waits"


def test_after_the_last_round_everybody_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited, too, as soon as the last session is over."""
    _, first, second = users(0)
    record = Recorder()
    napping(monkeypatch, lambda: None)
    assert first.perform(record)
    assert second.perform(record), "another user still plays"
    assert first.perform(record)
    assert not second.perform(record)
    assert not first.perform(record)


def test_pauses_are_recorded_and_no_part_of_a_statement() -> None:
    """A user's time is its statements' and its pauses': nothing else is left of it."""
    statements = [Captured(at_s, at_s, 0.0, "SELECT 1", None) for at_s in (0.0, 0.3)]
    database: Any = Database()
    user = ReplaySession(Tape([CapturedSession(statements)], 0), database, lambda: database, 1.0, MagicMock())
    record, begun_s = Recorder(), time.perf_counter()
    while user.perform(record):
        pass
    took_s = time.perf_counter() - begun_s
    pauses = [row.end_ns - row.start_ns for row in record.rows if row.operation == PAUSE]
    assert sum(pauses) / 1e9 == pytest.approx(took_s, abs=0.05)
    assert record.counts() == {("select", "ok"): 2}
