"""Which addresses belong to a web source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from .source_params import SourceParams
from .urls import host_of, origin_of


class Scope:
    """What a web source may crawl.

    Args:
        start: its canonical address.
        source: its parameters ``hosts``, ``include``, ``exclude``, ``depth``.
    """

    def __init__(self, start: str, source: SourceParams) -> None:
        self._near = origin_of(start) + "/"  # nearly all of a site is there
        self._hosts = {host_of(start), *(host.lower() for host in source.hosts if not host.startswith("*."))}
        self._domains = tuple(host[1:].lower() for host in source.hosts if host.startswith("*."))
        self._include = _pattern(source.include)
        self._exclude = _pattern(source.exclude)
        self._depth = source.depth

    def holds(self, url: str, depth: int) -> bool:
        """Whether a canonical address so many links away from the start belongs to it."""
        return self.reaches(depth) and self.covers(url)

    def reaches(self, depth: int) -> bool:
        """Whether it goes so many links away from the start."""
        return self._depth is None or depth <= self._depth

    def covers(self, url: str) -> bool:
        """Whether a canonical address belongs to it, however far away it is."""
        if not self.has_host(url):
            return False
        if self._include is None and self._exclude is None:
            return True
        parts = urlsplit(url)
        local = parts.path + (f"?{parts.query}" if parts.query else "")
        if self._exclude is not None and self._exclude.match(f"{local}\n{url}"):
            return False
        return self._include is None or self._include.match(f"{local}\n{url}") is not None

    def has_host(self, url: str) -> bool:
        """Whether a canonical address is on one of its hosts: no other is asked for anything."""
        if url.startswith(self._near):
            return True
        host = host_of(url)
        return host in self._hosts or host.partition(":")[0].endswith(self._domains or ("\0",))


def _pattern(given: Iterable[str]) -> re.Pattern[str] | None:
    """One expression for all of them, for the path and, on a second line, the whole address."""
    parts = []
    for wanted in given:
        each = "[^\n]*".join(re.escape(part) for part in wanted.split("*"))
        parts.append(rf"{each}\n" if wanted.startswith("/") else rf"[^\n]*\n{each}\Z")
    return re.compile("|".join(parts)) if parts else None
