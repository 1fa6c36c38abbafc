"""Waiting for one descriptor, again and again.

Where gevent has patched the process, by its loop, with one watcher that lives as long as the connection:
making one for each wait costs as much as an operation's own work. Elsewhere (tests, other programs) by the
system's selector. gevent is looked up, never imported: who has it patched in has it there.
"""

from __future__ import annotations

import selectors
import sys
import time
from typing import Any, Protocol


class Readiness(Protocol):
    """One descriptor's readiness. It belongs to one thread and one greenlet at a time."""

    def wait_readable(self) -> None:
        """Wait until there is something to read, an end or an error."""
        ...

    def wait_readable_for(self, seconds: float) -> bool:
        """Likewise, but not much longer than so many seconds; whether there is something."""
        ...

    def wait_writable_for(self, seconds: float | None) -> bool:
        """Wait until something can be read or written; None: for ever. Whether it can."""
        ...

    def close(self) -> None:
        """Forget the descriptor, before it is closed. Safe to call twice."""
        ...


def readiness(descriptor: int) -> Readiness:
    """The readiness of a non-blocking descriptor, by whatever makes waiting cooperative in this process."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("socket"):
        return _ByGevent(descriptor, sys.modules["gevent"].get_hub())
    return _BySelector(descriptor)


class _BySelector:
    def __init__(self, descriptor: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._descriptor = descriptor
        self._selector.register(descriptor, selectors.EVENT_READ)

    def wait_readable(self) -> None:
        while not self._selector.select():  # interrupted by a signal: nothing is ready
            continue

    def wait_readable_for(self, seconds: float) -> bool:
        return self._select(seconds)

    def wait_writable_for(self, seconds: float | None) -> bool:
        self._selector.modify(self._descriptor, selectors.EVENT_READ | selectors.EVENT_WRITE)
        try:
            return self._select(seconds)
        finally:
            self._selector.modify(self._descriptor, selectors.EVENT_READ)

    def close(self) -> None:
        self._selector.close()

    def _select(self, seconds: float | None) -> bool:
        until = None if seconds is None else time.monotonic() + seconds
        while not self._selector.select(None if until is None else max(0.0, until - time.monotonic())):
            if until is not None and time.monotonic() >= until:
                return False
        return True


_READ, _WRITE = 1, 2  # libev's EV_READ and EV_WRITE


class _ByGevent:
    """Waits in gevent's hub.

    A timer for each wait would cost as much as the wait. So one timer runs, finds now and then that the wait
    it was started for is long over, and is started again for the one that goes on.
    """

    def __init__(self, descriptor: int, hub: Any) -> None:
        self._hub = hub
        self._descriptor = descriptor
        self._readable = hub.loop.io(descriptor, _READ)
        self._wait = hub.wait
        self._timer: Any = None
        self._until = 0.0
        self._waiting: Any = None

    def wait_readable(self) -> None:
        self._wait(self._readable)

    def wait_readable_for(self, seconds: float) -> bool:
        return self._wait_for(self._readable, seconds)

    def wait_writable_for(self, seconds: float | None) -> bool:
        either = self._hub.loop.io(self._descriptor, _READ | _WRITE)
        try:
            if seconds is not None:
                return self._wait_for(either, seconds)
            self._wait(either)
        finally:
            either.close()
        return True

    def close(self) -> None:
        self._readable.close()
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def _wait_for(self, watcher: Any, seconds: float) -> bool:
        self._until = time.monotonic() + seconds
        self._waiting = watcher
        try:
            while True:
                if self._timer is None:
                    self._start_timer(self._until - time.monotonic())
                try:
                    self._wait(watcher)
                except _TimeIsUp:  # maybe that of the wait before, which ended at the same moment
                    if time.monotonic() >= self._until:
                        return False
                else:
                    return True
        finally:
            self._waiting = None

    def _start_timer(self, seconds: float) -> None:
        self._timer = self._hub.loop.timer(max(0.0, seconds), ref=False)
        self._timer.start(self._ring)

    def _ring(self) -> None:
        self._timer.close()
        self._timer = None
        if self._waiting is None:
            return
        left_s = self._until - time.monotonic()
        if left_s > 0:
            self._start_timer(left_s)
        else:
            self._hub.cancel_wait(self._waiting, _TimeIsUp)


class _TimeIsUp(Exception):  # noqa: N818 - no error: it ends a wait
    pass
