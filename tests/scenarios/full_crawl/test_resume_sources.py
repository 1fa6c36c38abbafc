"""A crawl of sources of every kind that is killed, and gone on with: nothing lost, nothing twice."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from infra.services.serving import serving
from scenarios.full_crawl.folders import ended, fill, prepared, rows
from scenarios.full_crawl.killing import killed_after, resuming
from scenarios.full_crawl_sources.sites import samba
from scenarios.support import Events, Recorder, Search, crawl, made
from servers import postgres
from support import missing

from pinchpoint_infra.content.filling import ingest
from pinchpoint_scenarios.contract import Endpoint

TOKEN, PASSWORD = "a-token", "a secret word"
EACH = 60


@pytest.fixture(scope="module")
def sharepoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The web tier, with so many documents and so many people."""
    folder = tmp_path_factory.mktemp("sharepoint")
    fill(folder / "corpus", EACH, folders=3)
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        config: dict[str, Any] = {"token": TOKEN, "database_url": url, "people": EACH}
        with serving("pinchpoint_infra.services.web", folder, **config) as service:
            yield Endpoint("sharepoint", service.url, {"auth": "bearer", "token": TOKEN})


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A Samba share with so many files."""
    if os.geteuid() != 0:
        missing("Samba's server needs root to change to the user who logs in")
    folder = tmp_path_factory.mktemp("samba")
    fill(folder / "share", EACH, folders=3)
    with samba(folder, folder / "share", getpass.getuser(), PASSWORD) as (url, _):
        yield Endpoint("share", url, {"user": getpass.getuser(), "password": PASSWORD})


@pytest.mark.root
@pytest.mark.parametrize("batch", [1, 7])
def test_every_kind_of_source_is_gone_on_with(
    sql: Endpoint, sharepoint: Endpoint, share: Endpoint, tmp_path: Path, batch: int
) -> None:
    """SharePoint, people, a share, a folder at once, killed three times with SIGKILL."""
    fill(tmp_path, EACH, folders=3)
    search = Search()
    search.delay_s = 0.005
    sources: list[dict[str, Any]] = [
        {"kind": "sharepoint"}, {"kind": "profiles", "workers": 2}, {"kind": "files", "endpoint": "share"},
        {"kind": "files", "name": "folder", "path": str(tmp_path)},
    ]  # fmt: skip
    params = {"sources": sources, "batch": batch, "page_size": 7}
    with search.running():
        given = {"sql": sql, "search": search.endpoint, "sharepoint": sharepoint, "share": share}
        with prepared(made("full-crawl", given, params), keep_data=True):
            killed_after(40, given, params)
        for _ in range(2):
            with prepared(resuming(given, params), keep_data=True):
                killed_after(40, given, params)
        assert rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'")[0][0] < 4 * EACH
        events = Events()
        with prepared(resuming(given, params, events)) as driver:
            crawl(driver, 6, Recorder(), limit_s=50)
            logged = (
                "SELECT source, count(*), count(DISTINCT url) FROM history WHERE kind = 'document' GROUP BY 1"
            )
            assert sorted(rows(sql, logged)) == [
                (source, EACH, EACH) for source in ("folder", "profiles", "share", "sharepoint")
            ]
    found = ended(events)
    assert {name: (each["count"], each["failures"]) for name, each in found.items()} == dict.fromkeys(
        ("sharepoint", "profiles", "share", "folder"), (EACH, 0)
    )
    assert (search.resets, len(search.documents)) == (1, 4 * EACH)
    again = sum(search.given.values()) - 4 * EACH
    assert again <= 3 * 6 * batch, "more was done again than the killed sessions held"
