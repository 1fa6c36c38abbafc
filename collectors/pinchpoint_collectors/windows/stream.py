"""Keeps the link to a machine's script open in a thread, and stores the received lines.

The thread reopens a lost link. Lines that the machine sent meanwhile and the network kept arrive late, with
their own times. Lines that were never sent are not replaced.
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
        received_ns: time of arrival in UTC ns since 1970 by the local clock.
        line: line.
    """

    received_ns: int
    line: Line


class ScriptLink(Protocol):
    """A session that runs the script and returns its output lines."""

    @property
    def received_bytes(self) -> int:
        """Return the number of received bytes."""
        ...

    def receive(self) -> list[Arrived]:
        """Return the lines that have arrived. Waits for them for about a second.

        Raises:
            LinkLost: the link is cut, or the script has ended.
        """
        ...

    def ask(self) -> None:
        """Request the time of the machine, which a line ``time`` answers. This also keeps the script running.

        It must not be called before the script has sent ``ready``.

        Raises:
            LinkLost: the link is cut.
        """
        ...

    def close(self) -> None:
        """End the script, and leave nothing on the machine. A second call does nothing."""
        ...


_ASK_S = 5.0
_FIRST_ASKS = 5
"""Number of requests for the time that are sent at once, so that the clock is known soon."""
_TURN_S = 0.2
_MOST_HELD = 20_000
"""Largest number of stored lines: half an hour of a machine with ten classes. The oldest are dropped."""


class Received(NamedTuple):
    """What has arrived since the last call.

    Attributes:
        lines: number of the link, and line.
        error: why there is no link now; None: there is one, or one is being opened.
        lost: why the last lost link was lost; "": none was lost.
        received_bytes: bytes of all links up to now.
        cpu_s: CPU seconds of the thread up to now.
    """

    lines: list[tuple[int, Arrived]]
    error: str | None
    lost: str
    received_bytes: int
    cpu_s: float


class Stream:
    """A thread that reads the lines of a machine, and reopens a lost link.

    Args:
        name: name of the machine, for the thread.
        open_link: opens a link and starts the script. Its argument is an event that is set when the link is
            no longer needed. Raises ``LinkLost``, or ``CollectorError`` if another attempt would not help.
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
        """Return and remove what has arrived."""
        with self._came:
            lines, self._lines = self._lines, []
            return Received(lines, self._error, self._lost, self._bytes, self._cpu_s)

    def wait(self, timeout_s: float) -> None:
        """Wait until lines arrive or an error occurs."""
        with self._came:
            if not self._lines and self._error is None:
                self._came.wait(timeout_s)

    def close(self, timeout_s: float = 15.0) -> None:
        """End the link and the thread. A second call does nothing."""
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
            except CollectorError as error:  # another attempt could lock the account, and would not help
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
        """Return whether the script listens, which it does from its line ``ready`` on."""
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
    """Return whether the machine was read, and not only asked for facts."""
    return any(one.line["kind"] == "reading" for one in lines)
