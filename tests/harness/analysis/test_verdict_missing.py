"""Missing data: failed collectors, crashed tiers and unstarted phases lower confidence, never invent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
from ground_truth.noises import without
from harness.analysis.build import Build, crawl_bound_by_search, shared_farm
from harness.analysis.test_shapes import SHAPES
from harness.analysis.verdicts import judged, named, two_machines

from pinchpoint.analysis import analyse, exit_status


def test_a_host_that_was_not_seen_lowers_confidence() -> None:
    """With a failed collector the visible bottleneck is named with low confidence."""
    build = two_machines(0.96)
    build.samples = [row for row in build.samples if row[2] != "sql1"]
    verdict = judged(build)
    assert named(verdict) == ("cpu", "search", "app3", "low")
    assert "sql1 was not measured" in verdict.warnings


def test_a_host_of_which_only_the_server_was_watched_says_what_is_missing() -> None:
    """A host with database samples only is reported as missing its CPU and disks."""
    build = Build().host("cache1", "nosql").closed("records", "nosql-burst", 8)
    build.operations("records", "put", 160, 0.05).metric("cache1", "collector.ok", 1.0, "valkey", 0.0)
    build.manifest["collectors"] = [{"kind": "valkey", "hosts": ["cache1"]}]
    said = "the CPU and the disks of cache1 were not measured, only its server (valkey)"
    assert said in judged(build.generator()).warnings


def test_where_nobody_saw_the_farm_the_experiment_is_to_watch_it() -> None:
    """Without any samples the run is inconclusive, and the experiment is to observe the farm."""
    build = Build().host("sql1", "sql").host("app3", "search", machine="b")
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 160, 0.05)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert "(not measured)" in verdict.summary
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Measure the whole farm")


def test_nulls_are_not_zero() -> None:
    """Null samples are "not measured" everywhere, and no figure is computed from them."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"})
    for metric in ("writes_per_s", "reads_per_s", "write_latency_s", "busy_ratio", "outstanding"):
        build.metric("sql1", f"disk.{metric}", None, "sdb")
    build.metric("sql1", "cpu.busy_ratio", None).metric("sql1", "cpu.busy_ratio", None, "0")
    build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.003)
    verdict = judged(build)
    assert verdict.outcome == "inconclusive", "who saw nothing cannot say that nothing gave way"
    assert verdict.capacity_at_least_per_s["orders"] == pytest.approx(100, rel=0.05)
    assert "sql1 was not measured" in verdict.summary
    row = verdict.disks[0]
    assert row["iops_mean"] is row["write_latency_mean_s"] is None
    assert row["why_not_measured"] == "no samples of this device"
    assert verdict.cpus[0]["busy_mean_ratio"] is None


def stolen(build: Build, host: str, ratio: float) -> Build:
    """Replace a host's steal samples of zero with that share of CPU time."""
    build.samples = [row for row in build.samples if (row[2], row[3]) != (host, "cpu.steal_ratio")]
    return build.metric(host, "cpu.steal_ratio", ratio, noise=0)


def test_steal_lowers_confidence() -> None:
    """More than 5 % steal lowers the confidence."""
    verdict = judged(stolen(two_machines(0.96), "app3", 0.12))
    assert named(verdict)[3] == "low"
    assert any("steal" in warning for warning in verdict.warnings)


def test_an_empty_run_is_inconclusive() -> None:
    """A run without operations and samples is inconclusive, and the verdict says so."""
    verdict = judged(shared_farm(Build()).closed("crawl", "full-crawl", 4))
    assert verdict.outcome == "inconclusive"
    assert "no operation was recorded" in verdict.summary
    assert verdict.scenarios["crawl"]["throughput_per_s"] == 0.0
    assert verdict.scenarios["crawl"]["service_p95_s"] is None


def test_a_run_in_which_everything_failed_tells_no_capacity() -> None:
    """A run in which every operation failed names the failures, not a capacity.

    The first sentence has the server's error message and the place of the statement.
    """
    build = Build().host("sql1", "sql").cpu("sql1", 0.97, pressure=0.9).closed("orders", "sql-mix", 8)
    build.operations("orders", "bad", 160, 0.05, outcome="sqlstate_42601")
    failed = {"event": "statement_failed", "scenario": "orders", "script": "/plans/sql/bad.sql", "line": 1}
    build.events.append({**failed, "said": 'syntax error at or near "SELEC"'})
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive"
    said = 'all operations failed (sqlstate_42601, syntax error at or near "SELEC", bad.sql:1).'
    assert said in verdict.summary.splitlines()[0]
    assert exit_status(verdict) == 1
    assert verdict.scenarios["orders"]["error_ratio"] == 1.0


def test_a_failed_source_excludes_itself_only() -> None:
    """A scenario with failures only is reported, and the other scenarios are judged."""
    build = crawl_bound_by_search().open("orders", "sql-mix", 10)
    build.operations("orders", "log_append", 10, 0.001, outcome="disk_full")
    verdict = judged(build)
    assert named(verdict)[:2] == ("cpu", "search")
    assert any("orders: all operations failed (disk_full)" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("seconds", [0, 1, 3, 9])
def test_a_run_of_seconds_names_nobody(seconds: int) -> None:
    """A window below ten seconds gives no bottleneck."""
    verdict = judged(crawl_bound_by_search(measure_s=seconds))
    assert verdict.outcome == "inconclusive"
    assert verdict.experiment is not None
    assert verdict.experiment.startswith("Measure for at least a minute")


def test_a_short_run_has_low_confidence() -> None:
    """A run with fewer than 30 samples has low confidence and states the number."""
    verdict = judged(crawl_bound_by_search(measure_s=20))
    assert named(verdict)[3] == "low"
    assert verdict.bottleneck is not None
    assert "only 20 samples, 30 are needed" in verdict.bottleneck.why_not_more


def test_an_interrupted_run_is_judged_on_what_was_measured() -> None:
    """An interrupted run is judged up to its last record and reported as incomplete."""
    build = crawl_bound_by_search()
    build.manifest["state"] = "interrupted"
    build.manifest["phases"][1]["to"] = None
    verdict = judged(build)
    assert named(verdict)[:2] == ("cpu", "search")
    assert any("incomplete" in warning for warning in verdict.warnings)


def test_a_run_that_never_reached_its_measure_phase() -> None:
    """A run stopped during the warm-up is inconclusive, with the reason."""
    build = crawl_bound_by_search()
    build.manifest["phases"] = build.manifest["phases"][:1]
    verdict = judged(build)
    assert verdict.outcome == "inconclusive"
    assert "the run ended before its measure phase" in verdict.summary


def test_a_crashed_tier_is_said_and_lowers_confidence() -> None:
    """A tier that crashed during the run is reported and lowers the confidence."""
    verdict = judged(
        crawl_bound_by_search().event("tier_crashed", 30, tier="web", host="web1", log_tail="boom")
    )
    assert named(verdict)[3] == "low"
    assert any("web tier (web1) crashed" in warning for warning in verdict.warnings)


def test_a_resource_that_comes_and_goes_is_a_candidate_only() -> None:
    """A CPU near 90 % with long swings is a candidate only, because resamples disagree."""
    build = two_machines(0.5)
    build.samples = [row for row in build.samples if row[2] != "app3"]
    swing = np.where((np.arange(build.seconds) // 18) % 2 == 0, 0.99, 0.815)
    verdict = judged(build.cpu("app3", swing, cores=(0, 1), pressure=0.8))
    assert verdict.outcome == "inconclusive"
    assert verdict.candidates[0].host == "app3"


def test_published_disk_figures_without_cpu_samples_are_inconclusive() -> None:
    """Slow index disks without a CPU figure are two candidates, and no sample is invented."""
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
    assert "CPU of app3 (not measured)" in verdict.summary
    assert "index disk of search" in verdict.summary


@pytest.mark.parametrize(
    ("steal", "outcome"), [(0.03, "bottleneck"), (0.1, "bottleneck"), (0.3, "inconclusive")]
)
def test_where_the_hypervisor_takes_a_fifth_no_disk_is_named(steal: float, outcome: str) -> None:
    """Above 20 % steal a slow disk is not named, as the wait may be for CPU time."""
    build = Build().host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", 0.2)
    build.disk("sql1", "sdb", 28, 0.035, busy=0.97, pressure=0.6)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 8 / 0.045, 0.045)
    verdict = judged(stolen(build.generator(), "sql1", steal))
    assert verdict.outcome == outcome
    if verdict.bottleneck is None:
        assert "the hypervisor took 30 % of the CPU time of sql1" in verdict.summary
        assert verdict.experiment == "Run the same plan again when the host under that machine has room."
    else:
        assert verdict.bottleneck.confidence == ("low" if steal > 0.05 else "medium")


def test_of_full_cores_it_can_be_said_whoever_took_the_rest() -> None:
    """With steal, saturated cores are named with low confidence, and the steal is reported."""
    verdict = judged(stolen(two_machines(0.96), "app3", 0.3))
    assert named(verdict)[::3] == ("cpu", "low")
    assert any("the hypervisor took " in warning for warning in verdict.warnings)


@pytest.mark.parametrize(
    ("shape", "host", "kind"),
    [
        ("all connections held for a slow log", "sql1", "local"),
        ("a site that commits to a slow log", "sql1", "postgres"),
        ("a site that reads in a database nobody asked", "sql1", "local"),
    ],
)
def test_nothing_outside_and_no_pool_is_blamed_where_what_lies_deeper_was_not_seen(
    shape: str, host: str, kind: str
) -> None:
    """Where a deeper resource was not observed, neither a dependency nor a pool is named for it."""
    run = SHAPES[shape].make(1, 60).run()
    verdict = analyse(replace(run, samples=without(run.samples, host, kind)))
    assert verdict.outcome == "inconclusive", verdict.summary
    view = host if kind == "local" else f"the {kind} server on {host}"
    assert view in verdict.summary
    assert " not measured" in verdict.summary
    assert str(verdict.experiment).startswith("Measure the whole farm (")


def test_disks_nobody_measured_are_no_disks_with_room() -> None:
    """Connections at their limit are not named where the log disk was not measured."""
    run = SHAPES["all connections held for a slow log"].make(1, 60).run()
    disks = pc.starts_with(run.samples["metric"], "disk.")
    verdict = analyse(replace(run, samples=run.samples.filter(pc.invert(disks))))
    assert verdict.outcome == "inconclusive", verdict.summary
    assert "the log disk of sql1" in str(verdict.experiment)


@pytest.mark.parametrize("objective", [{"p95_s": 0.05}, {"errors_ratio": 0.01}, {"throughput_per_s": 100}])
def test_objectives_of_which_all_operations_failed_are_missed(objective: dict[str, float]) -> None:
    """Objectives of a scenario in which every operation failed are missed: exit status 1."""
    build = Build().host("sql1", "sql").cpu("sql1", 0.3, pressure=0.1).open("orders", "sql-mix", 160)
    build.operations("orders", "log_append", 160, 0.002, outcome="connection_lost")
    verdict = judged(build.objective(scenario="orders", **objective).generator(orders=(160.0, 160.0)))
    assert verdict.outcome == "inconclusive"
    assert verdict.objectives[0]["met"] is False
    assert exit_status(verdict) == 1
