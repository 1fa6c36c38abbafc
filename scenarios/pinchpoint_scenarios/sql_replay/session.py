"""One user of sql-replay: at any time it is one captured session, with a connection of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..contract import OK, PAUSE, Record
from ..databases.contract import DatabaseFailure, TextConnection
from ..sql_script.marked_copy import MarkedCopy
from .captured import Captured, CapturedSession
from .tape import Tape
from .verbs import verb

_NAP_S = 0.2  # a pause is waited for in naps, so that the end of the run need not wait for it


class ReplaySession:
    """Plays one captured session after the other: each statement at its time, each pause as long as it was.

    Args:
        tape: where it takes sessions from.
        copy: the database.
        connect: makes a connection to it, not opened yet.
        speed: how much faster than captured.
    """

    def __init__(
        self, tape: Tape, copy: MarkedCopy, connect: Callable[[], TextConnection], speed: float
    ) -> None:
        self._tape = tape
        self._copy = copy
        self._connect = connect
        self._speed = speed
        self._connection: TextConnection | None = None
        self._playing: CapturedSession | None = None
        self._at = 0
        self._ended_s = 0.0

    def perform(self, record: Record) -> bool:
        """Execute one statement and record it, or wait a moment for the next one's time.

        A statement begins when it did in the capture, and no sooner after the one before than it did there.
        """
        if self._playing is None and not self._take():
            if self._tape.ended:
                return False
            with _pause(record):
                time.sleep(_NAP_S)  # others are still playing; after them a round may follow, for all users
            return True
        session = self._playing
        assert session is not None  # noqa: S101 - taken above
        if self._at == len(session.statements):
            self._leave()
            return True
        statement = session.statements[self._at]
        with _pause(record):
            if self._early_s(statement) > _NAP_S:
                time.sleep(_NAP_S)
                return True
            if self._connection is None:
                self._connection = self._connect()
                self._connection.try_open()  # no part of its first statement, as the capture has it
            time.sleep(max(0.0, self._early_s(statement)))
            self._connection.wait_until_due()
        self._execute(self._connection, statement, record)
        return True

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take(self) -> bool:
        self._playing = self._tape.take()
        self._at = 0
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

    def _execute(self, connection: TextConnection, statement: Captured, record: Record) -> None:
        text = self._copy.translated(statement.text)
        values = statement.parameters and [self._copy.encoded(value) for value in statement.parameters]
        late_s = max(0.0, self._tape.at_s - statement.at_s / self._speed)
        start_ns = time.perf_counter_ns()
        outcome = OK
        try:
            if values is None:
                connection.query(text)
            else:
                connection.execute_as_text(text, values, prepared=statement.prepared)
        except DatabaseFailure as failure:
            outcome = failure.outcome
        record(verb(statement.text), outcome, start_ns, time.perf_counter_ns())
        self._tape.done(outcome, ok=outcome == OK, late_s=late_s)
        self._ended_s = time.monotonic()
        self._at += 1


@contextmanager
def _pause(record: Record) -> Iterator[None]:
    """What is done meanwhile is no part of any operation: recorded, so that a user's time adds up."""
    start_ns = time.perf_counter_ns()
    yield
    record(PAUSE, OK, start_ns, time.perf_counter_ns())
