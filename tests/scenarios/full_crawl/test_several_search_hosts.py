"""A search tier of two hosts: each document is on one of them, and always on the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.changelog import in_place_of_folders
from scenarios.full_crawl.folders import crawled, ended, fill, prepared, source
from scenarios.full_crawl.killing import killed_after, resuming
from scenarios.support import Events, Recorder, Search, crawl, made, status

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable

DOCUMENTS = 200


@contextmanager
def two_hosts() -> Iterator[tuple[tuple[Search, Search], Endpoint]]:
    """Two search services, and the endpoint that names both."""
    hosts = Search(), Search()
    with ExitStack() as stack:
        for host in hosts:
            stack.enter_context(host.running())
        places = ",".join(host.url.removeprefix("http://") for host in hosts)
        yield hosts, Endpoint("search", f"http://{places}", {"kind": "pinchpoint"})


def test_a_killed_crawl_of_two_hosts_is_gone_on_with(sql: Endpoint, tmp_path: Path) -> None:
    """Killed with SIGKILL in the middle: every document is on one host, done again only on the same one."""
    fill(tmp_path, DOCUMENTS, folders=4)
    with two_hosts() as (hosts, search):
        endpoints = {"sql": sql, "search": search}
        for host in hosts:
            host.delay_s = 0.005
        params = {"sources": [source(tmp_path, "share", workers=5)]}
        with prepared(made("full-crawl", endpoints, params), keep_data=True):
            assert killed_after(60, endpoints, params) < DOCUMENTS
        events = Events()
        with prepared(resuming(endpoints, params, events)) as driver:
            crawl(driver, 6, Recorder(), limit_s=50)
    found = ended(events)["share"]
    assert (found["count"], found["failures"]) == (DOCUMENTS, 0)
    first, second = (set(host.documents) for host in hosts)
    assert len(first | second) == DOCUMENTS
    assert not first & second
    assert min(len(first), len(second)) > DOCUMENTS / 3, "one host has most of the documents"
    assert [host.resets for host in hosts] == [1, 1]
    assert all(host.commits for host in hosts)


def test_what_is_deleted_is_removed_from_its_host(
    sql: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An incremental crawl replaces and removes a document where the full crawl put it."""
    log = in_place_of_folders(monkeypatch, "abcdefgh")
    with two_hosts() as (hosts, search):
        endpoints = {"sql": sql, "search": search}
        params: dict[str, Any] = {"sources": [source(tmp_path, "share")]}
        assert crawled(endpoints, params, keep_data=True)["share"]["count"] == 8
        assert all(host.documents for host in hosts)
        changed, deleted = [], []
        for host in hosts:
            urls = sorted(host.documents)
            deleted.append(urls[0])
            changed += urls[1:2]
            log.drop(urls[0])
        for url in changed:
            log.put(url, log.documents[url][0], b"new")
        found = crawled(endpoints, params | {"mode": "incremental"})["share"]
    assert (found["count"], found["deleted"], found["failures"]) == (len(changed), 2, 0)
    left = {url: content for host in hosts for url, (_, content) in host.documents.items()}
    assert sum(len(host.documents) for host in hosts) == len(left) == 6
    assert not left.keys() & set(deleted)
    assert all(left[url] == b"new" for url in changed)


def test_of_two_hosts_the_one_that_is_down_is_named(sql: Endpoint, tmp_path: Path) -> None:
    """The check names it; a crawl without it fails the documents that are its share, and no other."""
    fill(tmp_path, 40)
    with two_hosts() as (hosts, both):
        up, down = hosts
        params = {"sources": [source(tmp_path, "share")], "timeout_s": 5, "retries": 0}
        crawled({"sql": sql, "search": both}, params)
        its_share = len(down.documents)
        facts = made("full-crawl", {"sql": sql, "search": both}, params).check()["search"]
        assert [host["documents"] for host in facts["hosts"].values()] == [40 - its_share, its_share]
        gone = Endpoint("search", f"{up.url},127.0.0.1:1", both.options)
        driver = made("full-crawl", {"sql": sql, "search": gone}, params)
        with pytest.raises(EndpointUnreachable, match=r"endpoint search \(127\.0\.0\.1:1\): connection"):
            driver.check()
        down.failing = {"/documents": [status(503)] * 40}
        found = crawled({"sql": sql, "search": both}, params)["share"]
    assert (found["count"], found["failures"]) == (40 - its_share, its_share)
    assert found["failures_by_kind"] == {"index_http_503": its_share}


def test_a_session_has_one_connection_to_each_host(sql: Endpoint, tmp_path: Path) -> None:
    """The documents of a session go to each host by one connection that is kept."""
    fill(tmp_path, 60)
    with two_hosts() as (hosts, both):
        crawled({"sql": sql, "search": both}, {"sources": [source(tmp_path, "share")]}, sessions=3)
    assert all(1 <= host.connections <= 4 for host in hosts), [host.connections for host in hosts]
