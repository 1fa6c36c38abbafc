"""An index with repeated commits, simulated I/O by I/O: pauses between few I/Os, mostly large."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.analysis.disks import Capped, Disk, Distant, Seconds, Spindle, four_segments, indexing
from harness.analysis.verdicts import answer, answers, length

from pinchpoint.analysis import analyse


def index(disk: Disk, users: int = 6, pause_s: float = 1.0, seed: int = 1) -> Build:
    """Return a crawl that commits its index repeatedly; all users wait for each commit."""
    return committed(*indexing(disk, length(60), pause_s, seed), users, seed)


def few_large(disk: Disk, seed: int, measure_s: int = 40) -> Build:
    """Return such a crawl with few I/Os, most of them large: two or three per second."""
    return committed(*indexing(disk, length(measure_s), 0.5, seed, chain=3, segments=four_segments), 6, seed)


def committed(found: Seconds, spans: list[tuple[float, float]], users: int, seed: int) -> Build:
    """Return a search tier with that index disk, and a crawl that waits for the commits."""
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
    """An index disk that is at its cap only during commits is named as capped."""
    assert set(answers(index(Capped(iops)), "index", iops=iops)) == {("disk_cap", "search", "index")}


@pytest.mark.parametrize("spread", [0.15, 0.4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_slow_device_is_no_cap_for_being_counted_in_whole_ios(spread: float, seed: int) -> None:
    """An uneven device with two or three I/Os per second is not called a cap."""
    verdict = analyse(few_large(Spindle(0.4, spread), seed, measure_s=160).run())
    assert answer(verdict)[0] in {"disk_device", "disk_latency"}, verdict.summary


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6])
def test_few_large_ios_under_a_limit_of_bytes(seed: int) -> None:
    """A byte limit on few large I/Os is found in 160 s, or its disk is named with low confidence."""
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
    """A slow index disk is named for its latency, or without a kind where no limit is declared."""
    build = index(Distant(latency_s, latency_s * 0.03))
    found = set(answers(build, "index", iops=500.0))
    open_kind = ("disk", "search", "index")
    assert found - {open_kind} == {("disk_latency", "search", "index")}


def test_an_index_disk_that_is_rarely_asked_is_not_blamed() -> None:
    """A slow index disk with rare commits is not blamed, because the crawl rarely waits for it."""
    verdict = analyse(index(Distant(0.03, 0.001), pause_s=20.0).run())
    assert verdict.bottleneck is None
