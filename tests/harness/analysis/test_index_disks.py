"""An index that is committed again and again, simulated I/O by I/O: pauses, and few I/Os, mostly large."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.analysis.disks import Capped, Disk, Distant, Seconds, Spindle, four_segments, indexing
from harness.analysis.verdicts import answer, answers, length

from pinchpoint.analysis import analyse


def index(disk: Disk, users: int = 6, pause_s: float = 1.0, seed: int = 1) -> Build:
    """A crawl that commits its index again and again; while it does, all users wait."""
    return committed(*indexing(disk, length(60), pause_s, seed), users, seed)


def few_large(disk: Disk, seed: int, measure_s: int = 40) -> Build:
    """The same with few I/Os, most of them large: some two or three a second on such disks."""
    return committed(*indexing(disk, length(measure_s), 0.5, seed, chain=3, segments=four_segments), 6, seed)


def committed(found: Seconds, spans: list[tuple[float, float]], users: int, seed: int) -> Build:
    """A search tier with that disk, and a crawl that waits for those commits."""
    build = Build(measure_s=found.length - 10, seed=seed)
    build.host("search1", "search", cores=(0, 1), disks={"index": "loop1"})
    build.cpu("search1", 0.3, 0.2, cores=(0, 1)).device("search1", "loop1", found, pressure=0.5)
    build.closed("crawl", "full-crawl", users)
    build.operations("crawl", "document:files", 20, 0.03).operations(
        "crawl", "document:files/index", 20, 0.02
    )
    for start, end in spans:
        if end < found.length:
            build.operations(
                "crawl", "crawl/commit", 1.0, end - start, noise=0, seconds=range(int(end), int(end) + 1)
            )
    return build.generator()


@pytest.mark.parametrize("iops", [8.0, 15.0])
def test_an_index_disk_at_its_cap_between_pauses(iops: float) -> None:
    """It is not full all of the time, but flat whenever it is asked, and the crawl waits for it."""
    assert set(answers(index(Capped(iops)), "index", iops=iops)) == {("disk_cap", "search", "index")}


@pytest.mark.parametrize("spread", [0.15, 0.4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_slow_device_is_no_cap_for_being_counted_in_whole_ios(spread: float, seed: int) -> None:
    """Two or three I/Os a second are two or three of any disk: that says nothing of how evenly they end."""
    verdict = analyse(few_large(Spindle(0.4, spread), seed, measure_s=160).run())
    assert answer(verdict)[0] in {"disk_device", "disk_latency"}, verdict.summary


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6])
def test_few_large_ios_under_a_limit_of_bytes(seed: int) -> None:
    """In 160 seconds it is found, or its disk is named with low confidence."""
    verdict = analyse(few_large(Capped(bytes_per_s=400e3), seed, measure_s=160).run())
    found = verdict.bottleneck
    assert answer(verdict)[1:] == ("search", "index"), verdict.summary
    assert found is not None
    if found.kind == "disk_cap":
        assert found.evidence[0].value == pytest.approx(400e3, rel=0.05)
        assert "kB per second, whether an I/O was of " in verdict.summary
    else:
        assert (found.kind, found.confidence) == ("disk", "low")
        assert str(verdict.experiment).startswith("Declare the limits of the index disk of search1 in ")


@pytest.mark.parametrize("latency_s", [0.1, 0.25])
def test_an_index_disk_that_is_slow_between_pauses(latency_s: float) -> None:
    """A commit is a chain of writes, without a declared limit it may be a cap."""
    build = index(Distant(latency_s, latency_s * 0.03))
    found = set(answers(build, "index", iops=500.0))
    open_kind = ("disk", "search", "index")
    assert found - {open_kind} == {("disk_latency", "search", "index")}


def test_an_index_disk_that_is_rarely_asked_is_not_blamed() -> None:
    """The same slow disk, but commits are far between: the crawl spends its time elsewhere."""
    verdict = analyse(index(Distant(0.03, 0.001), pause_s=20.0).run())
    assert verdict.bottleneck is None
