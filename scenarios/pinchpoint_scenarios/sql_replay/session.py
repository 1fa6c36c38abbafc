"""Runs one user of sql-replay, and assigns captured sessions to users."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..contract import OK, PAUSE, Record
from ..databases.contract import DatabaseFailure, FailureReport, TextConnection
from ..sql_script.marked_copy import MarkedCopy
from ..sql_text import first_word
from .capture import Captured, CapturedSession
from .extended_events import called, handed_over


def verb(text: str) -> str:
    """Return the operation: the first word of a statement in lower case; for a procedure call with its name.

    A statement that is passed to SQL Server's ``sp_executesql`` counts under its own first word.
    """
    inner = handed_over(text)
    if inner is not None:
        return verb(inner)
    procedure = called(text)
    if procedure is not None:
        return f"exec {procedure.lower()}"
    return first_word(text)


ENDED_BEFORE = "ended_before"
"""Reason for statements that were not executed, because the run ended or no user was free for their
session."""


class Tape:
    """Assigns captured sessions to users, in any thread, in the order of their begin.

    Args:
        sessions: sessions of this process.
        repeat_s: time for repetitions in seconds (see ``ScenarioContext.repeat_s``).
    """

    def __init__(self, sessions: Sequence[CapturedSession], repeat_s: float | None) -> None:
        self._sessions = sessions
        self._repeat_s = repeat_s
        self._first_s: float | None = None
        self._begun_s = 0.0
        self._next = 0
        self._playing = 0
        self._changing = threading.Lock()
        self.ended = False
        """Whether no session is left."""
        self.cycles = 0
        self.executed = 0
        self.failed: Counter[str] = Counter()
        self.latest_s = 0.0

    @property
    def at_s(self) -> float:
        """Return the seconds since the start of this round of the capture."""
        return time.monotonic() - self._begun_s

    def take(self) -> CapturedSession | None:
        """Return the next session; None: none now, and if ``ended`` is set, none later."""
        with self._changing:
            now_s = time.monotonic()
            if self._first_s is None:
                self._first_s = self._begun_s = now_s
                self.cycles = 1
            if self._next == len(self._sessions):
                if self._playing:
                    return None
                if not self._again(now_s):
                    self.ended = True
                    return None
                self._next, self._begun_s = 0, now_s
                self.cycles += 1
            self._next += 1
            self._playing += 1
            return self._sessions[self._next - 1]

    def over(self) -> None:
        """Record that a session has been replayed to its end."""
        with self._changing:
            self._playing -= 1

    def done(self, outcome: str, *, ok: bool, late_s: float) -> None:
        """Record an executed statement and its delay."""
        with self._changing:
            self.executed += 1
            self.latest_s = max(self.latest_s, late_s)
            if not ok:
                self.failed[outcome] += 1

    def account(self) -> dict[str, object]:
        """Return the captured and the executed statements, and the reasons for the difference.

        ``captured`` = ``executed`` + all ``differences``. Statements in ``failed`` were executed.
        """
        rounds = max(1, self.cycles)
        left_out = sum((session.left_out for session in self._sessions), Counter[str]())
        replayable = sum(len(session.statements) for session in self._sessions) * rounds
        differences = {cause: count * rounds for cause, count in sorted(left_out.items())}
        if replayable > self.executed:
            differences[ENDED_BEFORE] = replayable - self.executed
        return {
            "captured": replayable + sum(left_out.values()) * rounds,
            "executed": self.executed,
            "differences": differences,
            "failed": dict(self.failed),
            "latest_s": round(self.latest_s, 3),
            "cycles": self.cycles,
        }

    def _again(self, now_s: float) -> bool:
        if not self._sessions or self._first_s is None:
            return False
        return self._repeat_s is None or now_s - self._first_s < self._repeat_s


_NAP_S = 0.2  # a pause consists of short sleeps, so that the end of the run need not wait for it


class ReplaySession:
    """Replays one captured session after the other, with the captured times and pauses.

    Args:
        tape: assigns sessions.
        copy: copy of the database.
        connect: returns a connection that is opened later.
        speed: speed relative to the capture.
        report: reports every failed statement.
    """

    def __init__(
        self,
        tape: Tape,
        copy: MarkedCopy,
        connect: Callable[[], TextConnection],
        speed: float,
        report: FailureReport,
    ) -> None:
        self._tape = tape
        self._copy = copy
        self._connect = connect
        self._speed = speed
        self._report = report
        self._connection: TextConnection | None = None
        self._playing: CapturedSession | None = None
        self._at = 0
        self._ended_s = 0.0

    def perform(self, record: Record) -> bool:
        """Execute one statement and record it, or wait for the time of the next statement.

        A statement begins at its captured time, and not sooner after the last statement than in the capture.
        """
        if self._playing is None and not self._take():
            if self._tape.ended:
                return False
            with _pause(record):
                time.sleep(_NAP_S)  # other sessions are still replayed, and a round for all users may follow
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
                self._connection.try_open()  # not part of its first statement, as in the capture
            time.sleep(max(0.0, self._early_s(statement)))
            self._connection.wait_until_due()
        self._execute(self._connection, statement, record)
        return True

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
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
        """Return the seconds until a statement is due."""
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
            self._report(failure, operation=verb(statement.text))
        record(verb(statement.text), outcome, start_ns, time.perf_counter_ns())
        self._tape.done(outcome, ok=outcome == OK, late_s=late_s)
        self._ended_s = time.monotonic()
        self._at += 1


@contextmanager
def _pause(record: Record) -> Iterator[None]:
    """Record a pause. It is part of no operation, but the times of a user must add up."""
    start_ns = time.perf_counter_ns()
    yield
    record(PAUSE, OK, start_ns, time.perf_counter_ns())
