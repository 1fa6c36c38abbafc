"""Tests of web crawls: links, conditional requests, and pauses that a site requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.folders import crawled, ended, prepared, rows
from scenarios.full_crawl.pages import Pages, linking
from scenarios.full_crawl_sources.sites import nginx
from scenarios.support import Events, Recorder, Search, crawl, made, stalled, status

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.native import FastConnection

NOWHERE = Endpoint("search", "", {"kind": "none"})
INCREMENTAL = {"mode": "incremental"}


@contextmanager
def serving(pages: dict[str, bytes]) -> Iterator[Pages]:
    server = Pages(pages)
    with server.running():
        yield server


def source(server: Pages, **options: Any) -> dict[str, Any]:
    return {"kind": "web", "name": "site", "url": server.url, **options}


def test_a_site_without_sitemaps_is_found_from_its_start(sql: Endpoint, tmp_path: Path) -> None:
    """On nginx each page reachable from the start page is fetched once."""
    site = tmp_path / "site"
    site.mkdir()
    names = [f"p{number}.html" for number in range(40)]
    for number, name in enumerate(names):
        (site / name).write_bytes(linking("/", *names[number + 1 : number + 6], text=name))
    (site / "index.html").write_bytes(linking(*names[:3], text="start"))
    recorder = Recorder()
    with nginx(tmp_path, site) as url:
        params = {"sources": [{"kind": "web", "name": "site", "url": url}], "batch": 8}
        found = crawled({"sql": sql, "search": NOWHERE}, params, recorder=recorder, keep_data=True)["site"]
    assert (found["count"], found["failures"]) == (41, 0)
    assert recorder.counts()["document:site", "ok"] == 41
    assert recorder.counts(stages=True)["document:site/fetch", "ok"] == 41
    assert rows(sql, "SELECT count(*) FROM links")[0][0] == 3 + sum(
        1 + len(names[number + 1 : number + 6]) for number in range(40)
    )
    ok = rows(sql, "SELECT count(*), count(DISTINCT url) FROM history WHERE kind = 'document'")
    assert ok == [(41, 41)]


def test_a_batch_of_pages_and_what_they_lead_to_is_one_statement(
    sql: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch needs one statement to take items and one to finish them, without a transaction."""
    site = tmp_path / "site"
    site.mkdir()
    names = [f"p{number}.html" for number in range(40)]
    for number, name in enumerate(names):
        (site / name).write_bytes(linking(*names[number + 1 : number + 6]))
    (site / "index.html").write_bytes(linking(*names[:20]))
    said: list[str] = []
    execute = FastConnection.execute

    def noting(self: FastConnection, statement: Any, parameters: Any = ()) -> Any:
        steps = {"SKIP LOCKED": "take", "logged AS (": "finish"}
        said.append(next((name for part, name in steps.items() if part in statement), statement))
        return execute(self, statement, parameters)

    monkeypatch.setattr(FastConnection, "execute", noting)
    with nginx(tmp_path, site) as url:
        params = {"sources": [{"kind": "web", "name": "site", "url": url, "sitemaps": False}], "batch": 20}
        found = crawled({"sql": sql, "search": NOWHERE}, params, sessions=1)["site"]
    assert found["count"] == 41
    first, last = said.index("finish"), len(said) - 1 - said[::-1].index("finish")
    assert set(said[first : last + 1]) == {"take", "finish"}
    assert said.count("finish") <= 2 + 8, "the root, the start, and the pages in the order they are found"


def test_a_batch_of_long_listings_is_handed_in_by_parts(sql: Endpoint) -> None:
    """Batches of pages with thousands of links are finished in several statements of limited size."""
    pages = {f"/p{n}": linking(*(f"http://h{n}.example/{m}" for m in range(6_000))) for n in range(8)}
    server, recorder = Pages({"/": linking(*pages)} | pages), Recorder()
    with server.running():
        web = {"kind": "web", "name": "site", "url": server.url, "sitemaps": False, "robots": False}
        params = {"sources": [web], "batch": 8}
        found = crawled({"sql": sql, "search": NOWHERE}, params, sessions=1, recorder=recorder)["site"]
    assert (found["count"], found["failures"]) == (9, 0)
    taken, handed_in = 3, 1 + 1 + 4  # the root, the start, the listings
    assert recorder.counts(stages=True)["document:site/crawl_db", "ok"] == taken + handed_in


def test_what_the_server_calls_unchanged_is_not_sent_again(sql: Endpoint) -> None:
    """An unchanged ETag keeps a page and its links; changed pages are indexed, missing ones deleted."""
    search = Search()
    pages = {
        "/": linking("/a", "/gone"),
        "/a": linking("/b", "/only-from-a"),
        "/b": linking("/"),
        "/only-from-a": linking("/deep"),
        "/deep": linking(text="deep"),
        "/gone": linking(text="gone"),
    }
    with serving(pages) as server, search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params: dict[str, Any] = {"sources": [source(server)], "batch": 4}
        assert crawled(endpoints, params, keep_data=True)["site"]["count"] == 6
        server.pages["/b"] = linking("/", "/new", text="changed")
        server.pages["/new"] = linking(text="new")
        server.pages["/"] = linking("/a")
        del server.pages["/gone"]
        server.full.clear()
        recorder = Recorder()
        found = crawled(endpoints, params | INCREMENTAL, recorder=recorder)["site"]
    assert sorted(server.full) == ["/", "/b", "/new"]
    assert (found["count"], found["unchanged"], found["deleted"], found["failures"]) == (3, 3, 1, 0)
    indexed = {url.removeprefix(server.url): content for url, (_, content) in search.documents.items()}
    assert indexed == server.pages
    assert recorder.counts()["document:site", "skipped"] == 3


def test_a_time_is_a_condition_too(sql: Endpoint, tmp_path: Path) -> None:
    """Without an ETag, Last-Modified is used, and nginx sends each page once."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_bytes(linking("a.html"))
    (site / "a.html").write_bytes(linking("/"))
    with nginx(tmp_path, site, "etag off;") as url:
        endpoints = {"sql": sql, "search": NOWHERE}
        params: dict[str, Any] = {"sources": [{"kind": "web", "name": "site", "url": url}]}
        assert crawled(endpoints, params, keep_data=True)["site"]["count"] == 2
        recorder = Recorder()
        found = crawled(endpoints, params | INCREMENTAL, recorder=recorder)["site"]
    assert (found["count"], found["unchanged"]) == (0, 2)
    fetched = [row for row in recorder.rows if row.operation == "document:site/fetch"]
    assert [row.size_bytes for row in fetched] == [0, 0]


def test_a_pause_one_process_is_told_of_is_made_by_all(sql: Endpoint) -> None:
    """A Retry-After received by one of two processes pauses both."""
    names = [f"/p{number}" for number in range(60)]
    pages = {"/": linking(*names)} | {name: linking(text=name) for name in names}
    with serving(pages) as server:
        server.delay_s = 0.01
        server.pausing("/p30", 2)
        endpoints = {"sql": sql, "search": NOWHERE}
        params = {"sources": [source(server, robots=False, sitemaps=False)], "timeout_s": 20}
        events = Events()
        first = made("full-crawl", endpoints, params, event=events)
        other = made("full-crawl", endpoints, params, event=events)
        with prepared(first):
            threads = [
                threading.Thread(target=crawl, args=(driver, 2, Recorder()), kwargs={"limit_s": 40})
                for driver in (first, other)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert ended(events)["site"]["count"] == 61
    told_at = next(at for at, path in server.asked if path == "/p30")
    # Requests already sent still arrive; a process that holds an item may not know of the pause.
    early = [at - told_at for at, _ in server.asked if 0.1 < at - told_at < 1.9]
    assert len(early) <= 2, early
    assert max(at for at, _ in server.asked) - told_at > 2


def test_hosts_that_are_held_are_told_with_what_is_taken(sql: Endpoint) -> None:
    """Each take returns the paused hosts of its source and the remaining time."""
    with serving({"/": linking("/a", "/b"), "/a": b"a", "/b": b"b"}) as server:
        endpoints = {"sql": sql, "search": NOWHERE}
        params = {"sources": [source(server, robots=False, sitemaps=False)]}
        first = made("full-crawl", endpoints, params)
        with prepared(first):
            session: Any = first.session(0)
            while not rows(sql, "SELECT count(*) FROM queue WHERE url LIKE '%/a'")[0][0]:
                assert session.perform(Recorder())
            session._frontier.hold("site", "h:1", 30.0)
            session._frontier.hold("site", "h:1", 5.0)
            session._frontier.hold("site", "short", 0.01)
            session._frontier.hold("elsewhere", "h:2", 30.0)
            time.sleep(0.05)
            taken = session._frontier.take([("site", True)], 2)
            session.close()
    assert len(taken) == 2
    for each in taken:
        assert set(each.holds) == {"h:1"}
        assert 25 < each.holds["h:1"] <= 30


MAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    "<url><loc>/only-mapped</loc></url></urlset>"
)


def test_a_guessed_sitemap_that_does_not_answer_costs_nothing_else(sql: Endpoint) -> None:
    """If a guessed sitemap fails, the start page is crawled, and the sitemap's pages are not deleted."""
    search = Search()
    pages = {"/": linking("/a"), "/a": linking(), "/only-mapped": linking(), "/sitemap.xml": MAP.encode()}
    with serving(pages) as server, search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params: dict[str, Any] = {"sources": [source(server)], "retries": 1, "timeout_s": 1}
        assert crawled(endpoints, params, keep_data=True)["site"]["count"] == 3
        server.failing["/sitemap.xml"] = [status(503)] * 9
        found = crawled(endpoints, params | INCREMENTAL, keep_data=True)["site"]
        assert (found["failures_by_kind"], found["unchanged"], found["deleted"]) == ({"http_503": 1}, 2, 0)
        assert len(search.documents) == 3
        server.failing["/sitemap.xml"] = [stalled(2)] * 9
        found = crawled(endpoints, params)["site"]
        assert (found["count"], found["failures_by_kind"]) == (2, {"timeout": 1})
        assert [each["url"] for each in found["failed"]] == [f"{server.url}/sitemap.xml"]
