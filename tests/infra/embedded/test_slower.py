"""Tests of making one part of a running farm slower for a while."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import valkey
from support import require

from pinchpoint_collectors.linux import cgroups, diskstats
from pinchpoint_infra.disks import DiskSpec
from pinchpoint_infra.embedded import FarmError, FarmSpec, FarmStatus, Slower, down, limit, slow, status, up
from pinchpoint_infra.faults import caps
from pinchpoint_infra.faults.delay import DelayedEndpoint

pytestmark = [pytest.mark.farm, pytest.mark.alone]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices, mounts, control groups")

LOG_IOPS = 240
ROUND_TRIP_S = 0.02


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FarmSpec, FarmStatus]]:
    disks = {"sql.log": DiskSpec(iops=LOG_IOPS)} if os.geteuid() == 0 else {}
    if disks:
        require("fusermount3", "fuse3")
    made = FarmSpec(
        tmp_path_factory.mktemp("slower") / "farm.yaml",
        "tests",
        ("sql", "nosql"),
        disks=disks,
        delays={"nosql": DelayedEndpoint(ROUND_TRIP_S)},
    )
    yield made, up(made, lifeline=False, progress=lambda _: None)
    down(made.identity)


def writes_per_s(device: str, seconds: float) -> float:
    """Return the writes per second that the kernel counts at a device."""
    before, begun = diskstats.parse(Path("/proc/diskstats").read_text())[device].writes, time.monotonic()
    time.sleep(seconds)
    done = diskstats.parse(Path("/proc/diskstats").read_text())[device].writes - before
    return done / (time.monotonic() - begun)


def ping_s(url: str) -> float:
    """Return the shortest of ten round trips to the NoSQL tier, in seconds."""
    with valkey.Valkey.from_url(url) as client:
        client.ping()
        times = []
        for _ in range(10):
            begun = time.perf_counter()
            client.ping()
            times.append(time.perf_counter() - begun)
    return min(times)


def quota_cores(pid: int) -> float | None:
    """Return the CPU quota of a process's control group, in cores; None without a quota."""
    machine = caps.support()
    groups = cgroups.groups(Path(f"/proc/{pid}/cgroup").read_text())
    folder = machine.roots["cpu"] / groups["" if machine.unified else "cpu"].lstrip("/")
    if machine.unified:
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    quota_us = int((folder / "cpu.cfs_quota_us").read_text())
    return None if quota_us < 0 else quota_us / int((folder / "cpu.cfs_period_us").read_text())


@AS_ROOT
def test_a_disk_goes_on_at_another_pace_and_comes_back_by_itself(farm: tuple[FarmSpec, FarmStatus]) -> None:
    """The log disk has three quarters of its limit by the kernel's count, and its whole limit afterwards."""
    wanted, found = farm
    device = found.emulated["sql.log"]["device"]
    bench = [str(next(Path(psutil.Process(found.tiers[0].pid).exe()).parent.glob("pgbench")))]
    bench += ["-n", "-c", "8", "-f", "/dev/stdin", "-T", "30", found.endpoints["sql"]["url"]]
    with psycopg.connect(found.endpoints["sql"]["url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x text)")
    with subprocess.Popen(bench, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        assert running.stdin is not None
        running.stdin.write("INSERT INTO t VALUES (repeat('x', 100));\n")
        running.stdin.close()
        limit(wanted.identity, hold=True)
        slow(wanted.identity, Slower("disk", "sql.log", 0.75), for_s=4)
        assert status(wanted.identity).slower == Slower("disk", "sql.log", 0.75)
        time.sleep(0.5)
        assert writes_per_s(device, 2) < 0.8 * LOG_IOPS
        time.sleep(2.2)
        assert status(wanted.identity).slower is None
        assert writes_per_s(device, 2) > 0.85 * LOG_IOPS
        running.kill()


@AS_ROOT
def test_a_tier_without_a_cap_gets_one_for_a_while(farm: tuple[FarmSpec, FarmStatus]) -> None:
    """All PostgreSQL processes, also later ones, get half of 0.8 cores; afterwards no quota."""
    wanted, found = farm
    limit(wanted.identity, hold=True)
    leader = next(tier.pid for tier in found.tiers if tier.name == "sql")
    assert leader is not None
    slow(wanted.identity, Slower("cpu", "sql", 0.5, cores=0.8), for_s=60)
    with psycopg.connect(found.endpoints["sql"]["url"]):
        family = [leader, *(child.pid for child in psutil.Process(leader).children())]
        assert len(family) > 3
        assert [quota_cores(pid) for pid in family] == [pytest.approx(0.4)] * len(family)
    slow(wanted.identity, None)
    assert quota_cores(leader) is None


def test_a_way_becomes_longer_and_what_is_not_there_is_said(farm: tuple[FarmSpec, FarmStatus]) -> None:
    """Half the speed of a proxy doubles its round trip; new limits restore it; errors change nothing."""
    wanted, found = farm
    url = found.endpoints["nosql"]["url"]
    limit(wanted.identity, hold=False)
    with pytest.raises(FarmError, match="do not hold now"):
        slow(wanted.identity, Slower("delay", "nosql", 0.5), for_s=60)
    limit(wanted.identity, hold=True)
    assert ping_s(url) == pytest.approx(ROUND_TRIP_S, rel=0.3)
    slow(wanted.identity, Slower("delay", "nosql", 0.5), for_s=60)
    assert ping_s(url) > 1.9 * ROUND_TRIP_S
    limit(wanted.identity, hold=True)
    assert ping_s(url) == pytest.approx(ROUND_TRIP_S, rel=0.3)
    for nothing in (Slower("disk", "sql.data", 0.5), Slower("delay", "sql", 0.5), Slower("cpu", "web", 0.5)):
        with pytest.raises(FarmError, match=nothing.name):
            slow(wanted.identity, nothing, for_s=60)
    assert status(wanted.identity).slower is None
