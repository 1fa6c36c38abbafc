"""Who waits for a disk, where only its own figures tell."""

from __future__ import annotations

from harness.analysis.build import Build
from harness.analysis.test_shapes import answer

from pinchpoint.analysis import Verdict, analyse


def judged(build: Build) -> Verdict:
    verdict = analyse(build.run())
    verdict.to_json()
    return verdict


def test_commits_that_take_less_than_a_write_do_not_wait_for_it() -> None:
    """Asynchronous commits of 1 ms, a log written at leisure in 40: two users wait for something else."""
    build = Build(60).host("sql1", "sql", cores=(0, 1, 2, 3), disks={"log": "sdb"})
    build.cpu("sql1", 0.4, 0.38, cores=(0, 1, 2, 3))
    build.disk("sql1", "sdb", 24, 0.04, 0.05, busy=0.96, pressure=0.95, outstanding_noise=0.04)
    build.closed("orders", "sql-mix", 2).operations("orders", "log_append", 1900, 0.00105, noise=0.02)
    build.metric("generator1", "generator.users", 2.0, "orders", 0.0)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive", verdict.summary


def test_fast_reads_beside_slow_commits_do_not_hide_that_these_wait() -> None:
    """Four of five operations of a store are reads of 0.2 ms; a write takes as long as the log does."""
    build = Build(60).host("nosql1", "nosql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 24, 0.04, 0.05, busy=0.96, pressure=0.95, outstanding_noise=0.04)
    build.closed("burst", "nosql-burst", 8).operations("burst", "record_write", 120, 0.066, noise=0.02)
    build.operations("burst", "record_read", 480, 0.0002, noise=0.02)
    build.metric("generator1", "generator.users", 8.0, "burst", 0.0)
    assert answer(judged(build.generator())) == ("disk_latency", "nosql", "log")


def test_more_reads_than_operations_are_not_all_theirs() -> None:
    """A backup keeps four reads of 15 ms going, on a server nobody asked; two users cannot have as many."""
    build = Build(60).host("sql1", "sql", cores=(0, 1, 2, 3), disks={"data": "sdc"})
    build.cpu("sql1", 0.5, 0.48, cores=(0, 1, 2, 3))
    build.disk("sql1", "sdc", 0, 0.015, reads=266, busy=1.0, pressure=0.97)
    build.closed("orders", "sql-mix", 2).operations("orders", "point_read", 240, 2 / 240, noise=0.02)
    build.metric("generator1", "generator.users", 2.0, "orders", 0.0)
    verdict = judged(build.generator())
    assert verdict.bottleneck is None or verdict.bottleneck.confidence == "low"
    if verdict.bottleneck:
        assert "others read there, too, or ahead" in " ".join(verdict.bottleneck.why_not_more)
