"""Which addresses belong to a web source, and what a host's robots.txt allows of them (RFC 9309)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from protego import Protego

from ..failures import Failure, Skipped
from ..http import HttpAnswer
from ..source_params import SourceParams
from ..urls import host_of, origin_of


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
        """Whether a canonical address this many links away from the start belongs to it."""
        return self.reaches(depth) and self.covers(url)

    def reaches(self, depth: int) -> bool:
        """Whether it goes this many links away from the start."""
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


_LARGEST_BYTES = 500 * 1024
"""This much of it has to be read at least, and need not be more."""


@dataclass(frozen=True, slots=True)
class Robots:
    """One host's rules for one user agent.

    Attributes:
        delay_s: the pause between two requests it asks for; 0 without any.
        sitemaps: the addresses of its sitemaps.
    """

    _rules: Protego | None
    _user_agent: str
    delay_s: float = 0.0
    sitemaps: tuple[str, ...] = ()

    def allow(self, url: str) -> bool:
        """Whether an address may be asked for."""
        return self._rules is None or _allowed(self._rules, url, self._user_agent)


@lru_cache(maxsize=2**15)
def _allowed(rules: Protego, url: str, user_agent: str) -> bool:
    return bool(rules.can_fetch(url, user_agent))


def parsed(content: bytes, user_agent: str) -> Robots:
    """The rules in a robots.txt."""
    if len(content) > _LARGEST_BYTES:
        content = content[:_LARGEST_BYTES].rpartition(b"\n")[0]  # the begin of a rule would be another one
    rules = Protego.parse(content.decode("utf-8-sig", "replace"))
    rate = rules.request_rate(user_agent)
    delay_s = max(
        float(rules.crawl_delay(user_agent) or 0.0),
        rate.seconds / rate.requests if rate and rate.requests else 0.0,
    )
    return Robots(rules, user_agent, delay_s, tuple(rules.sitemaps))


def read(ask: Callable[[], HttpAnswer], user_agent: str) -> Robots:
    """The rules a host gives; whatever is allowed where it has none.

    Raises:
        Failure: it cannot say at present, so nothing may be asked for (RFC 9309, 2.3.1.4).
    """
    try:
        return parsed(ask().body, user_agent)
    except Skipped:
        return Robots(None, user_agent)
    except Failure as failure:
        if failure.permanent and failure.kind not in {"bad_answer", "tls"}:  # 4xx, 3xx: it has none
            return Robots(None, user_agent)
        raise
