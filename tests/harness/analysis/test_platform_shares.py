"""Utilisation recorded by the cloud platform takes precedence over declared limits."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import START_S, Build
from harness.analysis.verdicts import judged

from pinchpoint.analysis.resources.disk.limits import recorded_shares


def log_on(
    writes: float, limits: dict[str, float] | None = None, size: int = 8192, noise: float = 0.05
) -> Build:
    """Build commits on a log disk at a constant rate, on a machine with spare capacity."""
    build = Build(120, seed=2)
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdc"}, limits={"log": limits} if limits else None)
    build.cpu("sql1", 0.3, 0.28, cores=(0, 1))
    # The rate is as uneven as a plain device's, so evenness alone shows no regulator.
    build.disk("sql1", "sdc", writes, 8 / writes, noise, busy=1.0, pressure=0.85, size_bytes=size)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", writes / 2, 16 / writes)
    return build.generator()


def recorded(build: Build, metric: str, share: float, instance: str = "") -> Build:
    """Add a platform metric: one value per minute, with its own time stamps."""
    for minute in range(0, build.seconds + 60, 60):
        end_ns = (START_S + minute) * 10**9
        build.samples.append((end_ns, 60.0, "sql1", metric, instance, share, None))
    build.metric("sql1", "collector.ok", 1.0, "azure", 0.0)
    build.manifest["collectors"].append({"kind": "azure", "hosts": ["sql1"], "interval_s": 1.0})
    return build


def test_a_recorded_share_of_a_disk_s_limit_makes_it_a_cap_without_a_declaration() -> None:
    """A recorded 100 % of the disk's IOPS names a cap without any declared limit."""
    unknown = judged(log_on(500)).bottleneck
    assert unknown is not None
    assert unknown.kind != "disk_cap"
    verdict = judged(recorded(log_on(500), "cloud.disk_iops_ratio", 1.0, "log"))
    found = verdict.bottleneck
    assert found is not None
    assert (found.kind, found.role) == ("disk_cap", "log")
    assert any(row["metric"] == "cloud.disk_iops_ratio" for row in verdict.stores)


def test_the_platform_is_right_where_the_declaration_is_not() -> None:
    """A recorded 100 % names a cap although the declared limit is ten times too high."""
    wrong = {"iops": 5000.0, "bytes_per_s": 200e6}
    verdict = judged(recorded(log_on(500, wrong), "cloud.disk_iops_ratio", 1.0, "log"))
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_cap"


def test_a_machine_s_recorded_limit_is_a_limit_of_all_its_disks() -> None:
    """A recorded 100 % of the machine's limit names the machine, not one of its disks."""
    build = recorded(log_on(2000, size=64000), "cloud.vm_uncached_bytes_ratio", 1.0)
    recorded(build, "cloud.disk_iops_ratio", 0.4, "log")
    recorded(build, "cloud.disk_bytes_ratio", 0.64, "log")
    verdict = judged(build)
    found = verdict.bottleneck
    assert found is not None
    assert found.kind == "disk_cap"
    assert found.instance == "machine", verdict.summary


def test_a_disk_far_below_its_recorded_limit_is_no_cap() -> None:
    """A recorded 30 % excludes a cap, although the rate equals the declared limit."""
    wrong = {"iops": 500.0, "bytes_per_s": 200e6}
    at_cap = judged(log_on(500, wrong, noise=0.02)).bottleneck
    assert at_cap is not None
    build = recorded(log_on(500, wrong, noise=0.02), "cloud.disk_iops_ratio", 0.3, "log")
    verdict = judged(recorded(build, "cloud.disk_bytes_ratio", 0.1, "log"))
    assert at_cap.kind == "disk_cap"
    assert verdict.bottleneck is None or verdict.bottleneck.kind != "disk_cap"


@pytest.mark.parametrize(
    ("limit", "spent"),
    [
        ("cloud.disk_iops_ratio", "cloud.disk_burst_iops_used_ratio"),
        ("cloud.disk_iops_exceeded_ratio", "cloud.disk_burst_used_ratio"),
    ],
)
@pytest.mark.parametrize("used", [0.4, 1.0])
def test_a_disk_at_its_limit_without_credits_has_exhausted_them(limit: str, spent: str, used: float) -> None:
    """At a recorded limit, unused credits mean a cap, and used-up credits mean exhausted credits."""
    verdict = judged(recorded(recorded(log_on(500), limit, 1.0, "log"), spent, used, "log"))
    found = verdict.bottleneck
    assert found is not None
    assert (found.kind, found.role) == ("disk_burst_exhausted" if used == 1 else "disk_cap", "log")
    if used == 1:
        assert "burst credits ran out" in verdict.summary
        assert verdict.advice
        assert any("burst credits" in fact.fact for fact in found.evidence)


def test_a_machine_without_credits_has_exhausted_them() -> None:
    """At the machine's recorded limit without credits, the machine's burst credits are exhausted."""
    build = recorded(log_on(2000, size=64000), "cloud.vm_bytes_exceeded_ratio", 1.0)
    recorded(build, "cloud.vm_burst_bytes_used_ratio", 0.99)
    found = judged(build).bottleneck
    assert found is not None
    assert (found.kind, found.role) == ("disk_burst_exhausted", None)


def test_credits_alone_are_no_limit() -> None:
    """Used-up credits of a disk at 30 % of its limit are no bottleneck."""
    build = recorded(log_on(500, noise=0.02), "cloud.disk_iops_ratio", 0.3, "log")
    found = judged(recorded(build, "cloud.disk_burst_iops_used_ratio", 1.0, "log")).bottleneck
    assert found is None or found.kind != "disk_burst_exhausted"


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_check_that_is_seldom_set_is_no_share(share: float) -> None:
    """Amazon's "exceeded" check counts only where it is set throughout; 0 is no utilisation."""
    assert recorded_shares({"over_io": np.full(60, share)}) == {}
    assert recorded_shares({"over_io": np.full(60, 1.0)}) == {"io": 1.0}
    assert recorded_shares({"over_io": np.full(60, 1.0), "used_io": np.full(60, 0.3)}) == {
        "io": pytest.approx(0.3)
    }
