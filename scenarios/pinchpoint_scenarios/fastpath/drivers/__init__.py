"""The contract of a driver: a protocol as a state machine, bytes in, bytes out, an answer.

A driver owns no socket, no clock and no greenlet: one file for each protocol. Who moves its bytes and waits
is around it (``fastpath.channel``, ``fastpath.http``, ``databases.libpq``).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol, TypeVar


class More(Enum):
    """What a driver returns while the answer is not complete."""

    MORE = "more"


MORE: Final = More.MORE

Answer_co = TypeVar("Answer_co", covariant=True)


class Driver(Protocol[Answer_co]):
    """One connection's answers, each of which was requested."""

    def receive(self, content: bytes) -> Answer_co | More:
        """Errors after which a connection is of no use.

        Args:
            content: any number of bytes; none: the peer sends no more.

        Returns:
            The answer, or ``MORE`` until it is complete.

        Raises:
            EndedError: the end came before the answer was complete.
            Exception: the protocol's own, for what is no answer. Both leave a connection that is of no use.
        """
        ...


class EndedError(Exception):
    """The peer closed the connection, and there is no answer."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection")
