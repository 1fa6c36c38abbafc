"""Tests of a polite crawl's rules without a server: addresses, scope, robots.txt, sitemaps, pauses."""

from __future__ import annotations

import gzip
import math
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from urllib.parse import urljoin

import pytest
from pydantic import ValidationError

from pinchpoint_collectors.common.backoff import retry_after_s
from pinchpoint_scenarios.full_crawl.failures import Failure
from pinchpoint_scenarios.full_crawl.http import HttpAnswer
from pinchpoint_scenarios.full_crawl.params import SourceParams
from pinchpoint_scenarios.full_crawl.politeness import RequestLimits
from pinchpoint_scenarios.full_crawl.sources.web import Page, Scope, canonical, entries, parsed, read


@pytest.mark.parametrize(
    ("given", "one"),
    [
        ("HTTP://Example.COM:80/a/../b?y=2&x=1#part", "http://example.com/b?x=1&y=2"),
        ("https://example.com:443", "https://example.com/"),
        ("http://example.com/ä%7e%2f", "http://example.com/%C3%A4~%2F"),
        ("mailto:a@b", None),
        ("http://user@example.com/", None),
        ("http://[::1/", None),
        ("http://example.com:port/", None),
        ("//example.com/", None),
    ],
)
def test_one_address_for_one_page(given: str, one: str | None) -> None:
    """Equivalent spellings become one address, and an invalid address becomes None."""
    assert canonical(given) == one


@pytest.mark.parametrize(
    ("href", "leads"),
    [
        ("x.html", "http://h/a/x.html"),
        ("/x/y.html", "http://h/x/y.html"),
        ("../x.html", "http://h/x.html"),
        ("./x.html", "http://h/a/x.html"),
        ("?q=1", "http://h/a/p.html?q=1"),
        ("//other/x", "http://other/x"),
        ("x.html#part", "http://h/a/x.html"),
        ("#part", None),
        ("javascript:void(0)", None),
        ("a b.html", "http://h/a/a%20b.html"),
        ("", None),
        (" \t/x\n", "http://h/x"),
        (" ?q=1 ", "http://h/a/p.html?q=1"),
        ("http://h/x", "http://h/x"),
        ("http://H:80/x", "http://h/x"),
        ("https://www.other.example", "https://www.other.example/"),
        ("http:x.html", "http://h/a/x.html"),
        ("http://h/../x//y", "http://h/x//y"),
        ("HTTPS://h/x", "https://h/x"),
        ("data:text/html;base64,PGE+", None),
        ("/" + "x" * 9000, None),
        ("/" + "x" * 600, "http://h/" + "x" * 600),
    ],
)
def test_where_a_link_leads(href: str, leads: str | None) -> None:
    """A link is resolved correctly, by the short way for plain links and by the long way."""
    assert Page("http://h/a/p.html").link(href) == leads


@pytest.mark.parametrize("seed", range(4))
def test_a_link_leads_to_the_same_the_short_way_and_the_long_one(seed: int) -> None:
    """Random links give the same result by the short way and by the long way."""
    chance = random.Random(seed)
    pieces = [
        "/",
        "a",
        "B.html",
        "..",
        ".",
        "?",
        "q=1",
        "&p",
        "#f",
        "%2f",
        ":",
        "-_~",
        "ä",
        " ",
        "//h:80/",
        "http://h/",
    ]
    for _ in range(800):
        base = f"http://h{chance.choice(('/', '/x/', '/x/y', '/x/y.html?z=1', '/?z=/1'))}"
        href = "".join(chance.choices(pieces, k=chance.randint(1, 5)))
        page, given = canonical(base) or "", href.strip(" ")
        if not given or given.startswith(("#", "///", "//?", "//#")) or given == "//":
            continue  # urljoin does not matter for an invalid link
        try:
            long = canonical(urljoin(page, given))
        except ValueError:
            long = None
        assert Page(page).link(href) == long, (page, href)


def scope(**options: object) -> Scope:
    return Scope("http://h.example/docs/", SourceParams.model_validate({"kind": "web", **options}))


@pytest.mark.parametrize(
    ("options", "url", "depth", "held"),
    [
        ({}, "http://h.example/other", 9, True),
        ({}, "http://h.example:81/", 0, False),
        ({"hosts": ["*.b.example"]}, "http://x.b.example/", 0, True),
        ({"hosts": ["*.b.example"]}, "http://xb.example/", 0, False),
        ({"hosts": ["c.example:8080"]}, "http://c.example:8080/", 0, True),
        ({"depth": 2}, "http://h.example/", 3, False),
        ({"include": ["/docs/*"]}, "http://h.example/docs/a?b", 0, True),
        ({"include": ["/docs/*"]}, "http://h.example/x/docs/a", 0, False),
        ({"include": ["*.pdf"]}, "http://h.example/x/a.pdf", 0, True),
        ({"include": ["/docs/*"], "exclude": ["*print=1*"]}, "http://h.example/docs/a?print=1", 0, False),
        ({"exclude": ["/a[1]+.html"]}, "http://h.example/a[1]+.html", 0, False),
        ({"exclude": ["/a[1]+.html"]}, "http://h.example/a1.html", 0, True),
    ],
)
def test_scope(options: dict[str, object], url: str, depth: int, held: bool) -> None:
    """The scope's hosts, depth and patterns work, and regex characters are plain text."""
    assert scope(**options).holds(url, depth) is held


def test_robots() -> None:
    """An agent's own group counts; delays and sitemaps are read; without robots.txt all is allowed."""
    text = b"User-agent: *\nDisallow: /\n\nUser-agent: pin\nDisallow: /x\nRequest-rate: 1/2\nSitemap: /m"
    rules = parsed(text, "pin")
    assert rules.allow("http://h/y")
    assert not rules.allow("http://h/x1")
    assert (rules.delay_s, rules.sitemaps) == (2.0, ("/m",))

    def fails(kind: str, *, permanent: bool) -> Callable[[], HttpAnswer]:
        def ask() -> HttpAnswer:
            raise Failure(kind, permanent=permanent)

        return ask

    assert read(fails("not_found", permanent=True), "pin").allow("http://h/x")
    with pytest.raises(Failure, match="http_500"):
        read(fails("http_500", permanent=False), "pin")


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("Crawl-delay: 1.5", 1.5),
        ("Crawl-delay: soon\nCrawl-delay: -3\nCrawl-delay: nan\nCrawl-delay: inf", 0.0),
        ("Crawl-delay: 1\nRequest-rate: 1/4", 4.0),
        ("Request-rate: 0/0\nRequest-rate: x", 0.0),
        ("Request-rate: 10/1m", 6.0),
    ],
)
def test_pauses_that_make_no_sense_are_none(text: str, delay_s: float) -> None:
    """Invalid delays are ignored, and the longest valid one counts."""
    assert parsed(b"\xef\xbb\xbfUser-agent: *\n" + text.encode(), "pin").delay_s == delay_s


@pytest.mark.parametrize(
    "content",
    [
        b"<urlset><url><loc>",
        gzip.compress(b"http://h/" * 100, mtime=0)[:15],
        b"<a>&b;</a>",
        b"<?xml version='1.0' encoding='made-up'?><urlset/>",
        b"<?xml version='1.0' encoding='big5'?><urlset/>",
        b"<!DOCTYPE urlset><urlset/>",
        "<?xml version='1.0' encoding='utf-16'?><!DOCTYPE urlset><urlset/>".encode("utf-16-le"),
    ],
)
def test_a_broken_sitemap_is_a_failure(content: bytes) -> None:
    """A broken sitemap is a failure, not an empty sitemap."""
    with pytest.raises(Failure, match="bad_answer"):
        entries(content, "/sitemap.xml")


def test_a_chain_of_entities_in_a_sitemap_is_refused() -> None:
    """A chain of 60,000 entities, which crashes expat before 2.7, is refused."""
    chain = "".join(f'<!ENTITY e{at} "&e{at - 1};">' for at in range(1, 60_000))
    bomb = f'<!DOCTYPE u [<!ENTITY e0 "x">{chain}]><u><url><loc>&e59999;</loc></url></u>'
    with pytest.raises(Failure, match="it has a DOCTYPE"):
        entries(bomb.encode(), "/sitemap.xml")


def test_retry_after() -> None:
    """Retry-After can be seconds, a date, or invalid text, which is no error."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after_s("120") == 120
    assert 27 < (retry_after_s(later) or 0) <= 30
    assert retry_after_s("soon") is retry_after_s("") is None
    assert retry_after_s("Mon, 01 Jan 2001 00:00:00 GMT") == 0
    assert retry_after_s("9" * 400) == math.inf
    assert retry_after_s(f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT") is None


def test_turns_keep_their_distance_and_their_number() -> None:
    """Starts are one pause apart, and at most the limit of requests is in flight."""
    pace = RequestLimits(0.05, 2)
    lock = threading.Lock()
    starts: list[float] = []
    under_way = most = 0

    def ask() -> None:
        nonlocal under_way, most
        with pace.turn("h"):
            with lock:
                starts.append(time.monotonic())
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.15)
            with lock:
                under_way -= 1

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    starts.sort()
    assert all(later - earlier > 0.045 for earlier, later in pairwise(starts))
    assert most == 2


def test_a_hold_stops_who_already_waits() -> None:
    """A hold also delays requests that already wait."""
    pace = RequestLimits(0.1)
    with pace.turn("h"):
        pass
    began = time.monotonic()
    threading.Timer(0.03, lambda: pace.hold("h", 0.4)).start()
    with pace.turn("h"):
        assert time.monotonic() - began > 0.4
    with pace.turn("other"):
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "files", "url": "http://h"}, "url is not for a source of kind files; use path"),
        ({"kind": "sharepoint", "depth": 3}, "depth: only for a source of kind web"),
        ({"kind": "web", "path": "/x"}, "path is not for a source of kind web; use url"),
        ({"kind": "web", "url": "http://h", "endpoint": "web"}, "both endpoint and url"),
        ({"kind": "files", "login": "files"}, "login is for a source with a path of its own"),
        ({"kind": "wep"}, "'sharepoint', 'web', 'files' or 'profiles'"),
    ],
)
def test_params_that_make_no_sense(given: dict[str, object], said: str) -> None:
    """An invalid parameter gives an error with the allowed values."""
    with pytest.raises(ValidationError, match=said):
        SourceParams.model_validate(given)
