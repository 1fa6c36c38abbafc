"""Sends requests and receives answers over one socket: the inner loop of all fast paths.

Per operation it is one write, one wait, one read and one call of a parser, all in one function: calls between
them would cost as much as they do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import Final, TypeVar

from .readiness import readiness

_SMALL_BYTES, _LARGE_BYTES = 448, 65_536
_GROWTH = 12

Answer = TypeVar("Answer")


class More(Enum):
    """What a parser returns while the answer is not complete."""

    MORE = "more"


MORE: Final = More.MORE


class ChannelError(Exception):
    """The connection is lost. It must be closed: a late answer would be taken for the next message's."""


class ChannelTimeoutError(ChannelError):
    """The peer took no more, or sent nothing, in time."""


class ChannelEndedError(ChannelError):
    """The peer closed the connection."""


class ChannelInterruptedError(ChannelError):
    """The peer answered before it had the whole message: it will not take the rest.

    Attributes:
        answer: what it said.
    """

    def __init__(self, answer: object) -> None:
        super().__init__("the server answered before it had all of a message")
        self.answer = answer


class Channel:
    """One connected socket, for one greenlet or thread at a time.

    Args:
        descriptor: the socket's, which becomes non-blocking. Who opened it closes it, after ``close``.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._ready = readiness(descriptor)
        self._wait = self._ready.wait_readable
        # A large buffer is allocated and given back for every read: most answers are a few bytes.
        self._read_bytes = _SMALL_BYTES

    def exchange(self, message: bytes, parse: Callable[[bytes], Answer | More], timeout_s: float) -> Answer:
        """Send a message and wait for its whole answer.

        Args:
            message: what is sent.
            parse: is given what has come, piece by piece, and returns the answer, or ``MORE``.
            timeout_s: how long one wait for the peer may take.

        Raises:
            ChannelError: there is no answer; or whatever ``parse`` raises.
        """
        try:
            sent = os.write(self._descriptor, message)
        except OSError as error:
            sent = _nothing(error)
        if sent < len(message):
            self._send_rest(memoryview(message)[sent:], parse, timeout_s)
        while True:
            if not self._wait(monotonic() + timeout_s):
                raise ChannelTimeoutError("no answer in time")
            try:
                content = os.read(self._descriptor, self._read_bytes)
            except OSError as error:
                _nothing(error)
                continue  # woken for nothing
            if len(content) == self._read_bytes:
                self._read_bytes = min(_LARGE_BYTES, self._read_bytes * _GROWTH)
            elif not content:
                raise ChannelEndedError("the server closed the connection")
            answer = parse(content)
            if answer is not MORE:
                return answer

    def close(self) -> None:
        """Forget the socket, before it is closed. Safe to call twice."""
        self._ready.close()

    def _send_rest(self, rest: memoryview, parse: Callable[[bytes], Answer | More], timeout_s: float) -> None:
        """Send the rest as the peer takes it, hearing what it says meanwhile: it may not read on else."""
        while rest:
            if not self._ready.wait_writable(monotonic() + timeout_s):
                raise ChannelTimeoutError("the server took no more of a message in time")
            try:
                rest = rest[os.write(self._descriptor, rest) :]
                continue
            except OSError as error:
                _nothing(error)
            try:
                content = os.read(self._descriptor, _LARGE_BYTES)  # it is what woke us
            except OSError as error:
                _nothing(error)
                continue
            if not content:
                raise ChannelEndedError("the server closed the connection")
            answer = parse(content)
            if answer is not MORE:
                raise ChannelInterruptedError(answer)


def _nothing(error: OSError) -> int:
    """0 bytes where the socket merely was not ready; raises ``ChannelError`` else."""
    if isinstance(error, BlockingIOError):
        return 0
    raise ChannelError(f"the connection broke: {error.strerror or error}") from error
