"""Tests of farms with emulated disks: built, limited, killed and removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from support import held, require, until

from pinchpoint_collectors.linux import diskstats
from pinchpoint_infra.disks import DiskSpec, emulated
from pinchpoint_infra.embedded import FarmSpec, FarmStatus, down, limit, status, up
from pinchpoint_infra.embedded.place import STATE_VARIABLE, farm_directory, farm_id
from pinchpoint_infra.embedded.removal import behind_disks, of_farm

pytestmark = pytest.mark.farm
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices and mounts")

DISKS = {"sql.log": DiskSpec(iops=230), "sql.data": DiskSpec(iops=3000, latency_s=0.002)}


@pytest.fixture
def wanted(tmp_path: Path) -> Iterator[FarmSpec]:
    require("fusermount3", "fuse3")
    made = FarmSpec(tmp_path / "farm.yaml", "tests", ("sql",), disks=DISKS)
    yield made
    down(made.identity)


def started(wanted: FarmSpec) -> FarmStatus:
    return up(wanted, lifeline=False, progress=lambda _: None)


def nothing_left(wanted: FarmSpec) -> None:
    """Assert that no mount, device, throttle, process or file of this farm is left."""
    directory, identifier = farm_directory(wanted.identity), farm_id(wanted.identity)
    assert emulated.mounts_below(directory) == []
    assert emulated.devices_of(identifier, directory) == []
    assert behind_disks(identifier) == []
    assert of_farm(identifier, directory) == []
    assert not directory.exists()


def writes_per_s(device: str, seconds: float) -> float:
    """Return the writes per second that the kernel counts at a device."""
    before = diskstats.parse(Path("/proc/diskstats").read_text())[device].writes
    time.sleep(seconds)
    return (diskstats.parse(Path("/proc/diskstats").read_text())[device].writes - before) / seconds


@pytest.mark.alone
@AS_ROOT
def test_the_database_lies_on_its_disks_and_obeys_them(wanted: FarmSpec) -> None:
    """PostgreSQL's commits keep the log disk's limit by the kernel's count, while limits are active."""
    found = started(wanted)
    assert found.emulated["sql.log"]["mount"] == found.disks["sql"]["log"]
    assert "FUSE" in found.emulated["sql.log"]["way"]
    device = found.emulated["sql.log"]["device"]
    bench = [str(next(Path(psutil.Process(found.tiers[0].pid).exe()).parent.glob("pgbench")))]
    bench += ["-n", "-c", "8", "-f", "/dev/stdin", "-T", "30", found.endpoints["sql"]["url"]]
    with psycopg.connect(found.endpoints["sql"]["url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x text)")
        assert connection.execute("SHOW debug_io_direct").fetchone() == ("data",)
    with subprocess.Popen(bench, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        assert running.stdin is not None
        running.stdin.write("INSERT INTO t VALUES (repeat('x', 100));\n")
        running.stdin.close()
        time.sleep(1)
        assert writes_per_s(device, 1) > 400
        limit(wanted.identity, hold=True)
        assert status(wanted.identity).limited
        time.sleep(0.5)
        held(230, 0.03, lambda: writes_per_s(device, 3))
        limit(wanted.identity, hold=False)
        time.sleep(0.5)
        assert writes_per_s(device, 1) > 400
        running.kill()
    down(wanted.identity)
    nothing_left(wanted)


@AS_ROOT
def test_everything_killed_everything_freed(wanted: FarmSpec) -> None:
    """After SIGKILL of the supervisor, the server and the disks' processes, everything is freed."""
    started(wanted)
    limit(wanted.identity, hold=True)
    directory, identifier = farm_directory(wanted.identity), farm_id(wanted.identity)
    for process in [*behind_disks(identifier), *of_farm(identifier, directory)]:
        process.kill()
    time.sleep(0.5)
    assert status(wanted.identity).state == "broken"
    said = down(wanted.identity)
    assert any("unmounted" in sentence for sentence in said)
    assert any("loop device" in sentence for sentence in said)
    nothing_left(wanted)
    assert started(wanted).state == "up"


@AS_ROOT
def test_disks_in_a_state_folder_behind_a_link_are_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disks are freed also if the state folder is a symbolic link, although the kernel reports real paths."""
    require("fusermount3", "fuse3")
    real = Path(os.environ[STATE_VARIABLE]).with_name("linked")
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "link" / "state"))
    wanted = FarmSpec(
        tmp_path / "farm.yaml", "tests", ("nosql",), disks={"nosql.data": DiskSpec(latency_s=0.001)}
    )
    try:
        started(wanted)
        assert any("unmounted" in sentence for sentence in down(wanted.identity))
        nothing_left(wanted)
    finally:
        monkeypatch.setenv(STATE_VARIABLE, str(real / "state"))
        down(wanted.identity)
        real.rmdir()


@AS_ROOT
def test_an_owner_that_is_killed_leaves_no_disk(wanted: FarmSpec) -> None:
    """A farm on a lifeline unmounts and frees its disks when its owner is killed."""
    script = (
        "import sys, time; from pathlib import Path; from pinchpoint_infra.embedded import FarmSpec, up\n"
        "from pinchpoint_infra.disks import DiskSpec\n"
        "spec = FarmSpec(Path(sys.argv[1]), 't', ('nosql',), disks={'nosql.data': DiskSpec(iops=100)})\n"
        "up(spec, lifeline=True, progress=print)\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(wanted.identity)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert any("ready" in line for line in owner.stdout)
        assert emulated.mounts_below(farm_directory(wanted.identity))
        owner.kill()
    until(lambda: status(wanted.identity).state == "down")
    nothing_left(wanted)


@pytest.mark.skipif(os.geteuid() == 0, reason="runs as an ordinary user: root has what disks need")
def test_without_rights_folders_take_their_place(tmp_path: Path) -> None:
    """Without root, one warning names what is missing and the affected disks; the rest of the farm works."""
    wanted = FarmSpec(tmp_path / "farm.yaml", "tests", ("sql",), disks=DISKS)
    try:
        found = started(wanted)
        assert found.emulated == {}
        [warning] = [one for one in found.warnings if "plain folders" in one]
        assert "root rights" in warning
        assert "sql.log, sql.data" in warning
        limit(wanted.identity, hold=True)
    finally:
        down(wanted.identity)
    nothing_left(wanted)
