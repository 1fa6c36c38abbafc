"""Ctrl-C, and what it means when: once stops and keeps, twice stops at once; clearing away is not cut off."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import Self

_STOPPING = b"\nstopping: what was measured is kept and reported; Ctrl-C again stops at once\n"
_ENDING = b"\nending: what is begun is cleared away and kept first; that is not cut off\n"


class Interrupted(BaseException):
    """The user wants to stop now: nothing is measured yet, or it is the second Ctrl-C."""


class Interrupts:
    """Handles SIGINT and SIGTERM while a run goes on; the handlers before are restored at the end.

    While ``graceful`` is false, the first signal raises ``Interrupted``. While it is true, the first one only
    sets ``requested``; the next one raises. Once one has raised, or after ``shield``, signals only set
    ``requested``, so that the clearing away cannot be cut off and leave orphans.
    """

    def __init__(self) -> None:
        self.requested = False
        self.graceful = False
        self._shielded = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() itself returned

    def shield(self) -> None:
        """From now on nothing raises: what is left is to clear away, and to keep what was measured."""
        self._shielded = True

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- signal's signature
        if self._shielded:
            self.requested = True
            _tell(_ENDING)
            return
        if self.graceful and not self.requested:
            self.requested = True
            _tell(_STOPPING)
            return
        self.requested = self._shielded = True
        raise Interrupted


def _tell(line: bytes) -> None:
    # Past Python's own stream: the signal may have come while that was being written to.
    with contextlib.suppress(OSError):  # nobody reads
        os.write(2, line)
