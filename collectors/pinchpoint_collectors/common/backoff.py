"""Determines pauses between attempts to reach a server that does not answer or asks for a pause."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


class Backoff:
    """Pauses that double with each failure, and start again after a success. The first attempt has no pause.

    Args:
        first_s: shortest pause in seconds.
        longest_s: longest pause in seconds.
        jitter: largest random deviation of a pause, as a ratio, so that sessions do not retry at the same
            time.
    """

    def __init__(self, first_s: float = 0.05, longest_s: float = 2.0, jitter: float = 0.25) -> None:
        self._first_s, self._longest_s, self._jitter = first_s, longest_s, jitter
        self._failures = 0
        self._not_before_s = 0.0

    @property
    def due(self) -> bool:
        """Return whether the next attempt is due."""
        return not self._not_before_s or time.monotonic() >= self._not_before_s

    def failed(self) -> None:
        """Record a failed attempt, so that the next attempt waits longer."""
        pause_s = min(self._longest_s, self._first_s * 2 ** min(self._failures, 16))
        self._failures += 1
        off = random.uniform(1 - self._jitter, 1 + self._jitter)  # noqa: S311 - jitter, no secret
        self._not_before_s = time.monotonic() + pause_s * off

    def succeeded(self) -> None:
        """Record a successful attempt."""
        self._failures = 0
        self._not_before_s = 0.0

    def wait(self) -> None:
        """Sleep until the next attempt is due."""
        if not self.due:
            time.sleep(max(0.0, self._not_before_s - time.monotonic()))


def retry_after_s(value: str) -> float | None:
    """Return the pause of a ``Retry-After`` in seconds, given in seconds or as a date; None if it is neither.

    RFC 9110, 10.2.3, defines the field.
    """
    value = value.partition(",")[0].strip() if value[:1].isdecimal() else value.strip()
    if value.isascii() and value.isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # OverflowError: a year outside the range of dates
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
