"""Telling who waits how far a long piece of work is."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 1.0


class Said:
    """Says something once a second at most.

    Args:
        progress: takes sentences.
    """

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._at_s = time.monotonic()

    def now_and_then(self, words: Callable[[], str]) -> None:
        """Say these words, if it is time."""
        if time.monotonic() - self._at_s > _EVERY_S:
            self._at_s = time.monotonic()
            self._progress(words())
