"""Tests of document destinations: none, an index by ``_bulk``, and a real OpenSearch."""

from __future__ import annotations

import base64
import json
import threading
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from javaservers import opensearch
from scenarios.full_crawl.bulk import BulkPeer
from scenarios.full_crawl.folders import crawled, fill, source
from scenarios.support import Recorder, made

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError
from pinchpoint_scenarios.full_crawl.destinations.opensearch import Batches
from pinchpoint_scenarios.full_crawl.failures import Failure

FAST = {"timeout_s": 5, "retries": 1}


def test_without_a_search_tier_documents_are_fetched_and_logged(sql: Endpoint, tmp_path: Path) -> None:
    """With ``kind: none`` documents are fetched and counted, and the index stage has no time."""
    fill(tmp_path, 12)
    recorder = Recorder()
    endpoints = {"sql": sql, "search": Endpoint("search", "", {"kind": "none"})}
    found = crawled(endpoints, {"sources": [source(tmp_path, "share")]}, recorder=recorder)
    assert (found["share"]["count"], found["share"]["bytes"]) == (12, 1200)
    assert recorder.counts() == {("document:share", "ok"): 12}
    assert not [name for name, _ in recorder.counts(stages=True) if name.endswith("/index")]
    assert made("full-crawl", endpoints, {"sources": [source(tmp_path, "share")]}).check()["search"] == {
        "kind": "none"
    }


def test_an_index_is_made_filled_by_batches_and_every_refusal_is_counted(
    sql: Endpoint, tmp_path: Path
) -> None:
    """In a batch a temporary refusal is retried, and a permanent one fails only its document."""
    fill(tmp_path, 40)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    peer = BulkPeer()
    peer.delay_s = 0.02
    peer.refusing = {"00001.txt": [429], "00002.txt": [429, 429], "00003.txt": [400]}
    with peer.running():
        recorder = Recorder()
        found = crawled(
            {"sql": sql, "search": peer.endpoint},
            {"sources": [source(tmp_path, "share")], **FAST},
            sessions=12,
            recorder=recorder,
        )["share"]
    assert (found["count"], found["failures"]) == (39, 2)
    assert found["failures_by_kind"] == {"index_http_429": 1, "index_http_400": 1}
    assert {each["message"] for each in found["failed"]} == {
        "http_400: made_up: asked for",
        "http_429: made_up: asked for",
    }
    assert len(peer.documents) == 39
    assert max(peer.batches) > 1, "documents that came together were sent one by one"
    assert len(peer.batches) < sum(peer.batches)
    names = {each["url"].rpartition("/")[2]: each for each in peer.documents.values()}
    assert names["00000.txt"]["content"].startswith("document 0 ")
    assert base64.b64decode(names["picture.png"]["data"]) == b"\x89PNG\x00\xff"
    assert peer.mappings is not None
    assert recorder.counts(stages=True)["document:share/index", "http_429"] == 3


def test_a_proxy_that_takes_no_large_request_costs_only_what_is_too_large(
    sql: Endpoint, tmp_path: Path
) -> None:
    """After a 413 a batch is split; only a document that is too large alone fails."""
    paths = fill(tmp_path, 40, size_bytes=300)
    paths[7].write_bytes(b"x" * 5000)
    server = BulkPeer()
    server.largest, server.delay_s = 2000, 0.01
    with server.running():
        found = crawled(
            {"sql": sql, "search": server.endpoint},
            {"sources": [source(tmp_path, "share", access=False)]},
            sessions=12,
        )["share"]
        assert len(server.documents) == 39
    assert (found["count"], found["failures_by_kind"]) == (39, {"index_http_413": 1})


def test_an_index_of_somebody_else_is_never_touched(sql: Endpoint, tmp_path: Path) -> None:
    """An index without Pinchpoint's mark is refused by check with the remedy, and no reset deletes it."""
    fill(tmp_path, 3)
    peer = BulkPeer()
    peer.mappings = {"properties": {}}
    peer.documents = {"theirs": {}}
    with peer.running():
        endpoints = {"sql": sql, "search": peer.endpoint}
        driver = made("full-crawl", endpoints, {"sources": [source(tmp_path, "share")], **FAST})
        with pytest.raises(
            EndpointUnreachable, match="was not made by Pinchpoint; name another one in the url"
        ):
            driver.check()
        driver.prepare(print)
        session, recorder = driver.session(0), Recorder()
        assert session.perform(recorder)
        session.close()
        driver.finish(keep_data=False)
    assert recorder.counts() == {("crawl", "index_not_ours"): 1}
    assert peer.documents == {"theirs": {}}


def test_logins_and_a_pipeline_travel_with_every_request(sql: Endpoint, tmp_path: Path) -> None:
    """A pipeline gets documents as ``data``, and a password in the URL is sent as a login."""
    fill(tmp_path, 3)
    peer = BulkPeer()
    with peer.running():
        url = peer.url.replace("http://", "http://us%40er:p%2Fw@") + "/crawl"
        endpoint = Endpoint("search", url, {"kind": "opensearch", "pipeline": "attachment"})
        crawled({"sql": sql, "search": endpoint}, {"sources": [source(tmp_path, "share")], **FAST})
    assert peer.pipelines == {"pipeline=attachment"}
    assert peer.logins == {"Basic " + base64.b64encode(b"us@er:p/w").decode()}
    assert all(set(each) == {"url", "source", "size_bytes", "data"} for each in peer.documents.values())


def test_a_name_no_index_can_have_is_refused(sql: Endpoint, tmp_path: Path) -> None:
    """An impossible index name is refused with the allowed form when the scenario is created."""
    endpoint = Endpoint("search", "http://127.0.0.1:1/Crawl", {"kind": "opensearch"})
    with pytest.raises(ScenarioError, match="'Crawl' is no name of an index; allowed: lower-case"):
        made("full-crawl", {"sql": sql, "search": endpoint}, {"sources": [source(tmp_path, "share")]})


def test_batches_take_what_has_come_and_lose_nobody() -> None:
    """Each caller gets its own entry's result, and concurrent requests stay below their limit."""
    going_on, most, sizes, lock = 0, 0, [], threading.Lock()
    slow = threading.Event()

    def send(entries: Sequence[int]) -> list[Failure | None]:
        nonlocal going_on, most
        with lock:
            going_on += 1
            most = max(most, going_on)
            sizes.append(len(entries))
        slow.wait(0.01)
        with lock:
            going_on -= 1
        if 13 in entries:
            raise Failure("timeout")
        return [Failure(f"no_{entry}") if entry % 5 == 0 else None for entry in entries]

    batches = Batches(send, requests=2)
    answers: dict[int, str] = {}

    def bring(entry: int) -> None:
        try:
            batches.add(entry, 10)
            answers[entry] = "ok"
        except Failure as failure:
            answers[entry] = failure.kind

    threads = [threading.Thread(target=bring, args=(entry,)) for entry in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(sizes) == len(answers) == 60
    assert most <= 2
    assert max(sizes) > 1
    assert answers[13] == "timeout"
    assert all(
        answers[entry] in (f"no_{entry}" if entry % 5 == 0 else "ok", "timeout") for entry in range(60)
    )


@pytest.mark.slow
def test_a_real_opensearch_is_filled_and_emptied(sql: Endpoint, tmp_path: Path) -> None:
    """A real OpenSearch has each document once, found by its words; a new crawl replaces them. Slow: Java."""
    fill(tmp_path, 300, folders=3)
    with opensearch() as server:
        endpoint = Endpoint("search", f"{server.url}/crawl", {"kind": "opensearch"})
        endpoints = {"sql": sql, "search": endpoint}
        params = {"sources": [source(tmp_path, "share")], "timeout_s": 20}
        facts = made("full-crawl", endpoints, params).check()["search"]
        assert facts == {"server": "opensearch", "version": "2.11.1", "index": "crawl"}
        for _ in range(2):
            found = crawled(endpoints, params, sessions=8)["share"]
            assert (found["count"], found["failures"]) == (300, 0)
            assert _asked(f"{server.url}/crawl/_count")["count"] == 300
        hits = _asked(f"{server.url}/crawl/_search?q=content:117")["hits"]["hits"]
        assert [hit["_source"]["url"].rpartition("/")[2] for hit in hits] == ["00117.txt"]
        _asked(f"{server.url}/other", "PUT")
        theirs = Endpoint("search", f"{server.url}/other", {"kind": "opensearch"})
        with pytest.raises(EndpointUnreachable, match="was not made by Pinchpoint"):
            made("full-crawl", {"sql": sql, "search": theirs}, params).check()


def _asked(url: str, method: str = "GET") -> dict[str, Any]:
    request = urllib.request.Request(url, method=method)  # noqa: S310 - a server of this test
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - likewise
        found: dict[str, Any] = json.load(answer)
    return found
