"""Who works on what: sources side by side, limits of workers, documents from the first page on."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenarios.full_crawl.folders import crawled, fill, rows, source
from scenarios.support import Recorder

from pinchpoint_scenarios.contract import Endpoint

NOWHERE = Endpoint("search", "", {"kind": "none"})
OF = "SELECT source, url FROM history"

MOST_AT_ONCE = """
    SELECT max(n) FROM (
        SELECT sum(step) OVER (ORDER BY at, step) AS n FROM (
            SELECT started AS at, 1 AS step FROM history WHERE source = '{0}'
            UNION ALL SELECT ended, -1 FROM history WHERE source = '{0}') AS steps) AS levels"""


def test_a_source_has_no_more_workers_than_it_allows(sql: Endpoint, tmp_path: Path) -> None:
    """Eight sessions, a source that allows two, one that allows any: the limit holds, nobody starves."""
    fill(tmp_path / "shy", 60)
    fill(tmp_path / "open", 60)
    sources = [source(tmp_path / "shy", "shy", workers=2), source(tmp_path / "open", "open")]
    found = crawled({"sql": sql, "search": NOWHERE}, {"sources": sources}, sessions=8, keep_data=True)
    assert {name: each["count"] for name, each in found.items()} == {"shy": 60, "open": 60}
    assert {name: each["workers"] for name, each in found.items()} == {"shy": 2, "open": None}
    assert rows(sql, MOST_AT_ONCE.format("shy"))[0][0] <= 2
    assert rows(sql, MOST_AT_ONCE.format("open"))[0][0] >= 1


def test_documents_are_fetched_while_folders_are_still_enumerated(sql: Endpoint, tmp_path: Path) -> None:
    """Of forty folders the first documents are done long before the last folder has been listed."""
    fill(tmp_path, 400, folders=40)
    recorder = Recorder()
    crawled(
        {"sql": sql, "search": NOWHERE},
        {"sources": [source(tmp_path, "share")]},
        recorder=recorder,
        keep_data=True,
    )
    order = [kind for (kind,) in rows(sql, "SELECT kind FROM history ORDER BY ended")]
    assert order.count("container") == 41
    documents_before_half = order[: order.index("document") + 100].count("document")
    assert order.index("document") < 12, "the first documents waited for folders"
    assert documents_before_half > 60, "enumeration was nearly all there was at first"
    assert len(order) - 1 - order[::-1].index("container") > 150, "folders were all listed at the beginning"


@pytest.mark.parametrize("sessions", [1, 5])
def test_a_batch_is_of_one_source(sql: Endpoint, tmp_path: Path, sessions: int) -> None:
    """However little of it there is: what is found in a batch belongs to the source it was found in."""
    names = [f"s{number}" for number in range(4)]
    for name in names:
        fill(tmp_path / name, 12, folders=6)
    params = {"sources": [source(tmp_path / name, name) for name in names], "batch": 50}
    found = crawled({"sql": sql, "search": NOWHERE}, params, sessions=sessions, keep_data=True)
    assert {name: (each["count"], each["failures"]) for name, each in found.items()} == dict.fromkeys(
        names, (12, 0)
    )
    logged = {(of, url.removeprefix(f"file://{tmp_path}/").partition("/")[0]) for of, url in rows(sql, OF)}
    assert logged == {(name, name) for name in names}


def test_all_sources_begin_together(sql: Endpoint, tmp_path: Path) -> None:
    """A source with much to do does not keep the others waiting: each is under way among the first items."""
    names = [f"s{number}" for number in range(5)]
    for name in names:
        fill(tmp_path / name, 200 if name == "s0" else 10)
    crawled(
        {"sql": sql, "search": NOWHERE},
        {"sources": [source(tmp_path / name, name) for name in names]},
        sessions=2,
        keep_data=True,
    )
    first = rows(sql, "SELECT source FROM history ORDER BY ended LIMIT 40")
    assert {name for (name,) in first} == set(names)
