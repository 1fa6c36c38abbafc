"""What a host's robots.txt allows (RFC 9309), and the pause and the sitemaps it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from protego import Protego

from .failures import Failure, Skipped
from .http import HttpAnswer

_LARGEST_BYTES = 500 * 1024
"""So much of it has to be read at least, and need not be more."""


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
