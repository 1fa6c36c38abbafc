"""Tests of a tier with two hosts: a server, a disk and a CPU share per host, behind one endpoint."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import pytest
from support import require, until

from pinchpoint_infra.disks import DiskSpec
from pinchpoint_infra.embedded import FarmInputError, FarmSpec, FarmStatus, down, limit, slow, status, up
from pinchpoint_infra.embedded.place import farm_directory, farm_id
from pinchpoint_infra.embedded.record import Slower
from pinchpoint_infra.embedded.removal import behind_disks, of_farm

pytestmark = pytest.mark.farm
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices, mounts, control groups")
HOSTS = {"search": 2}


def started(wanted: FarmSpec) -> FarmStatus:
    return up(wanted, lifeline=False, progress=lambda _: None)


@pytest.fixture
def wanted(tmp_path: Path) -> Iterator[FarmSpec]:
    made = FarmSpec(tmp_path / "farm.yaml", "tests", ("search",), hosts=HOSTS)
    yield made
    down(made.identity)


def answers(host: str, token: str, method: str, target: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(
        f"http://{host}{target}", body, {"Authorization": f"Bearer {token}"}, method=method
    )
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return json.load(answer)


def test_two_hosts_are_two_servers_behind_one_endpoint(wanted: FarmSpec) -> None:
    """Each host has its own process, port, log and index; the URL names both, with one token."""
    found = started(wanted)
    assert [(tier.server, tier.name, tier.host) for tier in found.tiers] == [
        ("search.search1", "search", "search1"),
        ("search.search2", "search", "search2"),
    ]
    places = urlsplit(found.endpoints["search"]["url"]).netloc.split(",")
    assert places == [f"127.0.0.1:{tier.port}" for tier in found.tiers]
    assert len({tier.pid for tier in found.tiers} | {tier.log for tier in found.tiers}) == 4
    token = found.endpoints["search"]["token"]
    document = f"/documents?source=s&url={quote('http://a/b')}"
    answers(places[0], token, "POST", document, b"<html><body>about pumps</body></html>")
    for place, documents in zip(places, (1, 0), strict=True):
        assert answers(place, token, "POST", "/commit")["documents"] == documents
    assert len({roles["index"] for roles in found.disks.values()}) == 2
    down(wanted.identity)
    assert of_farm(farm_id(wanted.identity), farm_directory(wanted.identity)) == []
    assert not farm_directory(wanted.identity).exists()


def test_of_two_hosts_the_one_that_crashed_is_named(wanted: FarmSpec) -> None:
    """A crash of one of two hosts names that host, and the other stays up."""
    victim = started(wanted).tiers[1]
    os.kill(victim.pid or 0, signal.SIGKILL)
    until(lambda: status(wanted.identity).tiers[1].exit_status is not None)
    first, second = status(wanted.identity).tiers
    assert (first.state, second.state, second.exit_status) == ("up", "crashed", -signal.SIGKILL)
    assert (second.server, second.host) == ("search.search2", "search2")


def test_a_tier_with_one_host_only_takes_no_more(tmp_path: Path) -> None:
    """A tier that supports only one host refuses two; the error names the allowed tiers."""
    with pytest.raises(FarmInputError, match="hosts: found sql; allowed: search"):
        started(FarmSpec(tmp_path / "farm.yaml", "tests", ("sql",), hosts={"sql": 2}))


@AS_ROOT
def test_each_host_has_a_disk_and_a_share_of_cpu(tmp_path: Path) -> None:
    """Each host has its own device, control group and limits, and one host alone can be made slower."""
    require("fusermount3", "fuse3")
    disks = {f"search.search{number}.index": DiskSpec(iops=100.0 * number) for number in (1, 2)}
    cpus = {"search.search1": 0.3, "search.search2": 0.2}
    made = FarmSpec(tmp_path / "farm.yaml", "tests", ("search",), hosts=HOSTS, disks=disks, cpus=cpus)
    try:
        found = started(made)
        assert not found.warnings
        assert set(found.emulated) == set(disks)
        assert len({disk["device"] for disk in found.emulated.values()}) == 2
        for tier in found.tiers:
            mount = found.emulated[f"{tier.server}.index"]["mount"]
            assert found.disks[tier.server]["index"] == mount
            assert os.path.ismount(mount)
        limit(made.identity, hold=True)
        shares = [cores(tier.pid) for tier in found.tiers]
        assert shares == pytest.approx([0.3, 0.2])
        slow(made.identity, Slower("cpu", "search.search2", 0.5, 0.2), for_s=60)
        assert [cores(tier.pid) for tier in found.tiers] == pytest.approx([0.3, 0.1])
        slow(made.identity, Slower("disk", "search.search1.index", 0.5), for_s=60)
        assert [cores(tier.pid) for tier in found.tiers] == pytest.approx([0.3, 0.2])
    finally:
        down(made.identity)
    assert behind_disks(farm_id(made.identity)) == []
    assert not farm_directory(made.identity).exists()


def cores(pid: int | None) -> float:
    """Return the number of cores that the kernel allows a process and its group."""
    (own,) = {
        line.split(":", 2)[2]
        for line in Path(f"/proc/{psutil.Process(pid).pid}/cgroup").read_text().splitlines()
        if "pinchpoint-" in line and ({"cpu", ""} & set(line.split(":")[1].split(",")))
    }
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu")):
        group = root / own.lstrip("/")
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
            return int(quota) / int(period)
        if (group / "cpu.cfs_quota_us").exists():
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            return int(quota) / int(period)
    raise AssertionError(f"no CPU controller of {own}")
