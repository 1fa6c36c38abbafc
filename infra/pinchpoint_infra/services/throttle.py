"""Refuses requests above a rate, as SharePoint does: 429 or 503, with ``Retry-After``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pinchpoint_infra.faults.throttle import ThrottledEndpoint
from pinchpoint_infra.services.odata import RefusalError


class RequestGate:
    """Lets requests through, or this many a second of them; counts both those and what it refuses.

    A bucket of tokens that holds one second's worth: what was not asked for in a quiet second may come at
    once in the next.

    Args:
        throttle: the rate, and how what is above it is refused; None: everything is let through.
    """

    def __init__(self, throttle: ThrottledEndpoint | None) -> None:
        self.admitted = self.refused = 0
        self.set(throttle)

    def set(self, throttle: ThrottledEndpoint | None) -> None:
        """Turn it, with a full bucket."""
        self._throttle = throttle
        self._left = self._most = max(1.0, throttle.requests_per_s) if throttle else 0.0
        self._at = time.monotonic()

    def admit(self) -> None:
        """Count one request; raises ``RefusalError`` where it is one too many."""
        throttle = self._throttle
        if throttle is not None:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._at) * throttle.requests_per_s)
            self._at = now
            if self._left < 1:
                self.refused += 1
                sentence = "too many requests; wait as Retry-After says"
                raise RefusalError(throttle.status, sentence, throttle.retry_after_s)
            self._left -= 1
        self.admitted += 1

    def describe(self) -> Mapping[str, Any]:
        """How it is set, and what it counted since the service was started."""
        throttle = asdict(self._throttle) if self._throttle else None
        return {"throttle": throttle, "admitted": self.admitted, "refused": self.refused}
