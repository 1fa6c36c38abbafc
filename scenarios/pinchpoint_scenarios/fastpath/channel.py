"""Moves the bytes of a protocol driver over one socket, and waits for answers.

An operation is one write, one wait, one read and one call of the driver.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import Generic, TypeVar

from .drivers import MORE, Driver, EndedError, More
from .readiness import Readiness, readiness

_SMALL_BYTES, _LARGE_BYTES = 448, 65_536
_GROWTH = 12
_NOTHING = memoryview(b"")

Answer = TypeVar("Answer")


class ChannelError(Exception):
    """The connection is lost and must be closed, because a late answer would be mistaken for the next one."""


class ChannelTimeoutError(ChannelError):
    """The peer accepted or sent no data in time."""


class ChannelInterruptedError(ChannelError):
    """The peer answered before it had received the whole message, so it will not read the rest.

    Attributes:
        answer: answer of the peer.
    """

    def __init__(self, answer: object) -> None:
        super().__init__("the server answered before it had all of a message")
        self.answer = answer


class Channel(Generic[Answer]):
    """One connected socket, used by one greenlet or thread at a time.

    Args:
        descriptor: descriptor of the socket, which becomes non-blocking. Its opener closes it after
            ``close``.
        driver: parses answers from received bytes.
        timeout_s: time limit of one wait for the peer in seconds.
    """

    def __init__(self, descriptor: int, driver: Driver[Answer], timeout_s: float) -> None:
        os.set_blocking(descriptor, False)
        self.timeout_s = timeout_s
        self._descriptor = descriptor
        self._take = driver.receive
        self._ready: Readiness | None = None
        self._unsent = _NOTHING
        # A large buffer would be allocated and freed for every read, but most answers have a few bytes.
        self._read_bytes = _SMALL_BYTES

    def send(self, message: bytes) -> None:
        """Send as much of a message as the peer accepts. The rest is sent while waiting for the answer.

        Raises ``ChannelError``.
        """
        try:
            sent = os.write(self._descriptor, message)
        except OSError as error:
            sent = _nothing(error)
        if sent < len(message):
            self._unsent = memoryview(message)[sent:]

    def receive(self) -> Answer | More:
        """Return the answer if it is complete. Never waits.

        Bytes are received while the rest of a message is sent, because the peer may otherwise stop reading.

        Raises:
            ChannelError: there is no answer. Errors of the driver are raised, too.
        """
        unsent = self._unsent
        try:
            if unsent:
                self._unsent = unsent = unsent[_sent(self._descriptor, unsent) :]
            content = os.read(self._descriptor, self._read_bytes)
        except OSError as error:
            _nothing(error)
            return MORE  # the wait ended without data, or the socket is ready to send
        if len(content) == self._read_bytes:
            self._read_bytes = min(_LARGE_BYTES, self._read_bytes * _GROWTH)
        try:
            answer = self._take(content)
        except EndedError as error:
            raise ChannelError(str(error)) from error
        if unsent and answer is not MORE:
            raise ChannelInterruptedError(answer)
        return answer

    def __call__(self) -> Answer:
        """Wait for the whole answer to the last message. Raises the same errors as ``receive``."""
        ready = self._ready = self._ready or readiness(self._descriptor)
        while True:
            wait = ready.wait_writable if self._unsent else ready.wait_readable
            if not wait(monotonic() + self.timeout_s):
                raise ChannelTimeoutError(
                    "the server took no more of a message in time" if self._unsent else "no answer in time"
                )
            answer = self.receive()
            if answer is not MORE:
                return answer

    def close(self) -> None:
        """Forget the socket before it is closed. A second call does nothing."""
        if self._ready is not None:
            self._ready.close()
            self._ready = None


def _sent(descriptor: int, message: memoryview) -> int:
    try:
        return os.write(descriptor, message)
    except BlockingIOError:
        return 0


def _nothing(error: OSError) -> int:
    """Return 0 bytes if the socket was only not ready. Otherwise raises ``ChannelError``."""
    if isinstance(error, BlockingIOError):
        return 0
    raise ChannelError(f"the connection broke: {error.strerror or error}") from error
