"""Tests of sessions under gevent, as in a load generator: they wait concurrently."""

from __future__ import annotations

from pathlib import Path

from scenarios.full_crawl.folders import fill
from scenarios.support import Search, Site
from support import run_script

from pinchpoint_scenarios.contract import Endpoint

SCRIPT = Path(__file__).with_name("greenlets.py")


def test_sessions_of_every_kind_cooperate(sql: Endpoint, nosql: Endpoint, tmp_path: Path) -> None:
    """Twenty sessions in one thread take about as long as one, and the loop never blocks."""
    site, search = Site({"L": {f"{number}.txt": b"x" for number in range(60)}}), Search()
    site.delay_s = 0.2
    with site.running(), search.running():
        fill(tmp_path / "share", 60)
        found = run_script(SCRIPT, sql.url, nosql.url, site.url, search.url, str(tmp_path / "share"))
    assert found["sql"]["took_s"] < 1.5, "one after the other: 4 s"
    assert found["nosql"]["took_s"] < 1.5
    assert found["http"]["took_s"] < 6, "one after the other: 13 s"
    # A file is read twice: its content, and its end.
    assert found["files"]["took_s"] < 6, "one after the other: 24 s"
    assert (found["http"]["count"], found["files"]["count"]) == (60, 60)
    for kind, each in found.items():
        assert each["lag_s"] < 0.15, f"{kind} held the loop for {each['lag_s']:.2f} s"
