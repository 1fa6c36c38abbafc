"""Verdicts on runs whose truth is known: the right resource, in the right words, with due confidence."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build, crawl_bound_by_search, shared_farm, utc

from pinchpoint.analysis import Verdict, analyse, exit_status
from pinchpoint.analysis.summary import inconclusive_words
from pinchpoint.analysis.verdict import Suspect
from pinchpoint.store.read import StoredRun

SEEDS = (1, 2, 3, 4)


def judged(build: Build) -> Verdict:
    verdict = analyse(build.run())
    json.dumps(verdict.to_json(), allow_nan=False)
    return verdict


def named(verdict: Verdict) -> tuple[str | None, ...]:
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    return found.kind, found.tier, found.host, found.confidence


# ---- CPU ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shared_core_is_named_with_the_tier_that_uses_most_of_it(seed: int) -> None:
    """The machine's CPU is counted once, blamed on search, and those who share it are named."""
    verdict = judged(crawl_bound_by_search(seed))
    assert named(verdict) == ("cpu", "search", "search1", "medium")
    assert verdict.bottleneck is not None
    assert set(verdict.bottleneck.shared_with) == {"web", "sql", "nosql"}
    assert verdict.bottleneck.uses[0]["tier"] == "search"
    assert verdict.summary.startswith("The shared host's CPU gives way first")
    assert "most of it" in verdict.summary
    assert "is used by search" in verdict.summary
    assert "Confidence is medium" in verdict.summary
    assert {fact.evidence for fact in verdict.bottleneck.evidence} >= {"E1", "E4"}
    assert verdict.headroom_ratio == pytest.approx(0.03, abs=0.03)
    assert exit_status(verdict) == 0


def two_machines(search_busy: float, seed: int = 1, pressure: float | None = 0.9) -> Build:
    build = Build(seed=seed)
    build.host("app3", "search", machine="b", cores=(0, 1))
    build.host("sql1", "sql", machine="a", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("app3", search_busy, cores=(0, 1), pressure=pressure)
    build.cpu("sql1", 0.35, cores=(0, 1)).disk("sql1", "sdb", 120, 0.002)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:site", 40, 0.4)
    return build.generator()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dedicated_machine_is_named_without_sharing(seed: int) -> None:
    """A tier alone on its machine: no process figures are needed to blame it."""
    verdict = judged(two_machines(0.96, seed))
    assert named(verdict) == ("cpu", "search", "app3", "medium")
    assert "The CPU of the search tier (app3) gives way first" in verdict.summary
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.shared_with == ()
    assert verdict.next is not None
    assert (verdict.next.kind, verdict.next.tier) == ("cpu", "sql")
    assert verdict.next.gain_ratio == pytest.approx(0.96 / 0.35 - 1, rel=0.1)


def test_without_a_witness_confidence_is_low() -> None:
    """CPU at its limit with no pressure figures is one kind of evidence: low."""
    verdict = judged(two_machines(0.96, pressure=None))
    assert named(verdict) == ("cpu", "search", "app3", "low")
    assert verdict.bottleneck is not None
    assert "only one kind of evidence" in verdict.bottleneck.why_not_more


def test_one_thread_at_its_limit_while_the_pool_is_not() -> None:
    """A single-threaded server on four cores is cpu_thread, not cpu."""
    build = Build().host("nosql1", "nosql", cores=(0, 1, 2, 3))
    build.cpu("nosql1", 0.34, 0.34, cores=(0, 1, 2, 3), pressure=0.1)
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", noise=0.005)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    verdict = judged(build.generator())
    assert named(verdict) == ("cpu_thread", "nosql", "nosql1", "low")
    assert "one thread of the nosql tier (valkey-server on nosql1)" in verdict.summary.lower()


def test_one_thread_on_a_single_core_is_the_pool() -> None:
    """With one core the thread's limit is the core's: kind cpu."""
    build = Build().host("nosql1", "nosql", cores=(0,)).cpu("nosql1", 0.98, 0.97, pressure=0.9)
    build.metric("nosql1", "cpu.busy_ratio", 0.97, "thread:valkey-server", noise=0.005)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    assert named(judged(build.generator()))[:3] == ("cpu", "nosql", "nosql1")


def test_an_allowance_below_the_cores_is_a_limit_of_its_own() -> None:
    """A tier at its quota while the cores have room: its CPU, though no core is full."""
    build = Build().host("search1", "search", cores=(0, 1)).cpu("search1", 0.3, 0.97, cores=(0, 1))
    build.metric("search1", "cpu.cores", 0.5, "tier:search", noise=0.0)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 40, 0.2)
    verdict = judged(build.generator())
    assert named(verdict) == ("cpu", "search", "search1", "low")
    assert "is allowed" in verdict.summary


def test_cpu_that_other_programs_use_is_said() -> None:
    """A machine full of somebody else's work: what would limit the farm without it, nobody has seen."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.99, 0.25, cores=(0, 1), pressure=0.9)
    build.closed("orders", "sql-mix", 4).operations("orders", "log_append", 400, 0.01)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive"
    assert "of the CPU of sql1 was used by programs that are not the farm's" in verdict.summary
    assert verdict.candidates[0].kind == "cpu"
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("End the programs on sql1")


def test_a_tier_that_uses_little_is_not_blamed_for_one_that_was_not_watched() -> None:
    """Shared cores are full, one tier uses 4 % of them, nobody saw the other: no name, and what to watch."""
    build = Build().host("sql1", "sql", cores=(0,)).host("nosql1", "nosql", cores=(0,))
    build.cpu("sql1", 0.97, 0.04, pressure=0.9)
    build.closed("orders", "sql-mix", 4).operations("orders", "log_append", 400, 0.01)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive"
    assert "others than were watched: nosql, or programs that are not the farm's" in verdict.summary
    assert verdict.experiment == "Watch the processes of nosql on sql1, and run the same plan again."


def test_nobody_is_blamed_for_cores_whose_use_was_not_measured() -> None:
    """Shared cores without process figures: the resource is named, with low confidence, and it says why."""
    build = shared_farm(Build())
    for host in ("web1", "search1", "sql1", "nosql1"):
        build.cpu(host, 0.97, pressure=0.9)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 80, 0.1)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == "low"
    assert "who uses most was not measured" in verdict.summary


# ---- disks --------------------------------------------------------------------------------------


def log_disk(
    caps: dict[str, float] | None,
    noise: float = 0.004,
    seed: int = 1,
    writes: float = 500.0,
    latency_s: float = 0.008,
    busy: float = 1.0,
    pressure: float = 0.85,
    commit_s: float = 0.016,
    role: str = "log",
) -> Build:
    """A closed load of commits on one host with its own disk; 8 users."""
    build = Build(seed=seed)
    limits = {role: caps} if caps else None
    build.host("sql1", "sql", cores=(0, 1), disks={role: "loop1", "os": "vda"}, limits=limits)
    build.cpu("sql1", 0.3, 0.25, cores=(0, 1)).disk("sql1", "vda", 5, 0.001, busy=0.02, pressure=pressure)
    build.disk("sql1", "loop1", writes, latency_s, noise, busy=busy, pressure=pressure)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 8 / commit_s, commit_s)
    return build.generator()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_at_its_declared_cap(seed: int) -> None:
    """Flat, and at the declared cap: disk_cap; one load level gives medium at most."""
    verdict = judged(log_disk({"iops": 500.0}, seed=seed))
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.role, verdict.bottleneck.instance) == ("log", "loop1")
    assert "The log disk of the sql tier (sql1, loop1) gives way first: I/O held at 50" in verdict.summary
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
    """The disk is still the one that is named; a wrong declaration costs confidence, and is said."""
    verdict = judged(log_disk({"iops": declared} if declared else None, seed=seed))
    assert named(verdict) == ("disk_cap", "sql", "sql1", confidence)
    assert verdict.bottleneck is not None
    told = any(
        "the declared limit, which is therefore wrong" in fact.fact for fact in verdict.bottleneck.evidence
    )
    assert told == (declared is not None)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_idles_a_little_at_its_cap_does_not_contradict_it(seed: int) -> None:
    """Its sender works a moment on what came back, and the regulator lets it make up for that."""
    verdict = judged(log_disk({"iops": 496.5}, latency_s=0.014, busy=0.92, seed=seed))
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")
    assert verdict.bottleneck is not None
    assert not any("therefore wrong" in fact.fact for fact in verdict.bottleneck.evidence)


@pytest.mark.parametrize("declared", [None, 190.0, 760.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_device_without_flatness(declared: float | None, seed: int) -> None:
    """I/O stays though the queue moves, with a device's spread: disk_device, whatever is declared."""
    caps = {"iops": declared} if declared else None
    build = log_disk(caps, noise=0.08, seed=seed, writes=380.0, latency_s=0.04, commit_s=0.08)
    verdict = judged(build)
    assert named(verdict)[:3] == ("disk_device", "sql", "sql1")
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.confidence == ("low" if declared == 190.0 else "medium")


@pytest.mark.parametrize("declared", [None, 500.0, 1000.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_burst_credits_that_run_out(declared: float | None, seed: int) -> None:
    """I/O falls from 3,500 to 500 and holds there, with as much waiting: not merely a capped disk."""
    level = np.where(np.arange(130) < 60, 3500.0, 500.0)
    build = Build(measure_s=120, seed=seed).host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"})
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"]["limits"] = {"iops": declared}
    build.cpu("sql1", 0.3, cores=(0, 1))
    build.disk("sql1", "loop1", level, 8 / level, 0.004, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", level / 2, 16 / level)
    verdict = judged(build.generator())
    assert named(verdict)[:3] == ("disk_burst_exhausted", "sql", "sql1")
    assert "fell from 3," in verdict.summary


def test_a_disk_that_warms_up() -> None:
    """I/O rises with no more of it waiting: the disk is not at its speed yet."""
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
    """Operations wait for reads of constant latency, and more at once got more done: disk_concurrency."""
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


def test_a_cap_in_units_counts_large_ios_several_times() -> None:
    """A cap of 500 in units of 8 KiB is 62.5 I/Os of 64 KiB; a byte cap is found likewise."""
    build = Build().host(
        "sql1", "sql", disks={"log": "sdb"}, limits={"log": {"iops": 500.0, "io_unit_bytes": 8192.0}}
    )
    build.cpu("sql1", 0.3).disk("sql1", "sdb", 62.5, 0.05, 0.004, busy=1.0, pressure=0.9, size_bytes=65536)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 100, 0.08)
    verdict = judged(build.generator())
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")

    build = Build().host(
        "sql1", "sql", disks={"log": "sdb"}, limits={"log": {"bytes_per_s": 1e8, "iops": 5e4}}
    )
    build.cpu("sql1", 0.3).disk("sql1", "sdb", 1000, 0.01, 0.004, busy=1.0, pressure=0.9, size_bytes=1e5)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 400, 0.02)
    verdict = judged(build.generator())
    assert named(verdict) == ("disk_cap", "sql", "sql1", "medium")
    assert "data held at 100 MB per second" in verdict.summary


@pytest.mark.parametrize("seed", SEEDS)
def test_a_busy_disk_with_low_latency_is_not_blamed(seed: int) -> None:
    """Busy 1.0 says nothing: at 0.3 ms a write the disk is fine, so nothing is used up."""
    build = log_disk(None, 0.05, seed, writes=3000.0, latency_s=0.0003, commit_s=0.002, pressure=0.3)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert verdict.bottleneck is None
    assert verdict.experiment is not None
    assert "Double the users of orders (8 to 16)" in verdict.experiment


@pytest.mark.parametrize("caps", [None, {"iops": 2000.0}, {"iops": 4000.0}, {"iops": 1000.0}])
def test_a_log_disk_that_commits_wait_for(caps: dict[str, float] | None) -> None:
    """35 ms a write, no cap near, most of the commit's time: disk_latency, medium at most."""
    build = log_disk(caps, 0.06, writes=28.0, latency_s=0.035, commit_s=0.045, busy=0.97, pressure=0.4)
    verdict = judged(build)
    assert named(verdict) == ("disk_latency", "sql", "sql1", "medium")
    assert verdict.headroom_ratio is None
    assert "of the time of orders" in verdict.summary


def test_a_flush_is_part_of_the_wait() -> None:
    """A verified device: one durable write is the write and the flush."""
    build = log_disk(None, 0.06, writes=100.0, latency_s=0.001, commit_s=0.016, busy=0.9, pressure=0.6)
    build.metric("sql1", "disk.flush_latency_s", 0.009, "loop1", weight=np.full(build.seconds, 100.0))
    verdict = judged(build)
    assert named(verdict)[0] == "disk_latency"
    assert re.search(r"a write there takes (9\.|10)", verdict.summary), "1 ms of write and 9 ms of flush"


def test_a_slow_log_under_an_open_load_that_is_served_is_no_bottleneck() -> None:
    """Commits wait for the disk, but the schedule sets the pace: nothing was reached."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", 0.2)
    build.disk("sql1", "sdb", 20, 0.012, 0.1, busy=0.25)
    build.open("orders", "sql-mix", 20).operations("orders", "log_append", 20, 0.014)
    verdict = judged(build.generator(orders=(20.0, 20.0)))
    assert verdict.outcome == "not_reached"


def data_disk(caps: dict[str, float] | None, seed: int = 1, cpu: float = 0.3) -> Build:
    """A data disk full of writes, while commits go to a fast log."""
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
    """Slow checkpoint writes that nothing waits for are a candidate alone, and no rival to a full CPU."""
    alone = judged(data_disk(None, seed))
    assert alone.outcome == "inconclusive"
    assert [candidate.role for candidate in alone.candidates] == ["data"]
    with_cpu = judged(data_disk(None, seed, cpu=0.96))
    assert named(with_cpu) == ("cpu", "sql", "sql1", "medium")


def test_reads_of_a_data_disk_are_not_demoted() -> None:
    """Reads are waited for: the same disk, mostly read, is the bottleneck."""
    build = Build().host("sql1", "sql", disks={"log": "sdb", "data": "sdc"}).cpu("sql1", 0.3)
    build.disk("sql1", "sdb", 100, 0.0004, busy=0.1)
    build.disk("sql1", "sdc", 50, 0.05, 0.08, reads=250, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 16).operations("orders", "point_read", 250, 0.064)
    assert named(judged(build.generator())) == ("disk_device", "sql", "sql1", "medium")


def test_a_device_that_serves_several_roles_cannot_be_told_apart() -> None:
    """All roles on one device: it is named once, with low confidence, and the roles are listed."""
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
    """A full CPU and a disk at its cap: the deeper is named, the other is the runner-up, confidence low."""
    build = log_disk({"iops": 500.0})
    build.host("app3", "search", machine="b", cores=(0,)).cpu("app3", 0.98, pressure=0.95)
    build.closed("crawl", "full-crawl", 4).operations("crawl", "document:site", 40, 0.1)
    verdict = judged(build)
    assert named(verdict) == ("disk_cap", "sql", "sql1", "low")
    assert verdict.runner_up is not None
    assert (verdict.runner_up.kind, verdict.runner_up.host) == ("cpu", "app3")
    assert "the CPU of the search tier (app3) is used up as well" in verdict.summary


# ---- nothing is used up -------------------------------------------------------------------------


def healthy(seed: int = 1) -> Build:
    build = Build(seed=seed).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.22, 0.2, cores=(0, 1)).disk("sql1", "sdb", 150, 0.001)
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.003)
    return build.generator(orders=(100.0, 100.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_farm_at_low_open_load_gives_a_lower_bound(seed: int) -> None:
    """Nothing gave way: not_reached, the served rate is a lower bound, the most used part is named."""
    verdict = judged(healthy(seed))
    assert verdict.outcome == "not_reached"
    assert verdict.bottleneck is None
    assert verdict.capacity_at_least_per_s["orders"] == pytest.approx(100, rel=0.05)
    assert verdict.summary.startswith("Nothing gave way at this load: the farm served")
    assert verdict.next is not None
    assert verdict.next.tier == "sql"
    assert exit_status(verdict) == 0


def test_a_missed_objective_is_said_and_exits_with_1() -> None:
    """Objectives are met, missed, or not measured; one missed gives exit status 1 and no all-clear."""
    build = (
        healthy().objective(scenario="orders", p95_s=0.001).objective(scenario="orders", errors_ratio=0.01)
    )
    build.objective(scenario="orders", throughput_per_s=90.0)
    build.open("reports", "sql-mix", 1).objective(scenario="reports", p99_s=1.0)
    verdict = judged(build)
    assert [row["result"] for row in verdict.objectives] == ["missed", "met", "met", "not measured"]
    assert verdict.outcome == "inconclusive"
    assert exit_status(verdict) == 1


def test_a_closed_load_with_long_think_time_does_not_press() -> None:
    """Users who mostly think set the pace themselves: not_reached."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.1)
    build.closed("orders", "sql-mix", 10, think_s=1.0).operations(
        "orders", "log_append", 9.95, 0.005, noise=0.02
    )
    assert judged(build.generator()).outcome == "not_reached"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_closed_load_that_is_too_slow_presses_however_long_its_users_think(seed: int) -> None:
    """They think 0.5 s and want 50 ms; nine tenths of what they get is a log of 60 ms."""
    build = (
        Build(seed=seed)
        .host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
        .cpu("sql1", 0.1, cores=(0, 1))
    )
    build.disk("sql1", "sdb", 16, 0.06, 0.1, busy=0.95, pressure=0.9)
    build.closed("orders", "sql-mix", 20, think_s=0.5).objective(scenario="orders", p95_s=0.05)
    verdict = judged(build.operations("orders", "log_append", 33, 0.105, noise=0.02).generator())
    assert named(verdict)[:3] == ("disk_latency", "sql", "sql1")


def test_thinking_users_who_are_served_too_slowly_are_not_served() -> None:
    """Nothing is used up, and the objective is missed: no all-clear, and what would tell more."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.1).objective(scenario="orders", p95_s=0.05)
    build.closed("orders", "sql-mix", 10, think_s=1.0)
    verdict = judged(build.operations("orders", "log_append", 8.3, 0.2, noise=0.02).generator())
    assert verdict.outcome == "inconclusive"
    assert "orders missed an objective, yet nothing that was measured is used up" in verdict.summary
    assert verdict.experiment is not None
    assert "at half its load" in verdict.experiment


def test_more_throughput_than_was_asked_for_is_no_fault_of_the_farm() -> None:
    """150 a second are wanted and 100 scheduled, all of which are served: missed, and nothing gave way."""
    verdict = judged(healthy().objective(scenario="orders", throughput_per_s=150.0))
    assert verdict.outcome == "not_reached"
    assert exit_status(verdict) == 1


# ---- gates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpu", [0.93, 0.99])
def test_a_generator_at_its_core_s_limit_invalidates(cpu: float) -> None:
    """A load worker at 90 % of its core measures itself: invalid, generator, exit status 3."""
    build = crawl_bound_by_search()
    build.generator(cpu=cpu, host="generator2")
    verdict = judged(build)
    assert verdict.outcome == "invalid"
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.kind, verdict.bottleneck.host) == ("generator", "generator2")
    assert "says nothing about the farm" in verdict.summary
    assert exit_status(verdict) == 3


def test_a_generator_that_is_full_now_and_then_says_how_often() -> None:
    """A core full in a third of the seconds is too late in those, whatever its mean is."""
    now_and_then = np.where(np.arange(70) % 3 == 0, 0.98, 0.15)
    verdict = judged(crawl_bound_by_search().generator(cpu=now_and_then, host="generator2"))
    assert verdict.outcome == "invalid"
    assert re.search(
        r"43 % of the core it may use, and 90 % or more of it for 3\d % of the time", verdict.summary
    )


def test_a_generator_at_its_quota_s_limit_invalidates() -> None:
    """A container that may use a twentieth of a core holds its load worker back from there on."""
    build = crawl_bound_by_search().generator(cpu=0.049, host="generator2")
    verdict = judged(build.metric("generator2", "generator.allowed_cores", 0.05, noise=0.0))
    assert verdict.outcome == "invalid"
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.host == "generator2"
    assert "98 % of the core it may use" in verdict.summary


def test_a_generator_that_is_late_itself_blames_nothing_outside() -> None:
    """What takes 400 ms by a clock that comes 250 ms late may be the generator's own: no name, what to do."""
    build = Build().host("search1", "search", cores=(0, 1)).cpu("search1", 0.1, 0.1, cores=(0, 1))
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:far", 16, 0.5)
    build.operations("crawl", "document:far/fetch", 16, 0.4)
    verdict = judged(build.generator(loop_lag_s=0.25))
    assert verdict.outcome == "inconclusive"
    assert [one.kind for one in verdict.candidates] == ["external"]
    assert "the load generator comes" in verdict.summary
    assert verdict.summary.endswith("A candidate is the way to far.")
    assert verdict.experiment == "Give the load generator more CPU, and run the same plan again."


def test_a_quota_of_several_cores_leaves_a_generator_one() -> None:
    """One process uses one core: a quota of eight is not what ends first."""
    build = crawl_bound_by_search().generator(cpu=0.95, host="generator2")
    verdict = judged(build.metric("generator2", "generator.allowed_cores", 8.0, noise=0.0))
    assert verdict.outcome == "invalid"


def lagging(cpu: float, started: float) -> Build:
    build = Build().host("sql1", "sql").cpu("sql1", cpu, cpu, pressure=cpu)
    build.open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", started, 0.03, dropped=200 - started)
    return build.generator(orders=(200.0, started))


def test_operations_not_started_while_the_farm_has_room_invalidate() -> None:
    """Started ÷ scheduled below 0.95 with a farm that idles is the generator's fault."""
    verdict = judged(lagging(0.3, 150.0))
    assert verdict.outcome == "invalid"
    assert "only 75 % of the scheduled operations of orders were started" in verdict.summary


def test_operations_not_started_because_the_farm_is_full_are_the_farm_s() -> None:
    """The same shortfall with a full CPU is the bottleneck's doing: no invalid run, but a warning."""
    verdict = judged(lagging(0.98, 150.0))
    assert named(verdict)[:2] == ("cpu", "sql")
    assert any("only 75 %" in warning for warning in verdict.warnings)


def test_without_the_generators_count_dropped_operations_tell() -> None:
    """No scheduled/started samples: what was dropped says that the schedule was not kept."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 200)
    build.operations("orders", "log_append", 150, 0.03, dropped=50.0)
    assert judged(build).outcome == "invalid"


def test_send_lag_invalidates_only_beyond_its_limit() -> None:
    """p99 send lag is held against max(5 ms, a tenth of the p99 response)."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 100, 0.1)
    assert judged(build.generator(send_lag_s=0.008, orders=(100.0, 100.0))).outcome == "not_reached"
    build = Build().host("sql1", "sql").cpu("sql1", 0.2).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 100, 0.005)
    verdict = judged(build.generator(send_lag_s=0.008, orders=(100.0, 100.0)))
    assert verdict.outcome == "invalid"
    assert "too late" in verdict.summary


@pytest.mark.parametrize(("users", "valid"), [(8, True), (12, False)])
def test_little_s_law_on_closed_load(users: int, valid: bool) -> None:
    """160/s of 50 ms are 8 users' work; 12 users cannot have done only that."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, 0.9, pressure=0.9)
    build.closed("orders", "sql-mix", users).operations("orders", "log_append", 160, 0.05, noise=0.01)
    verdict = judged(build.generator())
    assert (verdict.outcome != "invalid") == valid
    if not valid:
        assert "Little's law" in verdict.summary


def test_a_crawl_whose_users_wait_for_the_frontier_keeps_little_s_law() -> None:
    """Crawl sessions wait without an operation: fewer operations than users is no fault of the generator."""
    build = crawl_bound_by_search()
    build.manifest["plan"]["scenarios"]["crawl"]["load"]["users"] = 32
    assert judged(build).outcome == "bottleneck"


def test_a_client_s_own_work_shows_where_operations_are_short() -> None:
    """4 users at 2,500/s of 1.5 ms leave 0.1 ms per operation to the client itself: no fault."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, 0.9, pressure=0.9).closed("orders", "sql-mix", 4)
    build.operations("orders", "log_append", 2500, 0.0015, noise=0.01)
    assert named(judged(build.generator()))[:2] == ("cpu", "sql")


def test_sessions_that_wait_to_reconnect_are_no_fault_of_the_generator() -> None:
    """Failures of the farm explain users without operations: no invalid run."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, 0.9, pressure=0.9).closed("orders", "sql-mix", 12)
    build.operations("orders", "log_append", 160, 0.05, noise=0.01)
    build.operations("orders", "log_append", 5, 0.001, outcome="connection_lost", noise=0.01)
    assert named(judged(build.generator()))[:2] == ("cpu", "sql")


def test_seconds_in_which_nothing_was_started_count() -> None:
    """A generator that stalls sends no 'started' row for those seconds: they count as 0."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.2, 0.2).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 80, 0.003).generator(orders=(100.0, 100.0))
    build.samples = [
        row for row in build.samples if row[3] != "generator.started_per_s" or (row[0] // 10**9) % 5
    ]
    verdict = judged(build)
    assert verdict.outcome == "invalid"
    assert "only 80 % of the scheduled operations" in verdict.summary


def test_a_host_without_processes_is_no_pool_of_cores() -> None:
    """A folder of files on the shared machine uses no cores: it is no rival to the farm's core."""
    build = crawl_bound_by_search()
    build.host("files1", "files", disks={"content": "vda"})
    build.manifest["hosts"]["files1"]["tier_cores"] = None
    build.metric("files1", "cpu.busy_ratio", 0.95, "1").metric("files1", "cpu.busy_ratio", 0.96)
    verdict = judged(build)
    assert named(verdict) == ("cpu", "search", "search1", "medium")
    assert verdict.runner_up is None


@pytest.mark.parametrize("how", ["event", "sample"])
def test_a_recorder_that_failed_invalidates(how: str) -> None:
    """What was not recorded is no evidence."""
    build = crawl_bound_by_search()
    if how == "event":
        build.event("recorder_failed", 30, worker="generator1", why="disk full")
    else:
        build.metric(
            "generator2", "generator.recorder_ok", np.where(np.arange(build.seconds) < 40, 1.0, 0.0), noise=0
        )
    verdict = judged(build)
    assert verdict.outcome == "invalid"
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.resource == "recorder"
    assert exit_status(verdict) == 3


def test_a_generator_that_takes_the_farm_s_only_core_invalidates() -> None:
    """On one core for all, a load generator that uses most of it measures itself."""
    build = shared_farm(Build())
    build.manifest["generators"] = [{"worker": "generator1", "cores": [0]}]
    for host, share in (("web1", 0.1), ("search1", 0.15), ("sql1", 0.1), ("nosql1", 0.02)):
        build.cpu(host, 0.98, share, pressure=0.9)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 80, 0.1)
    verdict = judged(build.generator(cpu=0.6))
    assert verdict.outcome == "invalid"
    assert "cores of its own" in verdict.summary


# ---- what is missing ----------------------------------------------------------------------------


def test_a_host_that_was_not_seen_lowers_confidence() -> None:
    """A collector that failed: the bottleneck that is seen is named with low confidence."""
    build = two_machines(0.96)
    build.samples = [row for row in build.samples if row[2] != "sql1"]
    verdict = judged(build)
    assert named(verdict) == ("cpu", "search", "app3", "low")
    assert "sql1 was not seen" in verdict.warnings


def test_where_nobody_saw_the_farm_the_experiment_is_to_watch_it() -> None:
    """No samples at all: inconclusive, CPU not measured, watch the farm."""
    build = Build().host("sql1", "sql").host("app3", "search", machine="b")
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 160, 0.05)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert "(not measured)" in verdict.summary
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Watch the whole farm")


def test_nulls_are_not_zero() -> None:
    """Null samples are 'not measured' everywhere: no figure is made up from them."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"})
    for metric in ("writes_per_s", "reads_per_s", "write_latency_s", "busy_ratio", "outstanding"):
        build.metric("sql1", f"disk.{metric}", None, "sdb")
    build.metric("sql1", "cpu.busy_ratio", None).metric("sql1", "cpu.busy_ratio", None, "0")
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.003)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive", "who saw nothing cannot say that nothing gave way"
    assert verdict.capacity_at_least_per_s["orders"] == pytest.approx(100, rel=0.05)
    assert "sql1 was not seen" in verdict.summary
    row = verdict.disks[0]
    assert row["iops_mean"] is row["write_latency_mean_s"] is None
    assert row["why_not_measured"] == "no samples of this device"
    assert verdict.cpus[0]["busy_mean_ratio"] is None


def test_steal_lowers_confidence() -> None:
    """More than 5 % of steal: somebody else's load is in the figures."""
    build = two_machines(0.96).metric("app3", "cpu.steal_ratio", 0.12)
    build.samples = [row for row in build.samples if not (row[3] == "cpu.steal_ratio" and row[5] == 0.0)]
    verdict = judged(build)
    assert named(verdict)[3] == "low"
    assert any("steal" in warning for warning in verdict.warnings)


def test_an_empty_run_is_inconclusive() -> None:
    """No operation, no sample: a verdict all the same, which says so."""
    verdict = judged(shared_farm(Build()).closed("crawl", "full-crawl", 4))
    assert verdict.outcome == "inconclusive"
    assert "no operation was recorded" in verdict.summary
    assert verdict.scenarios["crawl"]["throughput_per_s"] == 0.0
    assert verdict.scenarios["crawl"]["service_p95_s"] is None


def test_a_run_in_which_everything_failed_tells_no_capacity() -> None:
    """All failures are the finding, not a capacity; the run is not invalid."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, pressure=0.9).closed("orders", "sql-mix", 8)
    build.operations("orders", "log_append", 160, 0.05, outcome="connection_lost")
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive"
    assert "all operations failed (connection_lost)" in verdict.summary
    assert verdict.scenarios["orders"]["error_ratio"] == 1.0


def test_a_failed_source_excludes_itself_only() -> None:
    """One scenario with nothing but failures is said; the others' verdict stands."""
    build = crawl_bound_by_search().open("orders", "sql-mix", 10)
    build.operations("orders", "log_append", 10, 0.001, outcome="disk_full")
    verdict = judged(build)
    assert named(verdict)[:2] == ("cpu", "search")
    assert any("orders: all operations failed (disk_full)" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("seconds", [0, 1, 3, 9])
def test_a_run_of_seconds_names_nobody(seconds: int) -> None:
    """Below ten seconds nothing is concluded, whatever the counters show."""
    verdict = judged(crawl_bound_by_search(measure_s=seconds))
    assert verdict.outcome == "inconclusive"
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Measure for at least a minute")


def test_a_short_run_has_low_confidence() -> None:
    """Fewer than 30 samples: low, and it says how many there were."""
    verdict = judged(crawl_bound_by_search(measure_s=20))
    assert named(verdict)[3] == "low"
    assert verdict.bottleneck is not None
    assert "only 20 samples, 30 are needed" in verdict.bottleneck.why_not_more


def test_an_interrupted_run_is_judged_on_what_was_measured() -> None:
    """No end of the phase: the last record ends it, and the verdict says that the run is incomplete."""
    build = crawl_bound_by_search()
    build.manifest["state"] = "interrupted"
    build.manifest["phases"][1]["to"] = None
    verdict = judged(build)
    assert named(verdict)[:2] == ("cpu", "search")
    assert any("incomplete" in warning for warning in verdict.warnings)


def test_a_run_that_never_reached_its_measure_phase() -> None:
    """Stopped in the warm-up: inconclusive, and why."""
    build = crawl_bound_by_search()
    build.manifest["phases"] = build.manifest["phases"][:1]
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert "its measure phase never began" in verdict.summary


def test_a_crashed_tier_is_said_and_lowers_confidence() -> None:
    """A tier that died during the run: its absence is in the figures."""
    verdict = judged(
        crawl_bound_by_search().event("tier_crashed", 30, tier="web", host="web1", log_tail="boom")
    )
    assert named(verdict)[3] == "low"
    assert any("web tier (web1) crashed" in warning for warning in verdict.warnings)


def test_a_resource_that_comes_and_goes_is_a_candidate_only() -> None:
    """CPU near 90 % with long swings: resamples disagree, so nobody is named."""
    build = two_machines(0.5)
    build.samples = [row for row in build.samples if row[2] != "app3"]
    swing = np.where((np.arange(build.seconds) // 18) % 2 == 0, 0.99, 0.815)
    verdict = judged(build.cpu("app3", swing, cores=(0, 1), pressure=0.8))
    assert verdict.outcome == "inconclusive"
    assert verdict.candidates[0].host == "app3"


# ---- published figures alone ---------------------------------------------------------------------


def test_published_disk_figures_without_cpu_samples_are_inconclusive() -> None:
    """A crawl's table with slow index disks and no CPU figure: two candidates, no invented sample."""
    build = Build(measure_s=600)
    build.host("app3", "search", machine="app3", cores=(), disks={"index": "sdc"})
    build.host("sql1", "sql", machine="sql1", cores=(), disks={"log": "L", "data": "M"})
    for host, device, latency, iops in (
        ("app3", "sdc", 0.071, None),
        ("sql1", "L", 0.0028, 187.0),
        ("sql1", "M", 0.020, 104.0),
    ):
        build.metric(host, "disk.write_latency_s", latency, device, 0.2, np.full(build.seconds, 100.0))
        build.metric(host, "disk.writes_per_s", iops, device, 0.3)
    build.closed("crawl", "full-crawl", 64).operations("crawl", "document:site", 15, 4.0)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert {(one.tier, one.resource) for one in verdict.candidates} == {("search", "cpu"), ("search", "disk")}
    assert "the CPU of app3 (not measured)" in verdict.summary
    assert "the index disk of search" in verdict.summary


# ---- blind to the answer ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "embedded",
    [
        None,
        {"tiers": ["web"], "disks": {"sql.log": {"limits": {"iops": 42}}}, "cpus": {"sql": 0.1}},
        {"disks": {"search.index": {"profile": "azure/s30", "latency_s": 9.0}}, "delays": {"web": 5.0}},
    ],
)
@pytest.mark.parametrize("make", [crawl_bound_by_search, lambda: log_disk(None), healthy])
def test_how_the_farm_was_built_changes_nothing(make: Any, embedded: dict[str, Any] | None) -> None:
    """The verdict is the same, byte for byte, whatever stands under ``embedded``."""
    run: StoredRun = make().run()
    plain = analyse(run).to_json()
    manifest = copy.deepcopy(run.manifest)
    manifest["farm"]["embedded"] = embedded
    altered = StoredRun(run.directory, manifest, run.operations, run.samples, run.events)
    assert json.dumps(analyse(altered).to_json()) == json.dumps(plain)


def test_the_same_run_gives_the_same_words() -> None:
    """Analysing twice gives the same verdict, in any order of rows; nothing is changed on the way."""
    run = crawl_bound_by_search().run()
    before = copy.deepcopy(run.manifest)
    first = analyse(run).to_json()
    order = np.random.default_rng(3).permutation(run.samples.num_rows)
    shuffled = StoredRun(run.directory, run.manifest, run.operations, run.samples.take(order), run.events)
    assert analyse(shuffled).to_json() == first
    assert run.manifest == before


def test_the_first_window_is_in_the_evidence() -> None:
    """The window is the measure phase, in UTC."""
    verdict = judged(crawl_bound_by_search())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.window == (utc(1_767_225_610), utc(1_767_225_670))


# ---- a store with one thread, as it sees itself -----------------------------------------------------


def store(seed: int = 1, **own: float) -> Build:
    """Users of a store on two cores; ``own``: what the store says of itself, ``__`` for the dot."""
    build = Build(seed=seed).host("nosql1", "nosql", cores=(0, 1), disks={"data": "sdb"})
    for name, level in own.items():
        build.metric("nosql1", f"db.{name.replace('__', '.')}", level, noise=0.004)
    build.closed("burst", "nosql-burst", 16)
    return build.metric("generator1", "generator.users", 16.0, "burst", 0.0).generator()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_whose_thread_is_full_agrees_with_what_the_kernel_counts(seed: int) -> None:
    """Its main thread at work all the time, little of it for its log: the witness of `cpu_thread`."""
    build = store(seed, main_thread__busy_ratio=0.995, aof__wait_ratio=0.05)
    build.operations("burst", "set", 20000, 0.0008).cpu("nosql1", 0.55, 0.5, cores=(0, 1))
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", 0.004)
    build.disk("nosql1", "sdb", 40, 0.0005, busy=0.05)
    verdict = judged(build)
    assert named(verdict) == ("cpu_thread", "nosql", "nosql1", "medium")
    assert verdict.bottleneck is not None
    [witness] = [fact for fact in verdict.bottleneck.evidence if fact.evidence == "E4"]
    assert witness.metric == "db.main_thread.busy_ratio"


def test_a_store_nobody_can_look_into_is_judged_by_what_it_says() -> None:
    """A managed store: no host counters; its thread is full by its own account, with low confidence."""
    build = store(main_thread__busy_ratio=0.99, aof__wait_ratio=0.02)
    verdict = judged(build.operations("burst", "set", 20000, 0.0008))
    assert named(verdict) == ("cpu_thread", "nosql", "nosql1", "low")
    assert verdict.bottleneck is not None
    assert any("was not seen" in why for why in verdict.bottleneck.why_not_more)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_that_flushes_its_log_all_the_time_waits_for_the_disk(seed: int) -> None:
    """The thread is "at work" all the time as well, but nine tenths of that is waiting for its log."""
    build = store(seed, main_thread__busy_ratio=0.99, aof__wait_ratio=0.9)
    build.operations("burst", "set", 480, 16 / 480).cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 40, 0.025, busy=0.93, pressure=0.9, outstanding_noise=0.1)
    verdict = judged(build)
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier, found.role) == ("disk_latency", "nosql", "data")
    assert any(fact.metric == "operations.service" and fact.evidence == "E4" for fact in found.evidence)


# ---- connections and interfaces ---------------------------------------------------------------------


def refused(share: float, *, asked: bool) -> Build:
    """An open load of which a share finds no connection free; ``asked``: so was the server."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.3, cores=(0, 1))
    build.disk("sql1", "sdb", 250, 0.0005).open("orders", "sql-mix", 300)
    build.operations("orders", "log_append", 300 * (1 - share), 0.004)
    build.operations("orders", "log_append", 300 * share, 0.001, outcome="too_many_connections", noise=0.01)
    if asked:
        build.metric("sql1", "db.connections_ratio", 0.995, noise=0.002)
    return build.generator(orders=(300.0, 300.0))


def test_refused_connections_are_a_pool_that_is_used_up() -> None:
    """Connections all in use, and 5 % of the operations refused one, though CPU and disk have room."""
    verdict = judged(refused(0.05, asked=True))
    assert named(verdict)[:3] == ("pool", "sql", "sql1")


def test_refusals_are_evidence_also_where_the_server_was_not_asked() -> None:
    """Its own view is missing: the refusals remain, one kind of evidence; never `not_reached`."""
    verdict = judged(refused(0.05, asked=False))
    assert named(verdict) == ("pool", "sql", "sql1", "low")
    assert "of the operations are refused one" in verdict.summary


def full_interface(*, witness: bool, used: float = 0.97) -> Build:
    """Users of a store behind an interface, so much of it ``used``; ``witness``: its tier is seen idle."""
    build = Build().host("nosql1", "nosql", cores=(0, 1)).closed("burst", "nosql-burst", 16)
    build.cpu("nosql1", 0.1, 0.08 if witness else None, cores=(0, 1))
    build.metric("nosql1", "net.speed_bytes_per_s", 2e6, "eth0", 0.0)
    build.metric("nosql1", "net.received_bytes_per_s", used * 2e6, "eth0", 0.004)
    build.metric("nosql1", "net.sent_bytes_per_s", 2e4, "eth0", 0.01)
    build.operations("burst", "set", 320, 0.05).metric("generator1", "generator.users", 16.0, "burst", 0.0)
    return build.generator()


def test_a_full_interface_has_its_idle_tier_for_a_witness() -> None:
    """Two kinds of evidence: it carries what it can, and the store behind it has nothing to do."""
    assert named(judged(full_interface(witness=True))) == ("network", "nosql", "nosql1", "medium")


def test_without_that_witness_a_full_interface_is_low() -> None:
    """Nobody saw what the store does: one kind of evidence."""
    assert named(judged(full_interface(witness=False))) == ("network", "nosql", "nosql1", "low")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_read_every_five_seconds_is_a_candidate_only(seed: int) -> None:
    """Twelve readings tell that commits wait for the log disk, not whether it is at a limit or just slow."""
    build = store(seed, main_thread__busy_ratio=0.99, aof__wait_ratio=0.9)
    build.operations("burst", "set", 480, 16 / 480).cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 40, 0.025, busy=0.93, pressure=0.9, outstanding_noise=0.1)
    build.samples = [row for row in build.samples if row[3][:5] != "disk." or row[0] // 10**9 % 5 == 0]
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert verdict.candidates[0].role == "data"
    assert "the data disk of nosql1 was read 12 times only" in verdict.summary


@pytest.mark.parametrize("started", [900.0, 700.0])
def test_nothing_is_called_healthy_beside_a_busy_disk_that_was_hardly_read(started: float) -> None:
    """The log is busy all the time and read every five seconds: that may be its limit, all served or not."""
    build = (
        Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.1, 0.1, cores=(0, 1))
    )
    build.disk("sql1", "sdb", 95, 0.01, busy=0.98, pressure=0.8)
    build.open("orders", "sql-mix", 900).operations("orders", "log_append", started, 0.008)
    build.samples = [row for row in build.samples if row[3][:5] != "disk." or row[0] // 10**9 % 5 == 0]
    verdict = judged(build.generator(orders=(900.0, started)))
    assert verdict.outcome == "inconclusive"
    assert "the log disk of sql1 was read 12 times only" in verdict.summary


def test_nothing_outside_is_blamed_beside_an_interface_that_is_nearly_full() -> None:
    """What users wait for on the way to a store may be the interface in front of it: 85 % is no room."""
    verdict = judged(full_interface(witness=True, used=0.85))
    assert verdict.outcome == "inconclusive"


def starved_of_sessions(*, watched: bool) -> Build:
    """Half of the schedule is not started, as every session waits; ``watched``: the database told of it."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.2, cores=(0, 1))
    build.manifest["collectors"] = [{"kind": "postgres", "hosts": ["sql1"], "interval_s": 1.0}]
    if watched:
        build.metric("sql1", "collector.ok", 1.0, "postgres", 0.0).sessions("sql1", 20.0)
    build.open("orders", "sql-mix", 100).operations("orders", "lock_contend", 50, 0.4, dropped=50)
    return build.generator(orders=(100.0, 50.0))


def test_a_database_that_was_to_be_watched_and_was_not_is_unseen() -> None:
    """Nobody knows what the sessions waited for: that is no proof against the generator."""
    assert judged(starved_of_sessions(watched=True)).outcome == "invalid"
    verdict = judged(starved_of_sessions(watched=False))
    assert verdict.outcome == "inconclusive"
    assert "the postgres view of sql1 was not seen" in verdict.summary


@pytest.mark.parametrize("hidden", [8.0, 0.0])
def test_sessions_that_are_hidden_are_not_idle(hidden: float) -> None:
    """The server shows our role no session at work: that means a long way there only if it shows all."""
    build = (
        Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.1, 0.1, cores=(0, 1)).sessions("sql1", 0.0)
    )
    build.metric("sql1", "db.sessions_hidden", hidden, noise=0.0)
    build.closed("orders", "sql-mix", 8).operations("orders", "point_read", 160, 0.05, noise=0.01)
    verdict = judged(build.generator())
    assert (verdict.outcome == "inconclusive") == (hidden > 0)


@pytest.mark.parametrize("instance", ["connections", "tickets for writing"])
def test_a_candidate_pool_is_called_by_what_it_is_a_pool_of(instance: str) -> None:
    """Connections of a database, threads or tickets of a store: never one for the other."""
    pool = Suspect("pool", "nosql", "mongo1", "pool", instance, None, None, None, ())
    assert inconclusive_words("it is not clear", [pool]).endswith(f"A candidate is the {instance} of mongo1.")
