"""Addresses of web pages: one address for one page, and where a link leads."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import urljoin, urlsplit, urlunsplit

from w3lib.url import canonicalize_url

from .memo import Memo

_SCHEMES = frozenset({"http", "https"})
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# A path of plain characters below the page's own folder, from the root, or behind a host without a port:
# nothing in it needs rewriting.
_HOST = r"https?://[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_PLAIN = re.compile(
    rf"(?:(?P<host>{_HOST})?/)?(?!\.)[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/(?!\.)[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?\Z"
)
_NOWHERE = re.compile(r"(?:https?:)?(?:#|\Z|//(?:[/?#]|\Z))|https?:\?", re.IGNORECASE)
"""The page itself, or an address without its host."""
_PATH_FROM = len("https://")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_SPACE = " \t\n\f\r"
_LONGEST = 8_000
"""No server need take a longer address (RFC 9110, 4.1): such a link is data."""
_REMEMBERED, _LONGEST_REMEMBERED = 2**15, 500
"""This many links of a base, unless they are longer."""
_BASES = 32
_OF_ITSELF = "?"
"""In place of an address: the link leads to the page itself, with other options."""


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
        self._known = _links_of(url.partition("?")[0].rpartition("/")[0] + "/")

    def link(self, href: str) -> str | None:
        """The canonical address a link leads to; None where it leads to no web page."""
        return self.links((href,))[0]

    def links(self, hrefs: Collection[str]) -> list[str | None]:
        """Where each of them leads."""
        known = self._known
        found = [known[href] for href in hrefs]
        if _OF_ITSELF in found:
            pairs = zip(hrefs, found, strict=True)
            found = [
                _leads(self._url, href.strip(_SPACE)) if url is _OF_ITSELF else url for href, url in pairs
            ]
        return found


class _Links(Memo[str, "str | None"]):
    """Where links lead from any page of a folder, found out once: a page's links are looked up in one pass.

    Args:
        folder: the address they start from.
        of_root: the links of the site's root; those that begin with a "/" are the same in every folder.
    """

    def __init__(self, folder: str, of_root: _Links | None) -> None:
        super().__init__(self._find, _REMEMBERED)
        self._folder = folder
        self._of_root = of_root

    def __missing__(self, href: str) -> str | None:
        of_itself = href.lstrip(_SPACE).startswith("?")
        return self.ask(href) if of_itself or len(href) > _LONGEST_REMEMBERED else super().__missing__(href)

    def _find(self, href: str) -> str | None:
        plain = href.strip(_SPACE)
        if plain.startswith("?"):
            return _OF_ITSELF
        if self._of_root is not None and plain.startswith("/"):
            return self._of_root[plain]
        return _leads(self._folder, plain)


@lru_cache(maxsize=_BASES)
def _links_of(folder: str) -> _Links:
    root = origin_of(folder) + "/"
    return _Links(folder, None if folder == root else _links_of(root))


def _leads(base: str, href: str) -> str | None:
    """Where a link leads from a base: the root of its site, its folder, or, behind a "?", its page."""
    if len(href) > _LONGEST:
        return None
    if plain := _PLAIN.match(href):
        return href if plain["host"] else base + href.removeprefix("/")
    if _NOWHERE.match(href):
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
