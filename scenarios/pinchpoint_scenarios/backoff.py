"""Pauses between attempts to reach a server that is not there."""

from __future__ import annotations

import random
import time

FIRST_S = 0.05
LONGEST_S = 2.0


class Backoff:
    """Doubling pauses from ``FIRST_S`` to ``LONGEST_S``, ± 25 % so that sessions do not come back in step."""

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = 0.0

    def failed(self) -> None:
        """Note a failed attempt: the next one has to wait."""
        pause_s = min(LONGEST_S, FIRST_S * 2 ** min(self._failures, 16))
        self._failures += 1
        self._not_before = time.monotonic() + pause_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret

    def succeeded(self) -> None:
        """Note a successful attempt: the next failure starts from the shortest pause."""
        self._failures = 0
        self._not_before = 0.0

    def wait(self) -> None:
        """Sleep until the next attempt is due; returns at once after a success."""
        if self._not_before and (left_s := self._not_before - time.monotonic()) > 0:
            time.sleep(left_s)
