"""The link to a machine's script, and a thread that keeps it open and holds what comes.

It opens the link again when it is lost. What the machine sent meanwhile and the network still held comes
late, with its own time; nothing is made up for what was never sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.powershell import Line, LinkLost
from pinchpoint_collectors.errors import CollectorError


class Arrived(NamedTuple):
    """One line of the script.

    Attributes:
        received_ns: when it was here, UTC ns since 1970 by our clock.
        line: itself.
    """

    received_ns: int
    line: Line


class ScriptLink(Protocol):
    """One session that runs the script and returns the lines it prints."""

    @property
    def received_bytes(self) -> int:
        """What has come so far."""
        ...

    def receive(self) -> list[Arrived]:
        """The lines that have come; waits for them about a second.

        Raises:
            LinkLost: the link is cut, or the script has ended.
        """
        ...

    def ask(self) -> None:
        """Ask for the machine's time: a line ``time`` will come. It also shows the script that we are here.

        Not before the script has said ``ready``.

        Raises:
            LinkLost: the link is cut.
        """
        ...

    def close(self) -> None:
        """End the script, and leave nothing on the machine. Safe to call twice."""
        ...


_ASK_S = 5.0
_FIRST_ASKS = 5
"""This many times it is asked at every turn, so that the clock is known at once."""
_TURN_S = 0.2
_MOST_HELD = 20_000
"""Lines that are not taken are dropped, the oldest first: half an hour of a machine with ten classes."""


class Received(NamedTuple):
    """What has come since it was asked before.

    Attributes:
        lines: (number of the link it came over, the line).
        error: why there is no link at this moment; None: there is one, or one is being opened.
        lost: why the last link that was lost was; "": none was.
        received_bytes: of all links so far.
        cpu_s: what the thread has spent so far.
    """

    lines: list[tuple[int, Arrived]]
    error: str | None
    lost: str
    received_bytes: int
    cpu_s: float


class Stream:
    """A thread that reads a machine's lines, and opens the link anew where it is lost.

    Args:
        name: the machine's, for the thread.
        open_link: opens a link and starts the script; what it is given is set when it is no longer needed.
            Raises ``LinkLost`` or, where trying again would not help, ``CollectorError``.
    """

    def __init__(self, name: str, open_link: Callable[[threading.Event], ScriptLink]) -> None:
        self._open = open_link
        self._came = threading.Condition()
        self._lines: list[tuple[int, Arrived]] = []
        self._error: str | None = None
        self._lost = ""
        self._bytes = 0
        self._cpu_s = 0.0
        self._number = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"windows-{name}", daemon=True)
        self._thread.start()

    def take(self) -> Received:
        """Take away what has come."""
        with self._came:
            lines, self._lines = self._lines, []
            return Received(lines, self._error, self._lost, self._bytes, self._cpu_s)

    def wait(self, timeout_s: float) -> None:
        """Wait until something comes, or goes wrong."""
        with self._came:
            if not self._lines and self._error is None:
                self._came.wait(timeout_s)

    def close(self, timeout_s: float = 15.0) -> None:
        """End the link and the thread. Safe to call twice."""
        self._stopping.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        backoff = Backoff(1.0, 30.0, jitter=0.0)
        while not self._stopping.is_set():
            if not backoff.due:
                self._stopping.wait(_TURN_S)
                continue
            try:
                self._one_link(backoff)
            except LinkLost as lost:
                self._report(str(lost))
            except CollectorError as error:  # to try again could lock the account, and would not help
                self._report(str(error))
                return
            except Exception as error:  # noqa: BLE001 - a library's own error must not end the thread unsaid
                self._report(f"{type(error).__name__}: {error}")
            backoff.failed()

    def _one_link(self, backoff: Backoff) -> None:
        link = self._open(self._stopping)
        self._number += 1
        before = self._bytes
        asks, next_ask_s = 0, 0.0
        try:
            while not self._stopping.is_set():
                lines = link.receive()
                if _has_reading(lines):
                    backoff.succeeded()
                self._hold(lines, before + link.received_bytes)
                now_s = time.monotonic()
                if self._is_ready(lines, asks) and now_s >= next_ask_s:
                    link.ask()
                    asks += 1
                    next_ask_s = now_s + (_ASK_S if asks >= _FIRST_ASKS else 0.0)
        finally:
            link.close()

    @staticmethod
    def _is_ready(lines: list[Arrived], asks: int) -> bool:
        """Whether the script listens: from its line ``ready`` on."""
        return asks > 0 or any(one.line["kind"] == "ready" for one in lines)

    def _hold(self, lines: list[Arrived], received_bytes: int) -> None:
        with self._came:
            self._lines += [(self._number, line) for line in lines]
            del self._lines[:-_MOST_HELD]
            self._bytes = received_bytes
            self._cpu_s = time.thread_time()
            if _has_reading(lines):
                self._error = None
            if lines:
                self._came.notify_all()

    def _report(self, why: str) -> None:
        with self._came:
            self._error = self._lost = why
            self._cpu_s = time.thread_time()
            self._came.notify_all()


def _has_reading(lines: list[Arrived]) -> bool:
    """Whether the machine was read, and not only asked what it is."""
    return any(one.line["kind"] == "reading" for one in lines)
