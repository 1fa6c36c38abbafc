"""The tables beside the verdict agree with the samples and operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build, utc

from pinchpoint.analysis import Verdict, analyse


def only(rows: Any) -> dict[str, Any]:
    (row,) = rows
    return dict(row)


def test_scenarios_count_whole_operations_of_the_measure_phase() -> None:
    """Throughput and errors count whole operations of the measure phase, without stages and skips."""
    build = Build(measure_s=60, warm_up_s=10).open("orders", "sql-mix", 100).closed("crawl", "full-crawl", 4)
    build.operations("orders", "log_append", 90, 0.004, noise=0)
    build.operations("orders", "log_append", 10, 0.1, outcome="deadlock", noise=0, dropped=5)
    build.operations("crawl", "document:site", 20, 0.2, noise=0)
    build.operations("crawl", "document:site", 5, 0.01, outcome="skipped", noise=0)
    build.operations("crawl", "document:site/fetch", 25, 0.05, noise=0)
    scenarios = analyse(build.run()).scenarios
    orders, crawl = scenarios["orders"], scenarios["crawl"]
    assert orders["throughput_per_s"] == 90.0
    assert orders["error_ratio"] == 0.1
    assert orders["dropped"] == 300
    assert orders["response_p50_s"] == pytest.approx(0.004, rel=0.1)
    assert orders["response_p50_s"] <= orders["response_p95_s"] <= orders["response_p99_s"] < 0.05
    assert crawl["throughput_per_s"] == 20.0
    assert crawl["error_ratio"] == 0.0
    assert crawl["response_p95_s"] is None
    assert crawl["service_p50_s"] == pytest.approx(0.2, rel=0.1)
    assert crawl["outcomes"] == {"ok": 1200, "skipped": 300}


def ended_crawl(sources: list[dict[str, Any]]) -> Build:
    build = Build(measure_s=60, warm_up_s=10).closed("crawl", "full-crawl", 4)
    build.operations("crawl", "document:site", 20, 0.2, noise=0, seconds=range(5, 25))
    build.event("crawl_started", 5, cycle=1, scenario="crawl", sources=["site"])
    build.event("crawl_ended", 45, cycle=1, scenario="crawl", started=utc(5), ended=utc(45), sources=sources)
    build.event("crawl_ended", 65, cycle=2, scenario="crawl", started=utc(45), ended=utc(65), sources=[])
    return build


def test_the_crawl_table_is_the_first_complete_crawl_s() -> None:
    """The crawl table shows the first complete crawl, with the crawl database's counts and duration."""
    source = {
        "source": "site",
        "count": 400,
        "failures": 3,
        "skipped": 7,
        "bytes": 1,
        "duration_s": 40.0,
        "repository_latency_s": 0.06,
        "failures_by_kind": {"http_503": 3},
    }
    row = only(analyse(ended_crawl([source]).run()).crawl)
    assert (row["count"], row["failures"], row["skipped"]) == (400, 3, 7)
    assert row["rate_per_s"] == 10.0
    assert row["rate_active_per_s"] == 20.0
    assert row["repository_latency_s"] == 0.06
    assert row["complete"] is True


def test_a_source_that_failed_at_once_has_no_rate() -> None:
    """0 documents in 0 s give a rate of None."""
    source = {"source": "vpn", "count": 0, "failures": 1, "skipped": 0, "duration_s": 0.0}
    row = only(analyse(ended_crawl([source]).run()).crawl)
    assert row["rate_per_s"] is row["repository_latency_s"] is None


def test_a_crawl_that_did_not_end_is_told_from_its_operations() -> None:
    """Without ``crawl_ended`` the counts come from the operations and are marked as incomplete."""
    build = Build(measure_s=60).closed("crawl", "full-crawl", 4)
    build.operations("crawl", "document:site", 20, 0.2, noise=0, seconds=range(10, 30))
    build.operations("crawl", "document:site", 2, 0.2, outcome="http_503", noise=0, seconds=range(10, 20))
    build.operations("crawl", "document:site/fetch", 20, 0.05, noise=0, seconds=range(10, 30))
    row = only(analyse(build.run()).crawl)
    assert row["complete"] is False
    assert (row["count"], row["failures"], row["duration_s"]) == (400, 20, 20.0)
    assert row["failures_by_kind"] == {"http_503": 20}
    assert row["repository_latency_s"] == pytest.approx(0.05, rel=0.1)


def test_disk_latency_is_weighted_by_operations() -> None:
    """Disk latency is weighted by I/O counts, and data I/O is used where it was verified."""
    build = Build(measure_s=60, warm_up_s=0).host("sql1", "sql", disks={"log": "sdb", "data": "sdc"})
    weight = np.where(np.arange(60) == 30, 540.0, 1.0)
    latency = np.where(np.arange(60) == 30, 0.050, 0.001)
    build.metric("sql1", "disk.write_latency_s", latency, "sdb", 0, weight)
    build.metric("sql1", "disk.writes_per_s", 200.0, "sdb", 0).metric(
        "sql1", "disk.reads_per_s", 0.0, "sdb", 0
    )
    build.manifest["hosts"]["sql1"]["roles"]["log"]["data_io"] = "unknown"
    for metric, value in (("writes_per_s", 200.0), ("data_writes_per_s", 100.0), ("reads_per_s", 7.0)):
        build.metric("sql1", f"disk.{metric}", value, "sdc", 0)
    build.metric("sql1", "disk.write_latency_s", 0.001, "sdc", 0, np.full(60, 200.0))
    build.metric("sql1", "disk.data_write_latency_s", 0.002, "sdc", 0, np.full(60, 100.0))
    log, data = analyse(build.run()).disks
    mean = (540 * 0.05 + 59 * 0.001) / 599
    assert log["write_latency_mean_s"] == pytest.approx(mean)
    assert log["write_latency_max_s"] == pytest.approx(0.05)
    assert (log["iops_mean"], log["iops_source"]) == (200.0, "kernel")
    assert (data["iops_mean"], data["iops_source"], data["write_latency_max_s"]) == (107.0, "data", 0.002)


def test_a_disk_nobody_saw_is_in_the_table_with_the_reason() -> None:
    """A disk without a known device is in the table, with the reason."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"})
    build.manifest["hosts"]["sql1"]["roles"]["log"] = {"device": None, "why": "lies on tmpfs"}
    row = only(analyse(build.run()).disks)
    assert row["device"] is None
    assert row["iops_mean"] is None
    assert row["why_not_measured"] == "lies on tmpfs"


def test_cpus_show_the_tier_s_own_share_and_the_machine() -> None:
    """The CPU table shows the tier's processes where they were measured, and else the machine."""
    build = Build().host("search1", "search").host("app3", "web", machine="b")
    build.cpu("search1", 0.9, 0.5, noise=0).cpu("app3", 0.7, noise=0)
    search, web = analyse(build.run()).cpus
    assert search["of"] == "tier"
    assert search["busy_mean_ratio"] == pytest.approx(0.5, rel=0.1)
    assert search["machine_busy_mean_ratio"] == pytest.approx(0.9)
    assert (web["of"], web["busy_mean_ratio"]) == ("machine", pytest.approx(0.7))


def bursts(recovers_after: int) -> Verdict:
    build = Build(measure_s=120, warm_up_s=0).host("nosql1", "nosql").cpu("nosql1", 0.3)
    build.burst("burst", base=50, peak=1000, every_s=60, for_s=10)
    second = np.arange(120) % 60
    inside = (second >= 30) & (second < 40)
    after = (second >= 40) & (second < 40 + recovers_after)
    offered = np.where(inside, 1000.0, 50.0)
    build.operations(
        "burst",
        "write",
        np.where(inside, 900.0, 50.0),
        np.where(inside | after, 0.05, 0.001),
        noise=0,
        dropped=np.where(inside, 100.0, 0.0),
    )
    for metric in ("scheduled", "started"):
        build.metric("generator1", f"generator.{metric}_per_s", offered, "burst", 0)
    return analyse(build.run())


@pytest.mark.parametrize("recovers_after", [0, 4])
def test_each_burst_has_its_row(recovers_after: int) -> None:
    """Each burst has a row with its counts, latency, and the time until the latency recovered."""
    rows = bursts(recovers_after).scenarios["burst"]["bursts"]
    assert [row["start_s"] for row in rows] == [30, 90]
    for row in rows:
        assert (row["offered"], row["done"], row["dropped"]) == (10000, 9000, 1000)
        assert row["p50_s"] == pytest.approx(0.05, rel=0.1)
        # Medians of few operations scatter, so recovery may be detected one or two seconds late.
        assert recovers_after <= row["recovery_s"] <= recovers_after + 2


def test_a_burst_nobody_recovers_from_has_no_recovery_time() -> None:
    """A burst without recovery before the next one has a recovery time of None."""
    rows = bursts(20).scenarios["burst"]["bursts"]
    assert rows[-1]["recovery_s"] is None


@pytest.mark.parametrize("calm_s", [30, 0])
def test_what_still_waits_from_a_burst_is_no_calm(calm_s: int) -> None:
    """Latency caused by a burst's backlog is not taken for the calm level between bursts."""
    build = Build(measure_s=120, warm_up_s=0).host("nosql1", "nosql").cpu("nosql1", 0.3)
    build.burst("burst", base=50, peak=1000, every_s=60, for_s=10)
    second = np.arange(120) + 30 - calm_s
    inside = (second % 60 >= 30) & (second % 60 < 40)
    build.operations(
        "burst", "write", np.where(inside, 500.0, 50.0), np.where(second < 30, 0.001, 9.0), noise=0
    )
    for metric in ("scheduled", "started"):
        offered = np.where(inside, 1000.0, 50.0)
        build.metric("generator1", f"generator.{metric}_per_s", offered, "burst", 0)
    rows = analyse(build.run()).scenarios["burst"]["bursts"]
    assert [row["recovery_s"] for row in rows] == [None] * len(rows)
    assert rows[0]["backlog"] == pytest.approx(5000, rel=0.05)


def test_what_is_used_up_only_in_bursts_is_found() -> None:
    """A CPU that is saturated only in bursts is the bottleneck of the bursts."""
    build = Build(measure_s=120, warm_up_s=0).host("nosql1", "nosql")
    inside = np.arange(120) % 40 >= 28
    build.cpu(
        "nosql1",
        np.where(inside, 0.98, 0.2),
        np.where(inside, 0.95, 0.2),
        pressure=np.where(inside, 0.95, 0.1),
    )
    build.burst("burst", base=50, peak=1000, every_s=40, for_s=12)
    build.operations(
        "burst", "write", np.where(inside, 800.0, 50.0), 0.01, dropped=np.where(inside, 200.0, 0.0)
    )
    for metric, peak in (("scheduled", 1000.0), ("started", 800.0)):
        build.metric("generator1", f"generator.{metric}_per_s", np.where(inside, peak, 50.0), "burst", 0)
    verdict = analyse(build.run())
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.kind, verdict.bottleneck.tier) == ("cpu", "nosql")
    assert verdict.summary.startswith("Bottleneck in the bursts: CPU of the nosql tier")
    assert [stage["name"] for stage in verdict.stages] == ["base", "peak"]


def test_runs_over_an_hour_are_looked_at_in_tens_of_seconds() -> None:
    """A window of two hours in ten-second steps keeps its rates per second."""
    build = Build(measure_s=7200, warm_up_s=0).host("sql1", "sql").cpu("sql1", 0.3)
    build.open("orders", "sql-mix", 10)
    build.operations("orders", "log_append", 100, 0.004, noise=0, seconds=range(0, 7200, 10))
    for row in build.rows:
        row["interval_s"] = 10.0
    verdict = analyse(build.run())
    assert verdict.scenarios["orders"]["throughput_per_s"] == 10.0
    assert verdict.outcome == "not_reached"
    assert only(verdict.stages)["samples"] == 720
