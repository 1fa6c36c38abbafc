"""A web site as a content source: what its sitemaps name, and what its pages link to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ...contract import Endpoint
from ...errors import ScenarioError
from ..failures import Failure, Skipped
from ..http import Http, HttpAnswer, refusal
from ..login import header_login
from ..memo import Memo
from ..params import FullCrawlParams, SourceParams
from ..politeness import NO_WAIT, RequestLimits
from ..urls import Page, canonical, host_of, origin_of, target_of
from .contract import Changes, Fetched, Item
from .web_pages import PageContent, is_page, reading
from .web_scope import Robots, Scope, read
from .web_sitemaps import entries

_START = "start"
_SITEMAP = "sitemap"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED = 304
_MOST_HOSTS = 32
"""Connections a session keeps: to this many hosts."""
_REMEMBERED = 2**16
"""This many links are judged once: a site's pages lead to the same others."""
_ROBOTS_REDIRECTS = 5
_MOST_REDIRECTS = 20
"""In a row; what goes on after this many, as browsers count, has no end."""


class WebRepository:
    """The site, as one process knows it: see ``Repository``."""

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
        self.linked = Memo(self._linked, _REMEMBERED)
        """``linked[url, depth]``: a page that is linked to, as an item; None where it may not be crawled."""
        self._judged = Memo(self._judge, _REMEMBERED)
        self._robots: dict[str, Robots] = {}
        self._elsewhere: dict[str, str] = {}
        self._lock = threading.Lock()

    def connect(self) -> WebSource:
        return WebSource(self)

    def pause_s(self) -> float:
        return self.pace.pause_s()

    def known(self, origin: str) -> Robots | None:
        """An origin's rules, where they have been read."""
        return self._robots.get(origin)

    def learn(self, origin: str, robots: Robots) -> None:
        """Keep an origin's rules."""
        with self._lock:
            self._robots[origin] = robots
        self.linked.clear()
        self._judged.clear()
        self.pace.slow_down(host_of(f"{origin}/"), robots.delay_s)

    def may(self, url: str, depth: int) -> bool:
        """Whether an address is in scope, and its host, as far as that is known, allows it."""
        return self.scope.reaches(depth) and self._judged[url]

    def leads_round(self, url: str, own: str) -> bool:
        """Whether the address a page says is its own says, maybe by way of others, that this one is its own.

        Whoever of them is looked at last is indexed, now and the next time; else none of them would be.
        """
        met = {url}
        while own and own not in met:
            met.add(own)
            own = self._elsewhere.get(own, "")
        return own == url

    def lies_elsewhere(self, url: str, own: str) -> None:
        """Note the address that a page says is its own."""
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


class _Near(NamedTuple):
    """A host that is being asked: what its addresses begin with, and what else it takes to ask it."""

    place: str
    target_from: int
    robots: Robots
    http: Http


class WebSource:
    """Sitemaps are containers; a page is a document in which further ones are found.

    A document's ``detail`` is how many links it is away from the start, or from a sitemap, and behind a ``+``
    how many redirects in a row led to it. One request is made for each item; a redirect is one more item, not
    followed on the spot. A login's headers go to the start's own scheme, host and port alone.

    Args:
        site: what its process knows.
    """

    def __init__(self, site: WebRepository) -> None:
        self._site = site
        self._https: dict[str, Http] = {}
        self._near: _Near | None = None

    def check(self) -> Mapping[str, Any]:
        """Whether the start answers, and what robots.txt says."""
        robots = self._robots(self._site.start)
        self._check_login(self._ask(self._site.start))
        return {
            "kind": "web",
            "url": self._site.start,
            "crawl_delay_s": robots.delay_s,
            "sitemaps": len(robots.sitemaps),
        }

    def root(self) -> Item:
        """What the sitemaps and the first page are found from; its address is not that page's."""
        return Item("container", f"{self._site.start}#{_START}", _START)

    def turn(self, item: Item) -> AbstractContextManager[None]:
        pace = self._site.pace
        return NO_WAIT if pace.free else pace.turn(host_of(item.url))

    def host(self, item: Item) -> str:
        return host_of(item.url)

    def hold(self, host: str, seconds: float) -> None:
        self._site.pace.hold(host, seconds)

    def enumerate(self, container: Item) -> Sequence[Item]:
        """The start page and the sitemaps; or what a sitemap names."""
        if container.detail == _START:
            return self._beginning()
        known = self._robots(container.url)
        if not known.allow(container.url):
            raise Failure("robots", "robots.txt disallows a sitemap", permanent=True)
        found = []
        page = Page(container.url)
        for entry in entries(self._ask(container.url).body, container.url):
            url = page.link(entry.url)
            if url is None:
                continue
            if entry.is_sitemap:
                if self._site.scope.has_host(url):
                    found.append(Item("container", url, _SITEMAP, entry.version))
            elif self._site.may(url, 0):
                found.append(Item("document", url, "0", entry.version))
        return found

    def fetch(self, document: Item) -> Fetched:
        """A page or file, what it links to, and what of that is to be crawled."""
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
        said = reading(answer, content_type, url, self._site.source.user_agent)
        return Fetched(
            answer.body,
            answer.start_ns,
            answer.end_ns,
            version=version,
            links=said.links,
            found=self._found(said, url, depth),
            skipped=self._why_not(said, url),
        )

    def token(self) -> str | None:
        """A web site keeps no change log."""
        return None

    def changes(self, since: str) -> Changes:
        """Not supported."""
        raise Failure("not_supported", f"a web site keeps no change log; asked since {since}", permanent=True)

    def close(self) -> None:
        """Close all connections. Safe to call twice."""
        for http in self._https.values():
            http.close()
        self._https.clear()
        self._near = None

    def _beginning(self) -> list[Item]:
        robots = self._robots(self._site.start)
        found = [Item("document", self._site.start, "0")]
        if self._site.source.sitemaps:
            page = Page(self._site.start)
            named = robots.sitemaps or ("/sitemap.xml",)
            urls = dict.fromkeys(
                url
                for each in named
                if (url := page.link(each)) is not None and self._site.scope.has_host(url)
            )
            found += [
                Item("container", url, _SITEMAP) for url in urls if robots.sitemaps or self._exists(url)
            ]
        return found

    def _check_login(self, answer: HttpAnswer) -> None:
        """Raises ``Failure`` where the start moves to an origin that the login is not for."""
        moved = answer.status in _REDIRECTS and Page(self._site.start).link(_location(answer))
        if moved and self._site.login and origin_of(moved) != self._site.origin:
            raise Failure(
                "authentication",
                f"it redirects to {origin_of(moved)}, but its login goes to {self._site.origin} alone; "
                f"write url: {moved} in farm.yaml",
                permanent=True,
            )

    def _exists(self, url: str) -> bool:
        """Whether there is, or may be, a sitemap that was not named: that there is none is no failure.

        What does not answer may be one. It is asked again as an item of its own, so that its failure
        neither costs the start page, nor has what it named before taken for gone.
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
        # As near as what it was found by: a redirect is no link to follow.
        found = self._site.linked[target, depth]
        return Fetched(
            b"",
            answer.start_ns,
            answer.end_ns,
            links=(target,),
            found=(found._replace(detail=f"{depth}+{moves + 1}"),) if found else (),
            skipped=f"moved to {target}",
        )

    def _found(self, said: PageContent, url: str, depth: int) -> tuple[Item, ...]:
        linked, own, next_depth = self._site.linked, said.canonical, depth + 1
        found = [item for link in said.follow if (item := linked[link, next_depth]) is not None]
        if own and own != url and (nearer := linked[own, depth]) is not None:
            found = [nearer, *(item for item in found if item.url != own)]
        return tuple(found)

    def _why_not(self, said: PageContent, url: str) -> str:
        if said.noindex:
            return "it asks not to be indexed"
        own = said.canonical
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
        """A host's robots.txt, wherever on the source's hosts that has moved to (RFC 9309, 2.3.1.2)."""
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

    def _at(self, url: str) -> _Near:
        """What is known of an address's host: mostly that of the one before."""
        near = self._near
        if near is None or not url.startswith(near.place):
            place = origin_of(url) + "/"
            near = self._near = _Near(place, len(place) - 1, self._robots(url), self._http(url))
        return near

    def _http(self, url: str) -> Http:
        origin = origin_of(url)
        found = self._https.get(origin)
        if found is None:
            if len(self._https) >= _MOST_HOSTS:
                self._https.pop(next(iter(self._https))).close()
                self._near = None  # it may have been that one
            headers = {"User-Agent": self._site.source.user_agent, "Accept": "*/*"}
            if origin == self._site.origin:
                headers |= self._site.login
            found = self._https[origin] = Http(origin, timeout_s=self._site.timeout_s, headers=headers)
        return found


def _way(detail: str) -> tuple[int, int]:
    """How many links away a document is, and how many redirects in a row led to it."""
    depth, _, moves = detail.partition("+")
    return int(depth or 0), int(moves or 0)


def _location(answer: HttpAnswer) -> str:
    """Where a redirect leads: UTF-8, though HTTP's fields are bytes (RFC 9110, 5.5)."""
    value = answer.header("Location")
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _conditions(known: str) -> Mapping[str, str] | None:
    """What asks for a page only if it is no more what is known (RFC 9110, 13.1): by its ETag, or its time."""
    if known.endswith('"') and known.startswith(('"', 'W/"')):
        return {"If-None-Match": known}
    return {"If-Modified-Since": known} if known.endswith(" GMT") else None
