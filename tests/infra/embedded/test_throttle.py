"""Tests of a web tier that throttles requests, and of a crawl that obeys and counts the refusals."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from scenarios.support import Events, Recorder, crawl, made, quiet

from pinchpoint_infra.codec import record
from pinchpoint_infra.embedded import FarmInputError, FarmSpec, FarmStatus, down, limit, up
from pinchpoint_infra.faults.throttle import ThrottledEndpoint
from pinchpoint_scenarios.contract import Endpoint

DOCUMENTS = 60
RATE = 40
SESSIONS = 4


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FarmSpec, FarmStatus]]:
    folder = tmp_path_factory.mktemp("throttled")
    corpus = folder / "corpus" / "list"
    corpus.mkdir(parents=True)
    for number in range(DOCUMENTS):
        (corpus / f"{number:02}.txt").write_text(f"document {number}")
    throttle = {"web": ThrottledEndpoint(RATE, retry_after_s=1, status=503)}
    spec = FarmSpec(folder / "farm.yaml", "throttled", ("web", "sql"), corpus.parent, throttle=throttle)
    assert record(FarmSpec, asdict(spec)) == spec
    try:
        yield spec, up(spec, lifeline=True, progress=quiet)
    finally:
        down(spec.identity)


def told(site: Endpoint) -> dict[str, Any]:
    """Return the web tier's throttle status."""
    request = urllib.request.Request(  # noqa: S310 - the farm's own loopback address
        f"{site.url}/throttle", headers={"Authorization": f"Bearer {site.options['token']}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - likewise
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.mark.farm
def test_a_crawl_obeys_and_counts_what_the_web_tier_refuses(farm: tuple[FarmSpec, FarmStatus]) -> None:
    """Without limits nothing is refused; with limits both sides count each refusal, and nothing is lost."""
    spec, found = farm
    endpoints = {
        name: Endpoint(name, given["url"], {key: value for key, value in given.items() if key != "url"})
        for name, given in found.endpoints.items()
    }
    site = endpoints["sharepoint"]
    assert told(site)["throttle"] is None
    limit(spec.identity, hold=True)
    assert told(site)["throttle"] == {"requests_per_s": RATE, "retry_after_s": 1, "status": 503}
    endpoints["search"] = Endpoint("search", "", {"kind": "none"})
    events, recorder = Events(), Recorder()
    driver = made("full-crawl", endpoints, {"page_size": 20}, event=events)
    driver.check()
    driver.prepare(quiet)
    before, begun = told(site), time.monotonic()
    crawl(driver, SESSIONS, recorder)
    took_s, after = time.monotonic() - begun, told(site)
    (ended,) = events.named("crawl_ended")
    (source,) = ended["sources"]
    assert (source["count"], source["failures"]) == (DOCUMENTS, 0)
    refused, admitted = after["refused"] - before["refused"], after["admitted"] - before["admitted"]
    counted = sum(row.outcome == "http_503" for row in recorder.rows if "/" in row.operation)
    assert counted == refused > 0
    assert admitted <= RATE * (took_s + 1) + 1
    assert refused <= SESSIONS * (took_s + 1), "each session asks once at most before it waits again"
    limit(spec.identity, hold=False)
    assert told(site)["throttle"] is None
    driver.finish(keep_data=False)


def test_only_a_web_tier_can_refuse(tmp_path: Path) -> None:
    """Throttling is refused for other tiers, or without a web tier, before anything starts."""
    for tiers, name in ((("sql",), "web"), (("sql", "web"), "sql")):
        spec = FarmSpec(tmp_path / "farm.yaml", "tests", tiers, throttle={name: ThrottledEndpoint(5)})
        with pytest.raises(FarmInputError, match=f"throttle: found {name}; allowed: web"):
            up(spec, lifeline=False, progress=quiet)
