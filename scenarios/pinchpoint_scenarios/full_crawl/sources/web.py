"""A web site as a content source: the addresses in its sitemaps, and the links of its pages."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit
from xml.parsers import expat

from lxml import etree  # type: ignore[import-untyped] # it ships no types
from protego import Protego
from w3lib.encoding import html_to_unicode
from w3lib.url import canonicalize_url

from ...contract import Endpoint
from ...errors import ScenarioError
from ..failures import Failure, Skipped
from ..http import LARGEST_BYTES, Http, HttpAnswer, UnpackError, refusal, unpacked
from ..login import header_login
from ..params import FullCrawlParams, SourceParams
from ..politeness import NO_WAIT, RequestLimits
from ..result_cache import ResultCache
from .contract import Changes, Fetched, Item

# The functions below handle addresses of web pages: one address per page, and the targets of links.

_SCHEMES = frozenset({"http", "https"})
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# A path of plain characters needs no rewriting if it is below the page's own folder, below the root, or after
# a host without a port.
_HOST = r"https?://[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_PLAIN = re.compile(
    rf"(?:(?P<host>{_HOST})?/)?(?!\.)[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/(?!\.)[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?\Z"
)
_NOWHERE = re.compile(r"(?:https?:)?(?:#|\Z|//(?:[/?#]|\Z))|https?:\?", re.IGNORECASE)
"""Links to the page itself, or to an address without a host."""
_PATH_FROM = len("https://")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_SPACE = " \t\n\f\r"
_LONGEST = 8_000
"""Longest address of a link. Servers need not accept a longer one (RFC 9110, 4.1), so it is treated as
data."""
_REMEMBERED_URLS, _LONGEST_REMEMBERED = 2**15, 500
"""Number of remembered links of a base, and length of the longest of them."""
_BASES = 32
_OF_ITSELF = "?"
"""Marks a link to the page itself with other options."""


def canonical(url: str) -> str | None:
    """Return the canonical form of an ``http(s)`` address, without its fragment; None for other addresses.

    It has the host in lower case, no default port, a path of at least ``/``, sorted options, and one
    percent-encoding.
    """
    try:
        parts = urlsplit(url.strip())
        if parts.scheme not in _SCHEMES or not parts.hostname or parts.username is not None:
            return None
        host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS[parts.scheme])
        result: str = canonicalize_url(urlunsplit(parts._replace(netloc=host)))
        result.encode("ascii")
    except ValueError:  # a port that is not a number, unmatched brackets, an invalid host
        return None
    return None if _CONTROL.search(result) else result


class Page:
    """A page as the base of its links.

    Args:
        url: canonical address of the page, or its declared base.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._known = _links_of(url.partition("?")[0].rpartition("/")[0] + "/")

    def link(self, href: str) -> str | None:
        """Return the canonical target of a link; None if it is not a web page."""
        return self.links((href,))[0]

    def links(self, hrefs: Collection[str]) -> list[str | None]:
        """Return the target of each link."""
        known = self._known
        result = [known[href] for href in hrefs]
        if _OF_ITSELF in result:
            pairs = zip(hrefs, result, strict=True)
            result = [
                _leads(self._url, href.strip(_SPACE)) if url is _OF_ITSELF else url for href, url in pairs
            ]
        return result


class _Links(ResultCache[str, "str | None"]):
    """The link targets of all pages of a folder, calculated once.

    The links of a page are looked up in one pass.

    Args:
        folder: address of the folder.
        of_root: links of the site's root. Those that begin with a "/" are the same in every folder.
    """

    def __init__(self, folder: str, of_root: _Links | None) -> None:
        super().__init__(self._find, _REMEMBERED_URLS)
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
    """Return the target of a link from a base: the site's root, its folder, or, after a "?", its page."""
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
    """Return scheme, host and port of a canonical address."""
    return url[: url.index("/", _PATH_FROM)]


def target_of(url: str) -> str:
    """Return path and query of a canonical address."""
    return url[url.index("/", _PATH_FROM) :]


def host_of(url: str) -> str:
    """Return host and port of an address in lower case."""
    return url.split("/", 3)[2] if url.count("/") >= 3 else urlsplit(url).netloc


# Sitemaps (sitemaps.org) are an index of others, or addresses with the time of their last change. They may be
# packed.

_GZIP = b"\x1f\x8b"
_SITEMAP_BEGINNINGS = (b"<", b"\xff\xfe", b"\xfe\xff")  # the last two in UTF-16
_PLACES = {"url": False, "sitemap": True}
_MOST_ENTRIES, _MOST_ELEMENTS, _LARGEST_ELEMENT_BYTES = 100_000, 1_000_000, 4 * 2**20
"""Limits of a sitemap. The protocol allows 50,000 entries, which this process reads in about a second."""
_DEEPEST = 100
_STEP_BYTES = 2**20
"""Bytes per step of the parser, because a handler that refuses ends the parser at the end of a step."""


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """One entry of a sitemap.

    Attributes:
        url: address as written in the sitemap.
        is_sitemap: whether the address is another sitemap.
        version: time of its last change; "" if not given.
    """

    url: str
    is_sitemap: bool
    version: str


def entries(content: bytes, where: str) -> list[SitemapEntry]:
    """Return the addresses of a sitemap, or of a text with one address per line. Raises ``Failure``."""
    plain = _unpacked(content, where) if content.startswith(_GZIP) else content
    if plain.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_SITEMAP_BEGINNINGS):
        result = _read(plain.lstrip(), where)
    else:
        result = _lines(plain, where)
    kept = list(islice(result, _MOST_ENTRIES + 1))
    if len(kept) > _MOST_ENTRIES:
        raise _no_sitemap(where, f"it has more than {_MOST_ENTRIES:,} entries")
    return kept


def _lines(plain: bytes, where: str) -> Iterator[SitemapEntry]:
    for number, line in enumerate(io.TextIOWrapper(io.BytesIO(plain), "utf-8-sig", "replace")):
        if number >= _MOST_ELEMENTS:
            raise _no_sitemap(where, f"it has more than {_MOST_ELEMENTS:,} lines")
        if (url := line.strip()).startswith("http"):
            yield SitemapEntry(url, False, "")


def _read(plain: bytes, where: str) -> Iterator[SitemapEntry]:
    # Only a document type defines entities. A chain of 60,000 entities crashes expat before 2.7. Every
    # supported encoding has these letters as ASCII, in UTF-16 beside a zero byte.
    if b"<!DOCTYPE" in plain.replace(b"\0", b""):
        raise _no_sitemap(where, "it has a DOCTYPE")
    reader = _SitemapReader()
    try:
        for at in range(0, len(plain), _STEP_BYTES):
            reader.feed(plain[at : at + _STEP_BYTES])
            yield from reader.taken()
        reader.feed(b"", last=True)
    # the last two: the encoding of the sitemap, and its depth
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise _no_sitemap(where, str(error)) from error
    yield from reader.taken()


class _SitemapReader:
    """Converts elements to entries while they are parsed, without building a tree."""

    def __init__(self) -> None:
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self._parser = parser
        self._entries: list[SitemapEntry] = []
        self._depth = self._elements = self._fed_bytes = 0
        self._place, self._at = "", 0  # the element that is an entry, and its depth
        self._said: dict[str, str] = {}
        self._field = ""
        self._text: list[str] | None = None  # text of a direct child element, up to its first child

    def feed(self, step: bytes, *, last: bool = False) -> None:
        """Parse further bytes."""
        self._parser.Parse(step, last)
        self._fed_bytes += len(step)
        if self._fed_bytes - self._parser.CurrentByteIndex > _LARGEST_ELEMENT_BYTES:
            # The parser repeats the start of an element with every step.
            raise ValueError(f"it has a tag larger than {_LARGEST_ELEMENT_BYTES // 2**20} MiB")

    def taken(self) -> list[SitemapEntry]:
        """Return the entries completed since the last call."""
        taken, self._entries = self._entries, []
        return taken

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise ValueError(f"it has more than {_MOST_ELEMENTS:,} elements")
        if self._depth > _DEEPEST:
            raise ValueError(f"its elements lie more than {_DEEPEST} deep in each other")
        if self._place:
            self._keep()
            if self._depth == self._at + 1:
                self._field, self._text = _local(name), []
        elif _local(name) in _PLACES:
            self._place, self._at, self._said = _local(name), self._depth, {}

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, _: str) -> None:
        self._keep()
        if self._place and self._depth == self._at:
            if url := self._said.get("loc"):
                self._entries.append(SitemapEntry(url, _PLACES[self._place], self._said.get("lastmod", "")))
            self._place = ""
        self._depth -= 1

    def _keep(self) -> None:
        if self._text is not None:
            self._said[self._field] = "".join(self._text).strip()
            self._text = None


def _local(name: str) -> str:
    return name.rpartition("}")[2].lower()


def _unpacked(content: bytes, where: str) -> bytes:
    try:
        return unpacked(content, LARGEST_BYTES)
    except UnpackError as error:
        raise Failure("bad_answer", f"{where} cannot be unpacked: {error}", permanent=True) from error


def _no_sitemap(where: str, why: str) -> Failure:
    return Failure("bad_answer", f"{where} is no sitemap: {why}", permanent=True)


# The classes below define the addresses of a web source, and what the robots.txt of a host allows (RFC 9309).


class Scope:
    """The addresses that a web source may crawl.

    Args:
        start: canonical address of the start.
        source: parameters of the source: ``hosts``, ``include``, ``exclude``, ``depth``.
    """

    def __init__(self, start: str, source: SourceParams) -> None:
        self._near = origin_of(start) + "/"  # nearly all addresses of a site are on the host of the start
        self._hosts = {host_of(start), *(host.lower() for host in source.hosts if not host.startswith("*."))}
        self._domains = tuple(host[1:].lower() for host in source.hosts if host.startswith("*."))
        self._include = _pattern(source.include)
        self._exclude = _pattern(source.exclude)
        self._depth = source.depth

    def holds(self, url: str, depth: int) -> bool:
        """Return whether a canonical address at a number of links from the start belongs to the source."""
        return self.reaches(depth) and self.covers(url)

    def reaches(self, depth: int) -> bool:
        """Return whether the depth limit allows a number of links."""
        return self._depth is None or depth <= self._depth

    def covers(self, url: str) -> bool:
        """Return whether a canonical address belongs to the source at any depth."""
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
        """Return whether a canonical address is on a host of the source. Other hosts are never contacted."""
        if url.startswith(self._near):
            return True
        host = host_of(url)
        return host in self._hosts or host.partition(":")[0].endswith(self._domains or ("\0",))


def _pattern(given: Iterable[str]) -> re.Pattern[str] | None:
    """Return one expression for all patterns.

    It matches the path and, on a second line, the whole address.
    """
    parts = []
    for wanted in given:
        each = "[^\n]*".join(re.escape(part) for part in wanted.split("*"))
        parts.append(rf"{each}\n" if wanted.startswith("/") else rf"[^\n]*\n{each}\Z")
    return re.compile("|".join(parts)) if parts else None


_LARGEST_BYTES = 500 * 1024
"""Number of bytes of the file that are read."""


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one host for one user agent.

    Attributes:
        delay_s: pause between two requests in seconds; 0 without one.
        sitemaps: addresses of the sitemaps.
    """

    _rules: Protego | None
    _user_agent: str
    delay_s: float = 0.0
    sitemaps: tuple[str, ...] = ()

    def allow(self, url: str) -> bool:
        """Return whether an address may be requested."""
        return self._rules is None or _allowed(self._rules, url, self._user_agent)


@lru_cache(maxsize=2**15)
def _allowed(rules: Protego, url: str, user_agent: str) -> bool:
    return bool(rules.can_fetch(url, user_agent))


def parsed(content: bytes, user_agent: str) -> Robots:
    """Return the rules in a robots.txt."""
    if len(content) > _LARGEST_BYTES:
        # A rule that is cut off would be another rule.
        content = content[:_LARGEST_BYTES].rpartition(b"\n")[0]
    rules = Protego.parse(content.decode("utf-8-sig", "replace"))
    rate = rules.request_rate(user_agent)
    delay_s = max(
        float(rules.crawl_delay(user_agent) or 0.0),
        rate.seconds / rate.requests if rate and rate.requests else 0.0,
    )
    return Robots(rules, user_agent, delay_s, tuple(rules.sitemaps))


def read(ask: Callable[[], HttpAnswer], user_agent: str) -> Robots:
    """Return the rules of a host's robots.txt. Without the file, everything is allowed.

    Raises:
        Failure: the host cannot answer at present, so nothing may be requested (RFC 9309, 2.3.1.4).
    """
    try:
        return parsed(ask().body, user_agent)
    except Skipped:
        return Robots(None, user_agent)
    except Failure as failure:
        if failure.permanent and failure.kind not in {"bad_answer", "tls"}:  # 4xx or 3xx: no robots.txt
            return Robots(None, user_agent)
        raise


# The classes below read what a page declares for crawlers: links, canonical address, permission to index.

_HTML = ("text/html", "application/xhtml+xml")
_BEGINNINGS = (b"<!doctype html", b"<html")
_LINKS = frozenset({"a", "area", "frame", "iframe"})
_OTHERS = frozenset({"base", "link", "meta"})
_REFRESH = re.compile(r"[\d.\s]*[;,]\s*(?:url\s*=)?\s*[\"']?([^\"']+)", re.IGNORECASE)
_ADDRESSED = re.compile(r"\s*([\w.*/-]+)\s*:\s*(.*)")  # such as X-Robots-Tag: otherbot: noindex
_WITH_VALUES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_MOST_LINKS = 10_000
"""Largest number of links taken from one page. A page with more links is an endless listing."""
_READ_BYTES = 2 * 2**20
"""Bytes of a page that are searched for links: 64 MiB of tags would stop the load of this process for 20
s."""


class PageContent(NamedTuple):
    """The declarations of a page.

    Attributes:
        links: canonical addresses of its links, each once, in order.
        follow: links that may be followed, except those to the page itself.
        canonical: canonical address that the page declares; "" if it declares none.
        noindex: whether the page must not be indexed.
    """

    links: tuple[str, ...]
    follow: tuple[str, ...]
    canonical: str
    noindex: bool


@dataclass(slots=True)
class _PageTags:
    """The links and instructions of a page, as written."""

    hrefs: dict[str, bool] = field(default_factory=dict)  # and whether a link to it may be followed
    choosy: bool = False  # whether a link may not be followed
    base: str = ""
    canonical: str = ""
    words: set[str] = field(default_factory=set)  # instructions of robots


class _PageReader:
    """Takes the tags of a page from libxml2 during parsing, without building a tree, at any depth."""

    def __init__(self) -> None:
        self._said = _PageTags()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _LINKS:
            href = attributes.get("href") or attributes.get("src")
            hrefs = self._said.hrefs
            if href and len(hrefs) < _MOST_LINKS:
                rel = attributes.get("rel")
                if not rel or "nofollow" not in rel.lower().split():
                    hrefs[href] = True
                else:
                    hrefs.setdefault(href, False)
                    self._said.choosy = True
        elif tag in _OTHERS:
            _note(tag, attributes, self._said)

    def close(self) -> _PageTags:
        answer, self._said = self._said, _PageTags()
        return answer


_PARSER = etree.HTMLParser(encoding="utf-8", target=_PageReader(), huge_tree=True)
"""One parser for all pages. Other encodings are converted to UTF-8 first."""


def is_page(content_type: str, body: bytes) -> bool:
    """Return whether an answer is HTML: by its type, or, without a type, by its start."""
    if content_type:
        return content_type.lower().startswith(_HTML)
    return body[:100].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_BEGINNINGS)


def reading(answer: HttpAnswer, content_type: str, url: str, user_agent: str) -> PageContent:
    """Return the rules of a page for a crawler with a name. ``url`` is the canonical address of the page."""
    said = _said(_utf8(answer.body[:_READ_BYTES], content_type))
    if answer.response.header(b"x-robots-tag"):
        said.words |= _header_words(answer, user_agent)
    page = Page((said.base and Page(url).link(said.base)) or url)
    result = page.links(said.hrefs)
    links = follow = dict.fromkeys(filter(None, result))
    if said.words and said.words & {"nofollow", "none"}:
        follow = {}
    elif said.choosy:
        pairs = zip(result, said.hrefs.values(), strict=True)
        follow = dict.fromkeys(link for link, followed in pairs if link and followed)
    return PageContent(
        tuple(links),
        tuple([link for link in follow if link != url]),
        (said.canonical and page.link(said.canonical)) or "",
        bool(said.words and said.words & {"noindex", "none"}),
    )


def _said(body: bytes) -> _PageTags:
    try:
        tags: _PageTags = etree.fromstring(body, _PARSER)
    except etree.XMLSyntaxError:  # the page contains no element
        return _PageTags()
    return tags


def _note(tag: str, attributes: Mapping[str, str], tags: _PageTags) -> None:
    """Record declarations that are not links: the first ``base`` and ``canonical``, every ``meta``."""
    if tag == "base":
        tags.base = tags.base or attributes.get("href", "")
    elif tag == "link":
        if "canonical" in attributes.get("rel", "").lower().split():
            tags.canonical = tags.canonical or attributes.get("href", "")
    elif attributes.get("name", "").strip().lower() == "robots":
        tags.words |= _words(attributes.get("content", ""))
    elif attributes.get("http-equiv", "").strip().lower() == "refresh":
        leads = _REFRESH.match(attributes.get("content", ""))
        if leads:
            tags.hrefs[leads[1].strip()] = True


def _utf8(body: bytes, content_type: str) -> bytes:
    """Return a page in UTF-8.

    Its encoding is declared by a byte order mark, the server, or the page itself.
    """
    if body.isascii() and b"\0" not in body:
        return body
    try:
        text: str = html_to_unicode(content_type or None, body)[1]
    except (LookupError, UnicodeError):  # a Python codec that is not a charset: rot13, idna
        text = body.decode("utf-8", "replace")
    return text.encode("utf-8", "replace")


def _header_words(answer: HttpAnswer, user_agent: str) -> set[str]:
    """Return the words of ``X-Robots-Tag`` for all crawlers or for a name.

    A field may be for another name.
    """
    words = set()
    for name, value in answer.response.headers:
        if name.lower() != b"x-robots-tag":
            continue
        text = value.decode("latin-1")
        addressed = _ADDRESSED.match(text)
        if addressed and addressed[1].lower() not in _WITH_VALUES:
            if not user_agent.lower().startswith(addressed[1].lower()):
                continue
            text = addressed[2]
        words |= _words(text)
    return words


def _words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}


_START = "start"
_SITEMAP = "sitemap"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED = 304
_MOST_HOSTS = 32
"""Number of hosts to which a session keeps connections."""
_REMEMBERED = 2**16
"""Number of links with a remembered decision, because the pages of a site have the same targets."""
_ROBOTS_REDIRECTS = 5
_MOST_REDIRECTS = 20
"""Largest number of consecutive redirects, as in browsers."""


class WebRepository:
    """A site as one process sees it (see ``Repository``)."""

    def __init__(self, endpoint: Endpoint, source: SourceParams, params: FullCrawlParams) -> None:
        start = canonical(endpoint.url)
        if start is None:
            raise ScenarioError(f"endpoint {endpoint.name}: its url is no address of a web site")
        self.start = start
        self.origin = origin_of(start)
        self.scope = Scope(start, source)
        self.pace = RequestLimits(source.delay or 0.0, source.per_host)
        self.source = source
        self.timeout_s = params.timeout_s
        self.login = header_login(endpoint)
        self.linked = ResultCache(self._linked, _REMEMBERED)
        """``linked[url, depth]`` is a linked page as an item; None if it may not be crawled."""
        self._judged = ResultCache(self._judge, _REMEMBERED)
        self._robots: dict[str, Robots] = {}
        self._elsewhere: dict[str, str] = {}
        self._lock = threading.Lock()

    def connect(self) -> WebSource:
        return WebSource(self)

    def pause_s(self) -> float:
        return self.pace.pause_s()

    def known(self, origin: str) -> Robots | None:
        """Return the rules of an origin, if they have been read."""
        return self._robots.get(origin)

    def learn(self, origin: str, robots: Robots) -> None:
        """Store the rules of an origin."""
        with self._lock:
            self._robots[origin] = robots
        self.linked.clear()
        self._judged.clear()
        self.pace.slow_down(host_of(f"{origin}/"), robots.delay_s)

    def may(self, url: str, depth: int) -> bool:
        """Return whether an address is in scope, and allowed if the rules of its host are known."""
        return self.scope.reaches(depth) and self._judged[url]

    def leads_round(self, url: str, own: str) -> bool:
        """Return whether the canonical address of a page leads back to this page, directly or indirectly.

        The page that is crawled last is indexed, now and next time. Otherwise no page would be indexed.
        """
        met = {url}
        while own and own not in met:
            met.add(own)
            own = self._elsewhere.get(own, "")
        return own == url

    def lies_elsewhere(self, url: str, own: str) -> None:
        """Record the canonical address that a page declares."""
        if len(self._elsewhere) >= _REMEMBERED:
            self._elsewhere.clear()
        self._elsewhere[url] = own

    def _judge(self, url: str) -> bool:
        if not self.scope.covers(url):
            return False
        known = self._robots.get(origin_of(url))
        return known is None or known.allow(url)

    def _linked(self, link: tuple[str, int]) -> Item | None:
        url, depth = link
        return Item("document", url, str(depth)) if self.may(url, depth) else None


class _RequestedHost(NamedTuple):
    """A requested host: the prefix of its addresses, and the connection to it."""

    place: str
    target_from: int
    robots: Robots
    http: Http


class WebSource:
    """A site as a source. Sitemaps are containers; a page is a document in which further pages are found.

    The ``detail`` of a document is its number of links from the start or a sitemap, and after a ``+`` the
    number of consecutive redirects to it. Each item is one request; a redirect becomes a new item. The
    headers of a login are sent only to the scheme, host and port of the start.

    Args:
        site: part of the source that this process shares.
    """

    def __init__(self, site: WebRepository) -> None:
        self._site = site
        self._https: dict[str, Http] = {}
        self._near: _RequestedHost | None = None

    def check(self) -> Mapping[str, Any]:
        """Check that the start page answers, and return the rules of robots.txt."""
        robots = self._robots(self._site.start)
        self._check_login(self._ask(self._site.start))
        return {
            "kind": "web",
            "url": self._site.start,
            "crawl_delay_s": robots.delay_s,
            "sitemaps": len(robots.sitemaps),
        }

    def root(self) -> Item:
        """Return the container of the sitemaps and the first page.

        Its address differs from that of the page.
        """
        return Item("container", f"{self._site.start}#{_START}", _START)

    def turn(self, item: Item) -> AbstractContextManager[None]:
        pace = self._site.pace
        return NO_WAIT if pace.free else pace.turn(host_of(item.url))

    def host(self, item: Item) -> str:
        return host_of(item.url)

    def hold(self, host: str, seconds: float) -> None:
        self._site.pace.hold(host, seconds)

    def enumerate(self, container: Item) -> Sequence[Item]:
        """Return the start page and the sitemaps, or the entries of a sitemap."""
        if container.detail == _START:
            return self._beginning()
        known = self._robots(container.url)
        if not known.allow(container.url):
            raise Failure("robots", "robots.txt disallows a sitemap", permanent=True)
        items = []
        page = Page(container.url)
        for entry in entries(self._ask(container.url).body, container.url):
            url = page.link(entry.url)
            if url is None:
                continue
            if entry.is_sitemap:
                if self._site.scope.has_host(url):
                    items.append(Item("container", url, _SITEMAP, entry.version))
            elif self._site.may(url, 0):
                items.append(Item("document", url, "0", entry.version))
        return items

    def fetch(self, document: Item) -> Fetched:
        """Fetch a page or file, its links, and the pages to crawl."""
        url = document.url
        if not self._at(url).robots.allow(url):
            raise Skipped("robots.txt disallows it")
        answer = self._ask(url, _conditions(document.known) if document.known else None)
        if answer.status == _NOT_MODIFIED:
            return Fetched(b"", answer.start_ns, answer.end_ns, version=document.known, unchanged=True)
        depth, moves = _way(document.detail)
        if answer.status in _REDIRECTS:
            return self._moved(document, answer, depth, moves)
        reported = answer.response.header
        version = document.version or reported(b"etag") or reported(b"last-modified")
        content_type = reported(b"content-type")
        if not is_page(content_type, answer.body):
            return Fetched(answer.body, answer.start_ns, answer.end_ns, version=version)
        result = reading(answer, content_type, url, self._site.source.user_agent)
        return Fetched(
            answer.body,
            answer.start_ns,
            answer.end_ns,
            version=version,
            links=result.links,
            found=self._items_of(result, url, depth),
            skipped=self._why_not(result, url),
        )

    def token(self) -> str | None:
        """Return None: a web site has no change log."""
        return None

    def changes(self, since: str) -> Changes:
        """Raises ``Failure``: not supported."""
        raise Failure("not_supported", f"a web site keeps no change log; asked since {since}", permanent=True)

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        for http in self._https.values():
            http.close()
        self._https.clear()
        self._near = None

    def _beginning(self) -> list[Item]:
        robots = self._robots(self._site.start)
        items = [Item("document", self._site.start, "0")]
        if self._site.source.sitemaps:
            page = Page(self._site.start)
            named = robots.sitemaps or ("/sitemap.xml",)
            urls = dict.fromkeys(
                url
                for each in named
                if (url := page.link(each)) is not None and self._site.scope.has_host(url)
            )
            items += [
                Item("container", url, _SITEMAP) for url in urls if robots.sitemaps or self._exists(url)
            ]
        return items

    def _check_login(self, answer: HttpAnswer) -> None:
        """Raises ``Failure`` if the start redirects to an origin outside of the login."""
        moved = answer.status in _REDIRECTS and Page(self._site.start).link(_location(answer))
        if moved and self._site.login and origin_of(moved) != self._site.origin:
            raise Failure(
                "authentication",
                f"it redirects to {origin_of(moved)}, but its login goes to {self._site.origin} alone; "
                f"write url: {moved} in farm.yaml",
                permanent=True,
            )

    def _exists(self, url: str) -> bool:
        """Return whether a sitemap that no page named may exist. A missing one is no failure.

        An address that does not answer may be a sitemap. It is requested again as a separate item, so that
        its failure affects neither the start page nor the pages that it named earlier.
        """
        try:
            return bool(entries(self._ask(url).body, url))
        except Failure as failure:
            return not failure.permanent
        except Skipped:
            return False

    def _moved(self, document: Item, answer: HttpAnswer, depth: int, moves: int) -> Fetched:
        if moves >= _MOST_REDIRECTS:
            why = f"more than {_MOST_REDIRECTS} redirects, one after the other"
            raise Failure("bad_answer", why, permanent=True)
        target = Page(document.url).link(_location(answer))
        if target is None:
            raise Failure("bad_answer", "a redirect to nowhere", permanent=True)
        # The depth is that of the redirected page, because a redirect is not a link.
        result = self._site.linked[target, depth]
        return Fetched(
            b"",
            answer.start_ns,
            answer.end_ns,
            links=(target,),
            found=(result._replace(detail=f"{depth}+{moves + 1}"),) if result else (),
            skipped=f"moved to {target}",
        )

    def _items_of(self, content: PageContent, url: str, depth: int) -> tuple[Item, ...]:
        linked, own, next_depth = self._site.linked, content.canonical, depth + 1
        result = [item for link in content.follow if (item := linked[link, next_depth]) is not None]
        if own and own != url and (nearer := linked[own, depth]) is not None:
            result = [nearer, *(item for item in result if item.url != own)]
        return tuple(result)

    def _why_not(self, content: PageContent, url: str) -> str:
        if content.noindex:
            return "it asks not to be indexed"
        own = content.canonical
        if own and own != url and self._site.may(own, 0) and not self._site.leads_round(url, own):
            self._site.lies_elsewhere(url, own)
            return f"its canonical address is {own}"
        return ""

    def _robots(self, url: str) -> Robots:
        origin = origin_of(url)
        known = self._site.known(origin)
        if known is None:
            agent = self._site.source.user_agent
            obeyed = self._site.source.robots
            known = read(lambda: self._robots_txt(url), agent) if obeyed else Robots(None, agent)
            self._site.learn(origin, known)
        return known

    def _robots_txt(self, url: str) -> HttpAnswer:
        """Return the robots.txt of a host, also after redirects to other hosts of the source.

        RFC 9309, 2.3.1.2, defines this.
        """
        where = f"{origin_of(url)}/robots.txt"
        for _ in range(1 + _ROBOTS_REDIRECTS):
            answer = self._http(where).request("GET", target_of(where), accept=_REDIRECTS)
            if answer.status not in _REDIRECTS:
                return answer
            leads = Page(where).link(_location(answer))
            if leads is None or not self._site.scope.has_host(leads):
                break
            where = leads
        raise refusal(answer.response)

    def _ask(self, url: str, conditions: Mapping[str, str] | None = None) -> HttpAnswer:
        accept = _REDIRECTS | {_NOT_MODIFIED} if conditions else _REDIRECTS
        near = self._near
        try:
            if near is None or not url.startswith(near.place):
                return self._http(url).request("GET", target_of(url), accept=accept, headers=conditions)
            target = url[near.target_from :]
            return near.http.request("GET", target, accept=accept, headers=conditions)
        except Failure as failure:
            self._site.pace.hold(host_of(url), failure.retry_after_s)
            raise

    def _at(self, url: str) -> _RequestedHost:
        """Return the known facts about the host of an address, which is mostly the same as the last one."""
        near = self._near
        if near is None or not url.startswith(near.place):
            place = origin_of(url) + "/"
            near = self._near = _RequestedHost(place, len(place) - 1, self._robots(url), self._http(url))
        return near

    def _http(self, url: str) -> Http:
        origin = origin_of(url)
        http = self._https.get(origin)
        if http is None:
            if len(self._https) >= _MOST_HOSTS:
                self._https.pop(next(iter(self._https))).close()
                self._near = None  # the item may have been that sitemap
            headers = {"User-Agent": self._site.source.user_agent, "Accept": "*/*"}
            if origin == self._site.origin:
                headers |= self._site.login
            http = self._https[origin] = Http(origin, timeout_s=self._site.timeout_s, headers=headers)
        return http


def _way(detail: str) -> tuple[int, int]:
    """Return a document's number of links from the start, and of consecutive redirects."""
    depth, _, moves = detail.partition("+")
    return int(depth or 0), int(moves or 0)


def _location(answer: HttpAnswer) -> str:
    """Return the target of a redirect, read as UTF-8 although HTTP's fields are bytes (RFC 9110, 5.5)."""
    value = answer.header("Location")
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _conditions(known: str) -> Mapping[str, str] | None:
    """Return headers that request a page only if it changed (RFC 9110, 13.1), by its ETag or its time."""
    if known.endswith('"') and known.startswith(('"', 'W/"')):
        return {"If-None-Match": known}
    return {"If-Modified-Since": known} if known.endswith(" GMT") else None
