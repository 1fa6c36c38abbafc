"""A crawl that is killed, and gone on with: nothing lost, nothing twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scenarios.full_crawl.folders import crawled, ended, fill, prepared, rows, source
from scenarios.full_crawl.killing import killed_after, resuming
from scenarios.full_crawl.pages import Pages, linking
from scenarios.support import Events, Recorder, Search, crawl, made, quiet

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError

DOCUMENTS = 400


def test_a_killed_crawl_is_gone_on_with(sql: Endpoint, tmp_path: Path) -> None:
    """Killed twice with SIGKILL in the middle: every document ends up done once, indexed at one address."""
    fill(tmp_path, DOCUMENTS, folders=8)
    search = Search()
    search.delay_s = 0.005
    with search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params = {"sources": [source(tmp_path, "share", workers=5)]}
        with prepared(made("full-crawl", endpoints, params), keep_data=True):
            said = killed_after(60, endpoints, params)
        first = rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'")[0][0]
        assert 60 <= said <= first < DOCUMENTS
        time.sleep(0.3)
        with prepared(resuming(endpoints, params), keep_data=True):
            killed_after(60, endpoints, params)
        events, recorder = Events(), Recorder()
        with prepared(resuming(endpoints, params, events)) as driver:
            begun = time.monotonic()
            crawl(driver, 6, recorder, limit_s=50)
            assert time.monotonic() - begun < 50, "it waited for leases of the dead"
            assert len({url for (url,) in rows(sql, "SELECT url FROM history")}) == DOCUMENTS + 9
    found = ended(events)["share"]
    assert (found["count"], found["failures"]) == (DOCUMENTS, 0)
    assert search.resets == 1, "what had been indexed was thrown away"
    assert len(search.documents) == DOCUMENTS
    assert 0 < recorder.counts()["document:share", "ok"] < DOCUMENTS - 100
    # Only what a killed session had indexed and not yet finished was given twice, to the same address.
    assert sum(search.given.values()) - DOCUMENTS <= 2 * 6
    assert found["paused_s"] > 0.3
    assert found["duration_s"] < 50


def test_a_killed_crawl_does_at_most_its_batches_again(sql: Endpoint) -> None:
    """A site by batches, killed twice: what was fetched and not handed in is, with its links, done again."""
    pages, sessions, batch = 200, 6, 16
    site = {"/": linking("/p0")}
    for n in range(pages):
        site[f"/p{n}"] = linking(*(f"/p{m}" for m in (2 * n + 1, 2 * n + 2, n + 1) if m < pages))
    search = Search()
    search.delay_s = 0.005
    server = Pages(site)
    with search.running(), server.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        web = {"kind": "web", "name": "site", "url": server.url, "sitemaps": False, "robots": False}
        params = {"sources": [web], "batch": batch}
        with prepared(made("full-crawl", endpoints, params), keep_data=True):
            assert killed_after(50, endpoints, params) < pages
        with prepared(resuming(endpoints, params), keep_data=True):
            killed_after(50, endpoints, params)
        left = rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'")[0][0]
        events, recorder = Events(), Recorder()
        with prepared(resuming(endpoints, params, events)) as driver:
            crawl(driver, sessions, recorder, limit_s=50)
            logged = rows(sql, "SELECT count(*), count(DISTINCT url) FROM history WHERE kind = 'document'")
            assert logged == [(pages + 1, pages + 1)]
    found = ended(events)["site"]
    assert (found["count"], found["failures"]) == (pages + 1, 0)
    assert recorder.counts()["document:site", "ok"] == pages + 1 - left
    assert len(search.documents) == pages + 1
    assert sum(search.given.values()) - (pages + 1) <= 2 * sessions * batch


def test_what_cannot_be_gone_on_with_is_said_and_left_alone(sql: Endpoint, tmp_path: Path) -> None:
    """Nothing there, another plan's crawl, one that ended: a sentence each; a crawl that was left stays."""
    fill(tmp_path, 20)
    search = Search()
    with search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params = {"sources": [source(tmp_path, "share")]}
        nothing = resuming(endpoints, params)
        with pytest.raises(ScenarioError, match=r"no crawl was left to go on with.*run without --resume"):
            nothing.prepare(quiet)
        nothing.finish(keep_data=False)
        begun = made("full-crawl", endpoints, params)
        begun.prepare(quiet)
        session = begun.session(0)
        assert session.perform(Recorder())
        session.close()
        begun.finish(keep_data=True)
        other = resuming(endpoints, {"sources": [source(tmp_path, "other")]})
        with pytest.raises(ScenarioError, match="has the sources share, the plan has other"):
            other.prepare(quiet)
        other.finish(keep_data=False)
        assert rows(sql, "SELECT count(*) FROM queue")[0][0] > 0, "the crawl that was left is gone"
        crawled(endpoints, params, keep_data=True)
        over = resuming(endpoints, params)
        with pytest.raises(ScenarioError, match="came to its end"):
            over.prepare(quiet)
        over.finish(keep_data=False)
