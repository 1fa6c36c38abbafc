"""Contract of a protocol driver: a state machine that takes bytes and returns bytes or an answer.

A driver has no socket, clock or greenlet. There is one module per protocol. ``fastpath.channel``,
``fastpath.http`` and ``databases.libpq`` move the bytes and wait.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol, TypeVar


class More(Enum):
    """Result of a driver while the answer is not complete."""

    MORE = "more"


MORE: Final = More.MORE

Answer_co = TypeVar("Answer_co", covariant=True)


class Driver(Protocol[Answer_co]):
    """Parses the answers of one connection, one per request."""

    def receive(self, content: bytes) -> Answer_co | More:
        """Errors after which the connection can no longer be used.

        Args:
            content: received bytes; empty: the peer sends no more.

        Returns:
            The answer, or ``MORE`` until it is complete.

        Raises:
            EndedError: the peer ended before the answer was complete.
            Exception: an exception of the protocol for an invalid answer. After any exception the connection
                cannot be used.
        """
        ...


class EndedError(Exception):
    """The peer closed the connection, and there is no answer."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection")
