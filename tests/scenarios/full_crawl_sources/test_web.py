"""Tests of web sources on a real nginx: sitemaps, robots.txt, links, scope, canonical addresses."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from scenarios.full_crawl_sources.sites import nginx, walk

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.full_crawl.failures import Failure, Skipped
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import Fetched, Item, Repository, repository
from pinchpoint_scenarios.full_crawl.sources.web import WebRepository, canonical

ROBOTS = """User-agent: *
Disallow: /private/
Sitemap: /maps/index.xml

User-agent: slowcoach
Crawl-delay: 0.3
"""
XML = '<?xml version="1.0"?><{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'
PAGES = {
    "index.html": '<title>Home</title><a href="a/one.html?b=2&amp;a=1#top">1</a>'
    '<a href="/a/one.html?a=1&b=2">same</a>'
    '<a href="private/x.html">no</a> <a href="mailto:me@here">mail</a> <a href="http://elsewhere.example/">out</a>'
    '<a href="moved">moved</a> <a rel="nofollow" href="hidden.html">not</a>',
    "a/one.html": '<base href="/b/"><a href="two.html">2</a><a href="../a/gr%C3%B6%c3%9fe%20x.html">odd</a>',
    "a/größe x.html": "<p>odd name",
    "b/two.html": '<link rel="canonical" href="/b/three.html"><a href="/b/four.html">4</a>',
    "b/three.html": "<p>three",
    "b/four.html": '<meta name="robots" content="noindex, nofollow"><a href="/b/five.html">5</a>',
    "b/five.html": "<p>five",
    "hidden.html": "<p>hidden",
    "private/x.html": "<p>private",
    "only-in-map.html": "<p>mapped",
    "packed.html": "<p>packed",
    "plain.txt": "http://elsewhere.example/not-a-link",
    "robots.txt": ROBOTS,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("web")
    root = folder / "site"
    for name, content in PAGES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "maps").mkdir()
    maps = root / "maps"
    (maps / "index.xml").write_text(
        XML.format(
            "sitemapindex",
            "".join(f"<sitemap><loc>/maps/{each}</loc></sitemap>" for each in ("1.xml.gz", "2.txt")),
        )
    )
    entry = "<url><loc>/only-in-map.html</loc><lastmod>2026-01-02</lastmod></url>"
    entry += "<url><loc>/private/x.html</loc></url>"
    (maps / "1.xml.gz").write_bytes(gzip.compress(XML.format("urlset", entry).encode()))
    extra = "location = /moved { return 301 /b/three.html; }"
    extra += "location = /busy { add_header Retry-After 1 always; return 503; }"
    with nginx(folder, root, extra) as url:
        (maps / "2.txt").write_text(f"{url}/packed.html\n{url}/plain.txt\n")
        yield url


def made(url: str, **options: object) -> Repository:
    source = SourceParams.model_validate({"kind": "web", "url": url, **options})
    return repository(source, Endpoint("web", url), FullCrawlParams(timeout_s=10))


def crawled(url: str, **options: object) -> tuple[list[Item], dict[str, Fetched]]:
    """Return the containers, and path -> fetched reply; pages forbidden by robots.txt are missing."""
    source = made(url, **options).connect()
    try:
        containers, fetched = walk(source)
    finally:
        source.close()
    return containers, {each.removeprefix(url): found for each, found in fetched.items()}


def test_a_site_is_found_by_links_and_sitemaps_once_each(site: str) -> None:
    """Pages in sitemaps and links are found once each; robots.txt, nofollow and hosts are obeyed."""
    containers, fetched = crawled(site)
    assert {urlsplit(each.url).path for each in containers} == {
        "/",
        "/maps/index.xml",
        "/maps/1.xml.gz",
        "/maps/2.txt",
    }
    assert set(fetched) == {
        "/", "/a/one.html?a=1&b=2", "/a/gr%C3%B6%C3%9Fe%20x.html", "/b/two.html", "/b/three.html",
        "/b/four.html", "/moved", "/only-in-map.html", "/packed.html", "/plain.txt",
    }  # fmt: skip
    skipped = {path: each.skipped for path, each in fetched.items() if each.skipped}
    assert skipped == {
        "/b/two.html": f"its canonical address is {site}/b/three.html",
        "/b/four.html": "it asks not to be indexed",
        "/moved": f"moved to {site}/b/three.html",
    }
    assert fetched["/only-in-map.html"].version == "2026-01-02"
    assert fetched["/packed.html"].version, "the server tells it"
    home = fetched["/"].links
    assert f"{site}/hidden.html" in home
    assert "http://elsewhere.example/" in home
    assert len(home) == len(set(home)) == 5
    assert fetched["/b/three.html"].content == b"<p>three"


def test_scope_is_depth_include_and_exclude(site: str) -> None:
    """Depth, include and exclude limit the crawl, on canonical addresses."""
    assert set(crawled(site, sitemaps=False, depth=0)[1]) == {"/"}
    assert "/b/two.html" not in crawled(site, sitemaps=False, depth=1)[1]
    assert set(crawled(site, sitemaps=False, include=["/", "/a/*"])[1]) == {
        "/", "/a/one.html?a=1&b=2", "/a/gr%C3%B6%C3%9Fe%20x.html",
    }  # fmt: skip
    found = crawled(site, exclude=["/b/*", f"{site}/a/one.html*"])[1]
    assert not [path for path in found if path.startswith(("/b/", "/a/one"))]


def test_what_robots_txt_forbids_is_not_asked_for(site: str) -> None:
    """A page that robots.txt forbids is not requested; for an own site the rules can be turned off."""
    source = made(site).connect()
    private = Item("document", f"{site}/private/x.html", "0")
    with pytest.raises(Skipped, match=r"robots\.txt"):
        source.fetch(private)
    source.close()
    free = made(site, robots=False).connect()
    assert free.fetch(private).content == b"<p>private"
    free.close()


def test_the_pause_a_host_asks_for_is_kept(site: str) -> None:
    """Crawl-delay and Retry-After hold for all sessions of a source together."""
    shared = made(site, user_agent="slowcoach")
    first, second = shared.connect(), shared.connect()
    page = Item("document", f"{site}/plain.txt", "0")
    with first.turn(page):
        first.fetch(page)
    started = time.monotonic()
    for source in (second, first, second):
        with source.turn(page):
            source.fetch(page)
    assert time.monotonic() - started > 0.6 - 0.05
    assert 0 < shared.pause_s() <= 0.3
    with pytest.raises(Failure) as caught:
        first.fetch(Item("document", f"{site}/busy", "0"))
    assert (caught.value.kind, caught.value.retry_after_s) == ("http_503", 1.0)
    assert shared.pause_s() > 0.5
    first.close()
    second.close()


def test_a_site_that_is_away_fails_by_name() -> None:
    """A site without a server gives one named failure."""
    source = made("http://127.0.0.1:1").connect()
    with pytest.raises(Failure) as caught:
        source.enumerate(source.root())
    assert caught.value.kind == "unreachable"
    source.close()


def test_missing_pages_and_no_sitemap(tmp_path: Path) -> None:
    """Without robots.txt and sitemap a site is crawled by links, and a dead link is one failure."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text('<a href="gone.html">gone</a>')
    with nginx(tmp_path, tmp_path / "site") as url:
        source = made(url).connect()
        (start,) = source.enumerate(source.root())
        (gone,) = source.fetch(start).found
        with pytest.raises(Failure) as caught:
            source.fetch(gone)
        assert (caught.value.kind, caught.value.permanent) == ("not_found", True)
        source.close()


def test_ntlm_is_not_for_web_sites() -> None:
    """NTLM for a web site is refused when the source is created."""
    endpoint = Endpoint("web", "http://127.0.0.1:1", {"auth": "ntlm", "user": "a", "password": "b"})
    with pytest.raises(ScenarioError, match="auth ntlm is not for web sites"):
        repository(SourceParams(kind="web"), endpoint, FullCrawlParams())


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://site/deep/page", True),
        ("https://SITE:443/page", True),
        ("http://site/page", False),
        ("http://site:443/page", False),
        ("https://site:8443/page", False),
        ("https://other/page", False),
    ],
)
@pytest.mark.parametrize(
    "login",
    [
        {"auth": "basic", "user": "u", "password": "canary"},
        {"auth": "bearer", "token": "canary"},
        {"auth": "cookies", "cookies": "FedAuth=canary"},
    ],
)
def test_a_login_goes_to_its_own_origin_alone(url: str, sent: bool, login: dict[str, str]) -> None:
    """A login is sent only to its own scheme, host and port, so never in clear text after https."""
    site = WebRepository(Endpoint("web", "https://site/", login), SourceParams(kind="web"), FullCrawlParams())
    source = site.connect()
    http = source._http(canonical(url) or "")
    head = http._head.lower()
    assert ("authorization:" in head or "cookie:" in head) is sent
