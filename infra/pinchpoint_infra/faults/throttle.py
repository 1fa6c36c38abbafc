"""Defines the settings of a server that refuses requests above a rate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThrottledEndpoint:
    """The rate of requests that an endpoint answers, and how it refuses the others.

    Attributes:
        requests_per_s: rate of answered requests of all clients together, above 0.
        retry_after_s: the ``Retry-After`` of a refused request; whole seconds, as HTTP requires.
        status: HTTP status of a refusal: 429 (too many requests) or 503 (the server is busy).
    """

    requests_per_s: float
    retry_after_s: int = 1
    status: int = 429
