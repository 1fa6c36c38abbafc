"""A connection pooler in front of a PostgreSQL, with the behaviour of PgBouncer that a client notices."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer

_ENCRYPTION = (80877103, 80877104)
_REFUSED = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"


@contextmanager
def pooled(place: str) -> Iterator[str]:
    """Yield the address of a pooler that forwards everything to a server, with two exceptions.

    - It refuses settings that a client requests at connect (``options``).
    - It reports a process id of its own, because a client's session is not the server's.
    """
    host, _, port = place.rpartition(":")

    class Pooler(BaseRequestHandler):
        def handle(self) -> None:
            """Serve one client until the client or the server disconnects."""
            size, greeting = _greeting(self.request)
            while int.from_bytes(greeting[:4]) in _ENCRYPTION:
                self.request.sendall(b"N")
                size, greeting = _greeting(self.request)
            if b"\0options\0" in greeting:
                self.request.sendall(b"E" + (len(_REFUSED) + 4).to_bytes(4) + _REFUSED)
                return
            with socket.create_connection((host, int(port))) as server:
                server.sendall(size + greeting)
                back = threading.Thread(target=_answers, args=(server, self.request))
                back.start()
                while sent := self.request.recv(65536):
                    server.sendall(sent)
                server.shutdown(socket.SHUT_RDWR)
                back.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Pooler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def _greeting(client: socket.socket) -> tuple[bytes, bytes]:
    size = client.recv(4, socket.MSG_WAITALL)
    return size, client.recv(int.from_bytes(size) - 4, socket.MSG_WAITALL)


def _answers(server: socket.socket, client: socket.socket) -> None:
    while head := server.recv(5, socket.MSG_WAITALL):
        left = int.from_bytes(head[1:]) - 4
        body = server.recv(left, socket.MSG_WAITALL) if left else b""
        client.sendall(head + (b"\0\0\0\1" + body[4:] if head[:1] == b"K" else body))
