"""Waiting for one descriptor, again and again.

Where gevent has patched the process, by its loop, with one watcher that lives as long as the connection:
making one for each wait costs as much as an operation's own work. Elsewhere (tests, other programs) by the
system's selector. gevent is looked up, never imported: who has it patched in has it there.
"""

from __future__ import annotations

import math
import selectors
import sys
import time
from typing import Any, Protocol


class Readiness(Protocol):
    """One descriptor's readiness. It belongs to one thread and one greenlet at a time."""

    def wait_readable(self) -> None:
        """Wait until there is something to read, an end or an error. It may end early: look again."""
        ...

    def wait_readable_for(self, seconds: float) -> bool:
        """Likewise, but not much longer than so many seconds; False: they are over."""
        ...

    def wait_writable_for(self, seconds: float | None) -> bool:
        """Wait until something can be read or written; False: so many seconds are over. None: for ever."""
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

    It does what ``hub.wait`` does, without the object that makes sure of who wakes it: a wait may end early,
    and whoever waits looks again. A timer for each wait would cost as much as the wait. So one timer runs,
    finds now and then that the wait it was started for is long over, and is started again for the one that
    goes on.
    """

    def __init__(self, descriptor: int, hub: Any) -> None:
        self._hub = hub
        self._descriptor = descriptor
        self._readable = hub.loop.io(descriptor, _READ)
        self._switch = hub.switch
        self._getcurrent = sys.modules["gevent"].getcurrent
        self._timer: Any = None
        self._rings = math.inf
        self._until = 0.0
        self._waiting = False

    def wait_readable(self) -> None:
        watcher = self._readable
        watcher.start(self._getcurrent().switch)
        try:
            self._switch()
        finally:
            watcher.stop()

    def wait_readable_for(self, seconds: float) -> bool:
        self._until = until = time.monotonic() + seconds
        if until < self._rings:  # none runs, or one for a longer wait
            self._start_timer(seconds)
        watcher = self._readable
        self._waiting = True
        watcher.start(self._getcurrent().switch)  # as wait_readable, without the call
        try:
            self._switch()
        except _TimeIsUp:  # maybe that of the wait before, which ended at the same moment
            left_s = self._until - time.monotonic()
            return left_s > 0 and self.wait_readable_for(left_s)
        finally:
            watcher.stop()
            self._waiting = False
        return True

    def wait_writable_for(self, seconds: float | None) -> bool:
        either = self._hub.loop.io(self._descriptor, _READ | _WRITE)
        timeout = sys.modules["gevent"].Timeout(seconds, _TimeIsUp)
        try:
            with timeout:
                self._hub.wait(either)
        except _TimeIsUp:
            return False
        finally:
            either.close()
        return True

    def close(self) -> None:
        self._readable.close()
        self._stop_timer()

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._hub.loop.timer(max(0.0, seconds), ref=False)
        self._rings = time.monotonic() + seconds
        self._timer.start(self._ring)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer, self._rings = None, math.inf

    def _ring(self) -> None:
        self._stop_timer()
        if not self._waiting:
            return
        left_s = self._until - time.monotonic()
        if left_s > 0:
            self._start_timer(left_s)
        else:
            self._hub.cancel_wait(self._readable, _TimeIsUp)


class _TimeIsUp(Exception):  # noqa: N818 - no error: it ends a wait
    pass
