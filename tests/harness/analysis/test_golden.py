"""METHOD's golden cases: published figures through the rules of a run, without synthetic samples."""

from __future__ import annotations

import pytest

from pinchpoint.analysis.disk_points import NO_LIMIT, Judged, Point, judge_points
from pinchpoint.analysis.published_means import CpuMean, DiskMean, SourceMean, judge_means
from pinchpoint.data.inputs import Limits
from pinchpoint_infra.catalogue import profile

PAGE = 8192
QOS = Limits(iops=500, bytes_per_s=None, io_unit_bytes=PAGE)


def limits_of(name: str, *, burst: bool = False) -> Limits:
    entry = profile(name)
    caps = entry.burst if burst else entry
    assert caps is not None
    return Limits(caps.iops, caps.bytes_per_s, entry.io_unit_bytes)


def kinds(judged: tuple[Judged, ...]) -> list[str | None]:
    return [one.kind for one in judged]


@pytest.mark.parametrize(("latency_s", "outstanding"), [(0.01599, 8), (2.05, 1024)])
def test_consistency_alone_is_no_verdict(latency_s: float, outstanding: float) -> None:
    """15.99 ms x 500/s = 8 and 2.05 s x 500/s = 1,024: consistent by Little's law, and no verdict."""
    point = Point(iops=500, latency_s=latency_s, outstanding=outstanding)
    assert point.iops * latency_s / outstanding == pytest.approx(1, abs=0.002)
    [found] = judge_points([point])
    assert found.kind is None
    assert "does not show how a disk limits" in found.why


@pytest.mark.parametrize("limits", [QOS, None], ids=["declared", "withheld"])
def test_a_capped_ssd_s_two_points(limits: Limits | None) -> None:
    """With 8 and 1,024 outstanding the rate is constant and latency proportional: a cap."""
    points = [Point(8 / 0.01599, 0.01599, 8), Point(1024 / 2.05, 2.05, 1024)]
    found = judge_points(points, limits)
    assert kinds(found) == ["disk_cap", "disk_cap"]
    assert [one.exact for one in found] == [limits is not None] * 2


@pytest.mark.parametrize("limits", [NO_LIMIT, QOS], ids=["free", "under the cap of 500"])
def test_a_hard_disk_s_random_writes_are_its_own_limit(limits: Limits) -> None:
    """2.36 MB/s at 8 KiB are 288 IOPS of 3.6 s each: below any cap, so the device limits."""
    point = Point(2.36e6 / PAGE, latency_s=3.6, bytes_per_s=2.36e6)
    assert point.iops == pytest.approx(288, rel=0.001)
    assert point.going_on == pytest.approx(1037, rel=0.001)
    [found] = judge_points([point], limits)
    assert found.kind == "disk_device", found.why
    assert not found.exact


def test_the_same_disk_s_sequential_rows_stand_at_the_cap() -> None:
    """4.09 MB/s at 8 KiB are 499 of 500 IOPS: the cap limits, not the device."""
    [found] = judge_points([Point(4.09e6 / PAGE, outstanding=1024.0, bytes_per_s=4.09e6)], QOS)
    assert (found.kind, found.exact) == ("disk_cap", True)
    # The cap counts in units: an I/O of 64 KiB is eight units.
    [large] = judge_points([Point(4.09e6 / (8 * PAGE), outstanding=1024.0, bytes_per_s=4.09e6)], QOS)
    assert (large.kind, large.exact) == ("disk_cap", True)
    assert large.point.iops == pytest.approx(62.4, rel=0.001)


def test_one_at_a_time_and_thirty_two_on_a_bursting_disk() -> None:
    """P10: 1,000/s of 1 ms with one outstanding lacks concurrency; 3,568/s with 32 is the burst cap."""
    points = [Point(3568, outstanding=32), Point(1000, 0.001, 1)]
    base, burst = limits_of("azure/p10"), limits_of("azure/p10", burst=True)
    assert (base.iops, burst.iops) == (500, 3500)
    one, many = judge_points(points, base, burst)
    assert (one.kind, one.limit, one.point.going_on) == ("disk_concurrency", "burst", 1)
    assert (many.kind, many.limit, many.exact) == ("disk_cap", "burst", True)
    # A log writes one I/O after the other by design, so concurrency is not its limit.
    assert "disk_concurrency" not in kinds(judge_points(points, base, burst, role="log"))


def test_a_device_s_flat_means_are_no_regulator_s() -> None:
    """A device with a full queue has constant means as well, which do not prove a regulator."""
    points = [Point(288, outstanding=128), Point(287, outstanding=1024)]
    assert kinds(judge_points(points)) == ["disk_device", "disk_device"]


STANDARD = limits_of("azure/s30")
STRIPED = Limits(4 * (STANDARD.iops or 0), 4 * (STANDARD.bytes_per_s or 0), None)
PROD_SOURCES = (
    SourceMean("file share", 3.1, 6.935),
    SourceMean("local web app", 16.2, 0.237, tier="web"),
    SourceMean("local SharePoint sites", 12.8, 0.381, tier="web"),
    SourceMean("user profiles", 9.9, 0.149, tier="web"),
)


def prod() -> list[DiskMean]:
    p30 = limits_of("azure/p30")
    return [
        DiskMean("search", "app3", "index", 0.071),
        DiskMean("search", "app4", "index", 0.086),
        DiskMean("sql", "sql1", "log", 0.0028, 187, p30),
        DiskMean("sql", "sql1", "data", 0.020, 104, p30),
    ]


NO_CPU = (CpuMean("search", "app3"), CpuMean("search", "app4"), CpuMean("sql", "sql1"))


def test_a_crawl_s_published_figures_alone_are_inconclusive() -> None:
    """Index disks of 71 and 86 ms without a CPU figure are inconclusive, with two candidates."""
    found = judge_means(prod(), NO_CPU, PROD_SOURCES)
    assert (found.outcome, found.confidence) == ("inconclusive", None)
    by_resource = {(one.tier, one.of): one for one in found.candidates}
    assert set(by_resource) == {("search", "cpu"), ("search", "disk")}
    assert by_resource["search", "cpu"].measured is False
    assert by_resource["search", "disk"].hosts == ("app3", "app4")
    assert "71 ms" in by_resource["search", "disk"].why
    assert "86 ms" in by_resource["search", "disk"].why
    assert found.experiment is not None
    assert "not measured" in found.experiment
    # Neither SQL disk of Prod is slow: 2.8 ms against 5 ms, and 20 ms against 20 ms.
    assert {disk.tier for disk, _ in found.slow} == {"search"}


def test_the_file_share_is_external_for_its_own_source() -> None:
    """3.1/s x 6.9 s are two thirds of all outstanding requests: that source's share is external."""
    found = judge_means(prod(), NO_CPU, PROD_SOURCES)
    [share] = found.sources
    assert (share.kind, share.source, share.tier) == ("external", "file share", None)


def test_no_cap_explains_the_striped_log_disk() -> None:
    """125 to 140 IOPS at 34 to 36 ms against a cap of 4 x 500: latency limits, not the cap."""
    assert STRIPED.iops == 2000
    for iops, latency_s in ((125, 0.034), (140, 0.036)):
        found = judge_means([DiskMean("sql", "sql1", "log", latency_s, iops, STRIPED)], NO_CPU)
        assert [kind for _, kind in found.slow] == ["disk_latency"]
        assert found.outcome == "inconclusive"


def test_cpu_that_was_measured_is_no_unknown() -> None:
    """With a CPU figure the same farm has an answer, of low confidence: means are one kind of evidence."""
    cool = [DiskMean("sql", "sql1", "log", 0.0028, 187, limits_of("azure/p30"))]
    busy = [CpuMean("search", "app3", 0.97), CpuMean("sql", "sql1", 0.3)]
    found = judge_means(cool, busy)
    assert (found.outcome, found.confidence) == ("bottleneck", "low")
    assert [(one.tier, one.of) for one in found.candidates] == [("search", "cpu")]
    assert judge_means(cool, [CpuMean("search", "app3", 0.2)]).outcome == "not_reached"
