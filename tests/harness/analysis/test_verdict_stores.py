"""A single-threaded store, judged by its own metrics."""

from __future__ import annotations

import pytest
from harness.analysis.verdicts import SEEDS, judged, named, store

from pinchpoint.analysis import Verdict


def busy_core(seed: int, at_work: float, log_waits: float) -> Verdict:
    """Return the verdict on a store with a busy core, and its thread's busy and log-wait shares."""
    build = store(seed, main_thread__busy_ratio=at_work, aof__wait_ratio=log_waits)
    build.operations("burst", "set", 20000, 0.0008).cpu("nosql1", 0.55, 0.5, cores=(0, 1))
    build.metric("nosql1", "cpu.busy_ratio", 0.985, "thread:valkey-server", 0.004)
    return judged(build.disk("nosql1", "sdb", 40, 0.0005, busy=0.05))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_whose_thread_is_full_agrees_with_what_the_kernel_counts(seed: int) -> None:
    """A main thread that always has work and rarely writes its log confirms `cpu_thread`."""
    verdict = busy_core(seed, 0.995, 0.05)
    assert named(verdict) == ("cpu_thread", "nosql", "nosql1", "medium")
    assert verdict.bottleneck is not None
    [witness] = [fact for fact in verdict.bottleneck.evidence if fact.evidence == "E4"]
    assert witness.metric == "db.main_thread.busy_ratio"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_thread_that_has_no_work_is_no_limit_however_busy_its_core_is(seed: int) -> None:
    """A core that is busy with a snapshot child or spinning does not make the thread a limit."""
    verdict = busy_core(seed, 0.52, 0.02)
    assert verdict.bottleneck is None or verdict.bottleneck.kind != "cpu_thread", verdict.summary
    considered = verdict.to_json()["explanation"]["considered"]
    [checks] = [one["checks"] for one in considered if "thread" in one["name"]]
    said = {check["evidence"]: (check["holds"], check["fact"]["fact"]) for check in checks}
    assert said["E1"][0] is False
    assert "but the server executed commands only part of that time" in said["E1"][1]
    assert said["E4"][0] is False


@pytest.mark.parametrize("seed", SEEDS)
def test_what_comes_next_is_told_from_the_work_a_thread_had(seed: int) -> None:
    """The thread's ceiling follows from the time it had work, not from its core's utilisation."""
    build = store(seed, main_thread__busy_ratio=0.52, aof__wait_ratio=0.02)
    build.metric("nosql1", "cpu.busy_ratio", 0.99, "thread:redis-server", 0.004)
    build.operations("burst", "set", 20000, 0.0008).cpu("nosql1", 0.97, 0.9, cores=(0, 1), pressure=0.9)
    verdict = judged(build.disk("nosql1", "sdb", 40, 0.0005, busy=0.05))
    [thread] = [row for row in verdict.demand if row["resource"] == "thread"]
    assert thread["used_ratio"] == pytest.approx(0.52, abs=0.02)
    considered = verdict.to_json()["explanation"]["considered"]
    [used] = [one["used_ratio"] for one in considered if one["resource"] == "thread"]
    assert used == thread["used_ratio"]


def test_a_store_nobody_can_look_into_is_judged_by_what_it_says() -> None:
    """A managed store is judged by its own metrics, with low confidence."""
    build = store(main_thread__busy_ratio=0.99, aof__wait_ratio=0.02)
    verdict = judged(build.operations("burst", "set", 20000, 0.0008))
    assert named(verdict) == ("cpu_thread", "nosql", "nosql1", "low")
    assert verdict.bottleneck is not None
    assert any("was not measured" in why for why in verdict.bottleneck.why_not_more)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_its_work_is_not_told_its_log_s_time_still_is(seed: int) -> None:
    """Valkey 8 with I/O threads reports no busy time, but the log's share of it.

    The log is flushed in the background, so the slow disk delays no operation.
    """
    build = store(seed, aof__wait_ratio=0.01)
    build.operations("burst", "set", 480, 16 / 480).cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 40, 0.025, busy=0.93, pressure=0.9, outstanding_noise=0.1)
    verdict = judged(build)
    assert verdict.bottleneck is None or verdict.bottleneck.kind != "disk_latency", verdict.summary


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_that_flushes_its_log_all_the_time_waits_for_the_disk(seed: int) -> None:
    """A thread that spends nine tenths of its time on its log waits for the log's disk."""
    build = store(seed, main_thread__busy_ratio=0.99, aof__wait_ratio=0.9)
    build.operations("burst", "set", 480, 16 / 480).cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 40, 0.025, busy=0.93, pressure=0.9, outstanding_noise=0.1)
    verdict = judged(build)
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier, found.role) == ("disk_latency", "nosql", "data")
    assert any(fact.metric == "operations.service" and fact.evidence == "E4" for fact in found.evidence)
