"""Upstream tiers: a crawl waits for the web tier, which waits for sql, unseen by the client."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness.analysis.build import Build
from harness.analysis.tiers import COMMITS, READS, behind, idle, logging, reading
from harness.analysis.verdicts import answer, judged

from pinchpoint.analysis.flows import find_flows
from pinchpoint.data.inputs import read_inputs


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sessions_nobody_opened_himself_are_the_web_tier_s(seed: int) -> None:
    """Sessions that the load did not open count for the web tier: sql's data disk is named."""
    verdict = judged(reading(behind(READS, seed=seed)))
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier, found.role) == ("disk_cap", "sql", "data")
    assert found.confidence == "medium", found.why_not_more
    assert "of the time of crawl is spent waiting for it" in " ".join(one.fact for one in found.evidence)


def test_a_log_behind_the_web_tier_is_what_takes_long() -> None:
    """The log behind the web tier is named, not the network path to the site."""
    found = judged(logging(behind(COMMITS)))
    # One write at a time and no declared limit: the disk is known, but whether a cap limits it is not.
    assert answer(found) == ("disk", "sql", "log"), found.summary


def test_a_lock_behind_the_web_tier_has_all_who_wait_for_an_operation() -> None:
    """Eleven of twelve sessions wait for a lock, which counts as a share whoever opened them."""
    verdict = judged(idle(behind({"Lock__tuple": 11.0})))
    assert answer(verdict) == ("lock", "sql", None), verdict.summary
    [waiting] = (
        [one for one in verdict.bottleneck.evidence if one.evidence == "E4"] if verdict.bottleneck else []
    )
    assert waiting.value == pytest.approx(0.92, abs=0.05)


@pytest.mark.parametrize("make", [reading, logging])
@pytest.mark.parametrize("pressure", [True, False], ids=["pressure", "no pressure"])
def test_where_nobody_asked_sql_the_way_to_the_site_is_in_doubt(
    make: Callable[[Build], Build], *, pressure: bool
) -> None:
    """Without session samples of sql, the dependency on the site has low confidence."""
    build = make(behind(asked=False))
    build.samples = [row for row in build.samples if pressure or not row[3].startswith("pressure.")]
    found = judged(build).bottleneck
    assert found is None or found.confidence == "low"


def test_more_sessions_than_the_web_tier_can_have_are_somebody_s() -> None:
    """40 sessions read while 12 users wait: the attribution is unknown, so confidence is low."""
    found = judged(logging(behind({"IO__DataFileRead": 39.0}, sessions=40))).bottleneck
    assert found is None or found.confidence == "low"
    if found and found.kind == "external":
        assert "40 sessions are active in sql; whose requests they serve is not known" in found.why_not_more


def test_a_database_that_hardly_does_anything_is_not_what_the_web_tier_waits_for() -> None:
    """With hardly more sessions than the crawl's own, sql is not blamed for the slow site."""
    verdict = judged(idle(behind(sessions=0.2)))
    assert answer(verdict) == ("external", "web", None), verdict.summary
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "medium"


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        (None, "whether processes wait for a disk on web1 was not measured"),
        (0.9, "disk C: of web1 is busy"),
        (0.02, None),
    ],
    ids=["nothing", "busy", "idle"],
)
def test_a_host_whose_waiting_for_disks_nobody_saw_may_be_what_takes_long(
    disk: float | None, why: str | None
) -> None:
    """Without samples of the web tier's I/O waits and disks, the tier may be the cause."""
    build = idle(behind(sessions=0.2))
    build.samples = [row for row in build.samples if (row[2], row[3]) != ("web1", "pressure.io_ratio")]
    if disk is not None:
        build.metric("web1", "disk.busy_ratio", disk, "C:")
    found = judged(build).bottleneck
    assert found is not None
    assert (found.kind, found.confidence) == ("external", "low" if why else "medium"), found.why_not_more
    assert why is None or any(said.startswith(why) for said in found.why_not_more)


def test_profiles_are_the_web_tier_s_beside_the_site_they_belong_to() -> None:
    """Two sources with one endpoint but different names both belong to the farm's web tier."""
    build = Build().host("web1", "web").host("sql1", "sql").closed("crawl", "full-crawl", 8)
    sources = [{"kind": "sharepoint"}, {"kind": "profiles", "endpoint": "sharepoint"}]
    build.manifest["plan"]["scenarios"]["crawl"]["params"] = {"sources": sources}
    for source in ("sharepoint", "profiles"):
        build.operations("crawl", f"document:{source}", 20, 0.2)
        build.operations("crawl", f"document:{source}/fetch", 20, 0.1)
    [flow] = find_flows(read_inputs(build.run()))
    found = {station.name: station.tier for station in flow.stations if station.source}
    assert found == {"sharepoint": "web", "profiles": "web"}
