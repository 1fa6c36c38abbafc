"""A web site that records the time and the conditions of each request."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from scenarios.support import Reply, Server, reply


def linking(*names: str, text: str = "") -> bytes:
    """Return a page that links to others."""
    return f"<p>{text}</p>{''.join(f'<a href={name!r}>{name}</a> ' for name in names)}".encode()


class Pages(Server):
    """A site; ``pages``: path -> HTML, which has an ETag; other paths are 404."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        super().__init__()
        self.pages = dict(pages)
        self.asked: list[tuple[float, str]] = []
        self.full: list[str] = []

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Return a page, or 304 if the client has its current version."""
        path = urlsplit(target).path
        self.asked.append((time.monotonic(), path))
        if path not in self.pages:
            return 404, {}, b""
        tag = f'"{hashlib.sha256(self.pages[path]).hexdigest()[:16]}"'
        if headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, b""
        self.full.append(path)
        return 200, {"Content-Type": "text/html", "ETag": tag}, self.pages[path]

    def pausing(self, path: str, seconds: int) -> None:
        """Answer the next request for ``path`` with 503 and ``Retry-After``."""

        def fault(handler: BaseHTTPRequestHandler) -> bool:
            self.asked.append((time.monotonic(), path))
            reply(handler, 503, {"Retry-After": str(seconds)}, b"")
            return True

        self.failing[path] = [fault]
