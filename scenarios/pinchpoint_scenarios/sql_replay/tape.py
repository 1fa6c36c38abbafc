"""The captured sessions that one process replays: who takes which, and what came of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

from .captured import CapturedSession

ENDED_BEFORE = "ended_before"
"""The cause of what was not executed because the run ended, or no user was free for its session."""


class Tape:
    """Hands captured sessions to users, whatever threads they are in, in the order in which they began.

    Args:
        sessions: this process's.
        repeat_s: see ``Context.repeat_s``.
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
        """Whether no session will be handed out any more."""
        self.cycles = 0
        self.executed = 0
        self.failed: Counter[str] = Counter()
        self.latest_s = 0.0

    @property
    def at_s(self) -> float:
        """How long this round of the capture has been going on."""
        return time.monotonic() - self._begun_s

    def take(self) -> CapturedSession | None:
        """The next session; None: there is none now; where ``ended`` is set, nor will there be."""
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
        """A session that was taken has come to its end."""
        with self._changing:
            self._playing -= 1

    def done(self, outcome: str, *, ok: bool, late_s: float) -> None:
        """A statement was executed, so long after it should have begun."""
        with self._changing:
            self.executed += 1
            self.latest_s = max(self.latest_s, late_s)
            if not ok:
                self.failed[outcome] += 1

    def account(self) -> dict[str, object]:
        """What was captured, what was executed, and the difference by its causes.

        ``captured`` is ``executed`` and all that ``differences`` names; what ``failed`` was executed.
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
