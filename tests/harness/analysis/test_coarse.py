"""Farms sampled every 5, 15 or 60 s, and runs stored in steps of ten seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ground_truth.noises import every
from harness.analysis.build import Build
from harness.analysis.disks import Capped, Spindle, commits, reads
from harness.analysis.test_checkpoints import LENGTH
from harness.analysis.test_disks import data, log
from harness.analysis.verdicts import length

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.flows import find_flows
from pinchpoint.data.inputs import read_inputs
from pinchpoint.store.coarse import coarse
from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import table
from pinchpoint.store.schema import COARSE_S

MINUTES_S = 1200


def read_every(build: Build, seconds: int) -> StoredRun:
    """Return the run with samples at that interval; the generators' own samples stay."""
    run = build.run()
    return replace(run, samples=every(table(run.samples), seconds))


def kept_coarsely(run: StoredRun) -> StoredRun:
    """Return the run in steps of ten seconds, as a run of over an hour is stored."""
    return replace(run, operations=coarse(run.operations, COARSE_S))


def judged(run: StoredRun) -> Verdict:
    verdict = analyse(run)
    verdict.to_json()
    return verdict


# ---- disks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "users"), [(20, 4), (60, 8)])
def test_a_device_read_every_fifteen_seconds_is_no_limit(rate: float, users: int) -> None:
    """An uneven device stays a device when a reading averages 300 or 900 of its I/Os."""
    found = reads(Spindle(1 / rate, 0.4), length(MINUTES_S), users, every_s=3)
    named = judged(read_every(data(found, users), 15)).bottleneck
    assert named is not None
    assert named.kind == "disk_device" or named.confidence == "low", (named, named.why_not_more)


def test_few_ios_a_second_are_many_in_a_reading() -> None:
    """At 20 I/Os per second a reading of 15 s has enough I/Os to show that the device is uneven."""
    found = reads(Spindle(0.05, 0.4), length(MINUTES_S), 4, every_s=3)
    named = judged(read_every(data(found, 4), 15)).bottleneck
    assert named is not None
    assert (named.kind, named.role, named.confidence) == ("disk_device", "data", "medium"), named.why_not_more


@pytest.mark.parametrize("seconds", [5, 15])
def test_a_limit_read_seldom_is_still_one(seconds: int) -> None:
    """A limit of 62.5 writes per second is found with readings of 5 and 15 s."""
    found = commits(Capped(62.5), length(MINUTES_S), users=32)
    named = judged(read_every(log(found, 32), seconds)).bottleneck
    assert named is not None
    assert (named.kind, named.role, named.confidence) == ("disk_cap", "log", "medium"), named.why_not_more


# ---- loads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("even", "coarsely"), [(True, False), (False, False), (True, True), (False, True)])
def test_many_arrivals_at_random_are_no_even_schedule(*, even: bool, coarsely: bool) -> None:
    """Poisson arrivals differ from an even schedule at 1,200/s in coarse steps and at 8,000/s."""
    rate = 1200.0 if coarsely else 8000.0
    build = Build(measure_s=300 if coarsely else 60).host("sql1", "sql").cpu("sql1", 0.3)
    came = np.random.default_rng(3).poisson(rate, build.seconds).astype(float)
    build.open("orders", "sql-mix", rate).operations("orders", "update", rate, 0.002, noise=0.0)
    build.generator(orders=(rate, rate) if even else (came, came))  # type: ignore[arg-type]  # one a second
    run = kept_coarsely(build.run()) if coarsely else build.run()
    [flow] = find_flows(read_inputs(run))
    assert flow.even is even


def quota_in_bursts(measure_s: int) -> Build:
    """Return half a core that is saturated for 5 s of every 20; 600 of 2,000/s are not started then."""
    build = Build(measure_s).host("nosql1", "nosql", cores=(0, 1))
    inside = np.arange(build.seconds) % 20 < 5
    build.cpu("nosql1", np.where(inside, 0.27, 0.05), np.where(inside, 0.995, 0.12), (0, 1), noise=0.01)
    build.metric("nosql1", "cpu.cores", 0.5, "tier:nosql", 0.0)
    offered, done = np.where(inside, 2000.0, 200.0), np.where(inside, 1400.0, 200.0)
    build.burst("burst", 200, 2000, 20, 5)
    build.operations("burst", "record_write", done, np.where(inside, 0.4, 0.002), dropped=offered - done)
    return build.generator(burst=(offered, done))  # type: ignore[arg-type]  # one value a second


@pytest.mark.parametrize("coarsely", [True, False], ids=["steps of ten seconds", "read every minute"])
def test_bursts_shorter_than_what_was_read_do_not_blame_the_generator(*, coarsely: bool) -> None:
    """Bursts shorter than the sampling interval give an inconclusive run, not an invalid one."""
    build = quota_in_bursts(240)
    verdict = judged(kept_coarsely(build.run()) if coarsely else read_every(build, 60))
    assert verdict.outcome == "inconclusive", verdict.summary
    assert f"takes 5 s, but the farm was measured in means over {10 if coarsely else 60} s" in (
        verdict.summary
    )
    assert "twice in each burst" in str(verdict.experiment)


def test_a_starved_generator_is_still_blamed_for_bursts_that_were_seen() -> None:
    """With samples every second and an idle farm, the same bursts make the run invalid."""
    build = quota_in_bursts(60)
    build.samples = [row for row in build.samples if row[2] != "nosql1"]
    build.cpu("nosql1", 0.1, 0.1, (0, 1))
    verdict = judged(build.run())
    assert verdict.outcome == "invalid", verdict.summary


# ---- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [1, 15])
def test_checkpoints_are_counted_by_readings_and_not_by_steps(seconds: int) -> None:
    """Three checkpoints are counted as three, with readings of 1 s and of 15 s."""
    under_way = np.arange(LENGTH) % 30 < 10
    build = Build(measure_s=LENGTH, warm_up_s=0).host("sql1", "sql").cpu("sql1", 0.3, 0.3)
    build.metric("sql1", "db.checkpoint_buffers_per_s", np.where(under_way, 80.0, 0.0), noise=0.0)
    begun = np.where(np.arange(LENGTH) % 30 == 0, 1.0, 0.0)
    build.metric("sql1", "db.checkpoints_per_s", begun, "timed", noise=0.0)
    build.open("orders", "sql-mix", 100).operations("orders", "update", 100, np.where(under_way, 0.03, 0.01))
    verdict = judged(kept_coarsely(read_every(build.generator(), seconds)))
    [row] = verdict.checkpoints
    assert (row["timed"], row["read_every_s"]) == (3, max(seconds, COARSE_S))
    [told] = [warning for warning in verdict.warnings if "checkpoints" in warning]
    assert "checkpoints (at most " in told
    assert f"of the time, as known every {max(seconds, COARSE_S)} s; 3 scheduled" in told


@pytest.mark.parametrize("seconds", [15, 60])
def test_a_part_in_which_a_disk_was_not_read_is_none_in_which_nothing_was_used_up(seconds: int) -> None:
    """A saturated log that is read every 15 or 60 s appears in every part of the timeline."""
    found = commits(Capped(150), length(240), users=4)
    timeline = judged(read_every(log(found, 4), seconds)).timeline
    assert timeline
    assert all(row["resource"] == "disk" for row in timeline), timeline
