"""Tests of emulated disks with fio, measured by the kernel's own counters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from emulateddisks import EmulatedDisks, emulated_disks
from support import held

from pinchpoint_collectors.linux import diskstats
from pinchpoint_infra.disks import Device, DiskSpec, emulated, support, way
from pinchpoint_infra.disks.emulated import EmulatedDisk, remove_all
from pinchpoint_infra.disks.raid import Level
from pinchpoint_infra.disks.way import DiskStack, without_caps

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices and mounts"),
    pytest.mark.alone,
]

SECONDS = 2


@dataclass
class Done:
    """Rates that the kernel counted at the device, and times that fio reported."""

    reads_per_s: float
    writes_per_s: float
    bytes_per_s: float
    write_latency_s: float
    flushes: int
    fio_latency_s: float

    @property
    def operations_per_s(self) -> float:
        """Reads and writes per second together."""
        return self.reads_per_s + self.writes_per_s


class Made:
    """Makes disks and runs fio on them."""

    def __init__(self, disks: EmulatedDisks) -> None:
        self.place = disks.place
        self.farm_id = disks.farm_id
        self._disks = disks

    def make(self, spec: DiskSpec, name: str = "sql.log", way: DiskStack | None = None) -> EmulatedDisk:
        """Return a disk with active limits."""
        disk = self._disks.build(spec, name, way)
        # writes the file's blocks first
        job(start_fio(self._disks.mount(disk), "--rw=write", "--bs=1M", "--end_fsync=1"))
        disk.apply(on=True, group=None)
        return disk

    def drive(self, disk: EmulatedDisk, *options: str) -> Done:
        """Run fio on the disk; return the kernel's rates without the first and last second."""
        mount = Path(disk.describe()["mount"])
        running = start_fio(mount, *options, "--time_based", f"--runtime={SECONDS + 2}")
        time.sleep(1.2)
        before, begun = counters(disk.device), time.monotonic()
        time.sleep(SECONDS)
        after, length = counters(disk.device), time.monotonic() - begun
        seen = job(running)
        reads, writes = after.reads - before.reads, after.writes - before.writes
        sectors = after.read_sectors + after.write_sectors - before.read_sectors - before.write_sectors
        way = "read" if seen["read"]["iops"] > seen["write"]["iops"] else "write"
        return Done(
            reads_per_s=reads / length,
            writes_per_s=writes / length,
            bytes_per_s=sectors * 512 / length,
            write_latency_s=(after.write_ms - before.write_ms) / 1000 / max(1, writes),
            flushes=(after.flushes or 0) - (before.flushes or 0),
            fio_latency_s=seen[way]["clat_ns"]["mean"] / 1e9,
        )

    def hold(self, disk: EmulatedDisk, figure: str, cap: float, *options: str, within: float = 0.03) -> Done:
        """Run fio and assert that the figure is within the ratio ``within`` of the limit."""
        done: list[Done] = []

        def measured() -> float:
            done.append(self.drive(disk, *options))
            found: float = getattr(done[-1], figure)
            return found

        held(cap, within, measured)
        return done[-1]


def counters(device: str) -> diskstats.DiskCounters:
    """Return the device's counters in /proc/diskstats."""
    return diskstats.parse(Path("/proc/diskstats").read_text())[device]


def start_fio(mount: Path, *options: str) -> subprocess.Popen[str]:
    """Start fio on a file of 64 MiB."""
    given = [f"--filename={mount}/file", "--size=64M", "--verify_state_save=0", *options]
    return subprocess.Popen(
        ["fio", "--name=job", *given, "--output-format=json"], stdout=subprocess.PIPE, text=True
    )


def job(running: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for fio and return the figures of its job."""
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    found: dict[str, Any] = json.loads(said)["jobs"][0]
    return found


@pytest.fixture
def made() -> Iterator[Made]:
    """Yield a maker of disks; the disks are removed at the end."""
    with emulated_disks() as disks:
        yield Made(disks)


RANDOM = ("--rw=randwrite", "--bs=8k", "--direct=1", "--ioengine=libaio")
LOG_SHAPED = ("--rw=write", "--bs=8k", "--fdatasync=1", "--direct=0", "--overwrite=1")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(DiskSpec(iops=173), "FUSE time model", marks=pytest.mark.slow),  # ten seconds each
        pytest.param(DiskSpec(iops=1150), "FUSE time model", marks=pytest.mark.slow),
        (DiskSpec(write_iops=420, read_iops=2600), "blkio of control groups v1"),
        pytest.param(DiskSpec(iops=3300), "FUSE time model", marks=pytest.mark.slow),
    ],
)
def test_the_cap_holds_for_log_and_data_shaped_writes(made: Made, spec: DiskSpec, expected: str) -> None:
    """For log and data writes the kernel's count, with journal and write-back, is within 3 % of the limit."""
    disk = made.make(spec)
    assert expected in disk.describe()["way"]
    cap = spec.write_iops or spec.iops or 0
    log = made.hold(disk, "writes_per_s", cap, *LOG_SHAPED, "--numjobs=4", "--group_reporting", "--thread")
    assert log.flushes == 0
    made.hold(disk, "writes_per_s", cap, *RANDOM, "--iodepth=16")


def test_buffered_writes_obey_as_well(made: Made) -> None:
    """Buffered writes, which the kernel writes later, are limited as well."""
    disk = made.make(DiskSpec(iops=300))
    made.hold(disk, "writes_per_s", 300, "--rw=randwrite", "--bs=8k", "--direct=0", "--fsync=64")


def test_reads_and_writes_together_obey_one_cap(made: Made) -> None:
    disk = made.make(DiskSpec(iops=650))
    mixed = ("--rw=randrw", "--bs=8k", "--direct=1", "--ioengine=libaio", "--iodepth=8")
    done = made.hold(disk, "operations_per_s", 650, *mixed)
    assert done.reads_per_s > 200


@pytest.mark.parametrize("bytes_per_s", [12e6, 60e6])
def test_a_cap_in_bytes_holds(made: Made, bytes_per_s: float) -> None:
    """A limit in bytes is kept: 12 MB/s by the time model, 60 MB/s by the kernel's throttle."""
    disk = made.make(DiskSpec(bytes_per_s=bytes_per_s))
    large = ("--rw=write", "--bs=128k", "--direct=1", "--ioengine=libaio", "--iodepth=8")
    made.hold(disk, "bytes_per_s", bytes_per_s, *large)


@pytest.mark.parametrize(
    ("floor_s", "depth"), [(0.001, 1), pytest.param(0.035, 1, marks=pytest.mark.slow), (0.035, 16)]
)
def test_a_latency_floor_is_seen_at_the_device(made: Made, floor_s: float, depth: int) -> None:
    """The kernel's write latency is the minimum latency at any queue depth, and fio reports the same."""
    disk = made.make(DiskSpec(latency_s=floor_s))
    done = made.drive(disk, *RANDOM, f"--iodepth={depth}")
    assert floor_s <= done.write_latency_s < floor_s * 1.1 + 0.0005
    assert done.fio_latency_s == pytest.approx(done.write_latency_s, rel=0.1, abs=0.0005)


@pytest.mark.slow
def test_a_floor_above_the_throttle_reaches_a_high_cap(made: Made) -> None:
    """A minimum latency by the time model and a limit by the kernel's throttle work together."""
    disk = made.make(DiskSpec(latency_s=0.002, write_iops=3000))
    assert " + " in disk.describe()["way"]
    made.hold(disk, "writes_per_s", 3000, *RANDOM, "--iodepth=32")
    alone = made.drive(disk, *RANDOM, "--iodepth=1")
    assert 0.002 <= alone.write_latency_s < 0.003


@pytest.mark.slow
def test_stripes_need_depth(made: Made) -> None:
    """Four stripes of 10 ms give four times the rate at high queue depth, and a single one's rate at depth 1.

    At depth 1 each I/O also waits for this machine's other processes: under load a measurement may be a fifth
    lower, so the median of several counts. At high depth the backends' own queues hide this wait.
    """
    disk = made.make(DiskSpec(device=Device(0.01, 0.01, 0.1), stripes=4))
    narrow = made.hold(disk, "writes_per_s", 100, *RANDOM, "--iodepth=1", within=0.15)
    wide = made.drive(disk, *RANDOM, "--iodepth=32")
    assert wide.writes_per_s > 3 * narrow.writes_per_s


@pytest.mark.parametrize("level", [0, 5])
def test_what_was_written_is_read_back(made: Made, level: Level) -> None:
    """Data on four disks is read back correctly at every offset and length (fio verifies checksums)."""
    disk = made.make(DiskSpec(stripes=4, raid=level, latency_s=0.0001))
    mount = Path(disk.describe()["mount"])
    job(start_fio(mount, "--rw=randwrite", "--bsrange=512-300k", "--bs_unaligned", "--verify=crc32c"))


@pytest.mark.slow
def test_a_small_write_of_raid_5_takes_two_round_trips(made: Made) -> None:
    """A small RAID 5 write reads first: it takes twice the time of a disk or of RAID 10."""
    far = DiskSpec(latency_s=0.02, stripes=4)
    slow = made.drive(made.make(replace(far, raid=5), "sql.data"), *RANDOM, "--iodepth=1")
    fast = made.drive(made.make(replace(far, raid=10), "sql.log"), *RANDOM, "--iodepth=1")
    assert slow.write_latency_s == pytest.approx(0.04, rel=0.2)
    assert fast.write_latency_s == pytest.approx(0.02, rel=0.2)


@pytest.mark.slow
def test_limits_are_lifted_and_begin_anew(made: Made) -> None:
    disk = made.make(DiskSpec(iops=100))
    made.hold(disk, "writes_per_s", 100, *RANDOM, "--iodepth=4")
    disk.apply(on=False, group=None)
    assert made.drive(disk, *RANDOM, "--iodepth=4").writes_per_s > 500
    disk.apply(on=True, group=None)
    made.hold(disk, "writes_per_s", 100, *RANDOM, "--iodepth=4")


def _serves_a_disk(process: psutil.Process) -> bool:
    try:
        return "pinchpoint_infra.disks.fuse" in process.cmdline()
    except psutil.Error:  # a process of another test, which has just ended
        return False


def test_a_disk_whose_process_was_killed_is_removed(made: Made) -> None:
    """After SIGKILL during writes, the disk's mounts, devices and throttle can be removed."""
    spec = DiskSpec(write_iops=3000, latency_s=0.001)
    disk = made.make(spec)
    made.make(DiskSpec(iops=50), "sql.data")
    root = support().v1
    assert root is not None
    capped = (root / "blkio.throttle.write_iops_device").read_text()
    assert "3000" in capped
    writer = subprocess.Popen(
        ["dd", "if=/dev/zero", f"of={disk.describe()['mount']}/x", "bs=8k", "oflag=dsync"]
    )
    try:
        time.sleep(0.5)
        models = [one for one in psutil.Process().children() if _serves_a_disk(one)]
        assert len(models) == 2
        for model in models:
            model.send_signal(signal.SIGKILL)
    finally:
        writer.kill()
        writer.wait()
    said = remove_all(made.farm_id, made.place)
    assert any("unmounted 4" in sentence for sentence in said)
    assert (root / "blkio.throttle.write_iops_device").read_text().count("3000") == 0
    assert remove_all(made.farm_id, made.place) == []


def test_a_strangers_loop_device_is_left_alone(made: Made) -> None:
    """Only loop devices with the farm's id or in its folder are freed."""
    stranger = made.place.with_name(f"{made.place.name}-stranger")
    with stranger.open("wb") as file:
        file.truncate(2**22)
    name = emulated.attach(stranger)
    try:
        made.make(DiskSpec(iops=50))
        remove_all(made.farm_id, made.place)
        assert name in dict(emulated._backing_files())
    finally:
        emulated.detach(name)
        stranger.unlink()


def test_the_model_alone_can_do_what_the_throttle_does(made: Made) -> None:
    """On a machine without the throttle, the time model keeps the same limits, with more CPU."""
    spec = DiskSpec(write_iops=800, read_iops=200)
    disk = made.make(spec, way=DiskStack(spec, None))
    made.hold(disk, "writes_per_s", 800, *RANDOM, "--iodepth=8")
    assert way.limits(without_caps(spec)) == {}
