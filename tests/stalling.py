"""A TCP proxy that can stop forwarding while it still acknowledges, or answer garbage."""

from __future__ import annotations

import random
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class StallingProxy:
    """Forwards connections to a server of this machine, until ``stalled`` is set, or ``garbled``.

    Args:
        port: the server's port on the loopback.

    Attributes:
        seen: what went through, in pieces, both ways.
    """

    def __init__(self, port: int) -> None:
        self.stalled = threading.Event()
        self.garbled = threading.Event()
        self.seen: list[bytes] = []
        self._random = random.Random(1)
        self._server = port
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self._over.is_set():
            if select.select([self._listener], [], [], 0.1)[0]:
                connection, _ = self._listener.accept()
                thread = threading.Thread(target=self._forward, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _forward(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._server)) as server:
            others = {client: server, server: client}
            while not self._over.is_set():
                for ready in select.select([client, server], [], [], 0.1)[0]:
                    content = ready.recv(65536)
                    if not content:
                        return
                    self.seen.append(content)
                    if self.garbled.is_set() and ready is server:
                        content = self._random.randbytes(len(content))
                    if not self.stalled.is_set():
                        others[ready].sendall(content)

    def close(self) -> None:
        """Close every connection."""
        self._over.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()


@contextmanager
def stalling_proxy(port: int) -> Iterator[StallingProxy]:
    """One that is closed at the end."""
    proxy = StallingProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
