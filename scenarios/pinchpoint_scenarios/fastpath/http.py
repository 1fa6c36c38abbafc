"""HTTP/1.1 at about the speed of C: a write, a wait, a read, httptools (llhttp) as the parser.

One connection to one server, kept alive as long as the server allows. TLS goes through memory, so that
reading, writing and waiting are the same with it and without.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import httptools

from .readiness import Readiness, readiness

_READ_BYTES = 65_536
_TLS_RECORDS_BYTES = 2**18

T = TypeVar("T")

Kind = Literal["unreachable", "timeout", "tls", "connection_lost", "bad_answer", "too_large"]


class HttpError(Exception):
    """There is no answer. The connection is closed.

    Attributes:
        kind: ``unreachable`` (no connection), ``timeout``, ``tls`` (its handshake or a record),
            ``connection_lost``, ``bad_answer`` (it is no HTTP), ``too_large``.
    """

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.kind: Kind = kind


class _UnansweredError(HttpError):
    """The server closed an idle connection as we wrote to it: it has seen nothing of the request."""


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer.

    Attributes:
        status: its status code.
        headers: its header fields, as they came.
        body: the bytes of its body, whatever their content encoding.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def header(self, name: bytes) -> str:
        """The value of a field (``name`` in lower case), several joined by commas; "" without any."""
        found = [value for field, value in self.headers if field.lower() == name]
        return b", ".join(found).decode("latin-1")


class HttpConnection:
    """One connection to one server, opened when it is first needed.

    Args:
        host: the server's name or address.
        port: its port.
        tls: how TLS is spoken; None: not at all.
        connect_timeout_s: how long connecting, handshake included, may take.
        largest_bytes: a larger body is not read to its end.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None,
        connect_timeout_s: float,
        largest_bytes: int,
    ) -> None:
        self._host = host
        self._address = (host, port)
        self._tls = tls
        self._connect_timeout_s = connect_timeout_s
        self._largest_bytes = largest_bytes
        self._socket: socket.socket | None = None
        self._descriptor = -1
        self._ready: Readiness | None = None
        self._records: _Records | None = None
        self._incoming = _Incoming(largest_bytes)
        self.opened = 0
        """How many connections were opened so far: who logged in on one must do so again on the next."""

    def exchange(self, request: bytes, deadline: float, *, again: bool) -> Response:
        """Send a request and read its answer.

        Args:
            request: head and body.
            deadline: ``time.monotonic()`` by which the last byte must have come.
            again: whether it may be sent a second time where the server closed an idle connection on it.

        Raises:
            HttpError: see there.
        """
        if self._socket is not None:
            if again or not self._is_gone():
                try:
                    return self._exchange(request, deadline)
                except _UnansweredError:
                    if not again:
                        raise
            self.close()
        self._connect(deadline)
        return self._exchange(request, deadline)

    def close(self) -> None:
        """Close the connection. Safe to call twice; the next request opens another."""
        if self._ready is not None:
            self._ready.close()  # before its descriptor is
            self._ready = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._records = None

    def _exchange(self, request: bytes, deadline: float) -> Response:
        incoming = self._incoming
        incoming.start()
        try:
            self._send(request, deadline)
            while not incoming.complete:
                self._wait(deadline)
                self._take_in(self._read())
        except BaseException:  # whatever is still to come would be taken for the next answer
            self.close()
            raise
        if not incoming.keep_alive:
            self.close()
        return incoming.answer()

    def _take_in(self, content: bytes | None) -> None:
        incoming = self._incoming
        if content is None:  # nothing yet
            return
        if not content:
            if not incoming.ends_with_connection():
                if not incoming.begun:
                    raise _UnansweredError("connection_lost", "the server closed the connection")
                raise HttpError("connection_lost", "the server closed the connection in an answer")
            incoming.complete, incoming.keep_alive = True, False
            return
        try:
            incoming.feed(content)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not incoming.complete:
                raise HttpError("bad_answer", f"the answer is no HTTP: {error}") from error
            incoming.keep_alive = False  # what follows the answer is nobody's
        if incoming.size_bytes > self._largest_bytes:
            raise HttpError("too_large", f"larger than {self._largest_bytes} bytes")

    def _connect(self, deadline: float) -> None:
        until = min(deadline, time.monotonic() + self._connect_timeout_s)
        try:
            self._socket = socket.create_connection(self._address, max(0.001, until - time.monotonic()))
        except (OSError, UnicodeError) as error:  # UnicodeError: a host that cannot be a name
            raise HttpError("unreachable", str(error)) from error
        self.opened += 1
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._descriptor = self._socket.fileno()
            os.set_blocking(self._descriptor, False)
            self._ready = readiness(self._descriptor)
            if self._tls is not None:
                self._records = _Records(self._tls, self._host)
                self._shake_hands(self._records, until)
        except BaseException:
            self.close()
            raise

    def _shake_hands(self, records: _Records, deadline: float) -> None:
        while True:
            done = records.shake_hands()
            self._write_all(records.to_send(), deadline)
            if done:
                return
            self._wait(deadline)
            content = self._read_plain()
            if content == b"":
                raise HttpError("tls", "the server closed the connection in the handshake")
            if content is not None:
                records.receive(content)

    def _is_gone(self) -> bool:
        """Whether the server has closed the idle connection."""
        try:
            content = self._read_plain()
        except HttpError:
            return True
        return content is not None  # an end, or bytes nobody asked for

    def _send(self, request: bytes, deadline: float) -> None:
        content = self._records.sealed(request) if self._records is not None else request
        try:
            self._write_all(content, deadline)
        except _UnansweredError:
            # The server may have answered before it closed: that answer counts (a refusal of a large body).
            came = self._read()
            if not came:
                raise
            self._take_in(came)

    def _write_all(self, content: bytes, deadline: float) -> None:
        sent = self._write(content)
        while sent < len(content) and not self._incoming.complete:
            if not self._readiness().wait_writable_for(_left_s(deadline)):
                raise HttpError("timeout", "the server took no more of a request in time")
            more = self._write(memoryview(content)[sent:])
            if not more:  # what woke us is an answer that does not wait for the rest
                self._take_in(self._read())
            sent += more
        if sent < len(content):
            self._incoming.keep_alive = False

    def _write(self, content: bytes | memoryview) -> int:
        try:
            return os.write(self._descriptor, content)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _UnansweredError("connection_lost", f"the connection broke: {error.strerror}") from error

    def _wait(self, deadline: float) -> None:
        if not self._readiness().wait_readable_for(_left_s(deadline)):
            raise HttpError("timeout", "the answer was not complete in time")

    def _read(self) -> bytes | None:
        """What came; empty at the end, None where there is nothing yet."""
        content = self._read_plain()
        return content if self._records is None or not content else self._records.opened(content)

    def _read_plain(self) -> bytes | None:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return None
        except ConnectionResetError as error:
            if not self._incoming.begun:
                raise _UnansweredError("connection_lost", "the server reset the connection") from error
            raise HttpError("connection_lost", "the server reset the connection") from error
        except OSError as error:
            raise HttpError("connection_lost", f"the connection broke: {error.strerror}") from error

    def _readiness(self) -> Readiness:
        if self._ready is None:
            raise HttpError("connection_lost", "not connected")
        return self._ready


class _Incoming:
    """The answer that is coming in: what httptools tells, by these names."""

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self.size_bytes = 0
        self.begun = self.complete = self.keep_alive = False

    def start(self) -> None:
        """Before each request. The parser goes on to the next answer where the last one ended well."""
        if not self.keep_alive:
            self._parser = httptools.HttpResponseParser(self)
        self.begun = self.complete = self.keep_alive = False
        self._forget()

    def feed(self, content: bytes) -> None:
        self.begun = True
        self._parser.feed_data(content)

    def ends_with_connection(self) -> bool:
        """Whether the end of the connection is this answer's proper end: its head does not say its length."""
        names = {name.lower() for name, _ in self._headers}
        return self._status >= 200 and names.isdisjoint({b"content-length", b"transfer-encoding"})

    def answer(self) -> Response:
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return Response(self._status, tuple(self._headers), body)

    def on_message_begin(self) -> None:
        if self.complete:
            raise ValueError("an answer nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, part: bytes) -> None:
        self.size_bytes += len(part)
        if self.size_bytes <= self._largest_bytes:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        if self._status < 200:  # an interim answer: the real one follows
            self._forget()
            return
        self.complete = True
        self.keep_alive = self._parser.should_keep_alive()

    def _forget(self) -> None:
        self._headers = []
        self._parts = []
        self._status = self.size_bytes = 0


class _Records:
    """TLS between bytes and bytes, with no socket in it."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        except (ValueError, ssl.SSLError) as error:
            raise HttpError("tls", str(error)) from error

    def shake_hands(self) -> bool:
        """Whether the handshake is done with what has been received."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise HttpError("tls", str(error)) from error
        return True

    def to_send(self) -> bytes:
        return self._outgoing.read()

    def receive(self, content: bytes) -> None:
        self._incoming.write(content)

    def sealed(self, content: bytes) -> bytes:
        self._act(lambda: self._tls.write(content))
        return self._outgoing.read()

    def opened(self, content: bytes) -> bytes | None:
        """What these bytes say; None where they are no whole record yet, empty at its goodbye."""
        self._incoming.write(content)
        parts: list[bytes] = []
        with contextlib.suppress(ssl.SSLWantReadError):
            while part := self._act(lambda: self._tls.read(_TLS_RECORDS_BYTES)):
                parts.append(part)
            return b"".join(parts)
        return b"".join(parts) or None

    @staticmethod
    def _act(action: Callable[[], T]) -> T:
        try:
            return action()
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
