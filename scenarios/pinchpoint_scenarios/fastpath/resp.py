"""Valkey and Redis at about the speed of C: a write, a wait, a read, hiredis as the parser.

valkey-py connects, logs in and chooses the database. From then on its socket is used directly.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, cast

import hiredis
from valkey import exceptions
from valkey.connection import DefaultParser

from .readiness import Readiness, readiness

_READ_BYTES = 65_536
_MORE = object()  # hiredis' sign for half a reply: its own, False, is a reply in RESP3

_pack = cast("Callable[[tuple[str | bytes, ...]], bytes]", hiredis.pack_command)  # its type says one argument


class Wire(Protocol):
    """One connection's way to send a command and get its reply: ``valkey.connection.Connection`` is one.

    Each raises ``valkey.exceptions.ValkeyError``. After any but a ``ResponseError`` it must be disconnected:
    a late reply would be taken for the next command's.
    """

    def connect(self) -> None:
        """Connect and log in, unless that is done."""
        ...

    def send_command(self, *args: str | bytes) -> None:
        """Send one command."""
        ...

    def read_response(self) -> object:
        """Wait for its reply."""
        ...

    def disconnect(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


class FastWire:
    """A ``Wire`` that does by itself what is done for every operation.

    Args:
        connection: valkey-py's, which connects.
        timeout_s: how long one wait for the server may take.
    """

    def __init__(self, connection: Wire, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._descriptor = -1
        self._readiness: Readiness | None = None
        self._reader = _reader()

    def connect(self) -> None:
        """See ``Wire``."""
        if self._readiness is None:
            self._connection.connect()
            # valkey-py hands its socket to its parsers by this name, too; it has no public one.
            self._descriptor = cast("Any", self._connection)._sock.fileno()
            os.set_blocking(self._descriptor, False)
            self._readiness = readiness(self._descriptor)
            self._reader = _reader()

    def send_command(self, *args: str | bytes) -> None:
        """See ``Wire``."""
        ready, command = self._ready(), _pack(args)
        sent = self._write(command)
        while sent < len(command):
            if not ready.wait_writable_for(self._timeout_s):
                raise exceptions.TimeoutError("the server took no more of a command in time")
            sent += self._write(memoryview(command)[sent:])

    def read_response(self) -> object:
        """See ``Wire``."""
        ready, reader = self._ready(), self._reader
        reply = reader.gets()  # of several commands sent at once the replies may have come together
        while reply is _MORE:
            if not ready.wait_readable_for(self._timeout_s):
                raise exceptions.TimeoutError("no reply in time")
            reader.feed(self._read())
            reply = reader.gets()
        if isinstance(reply, exceptions.ValkeyError):
            raise reply
        return reply

    def disconnect(self) -> None:
        """See ``Wire``."""
        if self._readiness is not None:
            self._readiness.close()  # before its descriptor is
            self._readiness = None
        self._connection.disconnect()

    def _ready(self) -> Readiness:
        if self._readiness is None:
            raise exceptions.ConnectionError("not connected")
        return self._readiness

    def _write(self, content: bytes | memoryview) -> int:
        try:
            return os.write(self._descriptor, content)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise exceptions.ConnectionError(f"the connection broke: {error.strerror}") from error

    def _read(self) -> bytes:
        try:
            content = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""  # woken for nothing
        except OSError as error:
            raise exceptions.ConnectionError(f"the connection broke: {error.strerror}") from error
        if not content:
            raise exceptions.ConnectionError("the server closed the connection")
        return content


def _reader() -> hiredis.Reader:
    # valkey-py's own exceptions for what a server says: the same classes for the same words.
    return hiredis.Reader(
        protocolError=exceptions.InvalidResponse, replyError=DefaultParser.parse_error, notEnoughData=_MORE
    )
