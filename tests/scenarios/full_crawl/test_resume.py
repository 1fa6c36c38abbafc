"""A crawl that is killed, and gone on with: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.folders import crawled, ended, fill, prepared, rows, source
from scenarios.support import Events, Recorder, Search, crawl, made, quiet

from pinchpoint_scenarios.contract import Context, Endpoint, Scenario
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.full_crawl import FullCrawl
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams

DOCUMENTS = 400
TESTS = Path(__file__).parents[2]


def resuming(
    endpoints: Mapping[str, Endpoint], params: Mapping[str, Any], events: Events | None = None
) -> Scenario:
    """The crawl as ``run --resume`` makes it."""
    return FullCrawl(
        Context(
            name="test",
            endpoints=endpoints,
            params=FullCrawlParams.model_validate(params),
            seed=1,
            worker=0,
            workers=1,
            repeat_s=0,
            event=events or (lambda *_, **__: None),
            resume=True,
        )
    )


def killed_after(documents: int, endpoints: Mapping[str, Endpoint], params: Mapping[str, Any]) -> int:
    """Let a process crawl, and kill it after so many documents; how many it had said."""
    given = {name: (each.url, dict(each.options)) for name, each in endpoints.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "scenarios.full_crawl.crawler", json.dumps(given), json.dumps(params), "6"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        text=True,
    )
    assert process.stdout is not None
    said = 0
    try:
        for line in process.stdout:
            assert line.endswith(" ok\n"), line
            said += 1
            if said == documents:
                break
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        said += len([line for line in process.stdout if line.endswith("\n")])
        process.stdout.close()
    return said


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
