"""Limits requests to a source: pauses between requests, a limit per host, pauses that a host requests."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

NO_WAIT: AbstractContextManager[None] = nullcontext()
LONGEST_HOLD_S = 3600.0
"""Largest pause in seconds. A longer pause of a server is shortened, so that a crawl ends."""


class RequestLimits:
    """The request limits of one process for one source. The sessions of the process share them.

    Args:
        delay_s: seconds between the starts of two requests to one host.
        per_host: largest number of simultaneous requests to one host; None: unlimited.

    Attributes:
        free: whether no host has a pause or a limit, so that every turn is ``NO_WAIT``.
    """

    def __init__(self, delay_s: float = 0.0, per_host: int | None = None) -> None:
        self._delay_s = delay_s
        self._per_host = per_host
        self.free = not delay_s and per_host is None
        self._lock = threading.Lock()
        self._hosts: dict[str, _HostLimits] = {}

    def turn(self, host: str) -> AbstractContextManager[None]:
        """Return the right to send one request to ``host``.

        Entering the context waits for the right, and leaving it returns the right.
        """
        result = self._hosts.get(host)
        if result is None:
            if not self._delay_s and self._per_host is None:
                return NO_WAIT
            result = self._host(host)
        return _Turn(result)

    def hold(self, host: str, seconds: float) -> None:
        """Send no request to ``host`` for this time, because the host requested a pause (``Retry-After``)."""
        if seconds > 0:
            self._host(host).hold(min(seconds, LONGEST_HOLD_S))

    def slow_down(self, host: str, delay_s: float) -> None:
        """Keep at least this pause between two requests to ``host``, because of its ``Crawl-delay``."""
        if delay_s > 0:
            self._host(host).slow_down(min(delay_s, LONGEST_HOLD_S))

    def pause_s(self) -> float:
        """Return the shortest wait of ``turn`` over all hosts; 0 if a host may be queried now."""
        hosts = list(self._hosts.values())
        return max(0.0, min((host.due_at for host in hosts), default=0.0) - time.monotonic())

    def _host(self, name: str) -> _HostLimits:
        with self._lock:
            self.free = False
            return self._hosts.setdefault(name, _HostLimits(self._delay_s, self._per_host))


class _HostLimits:
    def __init__(self, delay_s: float, limit: int | None) -> None:
        self.delay_s = delay_s
        self.due_at = 0.0  # monotonic time at which the next request may start
        self.held_until = 0.0
        self.lock = threading.Lock()
        self.places = threading.BoundedSemaphore(limit) if limit is not None else None

    def hold(self, seconds: float) -> None:
        with self.lock:
            self.held_until = max(self.held_until, time.monotonic() + seconds)
            self.due_at = max(self.due_at, self.held_until)

    def slow_down(self, delay_s: float) -> None:
        with self.lock:
            self.delay_s = max(self.delay_s, delay_s)

    def wait(self) -> None:
        """Wait for the turn. Each waiting session has a time of its own, and gets a new one after a pause."""
        while True:
            with self.lock:
                now = time.monotonic()
                mine = max(now, self.due_at)
                if self.delay_s:
                    self.due_at = mine + self.delay_s
            if mine > now:
                time.sleep(mine - now)
            if mine >= self.held_until:
                return


class _Turn(AbstractContextManager[None]):
    def __init__(self, host: _HostLimits) -> None:
        self._host = host

    def __enter__(self) -> None:
        if self._host.places is not None:
            self._host.places.acquire()
        try:
            self._host.wait()
        except BaseException:  # a session that is stopped while it waits returns its place
            self._leave()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._host.places is not None:
            self._host.places.release()
