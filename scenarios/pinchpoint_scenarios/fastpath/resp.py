"""Talks to Valkey and Redis at about the speed of a C program, with hiredis as the parser.

valkey-py connects, logs in and selects the database. After that, its socket is used directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from valkey import exceptions
from valkey.connection import Connection

from .channel import Channel, ChannelError, ChannelTimeoutError
from .drivers.resp import Command, RespDriver


class Wire(Protocol):
    """Sends commands over one connection and receives the replies.

    Each method raises ``valkey.exceptions.ValkeyError``. After any error except ``ResponseError`` the
    connection must be closed, because a late reply would be mistaken for the next one.
    """

    def connect(self) -> None:
        """Connect and log in, unless connected."""
        ...

    def ask(self, *command: str | bytes) -> object:
        """Send one command and wait for its reply."""
        ...

    def ask_all(self, commands: Sequence[Command]) -> list[object]:
        """Send commands at once and wait for all replies.

        The reply to a refused command is its ``ResponseError``.
        """
        ...

    def disconnect(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class LibraryWire:
    """A ``Wire`` that only uses valkey-py's connection, as the reference in tests.

    Args:
        connection: connection of valkey-py.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection: Any = connection  # its type hints lack possible replies

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
            # only this reply failed; the other replies still arrive
            except exceptions.ResponseError as error:
                replies.append(error)
        return replies

    def disconnect(self) -> None:
        self._connection.disconnect()


class FastWire:
    """A ``Wire`` with code of its own for each operation.

    Args:
        connection: connection of valkey-py, which connects.
        timeout_s: time limit of one wait for the server in seconds.
    """

    def __init__(self, connection: Connection, timeout_s: float) -> None:
        self._connection: Any = connection
        self._timeout_s = timeout_s
        self._driver = RespDriver()
        self._channel: Channel[Any] | None = None

    def connect(self) -> None:
        if self._channel is None:
            self._connection.connect()
            self._driver = RespDriver()
            # valkey-py passes its socket to its parsers by this name, too. There is no public name.
            self._channel = Channel(self._connection._sock.fileno(), self._driver, self._timeout_s)

    def ask(self, *command: str | bytes) -> object:
        reply = self._answer(self._driver.command(*command))
        if isinstance(reply, exceptions.ValkeyError):
            raise reply
        return reply

    def ask_all(self, commands: Sequence[Command]) -> list[object]:
        replies: list[object] = self._answer(self._driver.commands(commands))
        for reply in replies:
            if isinstance(reply, exceptions.ValkeyError) and not isinstance(reply, exceptions.ResponseError):
                raise reply
        return replies

    def disconnect(self) -> None:
        if self._channel is not None:
            self._channel.close()  # before its socket is closed
            self._channel = None
        self._connection.disconnect()

    def _answer(self, message: bytes) -> Any:
        channel = self._channel
        if channel is None:
            raise exceptions.ConnectionError("not connected")
        try:
            channel.send(message)
            return channel()
        except ChannelError as error:
            raise _named(error) from error


def _named(error: ChannelError) -> exceptions.ConnectionError | exceptions.TimeoutError:
    """Return the error as an exception of valkey-py."""
    kind = exceptions.TimeoutError if isinstance(error, ChannelTimeoutError) else exceptions.ConnectionError
    return kind(str(error))
