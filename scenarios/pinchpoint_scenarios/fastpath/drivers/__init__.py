"""The contract of a driver: a protocol as a state machine, bytes in, bytes out, an answer.

A driver has no socket, clock or greenlet: one module per protocol. ``fastpath.channel``, ``fastpath.http``
and ``databases.libpq`` move its bytes and wait.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol, TypeVar


class More(Enum):
    """The driver's result while the answer is not complete."""

    MORE = "more"


MORE: Final = More.MORE

Answer_co = TypeVar("Answer_co", covariant=True)


class Driver(Protocol[Answer_co]):
    """The answers of one connection, each to a request."""

    def receive(self, content: bytes) -> Answer_co | More:
        """Errors after which a connection is of no use.

        Args:
            content: any number of bytes; none: the peer sends no more.

        Returns:
            The answer, or ``MORE`` until it is complete.

        Raises:
            EndedError: the end came before the answer was complete.
            Exception: the protocol's own, for an invalid answer. After any exception the connection is
                unusable.
        """
        ...


class EndedError(Exception):
    """The peer closed the connection, and there is no answer."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection")
