"""The library's connections where gevent makes waiting cooperative: by sockets and threads, which it patches.

The library has its own for that in 3.30, marked as going, and none from 3.31 on (its change CASSPYTHON-13):
what it then takes, a loop in C, would keep every greenlet of the process from running.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, ClassVar

from cassandra.connection import Connection, ConnectionShutdown, Timer, TimerManager


def connection_class() -> type[Connection] | None:
    """What a cluster's connections are to be made of; None: what the library takes by itself."""
    monkey = sys.modules.get("gevent.monkey")
    patched = monkey is not None and monkey.is_module_patched("socket")
    return CooperativeConnection if patched else None


class CooperativeConnection(Connection):  # type: ignore[misc] # the library ships no types
    """A connection with a thread that reads and one that writes.

    Only for a process whose threads take turns by themselves: two real ones may not share a TLS socket.
    """

    is_closed: bool
    _timers: ClassVar[_Timers | None] = None

    @classmethod
    def initialize_reactor(cls) -> None:
        """See the library's ``Connection``: called before the first connection, and again."""
        if cls._timers is None:
            cls._timers = _Timers()

    @classmethod
    def create_timer(cls, timeout: float, callback: Callable[[], None]) -> Timer:
        """See the library's ``Connection``: calls back in so many seconds, unless cancelled."""
        assert cls._timers is not None  # noqa: S101 - the library calls initialize_reactor first
        return cls._timers.add(Timer(timeout, callback))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._connect_socket()
        for work in (self._read, self._write):
            Thread(target=work, name=f"cassandra{work.__name__}", daemon=True).start()
        self._send_options_message()

    def push(self, data: bytes) -> None:
        """See the library's ``Connection``: send this, in the order of the calls. Returns at once."""
        self._outgoing.put(data)

    def close(self) -> None:
        """See the library's ``Connection``. Safe to call twice."""
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
        self._outgoing.put(None)
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it is closed all the same where the other side was faster
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes the reader
            self._socket.close()
        if not self.is_defunct:
            self.error_all_requests(ConnectionShutdown(f"the connection to {self.endpoint} was closed"))
            self.connected_event.set()

    def _write(self) -> None:
        try:
            while (data := self._outgoing.get()) is not None:
                self._socket.sendall(data)
        except OSError as error:
            self.defunct(error)

    def _read(self) -> None:
        try:
            while content := self._socket.recv(self.in_buffer_size):
                self._iobuf.write(content)
                self.process_io_buffer()
        except OSError as error:
            self.defunct(error)
        else:
            self.close()


class _Timers:
    """One thread that calls back when it is time to."""

    def __init__(self) -> None:
        self._waiting = TimerManager()
        self._changed = Event()
        Thread(target=self._run, name="cassandra_timers", daemon=True).start()

    def add(self, timer: Timer) -> Timer:
        self._waiting.add_timer(timer)
        self._changed.set()
        return timer

    def _run(self) -> None:
        while True:
            self._changed.clear()
            next_s = self._waiting.service_timeouts()
            self._changed.wait(None if next_s is None else max(0.0, next_s - time.time()))
