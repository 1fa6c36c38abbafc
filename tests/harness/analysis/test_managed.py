"""A database on an unobserved machine is judged by its own counts against the declared caps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.analysis.verdicts import judged

SEEDS = (1, 2, 3)
CAP = 500.0
USERS = 16


def managed(seed: int = 1, caps: dict[str, float] | None = None, machine: str | None = None) -> Build:
    """Build users who commit as fast as possible; only the database has samples of its host."""
    build = Build(seed=seed).host("db1", "sql", machine="db1")
    build.manifest["hosts"]["db1"] = {"tier": "sql", "database": {"server": "postgresql"}, "not_measured": []}
    limits: dict[str, Any] = {"iops": CAP} if caps is None else dict(caps)
    disk = {"limits": limits, "resolved_limits": limits} if limits else {"limits": "unknown"}
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["db1"] = {"machine": machine, "disks": {"log": disk}}
    build.closed("orders", "sql-mix", USERS).operations("orders", "log_append", CAP * 4, USERS / (CAP * 4))
    return build.metric("generator1", "generator.users", float(USERS), "orders", 0.0).generator()


def log(build: Build, rate: float, flush_s: float, noise: float = 0.01, files: str = "wal") -> Build:
    """Add the log file's samples: one flush per write, one at a time."""
    writes = build.noisy(rate, noise)
    busy = np.minimum(1.0, writes * flush_s)
    build.metric("db1", "db.writes_per_s", writes, files, 0.0)
    build.metric("db1", "db.write_bytes_per_s", writes * 8192, files, 0.0)
    build.metric("db1", "db.fsyncs_per_s", writes, files, 0.0)
    build.metric("db1", "db.fsync_s_per_s", busy, files, 0.02)
    build.metric("db1", "db.write_latency_s", 2e-5, files, 0.1, writes)
    return build.metric("db1", "db.fsync_latency_s", flush_s, files, 0.05, writes)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("files", "wait"), [("wal", "IO__WalSync"), ("log", "Log__WRITELOG")])
def test_a_log_at_its_declared_cap_is_named_with_low_confidence(seed: int, files: str, wait: str) -> None:
    """A log at its cap is named with low confidence; the finding says that the database counted."""
    build = log(managed(seed), CAP * 0.98, 0.002, files=files).sessions("db1", float(USERS), **{wait: 15.0})
    verdict = judged(build)
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.tier, found.host, found.role) == ("disk_cap", "sql", "db1", "log")
    assert found.confidence == "low"
    assert "db1 was not measured, only its database" in found.why_not_more
    first = found.evidence[0]
    assert first.fact.endswith(", as counted by the database: the disk itself was not measured")
    assert (first.metric, first.host, first.instance) == ("db.writes_per_s", "db1", files)
    assert first.threshold == CAP
    assert first.samples == 60
    [row] = verdict.disks
    assert row["iops_mean"] == pytest.approx(CAP * 0.98, rel=0.02)
    assert row["iops_source"] == "database"
    assert row["flush_latency_mean_s"] == pytest.approx(0.002, rel=0.1)
    assert row["why_not_measured"] is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cap_twice_as_high_names_the_wait_and_not_the_cap(seed: int) -> None:
    """At half of the declared cap, the log is named for its latency and not for the cap."""
    build = log(managed(seed, {"iops": 100.0}), 45, 0.020, noise=0.15)
    verdict = judged(build.sessions("db1", float(USERS), IO__WalSync=15.0))
    found = verdict.bottleneck or verdict.candidates[0]
    assert (found.kind, found.role) != ("disk_cap", "log")
    assert found.role == "log"
    assert found.confidence in ("low", None)


def test_without_a_cap_the_database_s_waits_are_enough_to_say_so() -> None:
    """Without a declared limit, latency and waits name the log with low confidence at most."""
    build = log(managed(1, {}), 45, 0.020, noise=0.15).sessions("db1", float(USERS), IO__WalSync=15.0)
    found = judged(build).bottleneck or judged(build).candidates[0]
    assert found.role == "log"
    assert found.confidence in ("low", None)


def test_a_database_that_is_not_timed_still_shows_its_cap() -> None:
    """A database without I/O timing still shows its cap, without a figure for outstanding I/O."""
    build = managed(1)
    build.metric("db1", "db.writes_per_s", CAP * 0.99, "wal", 0.005)
    build.metric("db1", "db.reads_per_s", 0.0, "wal", 0.0)
    build.metric("db1", "db.fsync_latency_s", None, "wal")
    verdict = judged(build.sessions("db1", float(USERS), IO__WalSync=15.0))
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.role, found.confidence) == ("disk_cap", "log", "low")
    assert not any(fact.metric.startswith("disk.outstanding") for fact in found.evidence)


def test_a_machine_s_cap_holds_for_what_the_database_counts() -> None:
    """A machine limit below the disk's limit is named, with the database's count as evidence."""
    build = managed(1, {"iops": 100_000.0}, machine="azure/d1")
    machine = _smallest_machine()
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["db1"]["machine"] = machine[0]
    log(build, machine[1] * 0.98, 1.0 / machine[1], files="log").sessions("db1", 16.0, Log__WRITELOG=15.0)
    verdict = judged(build)
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.host, found.role) == ("disk_cap", "db1", None)
    assert "as counted by the database" in found.evidence[0].fact
    assert found.confidence == "low"


def _smallest_machine() -> tuple[str, float]:
    from pinchpoint_infra.catalogue import catalogue  # noqa: PLC0415 -- of this test alone

    found = [(one.iops, one.name) for one in catalogue().values() if one.kind == "machine" and one.iops]
    iops, name = min(found)
    return name, float(iops or 0)


def test_a_seen_disk_is_never_taken_from_the_database() -> None:
    """With a host collector the kernel's figures are used, also where the kernel has none."""
    build = log(managed(1), CAP * 0.98, 0.002).sessions("db1", float(USERS), IO__WalSync=15.0)
    build.manifest["hosts"]["db1"]["roles"] = {"log": {"given": "/x", "device": None, "why": "in memory"}}
    verdict = judged(build)
    [row] = verdict.disks
    assert row["iops_mean"] is None
    assert row["why_not_measured"] == "in memory"
    assert verdict.bottleneck is None or verdict.bottleneck.resource != "disk"


def test_an_idle_managed_database_is_not_blamed() -> None:
    """An idle managed database is not blamed: the schedule limited the load."""
    build = Build().host("db1", "sql", machine="db1")
    build.manifest["hosts"]["db1"] = {"tier": "sql", "database": {}, "not_measured": []}
    limits = {"iops": CAP}
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["db1"] = {
        "machine": None,
        "disks": {"data": {"limits": limits, "resolved_limits": limits}},
    }
    build.open("orders", "sql-mix", 50).operations("orders", "log_append", 50, 0.002)
    build.generator(orders=(50.0, 50.0))
    log(build, 50, 0.001).metric("db1", "db.writes_per_s", 10.0, "data").metric(
        "db1", "db.reads_per_s", 5.0, "data"
    )
    verdict = judged(build.sessions("db1", 0.1))
    assert verdict.outcome in ("not_reached", "inconclusive")
    assert verdict.bottleneck is None
    [row] = verdict.disks
    assert row["iops_mean"] == pytest.approx(65, rel=0.1), "the data disk holds the log as well"
