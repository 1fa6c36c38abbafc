"""The key of an item: what its row in the crawl database and its entry in an index are found by."""

from __future__ import annotations

import hashlib
import uuid
from functools import lru_cache


def key_of(source: str, url: str) -> uuid.UUID:
    """The same for the same source and address, always: what is done twice is done to one thing."""
    return uuid.UUID(bytes=hashlib.sha256(f"{source}\n{url}".encode()).digest()[:16])


@lru_cache(maxsize=2**15)
def key_text(source: str, url: str) -> str:
    """Likewise as text; kept for addresses that are met again and again, as those that pages link to."""
    return str(key_of(source, url))
