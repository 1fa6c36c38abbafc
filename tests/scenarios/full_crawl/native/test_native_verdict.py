"""Tests of the verdict on a farm's own crawl, whose items are counted without times."""

from __future__ import annotations

from harness.analysis.build import Build

from pinchpoint.analysis import Verdict, analyse


def concluded(build: Build) -> Verdict:
    """Return the verdict on a native crawl of 60 items a second, with the given build."""
    build.closed("crawl", "full-crawl", 1).operations("crawl", "document:Intranet", 60, 1.0)
    build.manifest["plan"]["scenarios"]["crawl"]["params"] = {"drive": "native"}
    for row in build.rows:
        row["service"] = None
    return analyse(build.generator(cpu=0.01).run())


def test_a_farm_that_nobody_watched_is_not_said_to_have_room() -> None:
    """A native crawl is always limited, so an unmeasured farm is not reported as not reached."""
    verdict = concluded(Build())
    assert verdict.outcome == "inconclusive"
    assert verdict.experiment is not None
    assert "Measure the farm's servers while crawl goes on" in verdict.experiment
    assert "Double the users" not in verdict.experiment


def test_search_servers_at_their_limit_are_named() -> None:
    """With the search tier's CPU saturated at one load level, it is named, but not with high confidence."""
    farm = Build().host("app3", "search").cpu("app3", busy=1.0, tier_share=1.0, pressure=0.8, noise=0.005)
    verdict = concluded(farm.host("sql1", "sql", machine="machine-b").cpu("sql1", busy=0.3, tier_share=0.3))
    assert verdict.outcome == "bottleneck"
    assert verdict.bottleneck is not None
    found = verdict.bottleneck
    assert (found.kind, found.tier, found.host) == ("cpu", "search", "app3")
    assert found.confidence in ("medium", "low")
