"""Connection pools and network interfaces at their limits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import SEEDS, judged, log_disk, named, store

from pinchpoint.analysis.summary import inconclusive_words
from pinchpoint.analysis.verdict import Bottleneck


def refused(share: float, *, asked: bool) -> Build:
    """Build an open load with a share of refused connections; ``asked``: the server has samples."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.3, cores=(0, 1))
    build.disk("sql1", "sdb", 250, 0.0005).open("orders", "sql-mix", 300)
    build.operations("orders", "log_append", 300 * (1 - share), 0.004)
    build.operations("orders", "log_append", 300 * share, 0.001, outcome="too_many_connections", noise=0.01)
    if asked:
        build.metric("sql1", "db.connections_ratio", 0.995, noise=0.002)
    return build.generator(orders=(300.0, 300.0))


def test_refused_connections_are_a_pool_that_is_used_up() -> None:
    """All connections in use and 5 % refused operations name the pool, beside idle CPU and disk."""
    verdict = judged(refused(0.05, asked=True))
    assert named(verdict)[:3] == ("pool", "sql", "sql1")


def test_refusals_are_evidence_also_where_the_server_was_not_asked() -> None:
    """Refused operations name the pool with low confidence where the server has no samples."""
    verdict = judged(refused(0.05, asked=False))
    assert named(verdict) == ("pool", "sql", "sql1", "low")
    assert "of the operations are refused one" in verdict.summary


def full_interface(*, witness: bool, used: float = 0.97) -> Build:
    """Build a store behind an interface with that utilisation; ``witness``: its CPU was measured."""
    build = Build().host("nosql1", "nosql", cores=(0, 1)).closed("burst", "nosql-burst", 16)
    build.cpu("nosql1", 0.1, 0.08 if witness else None, cores=(0, 1))
    build.metric("nosql1", "net.speed_bytes_per_s", 2e6, "eth0", 0.0)
    build.metric("nosql1", "net.received_bytes_per_s", used * 2e6, "eth0", 0.004)
    build.metric("nosql1", "net.sent_bytes_per_s", 2e4, "eth0", 0.01)
    build.operations("burst", "set", 320, 0.05).metric("generator1", "generator.users", 16.0, "burst", 0.0)
    return build.generator()


def test_a_full_interface_has_its_idle_tier_for_a_witness() -> None:
    """A saturated interface and an idle store behind it are two kinds of evidence: medium."""
    assert named(judged(full_interface(witness=True))) == ("network", "nosql", "nosql1", "medium")


def test_without_that_witness_a_full_interface_is_low() -> None:
    """A saturated interface without figures of its store has low confidence."""
    assert named(judged(full_interface(witness=False))) == ("network", "nosql", "nosql1", "low")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_read_every_five_seconds_is_named_without_its_kind(seed: int) -> None:
    """A disk with readings every 5 s is named without its kind."""
    build = store(seed, main_thread__busy_ratio=0.99, aof__wait_ratio=0.9)
    build.operations("burst", "set", 480, 16 / 480).cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 40, 0.025, busy=0.93, pressure=0.9, outstanding_noise=0.1)
    build.samples = [row for row in build.samples if row[3][:5] != "disk." or row[0] // 10**9 % 5 == 0]
    verdict = judged(build)
    assert verdict.bottleneck
    assert (verdict.bottleneck.role, verdict.bottleneck.kind) == ("data", "disk")
    assert verdict.bottleneck.confidence == "low"
    assert "the data disk of nosql1 was read only 12 times" in verdict.bottleneck.why_not_more[0]
    assert verdict.experiment == (
        "Read the data disk of nosql1 more often, or measure for longer; then run again."
    )


@pytest.mark.parametrize("started", [900.0, 700.0])
def test_nothing_is_called_healthy_beside_a_busy_disk_that_was_hardly_read(started: float) -> None:
    """A log that is always busy and read every 5 s gives no all-clear."""
    build = (
        Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.1, 0.1, cores=(0, 1))
    )
    build.disk("sql1", "sdb", 95, 0.01, busy=0.98, pressure=0.8)
    build.open("orders", "sql-mix", 900).operations("orders", "log_append", started, 0.008)
    build.samples = [row for row in build.samples if row[3][:5] != "disk." or row[0] // 10**9 % 5 == 0]
    verdict = judged(build.generator(orders=(900.0, started)))
    if started < 900:
        assert verdict.bottleneck
        assert (verdict.bottleneck.kind, verdict.bottleneck.confidence) == ("disk", "low")
        assert "the log disk of sql1 was read only 12 times" in verdict.bottleneck.why_not_more[0]
    else:
        assert verdict.outcome == "inconclusive"
        assert "the log disk of sql1 was read only 12 times" in verdict.summary


def test_nothing_outside_is_blamed_beside_an_interface_that_is_nearly_full() -> None:
    """An interface at 85 % excludes naming a dependency behind it."""
    verdict = judged(full_interface(witness=True, used=0.85))
    assert verdict.outcome == "inconclusive"


def starved_of_sessions(*, watched: bool) -> Build:
    """Build sessions that all wait, so half of the schedule is not started; ``watched``: with samples."""
    build = Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.2, cores=(0, 1))
    build.manifest["collectors"] = [{"kind": "postgres", "hosts": ["sql1"], "interval_s": 1.0}]
    if watched:
        build.metric("sql1", "collector.ok", 1.0, "postgres", 0.0).sessions("sql1", 20.0)
    build.open("orders", "sql-mix", 100).operations("orders", "lock_contend", 50, 0.4, dropped=50)
    return build.generator(orders=(100.0, 50.0))


def test_a_database_that_was_to_be_watched_and_was_not_is_unseen() -> None:
    """A database without its expected samples is a gap, not a proof against the generator."""
    assert judged(starved_of_sessions(watched=True)).outcome == "invalid"
    verdict = judged(starved_of_sessions(watched=False))
    assert verdict.outcome == "inconclusive"
    assert "the postgres server on sql1 was not measured" in verdict.summary


@pytest.mark.parametrize("hidden", [8.0, 0.0])
def test_sessions_that_are_hidden_are_not_idle(hidden: float) -> None:
    """Zero visible sessions are evidence only where the role may see all sessions."""
    build = (
        Build().host("sql1", "sql", cores=(0, 1)).cpu("sql1", 0.1, 0.1, cores=(0, 1)).sessions("sql1", 0.0)
    )
    build.metric("sql1", "db.sessions_hidden", hidden, noise=0.0)
    build.closed("orders", "sql-mix", 8).operations("orders", "point_read", 160, 0.05, noise=0.01)
    verdict = judged(build.generator())
    assert (verdict.outcome == "inconclusive") == (hidden > 0)


@pytest.mark.parametrize("instance", ["connections", "tickets for writing"])
def test_a_candidate_pool_is_called_by_what_it_is_a_pool_of(instance: str) -> None:
    """A candidate pool is described by its kind: connections, threads or tickets."""
    pool = Bottleneck("pool", "nosql", "mongo1", "pool", instance, None, None, None, ())
    assert inconclusive_words("it is not clear", [pool]).lead == f"Candidates: {instance} of mongo1."


@pytest.mark.parametrize("seed", SEEDS)
def test_readings_of_one_direction_that_are_lost_leave_an_interface_as_full(seed: int) -> None:
    """A third of the fuller direction's readings is missing, and the interface stays saturated."""
    build = full_interface(witness=True)
    random = np.random.default_rng(seed)
    build.samples = [
        row for row in build.samples if row[3] != "net.received_bytes_per_s" or random.random() > 1 / 3
    ]
    assert named(judged(build)) == ("network", "nosql", "nosql1", "medium")


def busy_log() -> Build:
    """Build commits that are all served by a log disk that is almost always busy."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.1, 0.1, cores=(0, 1)).disk("sql1", "sdb", 95, 0.01, busy=0.98, pressure=0.8)
    return build.open("orders", "sql-mix", 900).operations("orders", "log_append", 900, 0.008)


@pytest.mark.parametrize(
    ("metric", "what"), [("outstanding", "what is outstanding"), ("reads_per_s", "reads")]
)
def test_what_nobody_measured_of_a_disk_is_what_is_asked_for(metric: str, what: str) -> None:
    """If one of a disk's columns is missing, the experiment asks for that column."""
    build = busy_log()
    build.samples = [row for row in build.samples if row[3] != f"disk.{metric}"]
    verdict = judged(build.generator(orders=(900.0, 900.0)))
    assert verdict.outcome == "inconclusive"
    assert f"{what} of the log disk of sql1 was not measured" in verdict.summary.lower()
    assert (
        verdict.experiment == f"Measure {what} of the log disk of sql1 as well, and run the same plan again."
    )


def test_no_experiment_is_the_same_run_once_more() -> None:
    """The experiment never repeats the same run, also where single readings are lost."""
    build = log_disk({"iops": 500.0})
    random = np.random.default_rng(1)
    build.samples = [row for row in build.samples if row[3][:5] != "disk." or random.random() > 0.3]
    verdict = judged(build)
    assert verdict.bottleneck
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == ("disk", "log")
    [read] = re.findall(r"was read only (\d+) times", verdict.bottleneck.why_not_more[0])
    assert int(read) < 30
    assert "or measure for longer" in str(verdict.experiment)
