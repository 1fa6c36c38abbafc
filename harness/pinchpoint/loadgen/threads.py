"""Threads for sessions whose driver blocks in C code, so that the event loop is not blocked.

A hop into a thread and back costs some 45 microseconds and a turn of the loop. Users that start again as
soon as they are free hop once for many operations; what is recorded is set down in the loop, for the
recorder belongs to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from gevent.threadpool import ThreadPool

from pinchpoint_scenarios.contract import Record, Scenario, Session

_Recorded = tuple[str, str, int, int, int]
_Result = TypeVar("_Result")


class SessionThreads:
    """One thread for each session.

    Args:
        sessions: how many there are to be.
    """

    def __init__(self, sessions: int) -> None:
        self._pool = ThreadPool(max(1, sessions))
        self._sessions = sessions

    def grow(self, sessions: int) -> None:
        """This many more sessions come."""
        self._sessions += sessions
        self._pool.maxsize = max(1, self._sessions)

    def call(self, function: Callable[[], _Result]) -> _Result:
        """The result of the function, run in a thread; it may raise."""
        # An error is handed over, not raised: the pool would print its traceback.
        result, error = self._pool.spawn(_done, function).get()
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]  # gevent ships no types


class ThreadedSession:
    """A ``Session`` that makes all its calls in threads.

    Args:
        threads: the threads that make the calls.
        scenario: the driver.
        number: the session's.
        stretch_s: one ``perform`` does further operations for this time; 0: it does one.
        stopped: whether no further operation is to start; asked from within the thread.
    """

    def __init__(
        self,
        threads: SessionThreads,
        scenario: Scenario,
        number: int,
        stretch_s: float,
        stopped: Callable[[], bool],
    ) -> None:
        self._threads = threads
        self._stretch_s = stretch_s
        self._stopped = stopped
        self._under_way = False
        self._session: Session = threads.call(lambda: scenario.session(number))

    def perform(self, record: Record) -> bool:
        """As ``Session``'s, for as long as the stretch is."""
        recorded: list[_Recorded] = []
        self._under_way = True
        try:
            going_on = self._threads.call(lambda: self._stretch(recorded))
            self._under_way = False
        finally:
            for row in recorded:
                record(*row)
        return going_on

    def close(self) -> None:
        """Close connections, unless the driver still waits: then they end with the process."""
        if not self._under_way:
            self._threads.call(self._session.close)

    def _stretch(self, recorded: list[_Recorded]) -> bool:
        def record(operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
            recorded.append((operation, outcome, start_ns, end_ns, size_bytes))

        perform, until = self._session.perform, time.perf_counter() + self._stretch_s
        while perform(record):
            if time.perf_counter() >= until or self._stopped():
                return True
        return False


def _done(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001 -- raised again by whoever asked
        return None, error
