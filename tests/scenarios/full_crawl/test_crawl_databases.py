"""Tests of the crawl database on servers other than PostgreSQL: the same crawls give the same results."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from mariadbserver import MariaDb
from scenarios.full_crawl.changelog import Log, in_place_of_folders
from scenarios.full_crawl.folders import crawled, ended, fill, prepared, source
from scenarios.full_crawl.killing import killed_after, resuming
from scenarios.full_crawl.pages import Pages, linking
from scenarios.sql_servers.targets import Maria, Target, mssql
from scenarios.support import Events, Recorder, crawl, made, quiet
from support import run_script

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError

pytestmark = pytest.mark.slow  # a server of its own, which takes five seconds to create
NOWHERE = Endpoint("search", "", {"kind": "none"})
INCREMENTAL = {"mode": "incremental"}
DOCUMENTS = 150


@pytest.fixture(params=["mysql+odbc", "mssql+odbc"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Yield each server in turn, clean before and after a test."""
    found = Maria(request.getfixturevalue("maria_server")) if request.param == "mysql+odbc" else mssql()
    found.clear()
    yield found
    found.clear()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Yield a source with a change log in place of folders."""
    return in_place_of_folders(monkeypatch, "abcdefg")


def test_a_crawl_and_what_changed_since(target: Target, log: Log, tmp_path: Path) -> None:
    """Counts, failures, access lists, links, moves, deletions and tokens are the same as on PostgreSQL."""
    endpoints = {"sql": target.endpoint, "search": NOWHERE}
    params: dict[str, Any] = {"sources": [source(tmp_path, "share")], "batch": 3}
    log.failing = {"log://d"}
    first = crawled(endpoints, params, keep_data=True)["share"]
    assert (first["count"], first["failures"], first["failures_by_kind"]) == (6, 1, {"not_found": 1})
    assert [(each["url"], each["attempts"]) for each in first["failed"]] == [("log://d", 1)]
    assert 0 < first["repository_latency_p50_s"] <= first["repository_latency_p95_s"] < 1
    assert first["started"] < first["ended"]
    asked = target.ask
    access = "SELECT principal, count(*) FROM pinchpoint_test.access GROUP BY principal, allowed ORDER BY 1"
    assert asked(access) == [("everyone", 6), ("guests", 6)]
    assert asked("SELECT url, count(*) FROM pinchpoint_test.links GROUP BY url ORDER BY 1") == [
        ("log://a", 6),
        ("log://elsewhere", 6),
    ]
    assert asked("SELECT stage, failure FROM pinchpoint_test.errors") == [("fetch", "not_found")]
    log.failing = set()
    log.put("log://a", "id-a", b"a is new")
    log.put("log://f", "id-h", b"another")
    log.put("log://b2", "id-b", b"b moved")
    log.drop("log://c")
    log.fetched.clear()
    found = crawled(endpoints, params | INCREMENTAL, keep_data=True)["share"]
    assert sorted(log.fetched) == ["log://a", "log://b2", "log://d", "log://f"]
    assert (found["count"], found["deleted"], found["failures"]) == (4, 2, 0)
    log.drop("log://e")
    log.forgotten = len(log.log) + 1
    found = crawled(endpoints, params | INCREMENTAL)["share"]
    assert (found["failures"], log.enumerated) == (0, 2)
    assert target.schemas() == {"pinchpoint_test"}, "a crawl that it found is not dropped"


def test_a_batch_is_of_one_source(target: Target, tmp_path: Path) -> None:
    """Items found in a batch belong to the source of the batch, however small the batch is."""
    names = ["one", "two", "three"]
    for name in names:
        fill(tmp_path / name, 12, folders=6)
    params = {"sources": [source(tmp_path / name, name) for name in names], "batch": 50}
    found = crawled({"sql": target.endpoint, "search": NOWHERE}, params, sessions=2, keep_data=True)
    assert {name: (each["count"], each["failures"]) for name, each in found.items()} == dict.fromkeys(
        names, (12, 0)
    )
    logged = target.ask("SELECT source, url FROM pinchpoint_test.history")
    assert all(f"/{name}" in url for name, url in logged)


def test_sessions_share_a_site_and_hear_of_its_pauses(target: Target) -> None:
    """Six sessions fetch linked pages in batches, each page once, and obey a pause."""
    pages = {f"/p{n}": linking(*(f"/p{(n * k + 1) % 60}" for k in (1, 2, 3, 7))) for n in range(60)}
    server = Pages(pages | {"/": linking("/p0", "/gone")})
    server.pausing("/p1", 1)
    recorder = Recorder()
    with server.running():
        web = {"kind": "web", "name": "site", "url": server.url, "sitemaps": False, "robots": False}
        endpoints = {"sql": target.endpoint, "search": NOWHERE}
        found = crawled(endpoints, {"sources": [web], "batch": 5}, sessions=6, recorder=recorder)["site"]
    reached = set(server.full) - {"/"}
    assert sorted(server.full) == sorted(reached | {"/"}), "a page was fetched twice"
    assert (found["count"], found["failures_by_kind"]) == (len(reached) + 1, {"not_found": 1})
    assert recorder.counts(stages=True)["document:site/fetch", "http_503"] == 1
    assert {outcome for _, outcome in recorder.counts()} == {"ok", "not_found"}


def test_a_killed_crawl_is_gone_on_with(target: Target, tmp_path: Path) -> None:
    """After SIGKILL at several places a resumed crawl loses no document and repeats none."""
    fill(tmp_path, DOCUMENTS, folders=4)
    endpoints = {"sql": target.endpoint, "search": NOWHERE}
    params = {"sources": [source(tmp_path, "share", workers=3)]}
    with prepared(made("full-crawl", endpoints, params), keep_data=True):
        assert killed_after(40, endpoints, params) < DOCUMENTS
    following = made("full-crawl", endpoints, params | INCREMENTAL)
    with pytest.raises(ScenarioError, match="did not come to its end"):
        following.prepare(quiet)
    following.finish(keep_data=True)
    events = Events()
    with prepared(resuming(endpoints, params, events)) as driver:
        crawl(driver, 4, Recorder(), limit_s=50)
        logged = "SELECT count(*), count(DISTINCT url) FROM pinchpoint_test.history WHERE kind = 'document'"
        assert target.ask(logged) == [(DOCUMENTS, DOCUMENTS)]
    found = ended(events)["share"]
    assert (found["count"], found["failures"]) == (DOCUMENTS, 0)
    assert found["paused_s"] > 0
    assert target.schemas() == set()


def test_connections_that_are_ended_lose_nothing(target: Target, tmp_path: Path) -> None:
    """A batch crawl whose connections are ended repeatedly has all documents once."""
    fill(tmp_path, DOCUMENTS, folders=4)
    endpoints = {"sql": target.endpoint, "search": NOWHERE}
    params = {"sources": [source(tmp_path, "share", workers=3)], "batch": 4}
    events = Events()
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.2):
            with contextlib.suppress(pymysql.err.OperationalError):  # a connection has ended by itself
                target.kill_sessions()

    killer = threading.Thread(target=kill)
    with prepared(made("full-crawl", endpoints, params, event=events)) as driver:
        killer.start()
        try:
            crawl(driver, 3, Recorder(), limit_s=40)
        finally:
            over.set()
            killer.join()
        logged = "SELECT count(*), count(DISTINCT url) FROM pinchpoint_test.history WHERE kind = 'document'"
        assert target.ask(logged) == [(DOCUMENTS, DOCUMENTS)]
    assert ended(events)["share"]["count"] == DOCUMENTS
    assert target.schemas() == set()


def test_a_driver_that_waits_holds_up_nobody_else(maria_server: MariaDb) -> None:
    """Under gevent, ten sessions wait for the server at the same time."""
    found = run_script(Path(__file__).parent / "waiting.py", maria_server.url)
    assert found["waited_s"] < 1.5, "ten waits of 0.3 s, one after the other"
    assert found["turns"] > 20, "the loop stood still"
