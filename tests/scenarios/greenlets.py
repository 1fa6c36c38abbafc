"""Run twenty sessions of each scenario in one gevent thread; test_greenlets.py starts this program.

Arguments: the URLs of a PostgreSQL, a Valkey, a slow site and a search service, and a folder of files. Prints
one JSON object.
"""

# ruff: noqa: E402 - gevent must patch the process before all other imports, as in a load generator

from __future__ import annotations

from gevent import monkey
from gevent.monkey import get_original

monkey.patch_all()

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import gevent
import valkey
from scenarios.support import Events, Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.full_crawl.sources import files as files_source

SESSIONS = 20


def together(work: Callable[[int], object]) -> dict[str, float]:
    """Return the seconds of ``work`` in twenty greenlets, and the longest time without a loop iteration."""
    lag_s = 0.0

    def tick() -> None:
        nonlocal lag_s
        while True:
            asked = time.perf_counter()
            gevent.sleep(0.005)
            lag_s = max(lag_s, time.perf_counter() - asked - 0.005)

    ticking = gevent.spawn(tick)
    begun = time.perf_counter()
    greenlets = [gevent.spawn(work, number) for number in range(SESSIONS)]
    gevent.joinall(greenlets, raise_error=True)
    took_s = time.perf_counter() - begun
    ticking.kill()
    return {"took_s": took_s, "lag_s": lag_s}


def sql(endpoint: Endpoint) -> dict[str, float]:
    """Each session makes the server sleep for 0.2 s."""
    connections = [
        FastConnection(endpoint, application="greenlets", statement_timeout_s=5, greet=lambda _: None)
        for _ in range(SESSIONS)
    ]
    for connection in connections:
        connection.try_open()
    found = together(lambda number: connections[number].execute("SELECT pg_sleep(0.2)"))
    for connection in connections:
        connection.close()
    return found


def nosql(endpoint: Endpoint) -> dict[str, float]:
    """Each session writes once while the server is blocked for 0.3 s."""
    driver = made("nosql-burst", {"nosql": endpoint})
    driver.prepare(quiet)
    sessions = [driver.session(number) for number in range(SESSIONS)]
    recorder = Recorder()
    with valkey.Valkey.from_url(endpoint.url) as client:
        client.client_pause(300, all=False)
    found = together(lambda number: sessions[number].perform(recorder))
    for session in sessions:
        session.close()
    driver.finish(keep_data=False)
    assert recorder.counts() == {("update", "ok"): SESSIONS}
    return found


def http(endpoints: dict[str, Endpoint]) -> dict[str, float]:
    """Crawl a site that takes 0.2 s for each reply."""
    return crawl(endpoints)


class SlowDisk:
    """Replaces the module ``os``: each read takes 0.2 s in the kernel."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def read(self, descriptor: int, size_bytes: int) -> bytes:
        get_original("time", "sleep")(0.2)
        return os.read(descriptor, size_bytes)


def files(endpoints: dict[str, Endpoint], folder: str) -> dict[str, float]:
    """Crawl a folder on the slow disk."""
    params = {"sources": [{"kind": "files", "name": "share", "path": folder}]}
    with patch.object(files_source, "os", SlowDisk()):
        return crawl(endpoints, params)


def crawl(endpoints: dict[str, Endpoint], params: dict[str, Any] | None = None) -> dict[str, float]:
    """Run a whole crawl with twenty sessions."""
    events, recorder = Events(), Recorder()
    driver: Scenario = made("full-crawl", endpoints, params, event=events, name="greenlets")
    driver.prepare(quiet)
    sessions = [driver.session(number) for number in range(SESSIONS)]

    def work(number: int) -> None:
        while sessions[number].perform(recorder):
            gevent.sleep(0)
        sessions[number].close()

    found = together(work)
    driver.finish(keep_data=False)
    (ended,) = events.named("crawl_ended")
    return {**found, "count": ended["sources"][0]["count"]}


def main() -> None:
    """Run all scenarios in turn and print the results."""
    sql_url, nosql_url, site_url, search_url, folder = sys.argv[1:]
    endpoints = {
        "sql": Endpoint("sql", sql_url),
        "sharepoint": Endpoint("sharepoint", site_url),
        "search": Endpoint("search", search_url),
    }
    found = {
        "sql": sql(endpoints["sql"]),
        "nosql": nosql(Endpoint("nosql", nosql_url)),
        "http": http(endpoints),
        "files": files(endpoints, folder),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
