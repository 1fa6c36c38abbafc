"""Advice: how to relieve the bottleneck, the expected gain, and the bottleneck after it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness.analysis.build import Build, crawl_bound_by_search
from harness.analysis.disks import Capped, Distant, reads
from harness.analysis.test_capacity import MB
from harness.analysis.verdicts import first, judged, two_machines

from pinchpoint.analysis import Verdict

PAGE = 8192


# ---- CPU ----------------------------------------------------------------------------------------


def test_cpus_are_added_as_far_as_the_next_limit() -> None:
    """The advice names the number of cores, and its gain does not exceed the next ceiling."""
    verdict = judged(two_machines(0.96))
    advice = first(verdict)
    assert (advice.kind, advice.target) == ("cpu", "search")
    assert advice.gain_ratio is not None
    assert verdict.next is not None
    assert verdict.next.gain_ratio == pytest.approx(0.96 / 0.35 - 1, rel=0.1)
    assert 0.5 < advice.gain_ratio <= (verdict.next.gain_ratio or 0.0)
    assert advice.text.startswith("Add CPUs to search: 6 instead of 2 cores: +")
    assert advice.text.endswith(" (what-if --set search.cpu=6).")
    assert advice.text not in verdict.summary, "advice stands once"
    assert "the same mix of operations" in advice.assumes


def test_a_shared_machine_s_advice_names_the_tier_to_move() -> None:
    """Where no other resource limits the estimate, the advice states the gain of twice the cores."""
    advice = first(judged(crawl_bound_by_search()))
    assert advice.set == ("search.cpu=2",)
    assert 0.5 < (advice.gain_ratio or 0.0) < 1.0
    assert "shared by web, search, sql and nosql" in advice.what
    assert "search uses" in advice.what


def test_a_thread_gets_no_more_cores() -> None:
    """A single thread at its limit is not helped by a second core."""
    build = Build().host("nosql1", "nosql", cores=(0, 1, 2, 3))
    build.cpu("nosql1", 0.34, 0.34, cores=(0, 1, 2, 3), pressure=0.1)
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", noise=0.005)
    build.closed("burst", "nosql-burst", 50).operations("burst", "write", 20000, 0.0025)
    advice = first(judged(build.generator()))
    assert advice.kind == "cpu_thread"
    assert "valkey-server cannot use a second core" in advice.what
    assert advice.set == ("nosql.processes=2",)
    assert advice.gain_ratio == pytest.approx(1.0, rel=0.1)
    assert advice.limit_next == "the thread valkey-server of nosql"


def test_an_allowance_is_raised() -> None:
    """A tier at its CPU quota is advised to raise the quota, not to add cores."""
    build = Build().host("search1", "search", cores=(0, 1)).cpu("search1", 0.3, 0.97, cores=(0, 1))
    build.metric("search1", "cpu.cores", 0.5, "tier:search", noise=0.0)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 40, 0.2)
    advice = first(judged(build.generator()))
    assert advice.what.startswith("Allow search more CPU: 1.6 instead of 0.5 cores")
    assert advice.set == ("search.cpu=1.6",)


def two_search_hosts(first: float, second: float) -> Build:
    """Return two hosts of a tier on one machine, each with 0.15 cores and an index disk of its own."""
    build = Build().host("sql1", "sql", machine="m", cores=(0,)).cpu("sql1", 0.4, 0.1, pressure=0.6)
    for number, used in enumerate((first, second), 1):
        host, device = f"search{number}", f"sd{number}"
        build.host(host, "search", machine="m", cores=(0,), disks={"index": device})
        build.cpu(host, 0.4, used, pressure=0.6).metric(host, "cpu.cores", 0.15, "tier:search", noise=0.0)
        build.metric(host, "disk.write_latency_s", 0.003, device, 0.2, np.full(build.seconds, 60.0))
        build.metric(host, "disk.writes_per_s", 60.0, device, noise=0.05)
    return build.closed("crawl", "full-crawl", 5).operations("crawl", "document:site", 40, 0.12).generator()


@pytest.mark.parametrize(("first_host", "second_host"), [(0.96, 0.93), (0.96, 0.88), (0.88, 0.97)])
def test_hosts_of_a_tier_at_their_limits_are_one_bottleneck(first_host: float, second_host: float) -> None:
    """Resamples that name either host agree on the tier; the first advice is more CPU for both hosts."""
    verdict = judged(two_search_hosts(first_host, second_host))
    assert verdict.bottleneck is not None, verdict.summary
    assert (verdict.bottleneck.kind, verdict.bottleneck.tier) == ("cpu", "search")
    assert verdict.bottleneck.confidence == "medium"
    assert first(verdict).what.startswith("Allow search1 and search2 of search more CPU: ")
    assert (first(verdict).gain_ratio or 0.0) > 0.3
    assert verdict.next is not None
    assert verdict.next.gain_ratio is not None
    assert verdict.next.gain_ratio > 0.3, "the other host's limit is no next bottleneck"


def test_a_host_with_room_beside_one_at_its_limit_shares_the_load() -> None:
    """With one host at 93 % and the other at 40 %, the first advice is to spread the load evenly."""
    advice = first(judged(two_search_hosts(0.93, 0.4)))
    assert advice.what.startswith("Spread the load of search evenly over its hosts")


def test_a_gain_assumes_room_where_nobody_can_tell() -> None:
    """A gain of 3 x is marked as an assumption where the log (85 % busy, no limit) or a host is unknown.

    The data disk is almost idle, so its capacity is not listed as an assumption.
    """
    build = Build().host("search1", "search", machine="s", cores=(0, 1))
    build.cpu("search1", 0.97, 0.96, cores=(0, 1), pressure=0.9)
    build.host("sql1", "sql", machine="d", cores=(0, 1), disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", 0.3, 0.28, cores=(0, 1)).host("sql2", "sql", machine="e", cores=(0, 1))
    build.disk("sql1", "sdb", 700, 0.001, 0.02, busy=0.85, pressure=0.4)
    build.disk("sql1", "sdc", 100, 0.001, 0.02, busy=0.1, pressure=0.4)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:site", 40, 0.4)
    verdict = judged(build.generator())
    words = "room for it on the CPU of sql2 (not measured) and the log disk of sql1 (its limit is not known)"
    assert verdict.next is not None
    assert verdict.next.tier == "sql"
    assert verdict.next.assumes.endswith(words)
    assert first(verdict).assumes.endswith(words)


# ---- waiting ------------------------------------------------------------------------------------


def log_far_away(other_s: float | None = None) -> Build:
    """Return commits that wait for a log with writes of 35 ms; optionally beside a faster disk."""
    disks = {"log": "loop1"} | ({"data": "loop2"} if other_s else {})
    build = Build().host("sql1", "sql", cores=(0, 1), disks=disks).cpu("sql1", 0.1, cores=(0, 1))
    build.disk("sql1", "loop1", 25, 0.035, 0.1, busy=0.9, pressure=0.8)
    if other_s:
        build.disk("sql1", "loop2", 50, other_s, busy=0.1)
    build.closed("orders", "sql-mix", 1).operations("orders", "log_append", 25, 0.04)
    return build.generator()


def test_a_slow_log_wants_latency_never_queue_depth() -> None:
    """The gain follows from the response time: a write of 5 ms plus the rest of the operation."""
    verdict = judged(log_far_away())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_latency"
    advice = first(verdict)
    assert "5 ms a write (recommended for its role, Microsoft SharePoint guidance)" in advice.what
    took_s = float(re.findall(r"instead of ([\d.]+) ms", advice.what)[0]) / 1000
    round_s = 1 / verdict.scenarios["orders"]["now_per_s"]
    assert advice.gain_ratio == pytest.approx(round_s / (round_s - took_s + 0.005) - 1, rel=0.05)
    assert not any("at once" in one.what for one in verdict.advice)


def test_a_latency_that_is_all_but_good_is_to_be_halved() -> None:
    """A log of 5.2 ms (good: 5 ms) is advised to halve its latency, because 5 ms would gain nothing."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"}).cpu("sql1", 0.05, cores=(0, 1))
    build.disk("sql1", "loop1", 170, 0.0052, 0.1, busy=0.93, pressure=0.9)
    build.closed("orders", "sql-mix", 1).operations("orders", "log_append", 170, 1 / 170, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_latency", verdict.summary
    assert "half the latency" in first(verdict).what
    assert (first(verdict).gain_ratio or 0.0) > 0.3


def test_users_who_think_are_no_more_often_there_than_thinking_lets_them() -> None:
    """With a log of 60 ms and 0.5 s of think time, a log of 5 ms gains a fifth, not eleven times."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.02, cores=(0, 1))
    build.disk("sql1", "sdb", 16, 0.06, 0.1, busy=0.95, pressure=0.9)
    build.closed("orders", "sql-mix", 20, think_s=0.5).objective(scenario="orders", p95_s=0.05)
    build.operations("orders", "log_append", 33, 0.105, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_latency", verdict.summary
    assert 0.1 < (first(verdict).gain_ratio or 0.0) <= 0.605 / (0.5 + 0.105 * 5 / 60) - 1


def test_a_load_that_keeps_its_schedule_is_told_how_its_times_fall() -> None:
    """At a served rate of 20/s a faster log adds no operations; the advice states shorter times."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.1, cores=(0, 1))
    build.disk("sql1", "sdb", 20, 0.05, 0.1, busy=0.9, pressure=0.8).objective(scenario="orders", p95_s=0.02)
    build.open("orders", "sql-mix", 20).operations("orders", "log_append", 20, 0.055)
    verdict = judged(build.generator(orders=(20.0, 20.0)))
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_latency", verdict.summary
    longer = re.search(r"; at the rate of its schedule orders then takes (\d+) %", first(verdict).text)
    assert longer is not None, first(verdict).text
    assert int(longer[1]) / 100 == pytest.approx(5 / 42.2, abs=0.01)
    assert first(verdict).gain_ratio == pytest.approx(0.0, abs=0.001)
    assert "no change" in first(verdict).text


def test_another_disk_of_the_farm_is_a_latency_to_be_had() -> None:
    """The advice for the log assumes the latency that the data disk beside it has."""
    texts = [one.what for one in judged(log_far_away(0.002)).advice]
    assert any("ms a write (sql.data here)" in text for text in texts), texts


def test_reads_one_at_a_time_want_more_of_them_at_once() -> None:
    """Good reads, too few outstanding: the advice is more concurrent reads, up to the disk's limit."""
    found = reads(Distant(0.004, 0.0003), 70, users=2)
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", 0.1, cores=(0, 1)).disk("sql1", "sdb", 5, 0.001, busy=0.01)
    build.device("sql1", "sdc", found, pressure=0.8)
    build.closed("orders", "sql-mix", 2).served("orders", "point_read", found)
    verdict = judged(build)
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_concurrency", verdict.summary
    assert "issue more reads to sql.data at the same time" in first(verdict).what
    assert first(verdict).assumes == "the limits of sql.data are not known"
    assert "--suite database" in verdict.advice[1].what


def test_a_capped_data_disk_is_not_told_to_be_asked_more() -> None:
    """A disk at its limit gets no advice for more concurrent I/O."""
    found = reads(Capped(iops=300), 70, users=8)
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"data": "sdc"}, limits={"data": {"iops": 300.0}})
    build.cpu("sql1", 0.1, cores=(0, 1)).device("sql1", "sdc", found, pressure=0.8)
    build.closed("orders", "sql-mix", 8).served("orders", "point_read", found)
    verdict = judged(build)
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_cap"
    assert not any("at once" in one.what for one in verdict.advice)
    assert "(now 300 IOPS" in first(verdict).what


def test_locks_are_gained_by_as_much_as_waits_for_them() -> None:
    """75 % of the time waits for a row lock: without it the rate is four times as high."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.12, 0.12, cores=(0, 1), pressure=0.05)
    build.sessions("sql1", 8.0, Lock__transactionid=6.0)
    build.closed("orders", "sql-mix", 8).operations("orders", "hot_update", 80, 0.1, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "lock", verdict.summary
    advice = first(verdict)
    assert "they wait for transactionid" in advice.what
    assert advice.gain_ratio == pytest.approx(3.0, rel=0.15)


def test_what_is_gained_without_nearly_all_of_the_time_has_a_wide_interval() -> None:
    """98 % of the time waits for a row lock: the gain has a wide interval and ends at the CPU."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.03, 0.03, cores=(0, 1), pressure=0.05)
    build.sessions("sql1", 16.0, Lock__transactionid=15.7)
    build.closed("orders", "sql-mix", 16).operations("orders", "hot_update", 40, 0.4, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "lock", verdict.summary
    assert first(verdict).set == ("sql.lock=0ms",)
    low, high = first(verdict).interval_ratio or (0.0, 0.0)
    assert high > 2 * low


def test_a_dependency_is_named_with_how_long_it_is_waited_for() -> None:
    """For a remote repository the advice names the network path and the gain without its wait."""
    build = Build().host("search1", "search", cores=(0, 1)).cpu("search1", 0.1, 0.1, cores=(0, 1))
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:far", 16, 0.5)
    build.operations("crawl", "document:far/fetch", 16, 0.4)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "external", verdict.summary
    advice = first(verdict)
    assert advice.target == "far"
    assert "crawl waits 40" in advice.what
    assert advice.gain_ratio == pytest.approx(1 / (1 - 0.8) - 1, rel=0.3)


def test_an_invalid_run_is_to_be_mended_first() -> None:
    """A run with a saturated generator core gets no advice about the farm."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.2, 0.2, cores=(0, 1))
    build.open("orders", "sql-mix", 900).operations("orders", "log_append", 900, 0.01)
    verdict = judged(build.generator(cpu=0.99, orders=(900.0, 900.0)))
    assert verdict.outcome == "invalid"
    assert first(verdict).kind == "generator"
    assert "more cores" in first(verdict).what


def test_where_nothing_gave_way_there_is_nothing_to_do() -> None:
    """A farm with spare capacity gets no advice."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.2, 0.2, cores=(0, 1))
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.004)
    assert judged(build.generator(orders=(100.0, 100.0))).advice == ()


# ---- memory, network, connections ---------------------------------------------------------------


def interface_used_up(cpu: float, sent: float, noise: float) -> Verdict:
    """Return the verdict on a database with that CPU use that sends those bytes/s over 125 MB/s."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", cpu, cpu, cores=(0, 1), noise=noise)
    build.metric("sql1", "net.speed_bytes_per_s", 125 * MB, "eth0", noise=0.0)
    build.metric("sql1", "net.sent_bytes_per_s", sent, "eth0", noise=noise)
    build.metric("sql1", "net.received_bytes_per_s", 3 * MB, "eth0", noise=0.01)
    build.closed("orders", "sql-mix", 8).operations("orders", "range_scan", 800, 0.01, noise=0.01)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None, verdict.summary
    assert verdict.bottleneck.kind == "network"
    return verdict


def test_an_interface_wants_its_speed_times_the_gain() -> None:
    """At 98 % of 125 MB/s and 40 % CPU, the advice is 2.5 times the interface speed, the CPU's ceiling."""
    verdict = interface_used_up(0.4, 122.5 * MB, noise=0.003)
    advice = first(verdict)
    assert "a faster interface than eth0" in advice.what
    assert advice.gain_ratio == pytest.approx(0.98 / 0.4 - 1, rel=0.05)
    # both directions together
    assert advice.limit_next in {"the CPU of sql", "the network interface eth0 of sql1"}
    assert any(row["resource"] == "network" for row in verdict.demand)


def test_an_interface_s_speed_is_told_of_its_whole_speed() -> None:
    """At 92 % of its speed, with the CPU at 80 %, the advised speed is 1.15 times the present one."""
    verdict = interface_used_up(0.8, 115 * MB, noise=0.0)
    assert re.search(r"; needed: 1\.1[45]\d* . that speed\)", first(verdict).what)


def test_memory_s_gain_is_not_known() -> None:
    """More memory is advised without a gain, because only a run with more memory can show it."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"data": "sdc"}).cpu("sql1", 0.2, cores=(0, 1))
    build.metric("sql1", "mem.available_ratio", 0.03, "tier:sql").metric("sql1", "pressure.memory_ratio", 0.5)
    build.metric("sql1", "mem.refaulted_bytes_per_s", 400 * PAGE, "tier:sql", noise=0.02)
    build.disk("sql1", "sdc", 0.0, 0.015, reads=450, busy=0.99, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "point_read", 450, 8 / 450, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None, verdict.summary
    assert verdict.bottleneck.kind == "memory"
    advice = first(verdict)
    assert advice.what.startswith("Give sql more memory")
    assert advice.gain_ratio is None
    assert "only a run with more memory" in advice.assumes


def test_refused_connections_want_more_of_them() -> None:
    """Refused connections: the advice is more connections, up to the next ceiling."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.3, 0.3, cores=(0, 1), pressure=0.05)
    build.metric("sql1", "db.connections_ratio", 1.0, noise=0.0)
    build.closed("orders", "sql-mix", 20).operations("orders", "log_append", 950, 0.02, noise=0.01)
    build.operations("orders", "log_append", 50, 0.02, outcome="too_many_connections", noise=0.01)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None, verdict.summary
    assert verdict.bottleneck.kind == "pool"
    assert first(verdict).what.startswith("Allow sql more connections")
    assert first(verdict).limit_next == "the CPU of sql"


def test_a_candidate_whose_limit_nobody_declared_is_to_be_probed() -> None:
    """An inconclusive verdict advises to measure the limits of its candidates."""
    build = Build(measure_s=600)
    build.host("app3", "search", machine="app3", cores=(), disks={"index": "sdc"})
    build.metric("app3", "disk.write_latency_s", 0.071, "sdc", 0.2, np.full(build.seconds, 100.0))
    build.metric("app3", "disk.writes_per_s", None, "sdc")
    build.closed("crawl", "full-crawl", 64).operations("crawl", "document:site", 15, 4.0)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    texts = [one.text for one in verdict.advice]
    assert any("Watch the CPU of app3" in text for text in texts), texts
    assert any("--suite iometer" in text for text in texts), texts


def test_a_candidate_that_only_reads_is_told_by_its_reads() -> None:
    """A candidate disk without writes is described by its read latency of 4 ms."""
    found = reads(Distant(0.004, 0.0003), 70, users=2)
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"data": "sdc"}).cpu("sql1", 0.1, cores=(0, 1))
    build.device("sql1", "sdc", found, pressure=0.8)
    build.closed("orders", "sql-mix", 2).served("orders", "point_read", found)
    [candidate] = judged(build).candidates
    [fact] = candidate.evidence
    assert fact.metric == "disk.read_latency_s"
    assert "/s, a read took 4." in fact.fact


def test_hosts_of_a_tier_that_are_full_together_are_added_to_together() -> None:
    """Two crawl servers at 97 % CPU: more CPU for one gains nothing; the advice adds CPU to both."""
    build = Build().host("sql1", "sql", machine="a", cores=(0, 1)).cpu("sql1", 0.35, cores=(0, 1))
    for host, machine in (("app3", "b"), ("app4", "c")):
        build.host(host, "search", machine=machine, cores=(0, 1))
        build.cpu(host, 0.97, cores=(0, 1), pressure=0.9)
    build.closed("crawl", "full-crawl", 16).operations("crawl", "document:site", 40, 0.4)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.kind, verdict.bottleneck.confidence) == ("cpu", "medium"), verdict.summary
    assert "Also saturated" in verdict.summary
    advice = first(verdict)
    assert advice.what.startswith("Add CPUs to app3 and app4 of search: 6 instead of 2 cores each")
    assert 1.0 < (advice.gain_ratio or 0.0) <= 0.97 / 0.35 - 1
    assert advice.set == ("search.cpu=6",)
