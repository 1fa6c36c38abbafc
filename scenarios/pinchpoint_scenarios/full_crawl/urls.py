"""Addresses of web pages: one address for one page, and where a link leads."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit, urlunsplit

from w3lib.url import canonicalize_url

_SCHEMES = frozenset({"http", "https"})
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# A path of plain characters below the page's own folder, or from the root: nothing in it needs rewriting.
_PLAIN = re.compile(r"/?(?!\.)[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/(?!\.)[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?\Z")
_PATH_FROM = len("https://")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


def canonical(url: str) -> str | None:
    """The one spelling of an ``http(s)`` address, without its fragment; None where it is none.

    Host in lower case, no default port, path of at least ``/``, options sorted, one percent-encoding.
    """
    try:
        parts = urlsplit(url.strip())
        if parts.scheme not in _SCHEMES or not parts.hostname or parts.username is not None:
            return None
        host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS[parts.scheme])
        found: str = canonicalize_url(urlunsplit(parts._replace(netloc=host)))
        found.encode("ascii")
    except ValueError:  # a port that is no number, brackets that do not match, a host that cannot be one
        return None
    return None if _CONTROL.search(found) else found


class Page:
    """A page, as the base of its links.

    Args:
        url: its canonical address, or what it says its base is.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._origin = origin_of(url)
        self._folder = url.partition("?")[0].rpartition("/")[0] + "/"

    def link(self, href: str) -> str | None:
        """The canonical address a link leads to; None where it leads to no web page."""
        if _PLAIN.match(href):
            return self._origin + href if href[0] == "/" else self._folder + href
        # What begins at the root leads to the same from every page of the site: found out once.
        return _linked(f"{self._origin}/" if href.startswith("/") else self._url, href)


@lru_cache(maxsize=16_384)
def _linked(base: str, href: str) -> str | None:
    href = href.strip()
    if not href or href.startswith("#"):
        return None
    try:
        return canonical(urljoin(base, href))
    except ValueError:
        return None


def origin_of(url: str) -> str:
    """Scheme, host and port of a canonical address: all before its path."""
    return url[: url.index("/", _PATH_FROM)]


def target_of(url: str) -> str:
    """Path and query of a canonical address."""
    return url[url.index("/", _PATH_FROM) :]


def host_of(url: str) -> str:
    """Host and port of an address, in lower case."""
    return url.split("/", 3)[2] if url.count("/") >= 3 else urlsplit(url).netloc
