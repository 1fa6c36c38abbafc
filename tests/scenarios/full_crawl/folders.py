"""Helpers for crawls of folders, whose documents, versions and failures are files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from scenarios.support import Events, Recorder, crawl, made, quiet

from pinchpoint_scenarios.contract import Endpoint, Scenario

SCHEMA = "pinchpoint_test"


def fill(folder: Path, count: int, *, folders: int = 1, size_bytes: int = 100) -> list[Path]:
    """Write ``count`` text files, spread over ``folders`` folders; return their paths."""
    paths = []
    for number in range(count):
        place = folder / f"f{number % folders}" if folders > 1 else folder
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{number:05}.txt"
        path.write_bytes(f"document {number} ".encode().ljust(size_bytes, b"x"))
        paths.append(path)
    return paths


def source(folder: Path, name: str, **options: Any) -> dict[str, Any]:
    """Return a source of a plan."""
    return {"kind": "files", "name": name, "path": str(folder), **options}


@contextmanager
def prepared(driver: Scenario, *, keep_data: bool = False) -> Iterator[Scenario]:
    """Prepare the scenario, and finish it at the end of the block in any case."""
    try:
        driver.prepare(quiet)
        yield driver
    finally:
        driver.finish(keep_data=keep_data)


def crawled(
    endpoints: Mapping[str, Endpoint],
    params: Mapping[str, Any],
    *,
    sessions: int = 4,
    keep_data: bool = False,
    recorder: Recorder | None = None,
) -> dict[str, dict[str, Any]]:
    """Run a whole crawl; return source -> its entry of the crawl_ended event."""
    events = Events()
    driver = made("full-crawl", endpoints, params, event=events)
    with prepared(driver, keep_data=keep_data):
        crawl(driver, sessions, recorder or Recorder())
    return ended(events)


def ended(events: Events) -> dict[str, dict[str, Any]]:
    """Return source -> its entry of the only crawl_ended event."""
    (event,) = events.named("crawl_ended")
    return {each["source"]: each for each in event["sources"]}


def rows(sql: Endpoint, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on the crawl database."""
    with psycopg.connect(sql.url) as connection:
        connection.execute(f"SET search_path = {SCHEMA}".encode())
        return connection.execute(query.encode()).fetchall()
