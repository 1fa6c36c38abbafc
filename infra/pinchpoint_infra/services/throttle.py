"""Refusing what comes too fast, as SharePoint does: 429 with ``Retry-After``."""

from __future__ import annotations

import time

from pinchpoint_infra.services.odata import RefusalError


class Throttle:
    """Lets through so many requests a second, and as many at once.

    Args:
        requests_per_s: the rate; at least one request is let through at once.
        retry_after_s: what a refused client is asked to wait.
    """

    def __init__(self, requests_per_s: float, retry_after_s: int) -> None:
        self._rate = requests_per_s
        self._retry_after_s = retry_after_s
        self._left = self._most = max(1.0, requests_per_s)
        self._at = time.monotonic()

    def admit(self) -> None:
        """Count one request; raises ``RefusalError`` where it is one too many."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            raise RefusalError(429, "too many requests; wait as Retry-After says", self._retry_after_s)
        self._left -= 1
