"""A running script on a Windows machine, however it is reached."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pinchpoint_collectors.common.powershell import Line


class Arrived(NamedTuple):
    """One line of the script.

    Attributes:
        received_ns: when it was here, UTC ns since 1970 by our clock.
        line: itself.
    """

    received_ns: int
    line: Line


class Link(Protocol):
    """One session in which the script runs and says its lines. For one thread only."""

    @property
    def received_bytes(self) -> int:
        """What has come so far."""
        ...

    def receive(self) -> list[Arrived]:
        """The lines that have come; waits for them about a second.

        Raises:
            LinkLost: the link is cut, or the script has ended.
        """
        ...

    def ask(self) -> None:
        """Ask for the machine's time: a line ``time`` will come. It also tells the script that we are here.

        Not before the script has said ``ready``.

        Raises:
            LinkLost: the link is cut.
        """
        ...

    def close(self) -> None:
        """End the script, and leave nothing on the machine. Safe to call twice."""
        ...
