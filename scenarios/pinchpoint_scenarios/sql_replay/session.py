"""One user of sql-replay: at any time it is one captured session, with a connection of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure
from ..fastpath.postgresql import FastConnection
from .captured import Captured, CapturedSession
from .pglog import verb
from .tape import Tape

_NAP_S = 0.2  # a pause is waited for in naps, so that the end of the run need not wait for it


class ReplaySession:
    """Plays one captured session after the other: each statement at its time, each pause as long as it was.

    Args:
        tape: where it takes sessions from.
        connect: makes a connection, not opened yet.
        speed: how much faster than captured.
    """

    def __init__(self, tape: Tape, connect: Callable[[], FastConnection], speed: float) -> None:
        self._tape = tape
        self._connect = connect
        self._speed = speed
        self._connection: FastConnection | None = None
        self._playing: CapturedSession | None = None
        self._at = 0
        self._ended_s = 0.0

    def perform(self, record: Record) -> bool:
        """Execute one statement and record it, or wait a moment for the next one's time.

        A statement begins when it did in the capture, and no sooner after the one before than it did there.
        """
        if self._playing is None and not self._take():
            if self._tape.playing:
                time.sleep(_NAP_S)
            return self._tape.playing
        session = self._playing
        assert session is not None  # noqa: S101 - taken above
        if self._at == len(session.statements):
            self._leave()
            return True
        statement = session.statements[self._at]
        early_s = self._early_s(statement)
        if early_s > 0:
            time.sleep(min(early_s, _NAP_S))
            if early_s > _NAP_S:
                return True
        self._execute(statement, record)
        return True

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take(self) -> bool:
        self._playing = self._tape.take()
        self._at = 0
        if self._playing is not None and self._playing.statements:
            self._connection = self._connect()
        return self._playing is not None

    def _leave(self) -> None:
        self.close()
        self._playing = None
        self._tape.over()

    def _early_s(self, statement: Captured) -> float:
        """How long until a statement is due."""
        early_s = statement.at_s / self._speed - self._tape.at_s
        if self._at:
            early_s = max(early_s, statement.think_s / self._speed - (time.monotonic() - self._ended_s))
        return early_s

    def _execute(self, statement: Captured, record: Record) -> None:
        connection = self._connection
        assert connection is not None  # noqa: S101 - made when the session was taken
        connection.wait_until_due()
        late_s = max(0.0, self._tape.at_s - statement.at_s / self._speed)
        start_ns = time.perf_counter_ns()
        outcome = OK
        try:
            if statement.parameters is None:
                connection.query(statement.text)
            else:
                values = [None if value is None else value.encode() for value in statement.parameters]
                connection.execute_as_text(statement.text, values)
        except DatabaseFailure as failure:
            outcome = failure.outcome
        record(verb(statement.text), outcome, start_ns, time.perf_counter_ns())
        self._tape.done(outcome, ok=outcome == OK, late_s=late_s)
        self._ended_s = time.monotonic()
        self._at += 1
