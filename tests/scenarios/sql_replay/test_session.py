"""Tests of users and rounds: a free user waits for the next round and stays until the last."""

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
    """A copy and connection of a server that answers at once."""

    def translated(self, statement: str) -> str:
        return statement

    def nothing(self, *_: object) -> None:
        """Do nothing."""

    wait_until_due = try_open = query = close = nothing


def users(repeat_s: float | None) -> tuple[Tape, ReplaySession, ReplaySession]:
    """Return the tape and two users of a capture with one session of one statement."""
    tape = Tape([CapturedSession([Captured(0.0, 0.0, 0.0, "SELECT 1", None)])], repeat_s)
    database: Any = Database()
    first, second = (ReplaySession(tape, database, lambda: database, 1.0, MagicMock()) for _ in range(2))
    return tape, first, second


def napping(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Run a function whenever a user sleeps."""
    monkeypatch.setattr(time, "sleep", lambda _: meanwhile())


def test_who_naps_while_a_round_ends_plays_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user that sleeps at the end of a round plays in the next round."""
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
    """All users end after the last session, also those that wait."""
    _, first, second = users(0)
    record = Recorder()
    napping(monkeypatch, lambda: None)
    assert first.perform(record)
    assert second.perform(record), "another user still plays"
    assert first.perform(record)
    assert not second.perform(record)
    assert not first.perform(record)


def test_pauses_are_recorded_and_no_part_of_a_statement() -> None:
    """Pauses are recorded separately, and statements and pauses are all of a user's time."""
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
