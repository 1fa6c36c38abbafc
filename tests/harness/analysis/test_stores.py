"""Metrics of Cassandra and MongoDB confirm or exclude their disks, threads and tickets as the cause."""

from __future__ import annotations

import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import judged

from pinchpoint.analysis import Verdict
from pinchpoint.analysis.verdict import Fact

SEEDS = (1, 2, 3)
USERS = 16


def store(seed: int = 1, cpu: float = 0.1, service_s: float = 0.033, users: int = USERS) -> Build:
    """Build users who write to a store as fast as it allows; log and data have their own disks."""
    disks = {"log": "sdb", "data": "sdc"}
    build = Build(seed=seed).host("c1", "nosql", cores=(0, 1), disks=disks).cpu("c1", cpu, cpu, cores=(0, 1))
    build.closed("burst", "nosql-burst", users).operations("burst", "update", users / service_s, service_s)
    return build.metric("generator1", "generator.users", float(users), "burst", 0.0).generator()


def slow_log(build: Build) -> Build:
    """Add a log disk of 25 ms per write with one outstanding, and an almost idle data disk."""
    build.disk("c1", "sdb", 40, 0.025, busy=0.97, pressure=0.2, outstanding_noise=0.1)
    return build.disk("c1", "sdc", 20, 0.001, busy=0.02, pressure=0.2)


def pools(build: Build, **tasks: tuple[float, float]) -> Build:
    """Add Cassandra's pools: (active, pending) tasks by name, with ``__`` for the hyphen."""
    stages = {"MutationStage": (0.0, 0.0), "ReadStage": (0.0, 0.0), "MemtableFlushWriter": (0.0, 0.0)}
    for name, (active, pending) in {**stages, **tasks}.items():
        build.metric("c1", "db.pool.active", active, name.replace("__", "-"), 0.05)
        build.metric("c1", "db.pool.pending", pending, name.replace("__", "-"), 0.05)
    return build


def fact_of(verdict: Verdict, metric: str) -> Fact:
    """Return the bottleneck's evidence from that metric."""
    assert verdict.bottleneck is not None, verdict.summary
    [fact] = [fact for fact in verdict.bottleneck.evidence if fact.metric == metric]
    return fact


def disk(verdict: Verdict) -> tuple[str, str | None, str | None]:
    assert verdict.bottleneck is not None, verdict.summary
    return verdict.bottleneck.kind, verdict.bottleneck.tier, verdict.bottleneck.role


def agrees(verdict: Verdict, role: str) -> bool | None:
    """Return the answer to E4 for the disk of that role; None: not measured."""
    considered = verdict.to_json()["explanation"]["considered"]
    [checks] = [one["checks"] for one in considered if one["role"] == role]
    [holds] = [check["holds"] for check in checks if check["evidence"] == "E4"]
    return None if holds is None else bool(holds)


# ---- Cassandra ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_writes_that_keep_their_place_wait_for_the_commit_log(seed: int) -> None:
    """Fifteen of sixteen writes in the mutation stage with an idle CPU confirm the commit log."""
    verdict = judged(pools(slow_log(store(seed)), MutationStage=(14.0, 1.0)))
    assert disk(verdict) == ("disk_latency", "nosql", "log")
    witness = fact_of(verdict, "db.pool.active")
    assert (witness.evidence, witness.host, witness.instance) == ("E4", "c1", "MutationStage")
    assert witness.value == pytest.approx(14.7, abs=0.6)
    assert "operations waited for it at any time, as reported by the store" in witness.fact


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_log_nobody_waits_for_is_not_named(seed: int) -> None:
    """Writes acknowledged before the flush do not wait for the slow log, so no disk is named."""
    assert disk(judged(slow_log(store(seed)))) == ("disk_latency", "nosql", "log")
    verdict = judged(pools(slow_log(store(seed)), MutationStage=(0.4, 0.0)))
    assert (verdict.outcome, verdict.bottleneck) == ("inconclusive", None)
    assert agrees(verdict, "log") is not True


@pytest.mark.parametrize("seed", SEEDS)
def test_writes_that_wait_for_a_cpu_do_not_wait_for_the_log(seed: int) -> None:
    """With a saturated CPU, sixteen active writes confirm the CPU and not the log."""
    build = store(seed, cpu=0.98, service_s=0.004)
    for device in ("sdb", "sdc"):
        build.disk("c1", device, 200, 0.0005, busy=0.1, pressure=0.05)
    build.metric("c1", "pressure.cpu_ratio", 0.9)
    verdict = judged(pools(build, MutationStage=(16.0, 0.0)))
    assert verdict.bottleneck is not None, verdict.summary
    assert verdict.bottleneck.kind == "cpu"
    assert agrees(verdict, "log") is not True


@pytest.mark.parametrize("seed", SEEDS)
def test_reads_witness_for_the_data_disk(seed: int) -> None:
    """Active tasks in the read stage confirm a data disk at 500 reads per second."""
    build = store(seed, service_s=0.032)
    build.disk("c1", "sdb", 20, 0.001, busy=0.02, pressure=0.2)
    build.disk("c1", "sdc", 0, 0.03, noise=0.002, reads=500, busy=1.0, pressure=0.2, outstanding_noise=0.3)
    verdict = judged(pools(build, ReadStage=(15.0, 0.5)))
    assert disk(verdict) == ("disk_cap", "nosql", "data")
    readers = fact_of(verdict, "db.pool.active")
    assert (readers.evidence, readers.instance) == ("E4", "ReadStage")


@pytest.mark.parametrize("seed", SEEDS)
def test_writes_wait_for_the_data_disk_while_memtables_do(seed: int) -> None:
    """While memtable flushes are pending, writes wait for the data disk and not for the log."""
    build = store(seed)
    build.disk("c1", "sdb", 100, 0.001, busy=0.1, pressure=0.2)
    build.disk("c1", "sdc", 60, 0.2, busy=1.0, pressure=0.2, size_bytes=65536, outstanding_noise=0.3)
    build = pools(build, MutationStage=(14.0, 1.0), MemtableFlushWriter=(2.0, 3.0))
    verdict = judged(build)
    assert (agrees(verdict, "data"), agrees(verdict, "log")) == (True, False)


# ---- MongoDB -----------------------------------------------------------------------------------------


def journal(build: Build, busy: float, flush_s: float, write_s: float) -> Build:
    """Add MongoDB's journal: flush time per second, seconds per flush, seconds per write."""
    build.metric("c1", "db.journal.sync_s_per_s", busy, noise=0.005)
    build.metric("c1", "db.journal.sync_latency_s", flush_s, noise=0.02)
    return build.metric("c1", "db.request_latency_s", write_s, "write", 0.02)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("busy", "share"), [(0.97, 1.0), (0.5, 0.7)])
def test_flushes_of_the_journal_witness_for_its_disk(seed: int, busy: float, share: float) -> None:
    """Flushes of the journal confirm the log disk, by the share of a write that is a flush."""
    build = journal(slow_log(store(seed)), busy, 0.0155 if busy < 0.9 else 0.025, 0.033)
    verdict = judged(build)
    assert disk(verdict) == ("disk_latency", "nosql", "log")
    witness = fact_of(verdict, "db.journal.sync_s_per_s")
    assert witness.evidence == "E4"
    assert witness.value == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("seed", SEEDS)
def test_writes_faster_than_flushes_do_not_wait_for_them(seed: int) -> None:
    """With ``journal: false`` writes are faster than a flush, so no write waits for the log disk."""
    build = store(seed, service_s=0.0015)
    build.disk("c1", "sdc", 20, 0.001, busy=0.02, pressure=0.05)
    build.disk("c1", "sdb", 10, 0.025, busy=0.25, pressure=0.05)
    verdict = judged(journal(build, 0.25, 0.025, 0.0004))
    assert (verdict.outcome, verdict.bottleneck) == ("inconclusive", None)
    assert agrees(verdict, "log") is False


@pytest.mark.parametrize("seed", SEEDS)
def test_clients_that_wait_for_the_cache_witness_for_the_data_disk(seed: int) -> None:
    """Twelve of sixteen clients that wait for cache space confirm the data disk."""
    build = store(seed)
    build.disk("c1", "sdb", 100, 0.001, busy=0.1, pressure=0.2)
    build.disk("c1", "sdc", 200, 0.06, noise=0.002, busy=1.0, pressure=0.2, outstanding_noise=0.3)
    build.metric("c1", "db.cache_wait_s_per_s", 12.0)
    verdict = judged(journal(build, 0.1, 0.001, 0.033))
    assert disk(verdict) == ("disk_cap", "nosql", "data")
    witness = fact_of(verdict, "db.cache_wait_s_per_s")
    assert witness.evidence == "E4"
    assert witness.value == pytest.approx(12.0, rel=0.05)


# ---- threads and tickets -----------------------------------------------------------------------------


def idle_disks(build: Build) -> Build:
    for device in ("sdb", "sdc"):
        build.disk("c1", device, 20, 0.0005, busy=0.02, pressure=0.02)
    return build


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_that_wait_for_a_thread(seed: int) -> None:
    """Eight busy request threads and eight queued requests name the thread pool."""
    build = pools(idle_disks(store(seed, cpu=0.3)), Native__Transport__Requests=(8.0, 8.0))
    build.metric("c1", "db.pool.busy_ratio", 1.0, "Native-Transport-Requests", 0.0)
    verdict = judged(build)
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier) == ("pool", "nosql")
    assert verdict.summary.startswith(
        "Bottleneck: number of threads for requests (Native-Transport-Requests)"
    )
    queue = fact_of(verdict, "db.pool.pending")
    assert (queue.evidence, queue.instance) == ("E4", "Native-Transport-Requests")
    assert queue.value == pytest.approx(0.5, abs=0.05)
    assert any("more threads for requests" in one.text for one in verdict.advice)


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_that_wait_for_the_log_are_not_too_few(seed: int) -> None:
    """Busy request threads that wait for the log are no thread pool bottleneck."""
    build = pools(slow_log(store(seed)), Native__Transport__Requests=(8.0, 8.0), MutationStage=(7.8, 0.0))
    build.metric("c1", "db.pool.busy_ratio", 1.0, "Native-Transport-Requests", 0.0)
    verdict = judged(build)
    assert not verdict.bottleneck or verdict.bottleneck.kind != "pool"
    assert "pool" not in {one.kind for one in verdict.candidates}


@pytest.mark.parametrize("seed", SEEDS)
def test_operations_that_wait_for_a_ticket(seed: int) -> None:
    """All write tickets in use and a third of the operations queued for one name the tickets."""
    build = idle_disks(store(seed, cpu=0.3))
    build.metric("c1", "db.tickets_used", 10.0, "write", 0.0)
    build.metric("c1", "db.tickets_ratio", 1.0, "write", 0.0)
    build.metric("c1", "db.tickets_queued", 5.3, "write").metric("c1", "db.cache_wait_s_per_s", 0.05)
    verdict = judged(build)
    assert verdict.bottleneck is not None, verdict.summary
    assert verdict.bottleneck.kind == "pool"
    assert "tickets for writing" in verdict.summary
    assert fact_of(verdict, "db.tickets_queued").evidence == "E4"


def test_a_disk_of_no_such_store_is_told_of_by_none() -> None:
    """Without store metrics the waiting is unknown, not 0, and the disk's own figures decide."""
    build = slow_log(store())
    build.metric("c1", "db.sessions_active", None).metric("c1", "db.connections", 12.0)
    verdict = judged(build)
    assert disk(verdict) == ("disk_latency", "nosql", "log")
    assert verdict.bottleneck is not None
    assert not [fact for fact in verdict.bottleneck.evidence if "as the store says" in fact.fact]
