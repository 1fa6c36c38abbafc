"""Sessions that wait for a disk, derived from the disk's own figures where no server reports them."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.analysis.disks import Seconds
from harness.analysis.verdicts import answer, judged

from pinchpoint.analysis.flows import find_flows
from pinchpoint.analysis.resources.base import Resource
from pinchpoint.analysis.resources.disk.measures import seldom
from pinchpoint.analysis.resources.kinds import find_resources
from pinchpoint.data.inputs import DiskRole, read_inputs


def test_commits_that_take_less_than_a_write_do_not_wait_for_it() -> None:
    """Commits of 1 ms do not wait for log writes of 40 ms, so the log is not named."""
    build = Build(60).host("sql1", "sql", cores=(0, 1, 2, 3), disks={"log": "sdb"})
    build.cpu("sql1", 0.4, 0.38, cores=(0, 1, 2, 3))
    build.disk("sql1", "sdb", 24, 0.04, 0.05, busy=0.96, pressure=0.95, outstanding_noise=0.04)
    build.closed("orders", "sql-mix", 2).operations("orders", "log_append", 1900, 0.00105, noise=0.02)
    build.metric("generator1", "generator.users", 2.0, "orders", 0.0)
    verdict = judged(build.generator())
    assert verdict.outcome == "inconclusive", verdict.summary


def test_fast_reads_beside_slow_commits_do_not_hide_that_these_wait() -> None:
    """Fast reads beside slow writes do not hide that the writes wait for the log."""
    build = Build(60).host("nosql1", "nosql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("nosql1", 0.1, 0.08, cores=(0, 1))
    build.disk("nosql1", "sdb", 24, 0.04, 0.05, busy=0.96, pressure=0.95, outstanding_noise=0.04)
    build.closed("burst", "nosql-burst", 8).operations("burst", "record_write", 120, 0.066, noise=0.02)
    build.operations("burst", "record_read", 480, 0.0002, noise=0.02)
    build.metric("generator1", "generator.users", 8.0, "burst", 0.0)
    assert answer(judged(build.generator())) == ("disk_latency", "nosql", "log")


def test_more_reads_than_operations_are_not_all_theirs() -> None:
    """Four outstanding reads cannot belong to two users, so the disk has low confidence at most."""
    build = Build(60).host("sql1", "sql", cores=(0, 1, 2, 3), disks={"data": "sdc"})
    build.cpu("sql1", 0.5, 0.48, cores=(0, 1, 2, 3))
    build.disk("sql1", "sdc", 0, 0.015, reads=266, busy=1.0, pressure=0.97)
    build.closed("orders", "sql-mix", 2).operations("orders", "point_read", 240, 2 / 240, noise=0.02)
    build.metric("generator1", "generator.users", 2.0, "orders", 0.0)
    verdict = judged(build.generator())
    assert verdict.bottleneck is None or verdict.bottleneck.confidence == "low"
    if verdict.bottleneck:
        assert "other work or read-ahead reads" in " ".join(verdict.bottleneck.why_not_more)


def ends_with_seconds(limits: dict[str, float] | None, seed: int) -> Build:
    """Return a log with 150 writes/s, one at a time; one ends at random before or after each second."""
    seconds = Seconds(70)
    late = np.random.default_rng(seed).integers(0, 2, 71)
    seconds.writes = np.asarray(150 + late[:-1] - late[1:], dtype=np.float64)
    seconds.time_s = np.asarray(seconds.writes / 150, dtype=np.float64)
    seconds.bytes = np.asarray(seconds.writes * 24_000, dtype=np.float64)
    seconds.busy = np.ones(70)
    build = Build(60, seed=seed).host(
        "sql1", "sql", cores=(0, 1), disks={"log": "sdb"}, limits={"log": limits} if limits else None
    )
    build.cpu("sql1", 0.4, 0.38, cores=(0, 1)).device("sql1", "sdb", seconds, pressure=0.95)
    build.closed("orders", "sql-mix", 20).operations("orders", "log_append", 1450, 20 / 1450, noise=0.01)
    return build.metric("generator1", "generator.users", 20.0, "orders", 0.0).generator()


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_what_a_second_s_ends_cut_off_is_no_movement(seed: int) -> None:
    """Counts of 149 to 151 caused by the ends of seconds do not hide a cap."""
    found = judged(ends_with_seconds({"iops": 150.0}, seed)).bottleneck
    assert found is not None
    assert (found.kind, found.confidence) == ("disk_cap", "medium"), found.why_not_more
    withheld = judged(ends_with_seconds(None, seed)).bottleneck
    assert withheld is None or withheld.kind == "disk_cap" or withheld.confidence == "low"


def readers_beside_commits(readers: int) -> Build:
    """Build eight users who commit to a log of 40 ms, and users who read from memory."""
    build = Build(60).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"}).cpu("sql1", 0.4, 0.38, (0, 1))
    build.disk("sql1", "sdb", 24, 0.04, 0.03, busy=0.97, pressure=0.97, outstanding_noise=0.04)
    build.sessions("sql1", 8.0 + readers, IO__WalSync=1.0, LWLock__WALWrite=6.7)
    for name, operation, users, rate in (
        ("reports", "point_read", readers, 500 * readers),
        ("orders", "log_append", 8, 190),
    ):
        build.closed(name, "sql-mix", users).operations(name, operation, rate, users / rate, noise=0.01)
        build.metric("generator1", "generator.users", float(users), name, 0.0)
    return build.generator()


@pytest.mark.parametrize("readers", [2, 10])
def test_who_only_reads_does_not_wait_for_the_log(readers: int) -> None:
    """Sessions that commit wait for the log, and those that only read do not count."""
    verdict = judged(readers_beside_commits(readers))
    assert answer(verdict) == ("disk_latency", "sql", "log"), verdict.summary
    assert "of the time of orders" in verdict.summary
    assert "of the time of reports" not in verdict.summary


def test_where_nobody_commits_waiting_for_the_log_is_somebody_s() -> None:
    """Without a committing scenario the waits for the log count for the scenarios there are."""
    build = readers_beside_commits(2)
    del build.manifest["plan"]["scenarios"]["orders"]
    build.rows = [row for row in build.rows if row["scenario"] != "orders"]
    assert answer(judged(build)) == ("disk_latency", "sql", "log")


def resources(build: Build) -> dict[str, Resource]:
    """Return a run's disks by device."""
    inputs = read_inputs(build.run())
    found = find_resources(inputs, find_flows(inputs))
    return {one.instance: one for one in found if one.type == "disk"}


@pytest.mark.parametrize("role", ["log", "wal", "journal"])
def test_waits_for_a_log_are_not_the_data_disk_s_whatever_the_log_is_called(role: str) -> None:
    """Waits for a log are attributed to the log's disk under each of its role names."""
    build = Build(60).host("sql1", "sql", cores=(0, 1), disks={role: "sdb", "data": "sdc"})
    build.cpu("sql1", 0.2, cores=(0, 1)).disk("sql1", "sdb", 100, 0.01).disk("sql1", "sdc", 100, 0.03)
    build.sessions("sql1", 8.0, IO__WalSync=7.0, IO__DataFileRead=0.0)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 100, 0.08)
    found = resources(build)
    assert found["sdb"].columns["sessions"].mean() == pytest.approx(7, rel=0.1)
    assert found["sdc"].columns["sessions"].mean() == 0


def test_without_a_disk_of_its_own_the_log_is_waited_for_at_the_data_disk() -> None:
    """Without a log disk, waits for the log are attributed to the data disk."""
    build = Build(60).host("sql1", "sql", cores=(0, 1), disks={"data": "sdc"})
    build.cpu("sql1", 0.2, cores=(0, 1)).disk("sql1", "sdc", 100, 0.03)
    build.sessions("sql1", 8.0, IO__WalSync=5.0, IO__BufFileRead=2.0)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 100, 0.08)
    assert resources(build)["sdc"].columns["sessions"].mean() == pytest.approx(7, rel=0.1)


@pytest.mark.parametrize(
    ("event", "device"),
    [
        ("LWLock:BufferIO", "sdc"),  # PostgreSQL 13
        ("IPC:BufferIO", "sdc"),  # PostgreSQL 14 to 16
        ("IPC:BufferIo", "sdc"),  # PostgreSQL 17 and later
        ("LWLock:AioUringCompletion", "sdc"),  # PostgreSQL 18
        ("IO:AioIoCompletion", "sdc"),
        ("IO:SLRURead", "sdc"),  # up to PostgreSQL 16
        ("IO:SLRUWrite", "sdc"),
        ("IO:SlruRead", "sdc"),
        ("IO:WALSync", "sdb"),  # up to PostgreSQL 16
        ("IO:WalSync", "sdb"),
        ("LWLock:WALWrite", "sdb"),
    ],
)
def test_waits_are_known_by_the_name_each_version_has_for_them(event: str, device: str) -> None:
    """Each PostgreSQL version's wait events are attributed to the right disk."""
    build = Build(60).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", 0.2, cores=(0, 1)).disk("sql1", "sdb", 100, 0.01).disk("sql1", "sdc", 100, 0.03)
    build.sessions("sql1", 8.0, **{event.replace(":", "__"): 6.0})
    build.closed("orders", "sql-mix", 8).operations("orders", "point_read", 100, 0.08)
    found = {name: one.columns["sessions"].mean() for name, one in resources(build).items()}
    assert found.pop(device) == pytest.approx(6, rel=0.1)
    assert list(found.values()) == [0]


def test_of_a_second_data_disk_no_database_tells_who_waits() -> None:
    """For a data disk with another role name the waiting sessions are unknown, not 0."""
    build = Build(60).host("sql1", "sql", cores=(0, 1), disks={"data": "sdc", "archive": "sdd"})
    build.cpu("sql1", 0.2, cores=(0, 1)).disk("sql1", "sdc", 10, 0.001)
    build.disk("sql1", "sdd", 0.0, 0.02, reads=350, busy=1.0)
    build.sessions("sql1", 8.0, IO__DataFileRead=7.0)
    build.closed("orders", "sql-mix", 8).operations("orders", "point_read", 350, 8 / 350)
    found = resources(build)
    assert np.isnan(found["sdd"].columns["sessions"]).all()
    assert found["sdc"].columns["sessions"].mean() == pytest.approx(7, rel=0.1)


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (None, "the log disk of sql1 was read only 2 times in 40 steps"),
        ("azure/ds12", "all disks of sql1 together were read only 2 times in 40 steps"),
    ],
)
def test_what_was_read_too_seldom_is_named(whole: str | None, words: str) -> None:
    """A disk with too few readings is named by its role, or as all disks of its host."""
    reads = np.full(40, np.nan)
    reads[:2] = 1.0
    role = DiskRole("sql", "sql1", "log", "a", "sdb", None, "kernel", None)
    columns = dict.fromkeys(("reads", "writes", "outstanding", "busy"), reads)
    disk = Resource("x", "disk", "a", ("sql1",), ("sql",), "sdb", roles=(role,), whole=whole, columns=columns)
    said = seldom(disk, np.arange(40))
    assert words in said.why
    assert "None" not in said.why + str(said.experiment)
