"""What every session's connection has, whatever library is behind it: it is opened when needed, and again."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pinchpoint_collectors.common.backoff import Backoff

from .contract import DatabaseFailure


class Reopening(ABC):
    """The part of a ``SqlConnection`` that opens and closes it."""

    def __init__(self) -> None:
        self._backoff = Backoff()

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        self._backoff.wait()

    def try_open(self) -> None:
        """Connect now; where that fails, the first statement says so."""
        try:
            self._open()
        except DatabaseFailure:
            self._drop()  # already noted in the back-off; the first operation reports it with its name

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._drop()

    @abstractmethod
    def _open(self) -> object:
        """Connect, and note in the back-off how that went; raises ``DatabaseFailure``."""

    @abstractmethod
    def _drop(self) -> None:
        """Close the connection where there is one: the next statement opens another."""
