"""Tests with trap objects in front of PostgreSQL's own functions, operators and views: none is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from planted import planted
from scenarios.full_crawl.pages import Pages, linking
from scenarios.sql_mix.helpers import SMALL, performed
from scenarios.sql_script.helpers import prepared, written
from scenarios.sql_servers.targets import by_odbc, need_driver
from scenarios.support import Recorder, crawl, made, quiet

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.sql_mix.params import PRESETS

SIZES: dict[str, Any] = {"scale": SMALL, "copy_rows": 60, "batch_rows": 30}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with planted() as found:
        yield found


@pytest.fixture(params=["native", "odbc"])
def endpoint(request: pytest.FixtureRequest, url: str) -> Endpoint:
    """Yield the endpoint with PostgreSQL's own library and over ODBC."""
    if request.param == "native":
        return Endpoint("sql", url)
    need_driver("PostgreSQL", package="odbc-postgresql")
    return Endpoint("sql", by_odbc(url))


def test_sql_mix(endpoint: Endpoint) -> None:
    """Every operation of every preset, the check and the removal avoid the traps."""
    for preset in PRESETS:
        driver = made("sql-mix", {"sql": endpoint}, {"preset": preset, **SIZES})
        driver.check()
        driver.prepare(quiet)
        counts = performed(driver, 30).counts()
        driver.finish(keep_data=False)
        assert {outcome for _, outcome in counts} == {"ok"}, counts


def test_a_copy_for_scripts(url: str, tmp_path: Path) -> None:
    """Pinchpoint's queries around a user's texts, which use the database's own path, avoid the traps.

    Only with PostgreSQL's own library: psqlodbc's own queries use that path and fail on this database.
    """
    (script,) = written(tmp_path, values="VALUES (1);\n")
    with prepared(Endpoint("sql", url), scripts=script) as driver:
        counts = performed(driver, 3).counts()
    assert {outcome for _, outcome in counts} == {"ok"}, counts


def test_full_crawl(url: str) -> None:
    """A crawl of a small site, with its queue and log, avoids the traps."""
    server = Pages({"/": linking("/a", "/b"), "/a": linking("/b"), "/b": linking("/")})
    with server.running():
        web = {"kind": "web", "name": "site", "url": server.url, "sitemaps": False, "robots": False}
        endpoints = {"sql": Endpoint("sql", url), "search": Endpoint("search", "", {"kind": "none"})}
        driver = made("full-crawl", endpoints, {"sources": [web]})
        recorder = Recorder()
        driver.check()
        driver.prepare(quiet)
        crawl(driver, 2, recorder)
        driver.finish(keep_data=False)
    assert {outcome for _, outcome in recorder.counts()} == {"ok"}, recorder.counts()


def test_a_check_leaves_no_setting_in_a_session(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``check`` leaves no setting in a session, which a pooler would hand to the farm's own users."""
    left: list[object] = []
    close = psycopg.Connection.close

    def closed(connection: psycopg.Connection[object]) -> None:
        if not connection.closed:
            left.append(connection.execute("SHOW search_path").fetchone())
        close(connection)

    monkeypatch.setattr(psycopg.Connection, "close", closed)
    (script,) = written(tmp_path, values="VALUES (1);\n")
    for use, params in (("sql-mix", SIZES), ("sql-script", {"scripts": [script]})):
        made(use, {"sql": Endpoint("sql", url)}, params).check()
    assert left == [("public, pg_catalog",)] * len(left)
    assert len(left) >= 2
