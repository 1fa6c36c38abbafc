"""Tests of crawls that are killed and resumed, with each kind of source: nothing lost or repeated."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from infra.services.serving import serving
from scenarios.full_crawl.folders import crawled, ended, fill, prepared, rows, source
from scenarios.full_crawl.killing import killed_after, resuming
from scenarios.full_crawl.pages import Pages, linking
from scenarios.full_crawl_sources.sites import samba
from scenarios.support import Events, Recorder, Search, crawl, made, quiet
from servers import postgres
from support import missing

from pinchpoint_infra.content.filling import ingest
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError

DOCUMENTS = 400


def test_a_killed_crawl_is_gone_on_with(sql: Endpoint, tmp_path: Path) -> None:
    """After two SIGKILLs every document is crawled once and indexed at one address."""
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
    # Only documents that a killed session had indexed and not finished are indexed twice, at the same
    # address.
    assert sum(search.given.values()) - DOCUMENTS <= 2 * 6
    assert found["paused_s"] > 0.3
    assert found["duration_s"] < 50


def test_a_killed_crawl_does_at_most_its_batches_again(sql: Endpoint) -> None:
    """After two SIGKILLs of a batch crawl at most the unfinished batches are fetched again."""
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
    """A missing crawl, another plan's crawl, or an ended crawl cannot be resumed, and stays unchanged."""
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


TOKEN, PASSWORD = "a-token", "a secret word"
EACH = 60


@pytest.fixture(scope="module")
def sharepoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Yield the web tier with a number of documents and people."""
    folder = tmp_path_factory.mktemp("sharepoint")
    fill(folder / "corpus", EACH, folders=3)
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        config: dict[str, Any] = {"token": TOKEN, "database_url": url, "people": EACH}
        with serving("pinchpoint_infra.services.web", folder, **config) as service:
            yield Endpoint("sharepoint", service.url, {"auth": "bearer", "token": TOKEN})


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Yield a Samba share with a number of files."""
    if os.geteuid() != 0:
        missing("Samba's server needs root to change to the user who logs in")
    folder = tmp_path_factory.mktemp("samba")
    fill(folder / "share", EACH, folders=3)
    with samba(folder, folder / "share", getpass.getuser(), PASSWORD) as (url, _):
        yield Endpoint("share", url, {"user": getpass.getuser(), "password": PASSWORD})


@pytest.mark.root
@pytest.mark.parametrize("batch", [1, 7])
def test_every_kind_of_source_is_gone_on_with(
    sql: Endpoint, sharepoint: Endpoint, share: Endpoint, tmp_path: Path, batch: int
) -> None:
    """A crawl of SharePoint, people, a share and a folder is complete after three SIGKILLs."""
    fill(tmp_path, EACH, folders=3)
    search = Search()
    search.delay_s = 0.005
    sources: list[dict[str, Any]] = [
        {"kind": "sharepoint"}, {"kind": "profiles", "workers": 2}, {"kind": "files", "endpoint": "share"},
        {"kind": "files", "name": "folder", "path": str(tmp_path)},
    ]  # fmt: skip
    params = {"sources": sources, "batch": batch, "page_size": 7}
    with search.running():
        given = {"sql": sql, "search": search.endpoint, "sharepoint": sharepoint, "share": share}
        with prepared(made("full-crawl", given, params), keep_data=True):
            killed_after(40, given, params)
        for _ in range(2):
            with prepared(resuming(given, params), keep_data=True):
                killed_after(40, given, params)
        assert rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'")[0][0] < 4 * EACH
        events = Events()
        with prepared(resuming(given, params, events)) as driver:
            crawl(driver, 6, Recorder(), limit_s=50)
            logged = (
                "SELECT source, count(*), count(DISTINCT url) FROM history WHERE kind = 'document' GROUP BY 1"
            )
            assert sorted(rows(sql, logged)) == [
                (source, EACH, EACH) for source in ("folder", "profiles", "share", "sharepoint")
            ]
    found = ended(events)
    assert {name: (each["count"], each["failures"]) for name, each in found.items()} == dict.fromkeys(
        ("sharepoint", "profiles", "share", "folder"), (EACH, 0)
    )
    assert (search.resets, len(search.documents)) == (1, 4 * EACH)
    again = sum(search.given.values()) - 4 * EACH
    assert again <= 3 * 6 * batch, "more was done again than the killed sessions held"
