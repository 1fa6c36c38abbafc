"""Tests of the pools in the verdict: of each source, of the destination, and over several processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from harness.analysis.build import Build, utc
from scenarios.full_crawl.bulk import BulkPeer
from scenarios.full_crawl.folders import crawled, fill, prepared, rows
from scenarios.full_crawl.folders import source as folder
from scenarios.full_crawl.pages import Pages, linking
from scenarios.support import Events, Recorder, crawl, made, quiet

from pinchpoint.analysis import analyse
from pinchpoint.report.verdict_tables import crawl_stages
from pinchpoint_scenarios.contract import Endpoint


def judged(limit: int | None, *, bulk: bool) -> list[dict[str, Any]]:
    """Return the figures of a crawl by eight users: twenty documents a second, each 0.3 s in the index."""
    build = Build(measure_s=60, warm_up_s=10).closed("crawl", "full-crawl", 8)
    during = range(5, 45)
    for operation, each_s in (("", 0.7), ("/fetch", 0.1), ("/index", 0.3)):
        build.operations("crawl", f"document:site{operation}", 20, each_s, noise=0, seconds=during)
    if bulk:
        build.operations("crawl", "crawl/bulk", 10, 0.25, noise=0, seconds=during)
    source = {"source": "site", "count": 800, "failures": 0, "skipped": 0, "duration_s": 40.0, "workers": 4}
    build.event(
        "crawl_ended", 45, cycle=1, scenario="crawl", started=utc(5), ended=utc(45), sources=[source],
        destination_limit=limit,
    )  # fmt: skip
    return [dict(row) for row in analyse(build.run()).crawl]


def test_a_request_for_each_document_fills_a_pool_of_users() -> None:
    """Twenty requests a second of 0.3 s use six of eight users, a ratio of 0.75."""
    (row,) = judged(None, bulk=False)
    assert row["destination"]["busy"] == pytest.approx(6, rel=0.1)
    assert (row["destination"]["limit"], row["workers"]) == (8, 4)
    assert row["destination"]["busy_ratio"] == pytest.approx(0.75, rel=0.1)


def test_requests_for_many_documents_fill_the_destinations_own_pool() -> None:
    """Ten bulk requests a second of 0.25 s use 2.5 of four connections, and the report shows it."""
    rows = judged(4, bulk=True)
    assert rows[0]["destination"]["busy_ratio"] == pytest.approx(2.5 / 4, rel=0.1)
    table = crawl_stages({"crawl": rows})
    assert [row["source"] for row in table.rows] == ["site", "(where documents go)"]
    assert table.rows[1]["workers_busy_ratio"] == rows[0]["destination"]["busy_ratio"]


def test_documents_that_go_nowhere_fill_no_pool() -> None:
    """Documents without a destination have no pool ratio, not 0."""
    build = Build(measure_s=60).closed("crawl", "full-crawl", 4)
    build.operations("crawl", "document:site", 20, 0.2, noise=0, seconds=range(10, 30))
    build.operations("crawl", "document:site/fetch", 20, 0.05, noise=0, seconds=range(10, 30))
    (row,) = (dict(each) for each in analyse(build.run()).crawl)
    assert row["destination"] is None
    assert [each["source"] for each in crawl_stages({"crawl": [row]}).rows] == ["site"]


@pytest.mark.parametrize(
    ("fetch_s", "words"), [(0.3, "the source and the way to it, 75 %"), (0.02, "the index, 83 %")]
)
def test_a_table_says_what_takes_most_of_a_document_s_time(fetch_s: float, words: str) -> None:
    """The table names the largest stage: the source with its connection, or the index."""
    [row] = crawl_stages({"crawl": [{"source": "share", "stages": {"fetch": fetch_s, "index": 0.1}}]}).rows
    assert row["waits_for"] == words


def test_a_crawl_tells_its_requests_for_many(sql: Endpoint, tmp_path: Any) -> None:
    """Each bulk request is counted once for all its sessions, and the event has the limit."""
    fill(tmp_path, 60)
    server = BulkPeer()
    recorder, events = Recorder(), Events()
    with server.running():
        endpoints = {"sql": sql, "search": server.endpoint}
        driver = made(
            "full-crawl", endpoints, {"sources": [folder(tmp_path, "share", access=False)]}, event=events
        )
        driver.prepare(quiet)
        try:
            crawl(driver, 8, recorder)
        finally:
            driver.finish(keep_data=False)
    requests = [row for row in recorder.rows if row.operation == "crawl/bulk"]
    assert len(requests) == len([path for path in server.requests if path.endswith("/_bulk")])
    assert {row.outcome for row in requests} == {"ok"}
    assert events.named("crawl_ended")[0]["destination_limit"] == 4
    nowhere = {"sql": sql, "search": Endpoint("search", "", {"kind": "none"})}
    quiet_one = Recorder()
    crawled(nowhere, {"sources": [folder(tmp_path, "share")]}, recorder=quiet_one)
    assert not [row for row in quiet_one.rows if row.operation == "crawl/bulk"]


TESTS = Path(__file__).parents[2]
PAGES, PROCESSES, SESSIONS, LIMIT_S = 300, 3, 4, 100


def test_each_page_is_fetched_once_and_nobody_waits_in_a_circle(sql: Endpoint) -> None:
    """Pages that all link to each other are fetched once each, in batches without deadlock."""
    chance = random.Random(5)
    near = [[2 * n + 1, 2 * n + 2, n + 1, n + 2, *chance.choices(range(PAGES), k=3)] for n in range(PAGES)]
    site = {f"/p{n}": linking(*(f"/p{each % PAGES}" for each in links)) for n, links in enumerate(near)}
    server = Pages(site | {"/": linking("/p0")})
    with server.running():
        endpoints = {"sql": sql, "search": Endpoint("search", "", {"kind": "none"})}
        web = {"kind": "web", "name": "site", "url": server.url, "sitemaps": False, "robots": False}
        params = {"sources": [web], "batch": 8}
        given = json.dumps({name: (each.url, dict(each.options)) for name, each in endpoints.items()})
        command = [
            sys.executable,
            "-m",
            "scenarios.full_crawl.crawler",
            given,
            json.dumps(params),
            str(SESSIONS),
        ]
        with prepared(made("full-crawl", endpoints, params)):
            before = _deadlocks(sql)
            processes = [
                subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(TESTS)}
                )
                for _ in range(PROCESSES)
            ]
            try:
                assert [process.wait(LIMIT_S) for process in processes] == [0] * PROCESSES
            finally:
                for process in processes:
                    process.kill()
                    process.wait()
            logged = rows(sql, "SELECT count(*), count(DISTINCT url) FROM history WHERE kind = 'document'")
            assert logged == [(PAGES + 1, PAGES + 1)]
            assert _deadlocks(sql) == before
    assert Counter(server.full) == dict.fromkeys(server.pages, 1)


def _deadlocks(sql: Endpoint) -> int:
    with psycopg.connect(sql.url) as connection:
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
