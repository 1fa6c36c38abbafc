"""One site, several processes: each finds what the others have found, fetched, or are just handing in."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
from scenarios.full_crawl.folders import prepared, rows
from scenarios.full_crawl.pages import Pages, linking
from scenarios.support import made

from pinchpoint_scenarios.contract import Endpoint

TESTS = Path(__file__).parents[2]
PAGES, PROCESSES, SESSIONS, LIMIT_S = 300, 3, 4, 100


def test_each_page_is_fetched_once_and_nobody_waits_in_a_circle(sql: Endpoint) -> None:
    """Pages that all link to each other, in batches: no deadlock, none fetched twice, none missed."""
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
