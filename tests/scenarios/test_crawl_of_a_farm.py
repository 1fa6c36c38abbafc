"""Tests of full-crawl on the embedded farm's own front end, search service and crawl database."""

from __future__ import annotations

import gzip
import json
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from scenarios.support import Events, Recorder, crawl, made, quiet

from pinchpoint_infra.embedded import FarmSpec, FarmStatus, down, up
from pinchpoint_scenarios.contract import Endpoint

pytestmark = pytest.mark.farm

DOCUMENTS = 90


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmStatus]:
    """Yield a farm with ninety documents, each with a unique word, and two other files."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(DOCUMENTS):
        content = f"<html><body><p>about wordnumber{number}</p></body></html>".encode()
        place = folder / ("", "it's 100% #1", "ünder/deep")[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        name, content = (
            (f"{number}.gz", gzip.compress(content)) if number % 5 == 0 else (f"{number}", content)
        )
        (place / name).write_bytes(content)
    (folder / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    identity = folder.parent / "farm.yaml"
    spec = FarmSpec(
        identity=identity,
        name="crawled",
        tiers=("web", "sql", "search", "files"),
        corpus=folder,
        documents=None,
    )
    try:
        yield up(spec, lifeline=True, progress=quiet)
    finally:
        down(identity)


def test_the_crawls_count_is_the_farms_count_and_all_is_found(farm: FarmStatus) -> None:
    """The crawl counts each source's documents, and a search for each unique word finds its document."""
    endpoints = {
        name: Endpoint(name, given["url"], {key: value for key, value in given.items() if key != "url"})
        for name, given in farm.endpoints.items()
    }
    events, recorder = Events(), Recorder()
    driver = made("full-crawl", endpoints, {"page_size": 7}, event=events)
    assert set(driver.check()["sources"]) == {"sharepoint", "files"}
    driver.prepare(quiet)
    crawl(driver, 6, recorder)
    driver.finish(keep_data=False)
    (ended,) = events.named("crawl_ended")
    counted = {source["source"]: source["count"] for source in ended["sources"]}
    assert farm.content is not None
    assert counted == farm.content["sources"]
    assert sum(counted.values()) == DOCUMENTS
    assert {source["failures"] for source in ended["sources"]} == {0}
    for number in range(DOCUMENTS):
        found = _ask(endpoints["search"], f"/query?q={quote(f'wordnumber{number}')}&limit=10")
        assert found["total"] == 1, f"document {number}"


def _ask(search: Endpoint, path: str) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the farm's own loopback address
        search.url + path, headers={"Authorization": f"Bearer {search.options['token']}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    return found
