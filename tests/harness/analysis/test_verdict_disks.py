"""Disks: at a cap, slow, uneven, or without waiting sessions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness.analysis.build import Build, shared_farm
from harness.analysis.verdicts import SEEDS, judged, log_disk, named


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_at_its_declared_cap(seed: int) -> None:
    """A flat rate at the declared cap is a disk_cap, of medium confidence at one load level."""
    verdict = judged(log_disk({"iops": 500.0}, seed=seed))
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.role, verdict.bottleneck.instance) == ("log", "loop1")
    assert "Bottleneck: log disk of the sql tier (sql1, loop1). I/O limited to 50" in verdict.summary
    assert verdict.headroom_ratio == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("declared", "confidence"),
    [(None, "medium"), (1000.0, "low"), (250.0, "low")],
    ids=["withheld", "x2", "/2"],
)
def test_a_capped_disk_whose_cap_is_withheld_or_declared_wrong(
    declared: float | None, confidence: str, seed: int
) -> None:
    """A capped disk is named without its declared cap, too; a wrong declaration lowers confidence."""
    verdict = judged(log_disk({"iops": declared} if declared else None, seed=seed))
    assert named(verdict) == ("disk_cap", "sql", "sql1", confidence)
    assert verdict.bottleneck is not None
    told = any(
        "the declared limit, so that declaration is wrong" in fact.fact
        for fact in verdict.bottleneck.evidence
    )
    assert told == (declared is not None)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_idles_a_little_at_its_cap_does_not_contradict_it(seed: int) -> None:
    """Short idle times of a disk at its cap do not contradict the cap, as the regulator allows them."""
    verdict = judged(log_disk({"iops": 496.5}, latency_s=0.014, busy=0.92, seed=seed))
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")
    assert verdict.bottleneck is not None
    assert not any("therefore wrong" in fact.fact for fact in verdict.bottleneck.evidence)


@pytest.mark.parametrize("declared", [None, 190.0, 760.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_device_without_flatness(declared: float | None, seed: int) -> None:
    """A rate that stays while the queue varies, with a device's spread, is a disk_device."""
    caps = {"iops": declared} if declared else None
    build = log_disk(caps, noise=0.08, seed=seed, writes=380.0, latency_s=0.04, commit_s=0.08)
    verdict = judged(build)
    assert named(verdict)[:3] == ("disk_device", "sql", "sql1")
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == ("low" if declared == 190.0 else "medium")


@pytest.mark.parametrize(
    ("declared", "at"), [(None, 60), (500.0, 60), (1000.0, 60), (None, 18), (None, 25), (500.0, 25)]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_burst_credits_that_run_out(declared: float | None, at: int, seed: int) -> None:
    """A rate that falls from 3,500 to 500/s with the same queue is reported as exhausted credits."""
    level = np.where(np.arange(130) < at, 3500.0, 500.0)
    build = Build(measure_s=120, seed=seed).host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"})
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"]["limits"] = {"iops": declared}
    build.cpu("sql1", 0.3, cores=(0, 1))
    build.disk("sql1", "loop1", level, 8 / level, 0.004, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", level / 2, 16 / level)
    verdict = judged(build.generator())
    assert named(verdict)[:3] == ("disk_burst_exhausted", "sql", "sql1")
    assert "fell from 3," in verdict.summary


def test_a_disk_that_warms_up() -> None:
    """A rate that rises with a constant queue is reported as a disk that warms up."""
    level = np.where(np.arange(130) < 70, 200.0, 400.0)
    build = Build(measure_s=120).host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"})
    build.cpu("sql1", 0.3, cores=(0, 1))
    build.disk("sql1", "loop1", level, 8 / level, 0.06, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", level / 2, 16 / level)
    verdict = judged(build.generator())
    assert named(verdict)[:3] == ("disk_warm_up", "sql", "sql1")
    assert verdict.headroom_ratio is None


@pytest.mark.parametrize("seed", SEEDS)
def test_reads_issued_one_after_the_other(seed: int) -> None:
    """Reads of constant latency that speed up with more outstanding lack concurrency."""
    build = Build(seed=seed).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", 0.1, cores=(0, 1)).disk("sql1", "sdb", 5, 0.001, busy=0.01)
    reads = build.noisy(900.0, 0.2)
    build.metric("sql1", "disk.reads_per_s", reads, "sdc", 0)
    build.metric("sql1", "disk.writes_per_s", 0.0, "sdc", 0)
    build.metric("sql1", "disk.read_latency_s", 0.001, "sdc", 0.02, weight=reads)
    build.metric("sql1", "disk.outstanding", reads * 0.001, "sdc", 0.02)
    build.metric("sql1", "disk.busy_ratio", 0.9, "sdc", 0.02).metric("sql1", "pressure.io_ratio", 0.7)
    build.closed("orders", "sql-mix", 1).operations("orders", "point_read", reads, 1 / reads, noise=0.0)
    verdict = judged(build)
    assert named(verdict)[:3] == ("disk_concurrency", "sql", "sql1")
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.role == "data"


@pytest.mark.parametrize(
    ("limits", "writes", "latency_s", "size_bytes", "done", "takes_s", "said"),
    [
        ({"iops": 500.0, "io_unit_bytes": 8192.0}, 62.5, 0.05, 65536, 100, 0.08, ""),
        ({"bytes_per_s": 1e8, "iops": 5e4}, 1000, 0.01, 1e5, 400, 0.02, "Data limited to 100 MB per second"),
    ],
)
def test_a_cap_in_units_counts_large_ios_several_times(
    limits: dict[str, float],
    writes: float,
    latency_s: float,
    size_bytes: float,
    done: float,
    takes_s: float,
    said: str,
) -> None:
    """A cap of 500 units of 8 KiB is 62.5 I/Os of 64 KiB, and a byte cap is found in the same way."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"}, limits={"log": limits}).cpu("sql1", 0.3)
    build.disk("sql1", "sdb", writes, latency_s, 0.004, busy=1.0, pressure=0.9, size_bytes=size_bytes)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", done, takes_s)
    verdict = judged(build.generator())
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")
    assert said in verdict.summary


@pytest.mark.parametrize("seed", SEEDS)
def test_a_busy_disk_with_low_latency_is_not_blamed(seed: int) -> None:
    """A disk that is 100 % busy with writes of 0.3 ms is not saturated."""
    build = log_disk(None, 0.05, seed, writes=3000.0, latency_s=0.0003, commit_s=0.002, pressure=0.3)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert verdict.bottleneck is None
    assert verdict.experiment is not None
    assert "Double the users of orders (8 to 16)" in verdict.experiment


@pytest.mark.parametrize("caps", [None, {"iops": 2000.0}, {"iops": 4000.0}, {"iops": 1000.0}])
def test_a_log_disk_that_commits_wait_for(caps: dict[str, float] | None) -> None:
    """A log of 35 ms per write that most of a commit waits for is a disk_latency, medium at most."""
    build = log_disk(caps, 0.06, writes=28.0, latency_s=0.035, commit_s=0.045, busy=0.97, pressure=0.4)
    verdict = judged(build)
    assert named(verdict) == ("disk_latency", "sql", "sql1", "medium")
    assert verdict.headroom_ratio is None
    assert "of the time of orders" in verdict.summary


def test_a_flush_is_part_of_the_wait() -> None:
    """On a verified device a durable write counts as the write plus the flush."""
    build = log_disk(None, 0.06, writes=100.0, latency_s=0.001, commit_s=0.016, busy=0.9, pressure=0.6)
    build.metric("sql1", "disk.flush_latency_s", 0.009, "loop1", weight=np.full(build.seconds, 100.0))
    verdict = judged(build)
    assert named(verdict)[0] == "disk_latency"
    assert re.search(r"Each write takes (9\.|10)", verdict.summary), "1 ms of write and 9 ms of flush"


def test_a_slow_log_under_an_open_load_that_is_served_is_no_bottleneck() -> None:
    """A slow log under an open load that is served completely is no bottleneck."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", 0.2)
    build.disk("sql1", "sdb", 20, 0.012, 0.1, busy=0.25)
    build.open("orders", "sql-mix", 20).operations("orders", "log_append", 20, 0.014)
    verdict = judged(build.generator(orders=(20.0, 20.0)))
    assert verdict.outcome == "not_reached"


def data_disk(caps: dict[str, float] | None, seed: int = 1, cpu: float = 0.3) -> Build:
    """Return a data disk that is busy with writes, while commits go to a fast log."""
    build = Build(seed=seed)
    limits = {"data": caps} if caps else None
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb", "data": "sdc"}, limits=limits)
    build.cpu("sql1", cpu, cpu, cores=(0, 1), pressure=0.9 if cpu > 0.9 else 0.1)
    build.disk("sql1", "sdb", 800, 0.0004, busy=0.3)
    build.disk("sql1", "sdc", 300, 0.06, 0.08, busy=1.0, pressure=0.3)
    build.closed("orders", "sql-mix", 8).operations("orders", "data_update", 800, 0.01)
    return build.generator()


@pytest.mark.parametrize("seed", SEEDS)
def test_asynchronous_writes_of_a_data_disk_are_demoted(seed: int) -> None:
    """Slow checkpoint writes without waiting sessions are a candidate only, below a saturated CPU."""
    alone = judged(data_disk(None, seed))
    assert alone.outcome == "inconclusive"
    assert [candidate.role for candidate in alone.candidates] == ["data"]
    assert str(alone.experiment).startswith("Put it on a faster disk and repeat: if throughput rises")
    with_cpu = judged(data_disk(None, seed, cpu=0.96))
    assert named(with_cpu) == ("cpu", "sql", "sql1", "medium")


def test_reads_of_a_data_disk_are_not_demoted() -> None:
    """The same disk is the bottleneck where most of its I/Os are reads, which sessions wait for."""
    build = Build().host("sql1", "sql", disks={"log": "sdb", "data": "sdc"}).cpu("sql1", 0.3)
    build.disk("sql1", "sdb", 100, 0.0004, busy=0.1)
    build.disk("sql1", "sdc", 50, 0.05, 0.08, reads=250, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 16).operations("orders", "point_read", 250, 0.064)
    assert named(judged(build.generator())) == ("disk_device", "sql", "sql1", "medium")


def test_a_device_that_serves_several_roles_cannot_be_told_apart() -> None:
    """A device with several roles is named once, with low confidence and all its roles."""
    build = shared_farm(Build(), {"sql": {"log": "vda", "data": "vda"}, "search": {"index": "vda"}})
    for host in ("web1", "search1", "sql1", "nosql1"):
        build.cpu(host, 0.4, 0.1)
        build.disk(host, "vda", 300, 0.04, 0.08, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 160, 0.05)
    verdict = judged(build.generator())
    assert named(verdict)[2:] == ("sql1", "low")
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.shared_with == ("search",)
    assert "the device also serves sql data and search index" in verdict.summary


def test_two_resources_used_up_lower_confidence_and_name_both() -> None:
    """Of two saturated resources the deeper one is named with low confidence, the other as runner-up."""
    build = log_disk({"iops": 500.0})
    build.host("app3", "search", machine="b", cores=(0,)).cpu("app3", 0.98, pressure=0.95)
    build.closed("crawl", "full-crawl", 4).operations("crawl", "document:site", 40, 0.1)
    verdict = judged(build)
    assert named(verdict) == ("disk_cap", "sql", "sql1", "low")
    assert verdict.runner_up is not None
    assert (verdict.runner_up.kind, verdict.runner_up.host) == ("cpu", "app3")
    assert "Also saturated: CPU of the search tier (app3)." in verdict.summary


@pytest.mark.parametrize(
    ("arrivals", "kind", "confidence"),
    [("constant", "disk", "low"), ("poisson", "disk_cap", "medium")],
)
def test_an_even_schedule_is_known_from_the_plan_where_no_generator_told_of_it(
    arrivals: str, kind: str, confidence: str
) -> None:
    """An evenly planned schedule is known from the plan, so a flat rate is not taken for a limit."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.2, 0.18, (0, 1))
    build.disk("sql1", "sdb", 400, 0.03, 0.003, busy=1.0, pressure=0.9).open("orders", "sql-mix", 400)
    build.manifest["plan"]["scenarios"]["orders"]["load"]["arrivals"] = arrivals
    build.operations("orders", "log_append", 400, 0.04, noise=0.0).objective(scenario="orders", p95_s=0.01)
    assert named(judged(build)) == (kind, "sql", "sql1", confidence)
