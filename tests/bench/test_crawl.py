"""The crawl benchmark serves the described site, and Pinchpoint and its peers do the same work."""

from __future__ import annotations

import re
import shutil

import pytest
from bench import crawl
from bench.load import BenchError

_LINK = re.compile(rb'href="/([^"]*)"')


def test_every_page_is_a_kilobyte_with_ten_links_and_all_are_found() -> None:
    """Each page has 1 KiB and ten links, and a crawl from the start page reaches every page."""
    pages = {number: crawl.page(number, 500) for number in range(500)}
    assert {len(page) for page in pages.values()} == {1024}
    links = {
        number: {int(re.sub(rb"\D", b"", name) or 0) for name in _LINK.findall(page)}
        for number, page in pages.items()
    }
    assert all(len(_LINK.findall(page)) == crawl.LINKS for page in pages.values())
    known, waiting = {0}, [0]
    while waiting:
        for number in links[waiting.pop()] - known:
            known.add(number)
            waiting.append(number)
    assert known == set(pages)


def test_without_its_tools_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without wrk, the error names the program and its package."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BenchError, match=r"needs wrk \(Debian: wrk\)"):
        next(crawl.rows())


@pytest.mark.slow
def test_both_sides_fetch_and_the_crawl_crawls() -> None:
    """Pinchpoint and its peers fetch and crawl a small site for a second each.

    Slow: three servers, over ten seconds.
    """
    for program in ("wrk", "nginx", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    with crawl.site(4_000) as served:
        found = [
            crawl.fetched(served.url, 2**10, 1),
            crawl.wrk(served.url, 2**10, 1),
            crawl.fetched(served.tls_url, 100 * 2**10, 1, served.certificate),
            crawl.crawled(served, 1),
        ]
    for each in found:
        assert each.per_s > 50
        assert 1 < each.cpu_us < 5_000
