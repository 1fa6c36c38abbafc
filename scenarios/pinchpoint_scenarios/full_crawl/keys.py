"""The key of an item: what its row in the crawl database and its entry in an index are found by."""

from __future__ import annotations

import hashlib
import uuid


def key_of(source: str, url: str) -> uuid.UUID:
    """The same for the same source and address, always: what is done twice is done to one thing."""
    return uuid.UUID(bytes=hashlib.sha256(f"{source}\n{url}".encode()).digest()[:16])
