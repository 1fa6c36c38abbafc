"""``kind: none``: documents are fetched and logged in the crawl database, and go nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract import Endpoint
from .contract import Request


class NoIndex:
    """Service and connection in one, because there is no server."""

    limit = None
    index = ""
    takes_documents = False

    def __init__(self, endpoint: Endpoint, scenario: str, timeout_s: float) -> None:
        del endpoint, scenario, timeout_s

    def connect(self) -> NoIndex:
        """Itself."""
        return self

    def check(self) -> Mapping[str, Any]:
        """Check the destination, which indexes nothing."""
        return {"kind": "none"}

    def reset(self) -> None:
        """There is no index."""

    def add(self, source: str, url: str, content: bytes) -> None:
        """Nothing: the document has been fetched."""

    def remove(self, source: str, url: str) -> None:
        """It was nowhere."""

    def commit(self) -> None:
        """Nothing: there is no index."""

    def requests(self) -> tuple[Request, ...]:
        """None: each session sends its own requests."""
        return ()

    def close(self) -> None:
        """Nothing to close."""
