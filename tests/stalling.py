"""A TCP proxy that can stall, read slowly or not at all, send garbage, half-close, or reset."""

from __future__ import annotations

import random
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FAULTS = ("stalled", "garbled", "half_closed", "reset")
_RESETS = struct.pack("ii", 1, 0)


class StallingProxy:
    """Forwards connections to a local server until a test sets one of the faults.

    Args:
        port: the server's TCP port on the loopback.
        after: number of answers per connection that are forwarded before a fault takes effect.

    Attributes:
        stalled: while set, the proxy forwards nothing; afterwards it forwards what has arrived.
        garbled: while set, answers are random bytes.
        half_closed: while set, the proxy closes its sending side in place of an answer and still reads.
        reset: while set, the proxy resets the connection in the middle of an answer.
        slow: while set, the proxy reads the client's data 64 KiB at a time, with pauses of 5 ms.
        unread: while set, the proxy does not read the client's data.
        seen: forwarded data of both directions, in pieces.
    """

    def __init__(self, port: int, after: int = 0) -> None:
        self.stalled = threading.Event()
        self.garbled = threading.Event()
        self.half_closed = threading.Event()
        self.reset = threading.Event()
        self.slow = threading.Event()
        self.unread = threading.Event()
        self.seen: list[bytes] = []
        self._random = random.Random(1)
        self._server = port
        self._after = after
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
            held: list[tuple[socket.socket, bytes]] = []
            answers = 0
            while not self._over.is_set():
                heard = [server] if self.unread.is_set() else [client, server]
                ready = select.select(heard, [], [], 0.1)[0]
                stalled = self.stalled.is_set() and answers >= self._after
                while held and not stalled:
                    to, content = held.pop(0)
                    to.sendall(content)
                for one in ready:
                    content = self._read(one, slowly=one is client and self.slow.is_set())
                    if not content:
                        return
                    self.seen.append(content)
                    if stalled:
                        held.append((others[one], content))
                        continue
                    if one is server:
                        answers += 1
                        if answers > self._after and not self._answered(client, content):
                            return
                        if answers > self._after and self.garbled.is_set():
                            content = self._random.randbytes(len(content))
                        if self.half_closed.is_set() and answers > self._after:
                            continue
                    others[one].sendall(content)

    def _read(self, one: socket.socket, *, slowly: bool) -> bytes:
        if slowly:
            self._over.wait(0.005)
        return one.recv(65536)

    def _answered(self, client: socket.socket, content: bytes) -> bool:
        """Handle an answer, which a fault may alter; return True if the connection is still usable."""
        if self.half_closed.is_set():
            with suppress(OSError):  # the socket is already shut down
                client.shutdown(socket.SHUT_WR)
        if self.reset.is_set():
            client.sendall(content[: len(content) // 2])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
            client.close()
            return False
        return True

    def close(self) -> None:
        """Close every connection."""
        self._over.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()


@contextmanager
def stalling_proxy(port: int, after: int = 0) -> Iterator[StallingProxy]:
    """Yield a proxy and close it at the end."""
    proxy = StallingProxy(port, after)
    try:
        yield proxy
    finally:
        proxy.close()
