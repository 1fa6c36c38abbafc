"""Sends HTTP/1.1 requests at about the speed of a C program, with httptools (llhttp) as the parser.

There is one connection to one server, kept alive while the server allows. TLS works in memory, so that
reading, writing and waiting are the same with and without TLS.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from os import read, write
from time import monotonic

from .drivers import MORE, More
from .drivers.http import HttpDriver, HttpError, Kind, Response, UnansweredError
from .drivers.tls import Records
from .readiness import Readiness, readiness

__all__ = ["HttpConnection", "HttpError", "Kind", "Response"]

_FIRST_BYTES = 2**14  # most answers are shorter
_MORE_BYTES = 2**17 - 2**12  # from 128 KiB on, each allocation is a system call (mallopt(3))


class HttpConnection:
    """One connection to one server. It is opened when needed.

    Args:
        host: name or address of the server.
        port: port of the server.
        tls: TLS settings; None: without TLS.
        connect_timeout_s: time limit for connecting in seconds, including the handshake.
        largest_bytes: largest size of a body in bytes; a larger body is not read to its end.
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
        self._read_bytes = _FIRST_BYTES
        self._ready: Readiness | None = None
        self._wait: Callable[[float], bool] = _not_connected
        self._records: Records | None = None
        self._driver = HttpDriver(largest_bytes)
        self.opened = 0
        """Number of connections opened up to now. A login is repeated on each new connection."""

    def exchange(self, request: bytes, deadline: float, *, again: bool) -> Response:
        """Send a request and read the answer.

        Args:
            request: head and body of the request.
            deadline: ``time.monotonic()`` by which the last byte must have arrived.
            again: whether the request may be repeated if the server closed the idle connection meanwhile.

        Raises:
            HttpError: there is no answer; ``kind`` gives the reason.
        """
        if self._socket is not None:
            if again or not self._is_gone():
                try:
                    return self._exchange(request, deadline)
                except UnansweredError:
                    if not again:
                        raise
            self.close()
        self._connect(deadline)
        return self._exchange(request, deadline)

    def close(self) -> None:
        """Close the connection. A second call does nothing. The next request opens another connection."""
        if self._ready is not None:
            self._ready.close()  # before its descriptor is closed
            self._ready, self._wait = None, _not_connected
        if self._socket is not None:
            self._socket.close()
            self._socket, self._descriptor = None, -1
            self._records = None

    def _exchange(self, request: bytes, deadline: float) -> Response:
        # The steps of nearly every request are inlined, because calls between them would double their cost.
        driver, records, descriptor = self._driver, self._records, self._descriptor
        unsent: memoryview | None = None
        answer: Response | More = MORE
        try:
            content = request if records is None else records.sealed(request)
            try:
                sent = write(descriptor, content)
            except OSError:
                sent = 0  # the next attempt reports the reason
            if sent != len(content):
                unsent, answer = self._send(memoryview(content)[sent:], deadline)
            while answer is MORE:
                if not self._wait(deadline):
                    raise HttpError("timeout", "the answer was not complete in time")  # noqa: TRY301 - see above
                try:
                    came = read(descriptor, self._read_bytes)
                except OSError as error:
                    self._nothing(error)
                    continue  # the wait ended without data
                if records is None or not came:
                    answer = driver.receive(came)
                else:
                    answer = records.receive(came, driver)
                if answer is MORE:
                    self._read_bytes = _MORE_BYTES  # a server with one long answer has more of them
        except BaseException:  # remaining bytes would be mistaken for the next answer
            self.close()
            raise
        if unsent or not driver.keep_alive or (records is not None and records.unasked()):
            self.close()
        return answer

    def _connect(self, deadline: float) -> None:
        until = min(deadline, monotonic() + self._connect_timeout_s)
        try:
            self._socket = socket.create_connection(self._address, max(0.001, until - monotonic()))
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            raise HttpError("unreachable", str(error)) from error
        self.opened += 1
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._descriptor = self._socket.fileno()
            os.set_blocking(self._descriptor, False)
            self._ready = readiness(self._descriptor)
            self._wait = self._ready.wait_readable
            self._driver = HttpDriver(self._largest_bytes)
            if self._tls is not None:
                self._records = self._shaken(Records(self._tls, self._host), until)
        except BaseException:
            self.close()
            raise

    def _shaken(self, records: Records, deadline: float) -> Records:
        """Return the connection after its TLS handshake."""
        came = b""
        while True:
            done = records.shake_hands(came)
            self._send(memoryview(records.to_send()), deadline)
            if done:
                return records
            came = self._handshake_part(deadline)

    def _handshake_part(self, deadline: float) -> bytes:
        while True:
            if not self._wait(deadline):
                raise HttpError("timeout", "the handshake was not over in time")
            try:
                came = read(self._descriptor, _FIRST_BYTES)
            except OSError as error:
                self._nothing(error)
                continue  # the wait ended without data
            if not came:
                raise HttpError("tls", "the server closed the connection in the handshake")
            return came

    def _is_gone(self) -> bool:
        """Return whether the server has closed the idle connection."""
        try:
            read(self._descriptor, 1)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True  # the end of the connection, or bytes without a request

    def _send(self, rest: memoryview, deadline: float) -> tuple[memoryview, Response | More]:
        """Send what the server accepts now. Return the rest and an early answer, if there is one."""
        answer: Response | More = MORE
        while rest and answer is MORE:
            try:
                rest = rest[write(self._descriptor, rest) :]
                continue
            except BlockingIOError:
                if self._ready is None or not self._ready.wait_writable(deadline):
                    raise HttpError("timeout", "the server took no more of a request in time") from None
                answer = self._answer_meanwhile() or MORE
            except OSError as error:
                # The server may have answered before it closed. That answer counts (a refusal of a large
                # body).
                heard = self._answer_meanwhile()
                if heard is None:
                    lost = f"the connection broke: {error.strerror}"
                    raise UnansweredError("connection_lost", lost) from error
                return rest, heard
        return rest, answer

    def _answer_meanwhile(self) -> Response | More | None:
        """Return what the server sent during sending: an answer or its start; None: nothing."""
        try:
            came = read(self._descriptor, self._read_bytes)
        except OSError as error:
            self._nothing(error)
            return None
        if self._records is None or not came:
            return self._driver.receive(came)
        return self._records.receive(came, self._driver)

    def _nothing(self, error: OSError) -> None:
        """Return nothing if there was only nothing to read yet. Otherwise raises ``HttpError``."""
        if isinstance(error, BlockingIOError):
            return
        reset = isinstance(error, ConnectionResetError)
        why = "the server reset the connection" if reset else f"the connection broke: {error.strerror}"
        kind = UnansweredError if reset and not self._driver.begun else HttpError
        raise kind("connection_lost", why) from error


def _not_connected(_: float) -> bool:
    raise HttpError("connection_lost", "not connected")
