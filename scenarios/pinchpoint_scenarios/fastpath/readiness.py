"""Waits repeatedly for one descriptor.

If gevent has patched the process, its loop is used with one watcher per connection, because a new watcher for
each wait would double the cost of an operation. Elsewhere (tests, other programs) the selector of the system
is used. gevent is only looked up among the loaded modules, and never imported.
"""

from __future__ import annotations

import math
import selectors
import sys
from time import monotonic
from typing import Any, Protocol


class Readiness(Protocol):
    """Waits for one descriptor, for one thread and one greenlet at a time."""

    def wait_readable(self, until: float = math.inf) -> bool:
        """Wait for data, an end or an error. The wait may end early, so the caller must check again.

        Args:
            until: ``time.monotonic()`` at which the wait ends, or shortly after.

        Returns:
            False: False if the time is over.
        """
        ...

    def wait_writable(self, until: float = math.inf) -> bool:
        """Wait until the descriptor is readable or writable."""
        ...

    def close(self) -> None:
        """Forget the descriptor before it is closed. A second call does nothing."""
        ...


def readiness(descriptor: int) -> Readiness:
    """Return the ``Readiness`` of a non-blocking descriptor, for this process's kind of waiting."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("socket"):
        return _ByGevent(descriptor, sys.modules["gevent"].get_hub())
    return _BySelector(descriptor)


class _BySelector:
    def __init__(self, descriptor: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._descriptor = descriptor
        self._selector.register(descriptor, selectors.EVENT_READ)

    def wait_readable(self, until: float = math.inf) -> bool:
        while not self._selector.select(None if until == math.inf else max(0.0, until - monotonic())):
            if monotonic() >= until:  # otherwise a signal interrupted the wait
                return False
        return True

    def wait_writable(self, until: float = math.inf) -> bool:
        self._selector.modify(self._descriptor, selectors.EVENT_READ | selectors.EVENT_WRITE)
        try:
            return self.wait_readable(until)
        finally:
            self._selector.modify(self._descriptor, selectors.EVENT_READ)

    def close(self) -> None:
        self._selector.close()


_READ, _WRITE = 1, 2  # EV_READ and EV_WRITE of libev


class _ByGevent:
    """Waits in gevent's hub, with one watcher per connection.

    It replaces ``hub.wait`` without the object that checks which greenlet wakes it, because a wait may end
    early and the caller checks again. A timer per wait would double the cost of a wait. Therefore one timer
    runs. If the timer expires after its wait has ended, it is started again for the current wait.
    """

    def __init__(self, descriptor: int, hub: Any) -> None:
        self._hub = hub
        self._descriptor = descriptor
        self._watcher = hub.loop.io(descriptor, _READ)
        self._switch = hub.switch
        self._getcurrent = sys.modules["gevent"].getcurrent
        self._waiting: Any = None
        self._timer: Any = None
        self._rings = math.inf
        self._until = math.inf
        self._over = False

    def wait_readable(self, until: float = math.inf) -> bool:
        self._until = until
        if until < self._rings:  # no timer runs, or the timer is for a longer wait
            self._start_timer()
        watcher = self._watcher
        self._waiting = waiting = self._getcurrent()
        watcher.start(waiting.switch)
        try:
            self._switch()
        finally:
            watcher.stop()
            self._waiting = None
        if self._over:
            self._over = False
            return False
        return True

    def wait_writable(self, until: float = math.inf) -> bool:
        readable, self._watcher = self._watcher, self._hub.loop.io(self._descriptor, _READ | _WRITE)
        try:
            return self.wait_readable(until)
        finally:
            self._watcher.close()
            self._watcher = readable

    def close(self) -> None:
        self._watcher.close()
        self._stop_timer()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._rings = self._until
        self._timer = self._hub.loop.timer(max(0.0, self._until - monotonic()), ref=False)
        self._timer.start(self._ring)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer, self._rings = None, math.inf

    def _ring(self) -> None:
        self._stop_timer()
        if self._waiting is None or self._until == math.inf:
            return
        if monotonic() < self._until:
            self._start_timer()
        else:
            self._over = True
            self._waiting.switch()
