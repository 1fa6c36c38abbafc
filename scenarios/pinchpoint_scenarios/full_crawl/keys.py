"""The key of an item: what its row in the crawl database and its entry in an index are found by."""

from __future__ import annotations

import hashlib


def key_of(source: str, url: str) -> str:
    """The same for the same source and address, always: what is done twice is done to one thing.

    Returns:
        A UUID as text, in the form every database takes: 128 bits of the SHA-256 of both.
    """
    digest = hashlib.sha256(f"{source}\n{url}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
