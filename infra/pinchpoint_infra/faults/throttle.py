"""The settings of a server that refuses requests above a rate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThrottledEndpoint:
    """How many requests an endpoint answers, and how it refuses the others.

    Attributes:
        requests_per_s: this many are answered, those of all clients together; above 0.
        retry_after_s: what ``Retry-After`` asks a refused client to wait; whole seconds, as HTTP has them.
        status: the status of a refusal: 429 (too many requests) or 503 (the server is busy).
    """

    requests_per_s: float
    retry_after_s: int = 1
    status: int = 429
