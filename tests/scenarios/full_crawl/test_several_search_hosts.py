"""Tests of a search tier with two hosts: each document goes to the less busy host and is on one host only."""

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
    """Yield two search services and the endpoint that names both."""
    hosts = Search(), Search()
    with ExitStack() as stack:
        for host in hosts:
            stack.enter_context(host.running())
        places = ",".join(host.url.removeprefix("http://") for host in hosts)
        yield hosts, Endpoint("search", f"http://{places}", {"kind": "pinchpoint"})


def test_a_killed_crawl_of_two_hosts_is_gone_on_with(sql: Endpoint, tmp_path: Path) -> None:
    """After a SIGKILL and a resume every document is on exactly one host."""
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


def test_what_changed_or_was_deleted_is_on_no_other_host(
    sql: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An incremental crawl replaces and deletes a document on whichever host has it."""
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
    """The check names a host that is down; the other host takes all documents."""
    fill(tmp_path, 40)
    with two_hosts() as (hosts, both):
        up, down = hosts
        params = {"sources": [source(tmp_path, "share")], "timeout_s": 5, "retries": 3}
        down.failing = {"/documents": [status(503)] * 400}
        found = crawled({"sql": sql, "search": both}, params)["share"]
        facts = made("full-crawl", {"sql": sql, "search": both}, params).check()["search"]
        assert [host["documents"] for host in facts["hosts"].values()] == [40, 0]
        gone = Endpoint("search", f"{up.url},127.0.0.1:1", both.options)
        with pytest.raises(EndpointUnreachable, match=r"endpoint search \(127\.0\.0\.1:1\): connection"):
            made("full-crawl", {"sql": sql, "search": gone}, params).check()
    assert (found["count"], found["failures"]) == (40, 0)


def test_the_host_with_less_to_do_gets_more(sql: Endpoint, tmp_path: Path) -> None:
    """A host that is ten times slower gets fewer documents, and not all sessions wait for it."""
    fill(tmp_path, DOCUMENTS)
    with two_hosts() as (hosts, both):
        slow, fast = hosts
        slow.delay_s, fast.delay_s = 0.1, 0.01
        crawled({"sql": sql, "search": both}, {"sources": [source(tmp_path, "share")]}, sessions=4)
    assert 0 < len(slow.documents) < len(fast.documents) / 2


def test_a_session_has_one_connection_to_each_host(sql: Endpoint, tmp_path: Path) -> None:
    """A session keeps one connection to each host."""
    fill(tmp_path, 60)
    with two_hosts() as (hosts, both):
        crawled({"sql": sql, "search": both}, {"sources": [source(tmp_path, "share")]}, sessions=3)
    assert all(1 <= host.connections <= 4 for host in hosts), [host.connections for host in hosts]
