"""Disks simulated I/O by I/O: limits, latencies, devices and credits are distinguished.

A disk with a limit is judged with that limit declared, withheld, and wrong by a factor of two.
"""

from __future__ import annotations

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet
from harness.analysis.build import Build
from harness.analysis.disks import (
    Capped,
    Changing,
    Disk,
    Distant,
    Seconds,
    Spindle,
    commits,
    reads,
)
from harness.analysis.verdicts import answer, answers, length

from pinchpoint.analysis import analyse
from pinchpoint.data.series import Floats


def many(*values: float) -> ParameterSet:
    """Mark a case that takes seconds, because it has many I/Os; its smaller variants run by default."""
    return pytest.param(*values, marks=pytest.mark.slow)


def log(found: Seconds, users: int = 0, rate_per_s: float = 0.0, seed: int = 1) -> Build:
    """Return a SQL tier with that disk as its log and an idle CPU."""
    build = Build(measure_s=found.length - 10, seed=seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "loop1", "data": "sdc"})
    build.cpu("sql1", 0.2, 0.15, cores=(0, 1)).device("sql1", "loop1", found)
    build.disk("sql1", "sdc", 4, 0.001, busy=0.01, pressure=0.5)
    if users:
        build.closed("orders", "sql-mix", users)
    else:
        build.open("orders", "sql-mix", rate_per_s)
    return build.served("orders", "log_append", found).generator()


def data(found: Seconds, users: int, seed: int = 1) -> Build:
    """Return a SQL tier whose users read pages from that disk; its log is good."""
    build = Build(measure_s=found.length - 10, seed=seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdb", "data": "loop1"})
    build.cpu("sql1", 0.2, 0.15, cores=(0, 1)).device("sql1", "loop1", found)
    build.disk("sql1", "sdb", 5, 0.001, busy=0.01, pressure=0.5)
    return build.closed("orders", "sql-mix", users).served("orders", "point_read", found).generator()


# ---- caps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iops", "users"),
    [(62.5, 32), (95, 8), (150, 2), (310, 8), (640, 1), many(640, 32), many(2000, 8)],
)
def test_a_cap_on_a_log_is_found_at_any_size(iops: float, users: int) -> None:
    """A limit on the log is found at any size and with any declaration, despite group commit."""
    build = log(commits(Capped(iops), length(40), users=users), users)
    assert set(answers(build, "log", iops=iops)) == {("disk_cap", "sql", "log")}


def test_a_long_io_under_way_at_a_seconds_end_moves_nothing() -> None:
    """A large I/O outstanding at a second's end does not count as a change of the rate.

    Each I/O is counted with its time in the second of its end, so outstanding I/O looks lower there, although
    the disk is as busy as before.
    """
    found = commits(Capped(bytes_per_s=244e3), length(60), users=4, seed=526)
    assert found.writes[-1] < 0.8 * np.median(found.writes)
    verdict = analyse(log(found, users=4, seed=526).run())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "low"
    assert "the queue depth did not change, so a cap" in verdict.bottleneck.why_not_more[0]


@pytest.mark.parametrize(("bytes_per_s", "users"), [(1e6, 2), (1e6, 16), (5e6, 16)])
def test_a_cap_on_bytes_is_found_though_new_segments_pass_in_lumps(bytes_per_s: float, users: int) -> None:
    """A limit on bytes is found although new segments arrive as writes of a megabyte."""
    build = log(commits(Capped(bytes_per_s=bytes_per_s), length(40), users=users), users)
    assert set(answers(build, "log", bytes_per_s=bytes_per_s)) == {("disk_cap", "sql", "log")}


@pytest.mark.parametrize(("iops", "users", "every_s"), [(50, 8, 3), (400, 2, 0), (400, 24, 3), (1500, 8, 3)])
def test_a_cap_on_reads(iops: float, users: int, every_s: float) -> None:
    """A limit on reads is found although pages are written back from time to time."""
    build = data(reads(Capped(iops), length(40), users, every_s=every_s), users)
    assert set(answers(build, "data", iops=iops)) == {("disk_cap", "sql", "data")}


@pytest.mark.parametrize(("iops", "rate_per_s"), [(95, 900), (300, 1500)])
def test_a_cap_that_group_commit_lives_with_is_found_under_an_open_load(
    iops: float, rate_per_s: float
) -> None:
    """A limit is found under an open load that group commit serves completely."""
    build = log(commits(Capped(iops), length(40), rate_per_s=rate_per_s), rate_per_s=rate_per_s)
    assert set(answers(build, "log", iops=iops)) == {("disk_cap", "sql", "log")}


# ---- latency ------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [1, 8, 32])
@pytest.mark.parametrize("latency_s", [0.003, 0.0125, 0.035, 0.08])
@pytest.mark.parametrize("jitter", [0.01, 0.1])
def test_a_log_that_is_far_away_is_no_capped_one(latency_s: float, users: int, jitter: float) -> None:
    """A log of high latency is not called capped: latency or an open kind is named."""
    build = log(commits(Distant(latency_s, latency_s * jitter), length(40), users=users), users)
    assert set(answers(build, "log")) <= {("disk_latency", "sql", "log"), ("disk", "sql", "log")}


@pytest.mark.parametrize("users", [1, 4, 16])
@pytest.mark.parametrize("iops", [12, 60, 160, 300])
def test_a_cap_that_is_not_declared_is_never_called_latency(iops: float, users: int) -> None:
    """With constant outstanding reads an undeclared limit and slow reads look the same: kind open."""
    verdict = analyse(data(reads(Capped(iops), length(40), users), users).run())
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier, found.role) in {("disk_cap", "sql", "data"), ("disk", "sql", "data")}
    assert found.confidence == "low"
    if found.kind == "disk":
        assert any("a cap of the disk looks the same" in why for why in found.why_not_more)
        assert verdict.experiment is not None
        assert verdict.experiment.startswith("Declare the limits of the data disk of sql1 in farm.yaml")


@pytest.mark.parametrize("declared", [56.0, 1000.0])
def test_a_declaration_that_happens_to_be_near_does_not_make_latency_a_cap(declared: float) -> None:
    """28 writes/s of 35 ms beside a declared limit of 28 are latency, not a cap."""
    build = log(commits(Distant(0.035, 0.002), length(40), users=32, segments=1), 32)
    assert set(answers(build, "log", iops=declared)) == {("disk_latency", "sql", "log")}


def test_a_log_that_waits_for_nobody_s_sake_is_none() -> None:
    """Commits that take 10 ms under an open load, all served in time, name no bottleneck."""
    build = log(commits(Distant(0.01, 0.0003), length(40), rate_per_s=500), rate_per_s=500)
    assert answer(analyse(build.run())) == ("not_reached",)


def test_excellent_latency_is_never_called_a_limit_with_confidence() -> None:
    """Writes of 0.3 ms, one at a time, name no limit with more than low confidence."""
    verdict = analyse(log(commits(Distant(0.0003, 0.00003), length(40), users=8), 8).run())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind != "disk_latency"
    assert verdict.bottleneck.confidence == "low"
    assert any("their duration cannot be excluded" in why for why in verdict.bottleneck.why_not_more)


def test_latency_of_which_nothing_tells_that_it_is_no_limit_has_low_confidence() -> None:
    """Even writes may also be a cap, so the disk is named without its kind and with low confidence."""
    verdict = analyse(log(commits(Distant(0.08, 0.0008), length(40), users=2), 2).run())
    assert answer(verdict) == ("disk", "sql", "log")
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "low"
    assert any("so a cap of the disk looks the same" in why for why in verdict.bottleneck.why_not_more)


@pytest.mark.parametrize(("latency_s", "users", "every_s"), [(0.04, 2, 3), (0.04, 10, 0), (0.1, 10, 3)])
def test_slow_reads_at_any_depth_are_latency(latency_s: float, users: int, every_s: float) -> None:
    """Slow reads are named as latency, however many reads are outstanding."""
    build = data(reads(Distant(latency_s, latency_s * 0.05), length(40), users, every_s=every_s), users)
    assert set(answers(build, "data", iops=5000.0)) == {("disk_latency", "sql", "data")}


@pytest.mark.parametrize(("latency_s", "users", "every_s"), [(0.003, 1, 0), (0.003, 2, 3), (0.015, 2, 0)])
def test_good_reads_issued_too_few_at_a_time(latency_s: float, users: int, every_s: float) -> None:
    """Reads of good latency with too few outstanding are named as a lack of concurrency.

    Without a declared limit, and with constant outstanding I/O, a cap would look the same.
    """
    build = data(reads(Distant(latency_s, latency_s * 0.05), length(40), users, every_s=every_s), users)
    declared, withheld, *wrong = answers(build, "data", iops=5000.0)
    assert {declared, *wrong} == {("disk_concurrency", "sql", "data")}
    assert withheld in {declared, ("disk", "sql", "data")}


# ---- devices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service_s", "users", "spread"), [(0.003, 12, 0.3), (0.006, 12, 0.4), (0.02, 40, 0.4)]
)
def test_a_device_that_serves_one_after_the_other(service_s: float, users: int, spread: float) -> None:
    """A device that serves one I/O at a time differs from a regulator by its uneven rate."""
    build = data(reads(Spindle(service_s, spread), length(40), users, every_s=3), users)
    assert set(answers(build, "data")) == {("disk_device", "sql", "data")}


# ---- changes of level ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("burst", "base", "users"), [(900, 250, 1), (900, 250, 12), many(3500, 500, 8), (400, 100, 32)]
)
def test_credits_that_run_out(burst: float, base: float, users: int) -> None:
    """Spent credits are named from the lower rate, with the baseline declared or not."""

    def iops_at(time_s: float) -> float:
        return burst if time_s < 30 else base

    build = log(commits(Changing(iops_at), length(50), users=users), users)
    assert set(answers(build, "log", iops=base)) == {("disk_burst_exhausted", "sql", "log")}
    build = data(reads(Changing(iops_at), length(50), users), users)
    assert set(answers(build, "data", iops=base)) == {("disk_burst_exhausted", "sql", "data")}


@pytest.mark.parametrize(("top", "users"), [(600, 1), (600, 10), (200, 4)])
def test_a_disk_that_gets_faster_all_the_time(top: float, users: int) -> None:
    """A disk that starts at a quarter of its speed and gets faster is reported as warming up."""

    def iops_at(time_s: float) -> float:
        return top * min(1.0, 0.25 + 0.75 * time_s / 45)

    build = data(reads(Changing(iops_at), length(45), users), users)
    assert set(answers(build, "data")) == {("disk_warm_up", "sql", "data")}


def test_a_disk_that_became_fast_enough_to_idle_was_warming_up() -> None:
    """A disk that warms up until it idles 30 % of the time is reported as warming up."""

    def iops_at(time_s: float) -> float:
        return 400 * min(1.0, 0.25 + 0.75 * time_s / 40)

    found = commits(Changing(iops_at), length(45), users=1, work_s=0.0008)
    assert found.busy[-10:].mean() < 0.75
    assert answer(analyse(log(found, users=1).run())) == ("disk_warm_up", "sql", "log")


def test_less_to_do_is_no_lack_of_credits() -> None:
    """A rate that falls with the outstanding I/O, as users leave, is not called spent credits."""
    many = reads(Distant(0.004, 0.0004), 30, 16)
    few = reads(Distant(0.004, 0.0004), 30, 6, seed=2)
    both = Seconds(60)
    for name in ("reads", "writes", "bytes", "time_s", "busy", "operations", "operation_s"):
        setattr(both, name, np.concatenate([getattr(many, name), getattr(few, name)]))
    verdict = analyse(data(both, 16).run())
    assert verdict.bottleneck is None or verdict.bottleneck.kind != "disk_burst_exhausted"


# ---- an append-only store -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("disk", "kind"),
    [(Capped(640), "disk_cap"), (Capped(200), "disk_cap"), (Distant(0.03, 0.0005), "disk_latency")],
)
def test_a_store_that_flushes_every_write(disk: Disk, kind: str) -> None:
    """A store without a log of its own: its data disk is named, since every write waits for it."""
    found = commits(disk, length(40), users=16)
    build = Build(measure_s=40).host("nosql1", "nosql", cores=(0, 1), disks={"data": "loop1"})
    build.cpu("nosql1", 0.1, 0.05, cores=(0, 1)).device("nosql1", "loop1", found)
    build.closed("burst", "nosql-burst", 16).served("burst", "record_write", found).generator()
    assert answer(analyse(build.run())) == (kind, "nosql", "data")


# ---- what only looks like a limit -----------------------------------------------------------------


def test_evenly_arriving_writes_are_no_limit() -> None:
    """A flat rate on an idle disk under an even schedule names no limit."""
    build = Build().host("nosql1", "nosql", cores=(0, 1), disks={"data": "sdb"})
    build.cpu("nosql1", 0.1, 0.05, cores=(0, 1))
    build.disk("nosql1", "sdb", 150, 0.0005, noise=0.0, busy=0.07, outstanding_noise=0.2)
    build.open("burst", "nosql-burst", 150).operations("burst", "record_write", 150, 0.002, noise=0.0)
    assert answer(analyse(build.generator(burst=(150.0, 150.0)).run())) == ("not_reached",)


def test_a_server_held_by_its_cpu_writes_evenly_too() -> None:
    """A CPU quota makes commits flat while the log idles: the CPU is named."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.4, 0.99, cores=(0, 1), pressure=0.8)
    build.metric("sql1", "cpu.cores", 0.3, "tier:sql", noise=0.0)
    build.disk("sql1", "sdb", 400, 0.0004, noise=0.002, busy=0.16, outstanding_noise=0.1)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 400, 0.02, noise=0.002)
    assert answer(analyse(build.generator().run())) == ("cpu", "sql", None)


def test_a_disk_that_gets_more_done_after_a_checkpoint_is_not_warming_up() -> None:
    """A rate that rises after a checkpoint ends is not reported as warming up."""
    late = np.arange(44) >= 24
    found = _queued(np.where(late, 210.0, 160.0), np.where(late, 0.99, 0.65))
    assert found[0] != "disk_warm_up"


def test_a_disk_that_warms_up_while_a_checkpoint_is_written() -> None:
    """Warming up is found during a checkpoint, because seconds of the same I/O mix are compared."""
    second = np.arange(44)
    writing = (second >= 6) & (second < 17)
    found = _queued(600 * np.minimum(1, 0.25 + 0.75 * second / 36), np.where(writing, 0.46, 0.88))
    assert found == ("disk_warm_up", "sql", "data")


def _queued(done: Floats, reads_ratio: Floats) -> tuple[str | None, ...]:
    """Return the answer for a data disk with 27 I/Os outstanding, by IOPS and share of reads."""
    build = Build(44, 0).host("sql1", "sql", cores=(0, 1), disks={"log": "sda", "data": "sdb"})
    build.cpu("sql1", 0.2, cores=(0, 1)).disk("sql1", "sda", 5, 0.001)
    for way, share in (("read", reads_ratio), ("write", 1 - reads_ratio)):
        rate = build.noisy(done * share, 0.02)
        build.metric("sql1", f"disk.{way}s_per_s", rate, "sdb", 0.0)
        build.metric("sql1", f"disk.{way}_bytes_per_s", rate * 8192, "sdb", 0.0)
        build.metric("sql1", f"disk.{way}_latency_s", 27 / done, "sdb", 0.02, rate)
    build.metric("sql1", "disk.outstanding", 27.0, "sdb", 0.02).metric(
        "sql1", "disk.busy_ratio", 1.0, "sdb", 0.0
    )
    build.metric("sql1", "pressure.io_ratio", 0.6, noise=0.02)
    build.closed("orders", "sql-mix", 28).operations(
        "orders", "point_read", done * reads_ratio, 28 / (done * reads_ratio), noise=0.02
    )
    build.metric("generator1", "generator.users", 28.0, "orders", 0.0)
    return answer(analyse(build.generator().run()))
