"""``kind: none``: documents are fetched and recorded in the crawl database, but not indexed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract import Endpoint
from .contract import Request


class NoIndex:
    """A destination without a server. It is both the service and the connection."""

    limit = None
    index = ""
    takes_documents = False

    def __init__(self, endpoint: Endpoint, scenario: str, timeout_s: float) -> None:
        del endpoint, scenario, timeout_s

    def connect(self) -> NoIndex:
        """Return this object."""
        return self

    def check(self) -> Mapping[str, Any]:
        """Return facts about the destination, which indexes nothing."""
        return {"kind": "none"}

    def reset(self) -> None:
        """Do nothing: there is no index."""

    def add(self, source: str, url: str, content: bytes) -> None:
        """Do nothing: the document has been fetched."""

    def remove(self, source: str, url: str) -> None:
        """Do nothing: the document was never indexed."""

    def commit(self) -> None:
        """Do nothing: there is no index."""

    def requests(self) -> tuple[Request, ...]:
        """Return None: each session sends its own requests."""
        return ()

    def close(self) -> None:
        """Do nothing: there is no connection."""
