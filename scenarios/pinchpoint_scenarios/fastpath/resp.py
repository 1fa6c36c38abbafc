"""Valkey and Redis at about the speed of C: a write, a wait, a read, hiredis as the parser.

valkey-py connects, logs in and chooses the database. From then on its socket is used directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import hiredis
from valkey import exceptions
from valkey.connection import Connection, DefaultParser

from .channel import MORE, Channel, ChannelError, ChannelTimeoutError, More

Command = tuple[str | bytes, ...]

_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # its type says one argument


class Wire(Protocol):
    """One connection's way to send commands and get their replies.

    Each raises ``valkey.exceptions.ValkeyError``. After any but a ``ResponseError`` it must be disconnected:
    a late reply would be taken for the next command's.
    """

    def connect(self) -> None:
        """Connect and log in, unless that is done."""
        ...

    def ask(self, *command: str | bytes) -> object:
        """Send one command, wait for its reply."""
        ...

    def ask_all(self, commands: Sequence[Command]) -> list[object]:
        """Send commands in one go, wait for every reply; a refused one's is its ``ResponseError``."""
        ...

    def disconnect(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


class LibraryWire:
    """A ``Wire`` that is valkey-py's connection and nothing else: the reference.

    Args:
        connection: valkey-py's.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection: Any = connection  # its types leave out what a reply may be

    def connect(self) -> None:
        self._connection.connect()

    def ask(self, *command: str | bytes) -> object:
        self._connection.send_command(*command)
        reply: object = self._connection.read_response()
        return reply

    def ask_all(self, commands: Sequence[Command]) -> list[object]:
        for command in commands:
            self._connection.send_command(*command)
        replies: list[object] = []
        for _ in commands:
            try:
                replies.append(self._connection.read_response())
            except exceptions.ResponseError as error:  # one reply: those of the others still come
                replies.append(error)
        return replies

    def disconnect(self) -> None:
        self._connection.disconnect()


class FastWire:
    """A ``Wire`` that does by itself what is done for every operation.

    Args:
        connection: valkey-py's, which connects.
        timeout_s: how long one wait for the server may take.
    """

    def __init__(self, connection: Connection, timeout_s: float) -> None:
        self._connection: Any = connection
        self._timeout_s = timeout_s
        self._channel: Channel | None = None
        self._reader = _reader()

    def connect(self) -> None:
        if self._channel is None:
            self._connection.connect()
            # valkey-py hands its socket to its parsers by this name, too; it has no public one.
            self._channel = Channel(self._connection._sock.fileno())
            self._reader = _reader()

    def ask(self, *command: str | bytes) -> object:
        if self._channel is None:
            raise exceptions.ConnectionError("not connected")
        try:
            reply = self._channel.exchange(_pack(command), self._reply, self._timeout_s)
        except ChannelError as error:
            raise _named(error) from error
        if isinstance(reply, exceptions.ValkeyError):
            raise reply
        return reply

    def ask_all(self, commands: Sequence[Command]) -> list[object]:
        if self._channel is None:
            raise exceptions.ConnectionError("not connected")
        replies: list[object] = []

        def parse(content: bytes) -> More | None:
            self._reader.feed(content)
            while (reply := self._reader.gets()) is not MORE:
                replies.append(reply)
            return MORE if len(replies) < len(commands) else None

        try:
            self._channel.exchange(b"".join(map(_pack, commands)), parse, self._timeout_s)
        except ChannelError as error:
            raise _named(error) from error
        for reply in replies:
            if isinstance(reply, exceptions.ValkeyError) and not isinstance(reply, exceptions.ResponseError):
                raise reply
        return replies

    def disconnect(self) -> None:
        if self._channel is not None:
            self._channel.close()  # before its socket is
            self._channel = None
        self._connection.disconnect()

    def _reply(self, content: bytes) -> object:
        self._reader.feed(content)
        return self._reader.gets()


def _named(error: ChannelError) -> exceptions.ConnectionError | exceptions.TimeoutError:
    """As valkey-py calls it."""
    kind = exceptions.TimeoutError if isinstance(error, ChannelTimeoutError) else exceptions.ConnectionError
    return kind(str(error))


def _reader() -> hiredis.Reader:
    # valkey-py's own exceptions for what a server says: the same classes for the same words. Half a reply is
    # MORE, as hiredis' own sign for it, False, is a reply in RESP3.
    return hiredis.Reader(
        protocolError=exceptions.InvalidResponse, replyError=DefaultParser.parse_error, notEnoughData=MORE
    )
