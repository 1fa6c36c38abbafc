"""HTTP/1.1 at about the speed of C: a write, a wait, a read, httptools (llhttp) as the parser.

One connection to one server, kept alive as long as the server allows. TLS goes through memory, so that
reading, writing and waiting are the same with it and without.

What a request costs beyond its system calls is the Python between them: so a head is kept as it came and is
searched when somebody asks for a field, and the parser calls back for little else than the body.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from time import monotonic
from typing import Literal

import httptools

from .readiness import Readiness, readiness

_READ_BYTES = 2**17 - 2**12  # from 128 KiB on, an allocation is a system call of its own (mallopt(3))
_TLS_RECORD_BYTES = 2**14  # the most plain text that one record holds (RFC 8446, 5.1)
_HEAD_END = b"\r\n\r\n"

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


class Response:
    """A complete answer.

    Attributes:
        status: its status code.
        body: the bytes of its body, whatever their content encoding.
    """

    __slots__ = ("_head", "_names", "_received", "body", "status")

    def __init__(self, status: int, received: bytes, body: bytes) -> None:
        self.status = status
        self.body = body
        self._received = received
        self._head = self._names = b""

    @property
    def head(self) -> bytes:
        """Status line and header fields, as they came, without the empty line behind them."""
        if not self._head:
            self._head = self._received.partition(_HEAD_END)[0]
        return self._head

    def header(self, name: bytes) -> str:
        """The value of a field (``name`` in lower case), several joined by commas; "" without any."""
        if not self._names:
            self._names = self.head.lower()
        wanted, head = b"\r\n" + name + b":", self._names
        at = head.find(wanted)
        if at < 0:
            return ""
        found = []
        while at >= 0:
            begin = at + len(wanted)
            end = head.find(b"\r\n", begin)
            found.append(self._head[begin : end if end >= 0 else None].strip())
            at = head.find(wanted, begin)
        return b", ".join(found).decode("latin-1")

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """All header fields: name and value, as they came."""
        pairs = (line.partition(b":") for line in self.head.split(b"\r\n")[1:])
        return tuple((name, value.strip()) for name, _, value in pairs)


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
        # What nearly every request does stands here: calls between its steps would cost as much as they do.
        incoming, records = self._incoming, self._records
        incoming.start()
        try:
            content = request if records is None else records.sealed(request)
            try:
                sent = os.write(self._descriptor, content)
            except OSError:
                sent = 0  # the next attempt says why
            if sent < len(content):
                self._send(memoryview(content)[sent:], deadline)
            while not incoming.complete:
                self._wait(deadline)
                came = self._read()
                if came and records is None:
                    incoming.feed(came)
                else:
                    self._take_in(came)
        except BaseException:  # whatever is still to come would be taken for the next answer
            self.close()
            raise
        if not incoming.keep_alive:
            self.close()
        return incoming.answer()

    def _take_in(self, content: bytes | None) -> None:
        """What has come; empty: the connection's end; None: nothing yet."""
        if not content:
            if content is not None:
                self._incoming.end()
        elif self._records is None:
            self._incoming.feed(content)
        else:
            for part in self._records.opened(content):
                self._incoming.feed(part) if part else self._incoming.end()

    def _connect(self, deadline: float) -> None:
        until = min(deadline, monotonic() + self._connect_timeout_s)
        try:
            self._socket = socket.create_connection(self._address, max(0.001, until - monotonic()))
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
            content = self._read()
            if content == b"":
                raise HttpError("tls", "the server closed the connection in the handshake")
            if content is not None:
                records.receive(content)

    def _is_gone(self) -> bool:
        """Whether the server has closed the idle connection."""
        try:
            content = self._read()
        except HttpError:
            return True
        return content is not None  # an end, or bytes nobody asked for

    def _send(self, content: memoryview, deadline: float) -> None:
        try:
            self._write_all(content, deadline)
        except _UnansweredError:
            # The server may have answered before it closed: that answer counts (a refusal of a large body).
            came = self._read()
            if not came:
                raise
            self._take_in(came)

    def _write_all(self, content: bytes | memoryview, deadline: float) -> None:
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
        ready = self._ready or self._readiness()
        if not ready.wait_readable_for(deadline - monotonic()):
            raise HttpError("timeout", "the answer was not complete in time")

    def _read(self) -> bytes | None:
        """What came; empty at the end, None where there is nothing yet."""
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
    """The answer that is coming in: what httptools tells, by these names, and what held its head."""

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        self._parser = httptools.HttpResponseParser(self)
        self._received = b""
        self._parts: list[bytes] = []
        self._interim = self._status = self._size_bytes = 0
        self.complete = self.keep_alive = False

    @property
    def begun(self) -> bool:
        """Whether anything of it has come."""
        return bool(self._received)

    def start(self) -> None:
        """Before each request. The parser goes on to the next answer where the last one ended well."""
        if not self.keep_alive:
            self._parser = httptools.HttpResponseParser(self)
        self._received = b""
        self._parts = []
        self._interim = self._status = self._size_bytes = 0
        self.complete = self.keep_alive = False

    def feed(self, content: bytes) -> None:
        """Take in what came next. Raises ``HttpError``."""
        if not self._status:
            self._received = self._received + content if self._received else content
        try:
            self._parser.feed_data(content)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.complete:
                raise HttpError("bad_answer", f"the answer is no HTTP: {error}") from error
            self.keep_alive = False  # what follows the answer is nobody's
        if self._size_bytes > self._largest_bytes:
            raise HttpError("too_large", f"larger than {self._largest_bytes} bytes")

    def end(self) -> None:
        """The connection ends: the proper end of an answer whose head does not say its length."""
        answer = self.answer()
        if self._status and not (answer.header(b"content-length") or answer.header(b"transfer-encoding")):
            self.complete, self.keep_alive = True, False
        elif self.begun:
            raise HttpError("connection_lost", "the server closed the connection in an answer")
        else:
            raise _UnansweredError("connection_lost", "the server closed the connection")

    def answer(self) -> Response:
        """What has come so far."""
        parts, received = self._parts, self._received
        for _ in range(self._interim):
            received = received.partition(_HEAD_END)[2]
        return Response(self._status, received, parts[0] if len(parts) == 1 else b"".join(parts))

    def on_message_begin(self) -> None:
        if self.complete:
            raise ValueError("an answer nobody asked for")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self._status = status

    def on_body(self, part: bytes) -> None:
        self._size_bytes += len(part)
        if self._size_bytes <= self._largest_bytes:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        if self._status:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()
        else:
            self._interim += 1  # the real one follows


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
        try:
            self._tls.write(content)
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return self._outgoing.read()

    def opened(self, content: bytes) -> Iterator[bytes]:
        """What these bytes say, record by record; empty at the goodbye."""
        incoming, tls = self._incoming, self._tls
        incoming.write(content)
        more = True
        while more:
            try:
                part = tls.read(_TLS_RECORD_BYTES)
            except ssl.SSLWantReadError:  # no whole record
                return
            except ssl.SSLError as error:
                raise HttpError("tls", str(error)) from error
            yield part
            more = bool(part) and (incoming.pending > 0 or tls.pending() > 0)


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - monotonic())
