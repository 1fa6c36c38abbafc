"""``kind: none``: documents are fetched and logged in the crawl database, and go nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract import Endpoint
from .contract import Request


class NoIndex:
    """Service and connection in one, for there is nothing to connect to."""

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
        """The document has been fetched; that is all."""

    def remove(self, source: str, url: str) -> None:
        """It was nowhere."""

    def commit(self) -> None:
        """There is nothing to be found."""

    def requests(self) -> tuple[Request, ...]:
        """Each session asks for itself."""
        return ()

    def close(self) -> None:
        """There is nothing to close."""
