"""Drivers of nosql-burst, one file per kind of store, behind one contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from ...contract import Endpoint
from ...errors import ScenarioError
from ...names import unknown
from . import valkey


class Connection(Protocol):
    """One session's connection to a store."""

    def write(self, key: str, values: list[bytes]) -> str:
        """Write a record of ``values`` (at least one) under ``key``; returns ``ok`` or the failure's name."""
        ...

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        ...

    def close(self) -> None:
        """Close it. Safe to call twice."""
        ...


class Store(Protocol):
    """One endpoint's store."""

    def check(self) -> Mapping[str, Any]:
        """Reach it without changing anything; facts for the manifest. Raises ``EndpointUnreachable``."""
        ...

    def claim(self, prefix: str, progress: Callable[[str], None]) -> None:
        """Empty our prefix and mark it; raises ``ScenarioError`` where keys of somebody else have it."""
        ...

    def connect(self, timeout_s: float, *, fast: bool) -> Connection:
        """A session's connection. Never fails: a store that is away is the outcome of the first write.

        Args:
            timeout_s: after so long a wait for the server is over (outcome ``timeout``).
            fast: by ``fastpath`` where there is one for this store, else by its client library.
        """
        ...

    def remove(self, prefix: str) -> None:
        """Delete the keys under our prefix, and nothing where the mark is missing."""
        ...


_STORES: dict[str, Callable[[Endpoint], Store]] = {"valkey": valkey.Valkey, "redis": valkey.Valkey}
"""URL scheme -> its driver."""


def store(endpoint: Endpoint) -> Store:
    """The store of an endpoint, by its URL's scheme."""
    scheme = urlsplit(endpoint.url).scheme
    if scheme not in _STORES:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('URL scheme', scheme, _STORES)}")
    return _STORES[scheme](endpoint)
