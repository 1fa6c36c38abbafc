"""Tests of incremental crawls: by a change log, or by versions without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.changelog import Log, in_place_of_folders
from scenarios.full_crawl.folders import crawled, fill, rows, source
from scenarios.support import Events, Recorder, Search, crawl, made, quiet

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError

INCREMENTAL = {"mode": "incremental"}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Yield a source with a change log in place of folders."""
    return in_place_of_folders(monkeypatch, "abcde")


def test_by_a_change_log_only_what_changed_is_asked_for(sql: Endpoint, log: Log, tmp_path: Path) -> None:
    """With a change log only changed, new, moved and deleted documents are requested, over several pages."""
    search = Search()
    with search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params: dict[str, Any] = {"sources": [source(tmp_path, "share")]}
        assert crawled(endpoints, params, keep_data=True)["share"]["count"] == 5
        assert rows(sql, "SELECT principal, allowed, count(*) FROM access GROUP BY 1, 2 ORDER BY 1") == [
            ("everyone", True, 5),
            ("guests", False, 5),
        ]
        assert rows(sql, "SELECT url, count(*) FROM links GROUP BY 1 ORDER BY 1") == [
            ("log://a", 5),
            ("log://elsewhere", 5),
        ]
        log.put("log://a", "id-a", b"a is new")
        log.put("log://f", "id-f", b"f")
        log.put("log://b2", "id-b", b"b moved")
        log.drop("log://c")
        log.fetched.clear()
        found = crawled(endpoints, params | INCREMENTAL)["share"]
        assert sorted(log.fetched) == ["log://a", "log://b2", "log://f"]
        assert (found["count"], found["deleted"], found["failures"]) == (3, 2, 0)
        assert log.enumerated == 1
        assert {url: content for url, (_, content) in search.documents.items()} == {
            "log://a": b"a is new",
            "log://b2": b"b moved",
            "log://d": b"d",
            "log://e": b"e",
            "log://f": b"f",
        }
        assert search.resets == 1
        gone = "SELECT count(*) FROM access JOIN history USING (key) WHERE url IN ('log://b', 'log://c')"
        assert rows(sql, gone) == [(0,)]
        log.fetched.clear()
        nothing = crawled(endpoints, params | INCREMENTAL)["share"]
        assert (nothing["count"], nothing["deleted"], log.fetched) == (0, 0, [])


def test_what_failed_is_tried_again_and_an_old_token_means_everything(
    sql: Endpoint, log: Log, tmp_path: Path
) -> None:
    """A failed document is retried, and an expired token leads to a crawl of everything."""
    search = Search()
    with search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params: dict[str, Any] = {"sources": [source(tmp_path, "share")]}
        log.failing = {"log://d"}
        first = crawled(endpoints, params, keep_data=True)["share"]
        assert (first["count"], first["failures_by_kind"]) == (4, {"not_found": 1})
        assert [each["url"] for each in first["failed"]] == ["log://d"]
        log.failing = set()
        log.fetched.clear()
        assert crawled(endpoints, params | INCREMENTAL)["share"]["count"] == 1
        assert log.fetched == ["log://d"]
        log.drop("log://e")
        log.forgotten = len(log.log) + 1
        recorder = Recorder()
        found = crawled(endpoints, params | INCREMENTAL, recorder=recorder)["share"]
        assert recorder.counts(stages=True)["document:share/enumerate", "token_expired"] == 1
        assert (found["count"], found["deleted"]) == (4, 1)
        assert set(search.documents) == {f"log://{name}" for name in "abcd"}


def test_by_versions_what_is_the_same_is_not_fetched_and_what_is_gone_is_removed(
    sql: Endpoint, tmp_path: Path
) -> None:
    """Without a change log a folder is listed again, and files are compared by time and size."""
    paths = fill(tmp_path, 30, folders=3)
    search = Search()
    with search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params: dict[str, Any] = {"sources": [source(tmp_path, "share")]}
        crawled(endpoints, params, keep_data=True)
        paths[4].write_bytes(b"changed, and longer or shorter")
        paths[5].unlink()
        (tmp_path / "new.txt").write_bytes(b"new")
        recorder = Recorder()
        found = crawled(endpoints, params | INCREMENTAL, recorder=recorder)["share"]
        assert recorder.counts(stages=True)["document:share/fetch", "ok"] == 2
        assert (found["count"], found["deleted"], found["unchanged"]) == (2, 1, 28)
        assert len(search.documents) == 30


def test_without_an_earlier_crawl_there_is_nothing_to_follow(sql: Endpoint, tmp_path: Path) -> None:
    """Without an earlier crawl an incremental crawl is refused with the remedy."""
    fill(tmp_path, 3)
    endpoints = {"sql": sql, "search": Endpoint("search", "", {"kind": "none"})}
    params = {"sources": [source(tmp_path, "share")], **INCREMENTAL}
    driver = made("full-crawl", endpoints, params)
    with pytest.raises(ScenarioError, match=r"first run a full crawl .* with --keep-data"):
        driver.prepare(quiet)
    driver.finish(keep_data=False)


def test_incremental_crawls_that_repeat_do_not_spin(sql: Endpoint, log: Log, tmp_path: Path) -> None:
    """Without changes, repeated incremental crawls start once a second at most."""
    search = Search()
    events = Events()
    with search.running():
        endpoints = {"sql": sql, "search": search.endpoint}
        params: dict[str, Any] = {"sources": [source(tmp_path, "share")]}
        crawled(endpoints, params, keep_data=True)
        driver = made("full-crawl", endpoints, params | INCREMENTAL, repeat_s=2.5, event=events)
        driver.prepare(quiet)
        crawl(driver, 2, Recorder())
        driver.finish(keep_data=False)
    assert 2 <= len(events.named("crawl_ended")) <= 4
    assert {each["mode"] for each in events.named("crawl_started")} == {"incremental"}
