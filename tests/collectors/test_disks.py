"""Tests of disks: a role's whole disk, its counters, and probes of a real disk (data_io)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import data_io, diskstats, mountinfo
from pinchpoint_collectors.linux.data_io import Counts, judge, verify_data_io
from pinchpoint_collectors.linux.disks import DiskPlace, Disks
from pinchpoint_collectors.linux.diskstats import METRICS, DiskCounters
from pinchpoint_collectors.linux.mountinfo import Mount
from pinchpoint_collectors.value import Value

MOUNTS = """\
27 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
28 27 253:0 / /data rw,noatime - xfs /dev/mapper/vg-data rw
"""


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """Return a machine's /sys: an NVMe disk of two partitions, a volume over two disks, virtual disks."""
    disks = {
        "nvme0n1": ("259:0", 1000, {"queue/rotational": "0", "queue/scheduler": "[none] mq-deadline"}),
        "sda": ("8:0", 2000, {"queue/rotational": "1", "device/model": "ST4000  "}),
        "sdb": ("8:16", 2000, {"queue/write_cache": "write back"}),
        "sr0": ("11:0", 0, {}),
        "nvme0c0n1": ("259:9", 1000, {"hidden": "1"}),
        "dm-0": ("253:0", 4000, {}),
        "loop0": ("7:0", 64, {}),
        "zram0": ("252:0", 64, {}),
        "md127": ("9:127", 64, {}),
    }
    for name, (number, sectors, files) in disks.items():
        add(tmp_path, name, number, {"size": str(sectors), **files})
    add(tmp_path, "nvme0n1/nvme0n1p2", "259:2", {"partition": "2", "size": "900"})
    add(tmp_path, "sdb/sdb1", "8:17", {"partition": "1", "size": "900"})
    for slave in ("sda", "sdb1"):
        (tmp_path / "block/dm-0/slaves" / slave).mkdir(parents=True)
    return tmp_path


def add(root: Path, name: str, number: str, files: dict[str, str], *, replace: bool = False) -> None:
    directory = root / "devices" / name
    for file, text in {"dev": number, **files}.items():
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(text + "\n")
    short = directory.name
    links = [root / "class/block" / short, root / "dev/block" / number]
    if "partition" not in files:
        links.append(root / "block" / short)
    for link in links:
        link.parent.mkdir(parents=True, exist_ok=True)
        if replace:
            link.unlink(missing_ok=True)
        link.symlink_to(directory)


def write(root: Path, file: str, text: str) -> None:
    path = root / "devices" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def disks_of(sys: Path) -> Disks:
    return Disks(mountinfo.parse(MOUNTS), sys)


def test_whole_disks_only(sys: Path) -> None:
    """Partitions, virtual devices, empty slots and hidden paths are not whole disks."""
    assert disks_of(sys).whole() == ["nvme0n1", "sda", "sdb"]


@pytest.mark.parametrize(
    ("given", "device", "mount_point"),
    [
        ("nvme0n1p2", "nvme0n1", "/"),
        ("nvme0n1", "nvme0n1", None),
        ("sdb1", "sdb", None),
        ("dm-0", "dm-0", "/data"),
        ("loop0", "loop0", None),
    ],
)
def test_a_device_name_leads_to_its_disk(sys: Path, given: str, device: str, mount_point: str | None) -> None:
    """A partition resolves to its disk, a volume to itself, with the mount of the named device."""
    place = disks_of(sys).place(given)
    assert place.device == device
    assert (place.mount.mount_point if place.mount else None) == mount_point


def test_a_volume_says_which_disks_are_below_it(sys: Path) -> None:
    """A volume lists the disks below it, so that readers do not add them; a partition counts as its disk."""
    facts = disks_of(sys).facts("dm-0")
    assert facts["members"] == ["sda", "sdb"]
    assert facts["size_bytes"] == 4000 * 512


def test_a_disk_whose_io_is_not_counted_has_no_line(sys: Path) -> None:
    """A disk with `iostats` off sends nothing; a mapped device counts by itself."""
    for name in ("sda", "dm-0"):
        write(sys, f"{name}/queue/iostats", "0")
    write(sys, "sdb/queue/iostats", "1")
    disks = disks_of(sys)
    assert [disks.lines(name) for name in ("sda", "sdb", "dm-0")] == [[], ["sdb"], ["dm-0"]]
    missing = disks.not_counted("sda")
    file = f"{sys}/block/sda/queue/iostats"
    assert (missing.metric, missing.instance) == ("disk.*", "sda")
    assert missing.why == f"the kernel does not count its I/O: 0 is in {file}"
    assert missing.remedy == f"run there as root: echo 1 > {file}"


@pytest.mark.parametrize(
    ("iostats", "stat", "paths_iostats", "lines"),
    [
        ("1", "7 0 56 1 9 0 72 1 0 1 2", "1", ["nvme0n1"]),  # a newer kernel, which counts the disk itself
        ("0", "0 0 0 0 0 0 0 0 0 0 0", "1", ["nvme0c0n1", "nvme0c1n1"]),
        ("1", "0 0 0 0 0 0 0 0 0 0 0", "1", ["nvme0c0n1", "nvme0c1n1"]),
        ("0", "0 0 0 0 0 0 0 0 0 0 0", "0", []),
    ],
)
def test_an_nvme_disk_of_several_paths(
    sys: Path, iostats: str, stat: str, paths_iostats: str, lines: list[str]
) -> None:
    """If the kernel counts only an NVMe disk's paths, its lines in diskstats are those of its own paths."""
    add(sys, "nvme0c1n1", "259:10", {"hidden": "1", "size": "1000"})
    add(sys, "nvme0c1n12", "259:11", {"hidden": "1", "size": "1000"})
    write(sys, "nvme0n1/queue/iostats", iostats)
    write(sys, "nvme0n1/stat", stat)
    for path in ("nvme0c0n1", "nvme0c1n1"):
        write(sys, f"{path}/queue/iostats", paths_iostats)
    disks = disks_of(sys)
    assert disks.lines("nvme0n1") == lines
    if not lines:
        files = [f"{sys}/block/{path}/queue/iostats" for path in ("nvme0c0n1", "nvme0c1n1")]
        remedy = disks.not_counted("nvme0n1").remedy
        assert remedy == f"run there as root: echo 1 > {files[0]}; echo 1 > {files[1]}"


def test_facts_of_a_disk(sys: Path) -> None:
    """A disk's facts come from /sys; a missing one is None."""
    assert disks_of(sys).facts("nvme0n1") == {
        "size_bytes": 512000,
        "model": None,
        "rotational": False,
        "scheduler": "none",
        "write_cache": None,
        "members": [],
    }
    assert disks_of(sys).facts("sda")["model"] == "ST4000"


def test_an_unknown_device_lists_the_disks_and_the_nearest(sys: Path) -> None:
    """An unknown device's error lists the disks and the nearest name."""
    message = "disk 'sdbl': no such device; disks here: nvme0n1, sda, sdb; nearest: sdb"
    with pytest.raises(CollectorError, match=re.escape(message)):
        disks_of(sys).place("sdbl")


def test_a_path_that_does_not_exist_is_named(sys: Path, tmp_path: Path) -> None:
    """A missing path is an error; its parent folder is not used, because it may be on another disk."""
    with pytest.raises(CollectorError, match=re.escape(f"{tmp_path}/nowhere': No such file")):
        disks_of(sys).place(f"{tmp_path}/nowhere")


@pytest.mark.parametrize(
    ("file_system", "source", "expected"),
    [
        ("tmpfs", "none", "in memory"),
        ("nfs4", "nas:/share", "on another machine"),
        ("overlay", "overlay", "container's overlay"),
        ("zfs", "tank/pg", "does not say which block device"),
    ],
)
def test_a_path_on_no_block_device_says_why(
    sys: Path, tmp_path: Path, file_system: str, source: str, expected: str
) -> None:
    """A path without a block device gives a reason; the constructed /sys has no device for it."""
    mount = Mount("0:77", "/", str(tmp_path), "rw", file_system, source, "rw")
    place = Disks([mount], sys).place(str(tmp_path))
    assert place.device is None
    assert place.mount == mount
    assert place.why is not None
    assert expected in place.why


def test_a_path_without_any_mount_says_so(sys: Path, tmp_path: Path) -> None:
    """Without a mount for the path, the reason says so."""
    assert Disks([], sys).place(str(tmp_path)).why == "the mount table does not say what it lies on"


def test_an_anonymous_device_number_is_resolved_by_the_mount_table(sys: Path) -> None:
    """On btrfs, whose folders have anonymous device numbers, the mount's device file is used."""
    source = next((path for path in sorted(Path("/dev").iterdir()) if path.is_block_device()), None)
    if source is None:
        pytest.skip("needs a block device file in /dev")
    number = source.stat().st_rdev
    add(sys, "vdz", f"{os.major(number)}:{os.minor(number)}", {"size": "9"}, replace=True)
    mount = Mount("0:50", "/", "/proc", "rw", "btrfs", str(source), "rw")
    assert Disks([mount], sys).place("/proc") == DiskPlace("/proc", "vdz", mount)


def test_a_real_folder_lies_on_a_real_whole_disk(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """A real folder's device is in /sys/block, as is the disk of its device file."""
    device = real_disk(tmp_path)
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text()))
    assert Path(f"/sys/block/{device}").exists()
    assert disks.facts(device)["size_bytes"] > 0
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert disks.place(str(link)).device == device
    if Path(f"/dev/{device}").is_block_device():
        assert disks.place(f"/dev/{device}").device == device


def test_shared_memory_is_on_no_disk() -> None:
    """This machine's shared memory is on no disk."""
    if not os.access("/dev/shm", os.R_OK):
        pytest.skip("needs /dev/shm")
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text()))
    place = disks.place("/dev/shm")
    assert place.device is None
    assert "in memory" in (place.why or "")


OLD = DiskCounters(1000, 8000, 500, 2000, 16000, 900, 400, 1500, 100, 50)
NEW = DiskCounters(1010, 8160, 530, 2200, 19200, 1900, 1150, 3500, 190, 950)


def measured(old: DiskCounters, new: DiskCounters, **kwargs: object) -> dict[str, Value]:
    verified = ["sda"] if kwargs.get("verified") else []
    found = diskstats.values({"sda": old, "sda1": old}, {"sda": new, "sda1": new}, 2.0, ["sda"], verified)
    return {value.metric: value for value in found}


def test_every_metric_by_hand() -> None:
    """10 reads, 200 writes and 90 flushes in 2 s give the expected values; partitions are left out."""
    found = measured(OLD, NEW)
    assert {value.instance for value in found.values()} == {"sda"}
    assert {metric: value.value for metric, value in found.items()} == {
        "disk.reads_per_s": 5,
        "disk.writes_per_s": 100,
        "disk.flushes_per_s": 45,
        "disk.read_bytes_per_s": 160 * 512 / 2,
        "disk.write_bytes_per_s": 3200 * 512 / 2,
        "disk.read_latency_s": pytest.approx(0.003),
        "disk.write_latency_s": pytest.approx(0.005),
        "disk.flush_latency_s": pytest.approx(0.01),
        "disk.outstanding": 1.0,
        "disk.busy_ratio": 0.375,
    }
    assert found["disk.write_latency_s"].weight == 200
    assert found["disk.read_latency_s"].weight == 10
    assert found["disk.flush_latency_s"].weight == 90
    assert found["disk.writes_per_s"].weight is None


def test_data_writes_where_flushes_were_verified_to_count_as_writes() -> None:
    """If flushes count as writes, 200 writes less 90 flushes and 1,000 ms less 900 ms are data writes."""
    found = measured(OLD, NEW, verified=True)
    assert found["disk.data_writes_per_s"].value == 55
    assert found["disk.data_write_latency_s"].value == pytest.approx(0.1 / 110)
    assert found["disk.data_write_latency_s"].weight == 110
    assert found["disk.writes_per_s"].value == 100  # iostat's figures are reported as well


def test_no_operations_give_no_latency() -> None:
    """Without operations rates are 0 and latencies are unknown with weight 0."""
    found = measured(OLD, OLD, verified=True)
    assert found["disk.writes_per_s"].value == 0
    for metric in ("read_latency_s", "write_latency_s", "flush_latency_s", "data_write_latency_s"):
        assert found[f"disk.{metric}"][2:] == (None, 0)


def test_counters_that_went_back_give_nothing_and_never_a_negative() -> None:
    """A reset of all counters, or a 32-bit wrap of one time column, gives null and no negative value."""
    for value in measured(NEW, OLD, verified=True).values():
        assert value.value is None
        assert value.weight is None
    wrapped = measured(OLD._replace(outstanding_ms=2**32 - 10), NEW)
    assert wrapped["disk.outstanding"].value is None
    assert wrapped["disk.write_latency_s"].value == pytest.approx(0.005)
    wrapped = measured(OLD._replace(write_ms=2**32 - 10), NEW, verified=True)
    assert wrapped["disk.write_latency_s"][2:] == (None, None)
    assert wrapped["disk.data_write_latency_s"][2:] == (None, None)
    assert wrapped["disk.writes_per_s"].value == 100


def test_more_flushes_than_writes_in_an_interval_are_no_negative_rate() -> None:
    """A flush counted on both sides of a reading gives no negative rate."""
    found = measured(OLD, OLD._replace(writes=2001, flushes=103, flush_ms=60), verified=True)
    assert found["disk.data_writes_per_s"].value is None
    assert found["disk.data_write_latency_s"].value is None


def test_a_kernel_without_flush_counters_sends_no_flush_metric() -> None:
    """A kernel without flush counters sends no flush metric."""
    old, new = (each._replace(flushes=None, flush_ms=None) for each in (OLD, NEW))
    assert not [metric for metric in measured(old, new) if "flush" in metric]


def test_a_disk_that_was_pulled_is_not_measured() -> None:
    """A removed disk's series has nulls."""
    found = list(diskstats.values({"sda": OLD}, {}, 1.0, ["sda"], []))
    assert found == [Value(metric, "sda", None) for metric in METRICS]


def test_the_first_reading_has_no_rates() -> None:
    """The first reading has no rates."""
    assert list(diskstats.values(None, {"sda": OLD}, 0.0, ["sda"], [])) == []


@pytest.mark.parametrize(
    ("overwritten", "appended", "counted", "why"),
    [
        # Recorded: loop devices, direct I/O; ext4 with and without a journal, write cache on and off; virtio.
        (Counts(409, 200, 209), Counts(600, 200, 400), "writes-flushes", "409 writes, 200 flushes"),
        (Counts(400, 200, 200), Counts(601, 401, 1201), "unknown", "a journal"),
        (Counts(200, 0, 200), Counts(600, 0, 1200), "kernel", "200 writes, 0 flushes"),
        (Counts(405, 200, 205), Counts(600, 200, 400), "writes-flushes", "600 writes"),
        # A kernel before 5.5 has no flush count to subtract.
        (Counts(400, 0, 200), Counts(600, 0, 400), "unknown", "fit no rule"),
        # Another process writes large data to the device at the same time.
        (Counts(460, 200, 9000), Counts(660, 200, 9000), "unknown", "disturbed"),
        # A disk so slow that the time limit was reached.
        (Counts(6, 3, 3), Counts(6, 3, 3), "unknown", "too few"),
    ],
)
def test_the_judgement(overwritten: Counts, appended: Counts, counted: str, why: str) -> None:
    """Every answer has its figures; counts that fit no rule are unknown."""
    answer = judge(overwritten, appended)
    assert answer.counted == counted
    assert why in answer.why


def test_on_this_disk_nothing_is_left_behind(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """The probe of this disk ends within its limit, reports its figures and leaves no file."""
    answer = verify_data_io(tmp_path, real_disk(tmp_path))
    assert answer.counted in ("kernel", "writes-flushes", "unknown")
    assert "blocks appended" in answer.why
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_unknown_with_the_reason(real_disk: Callable[[Path], str]) -> None:
    """/proc, which accepts no files, gives unknown with the reason."""
    answer = verify_data_io(Path("/proc"), "none")
    assert answer.counted == "unknown"
    assert "could not write in /proc" in answer.why


@pytest.fixture(params=["^has_journal", "has_journal"])
def emulated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Path, str]]:
    """Yield (folder, device, feature) of a file system on a loop device, with or without a journal."""
    missing = [tool for tool in ("mkfs.ext4", "losetup", "mount") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing or not Path("/dev/loop-control").exists():
        pytest.skip(f"needs root and loop devices; missing programs: {', '.join(missing) or 'none'}")
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    image.touch()
    with image.open("r+b") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", request.param, image], check=True)
    loop = subprocess.run(
        ["losetup", "--direct-io=on", "--find", "--show", image], check=False, capture_output=True, text=True
    )
    if loop.returncode != 0:
        pytest.skip(f"needs a free loop device with direct I/O: {loop.stderr.strip()}")
    device = Path(loop.stdout.strip())
    try:
        subprocess.run(["mount", device, folder], check=True)
        try:
            yield folder, device, request.param
        finally:
            subprocess.run(["umount", folder], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.root
def test_three_truths_on_emulated_disks(emulated: tuple[Path, Path, str]) -> None:
    """With a write cache flushes count as writes (unknown with a journal); without one they do not."""
    folder, device, feature = emulated
    with_cache = "unknown" if feature == "has_journal" else "writes-flushes"
    switch = Path(f"/sys/block/{device.name}/queue/write_cache")
    as_found = switch.read_text()  # the setting stays with the loop device when another program uses it
    try:
        for setting, counted in (("write back", with_cache), ("write through", "kernel")):
            switch.write_text(setting)
            answer = verify_data_io(folder, device.name)
            assert (setting, answer.counted) == (setting, counted), answer.why
    finally:
        switch.write_text(as_found)


def test_the_bound_in_time_holds(
    tmp_path: Path, real_disk: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without time, each pattern makes one write, and the answer states that this is too few."""
    monkeypatch.setattr(data_io, "_LIMIT_S", 0.0)
    answer = verify_data_io(tmp_path, real_disk(tmp_path))
    assert answer.counted == "unknown"
    assert "too few" in answer.why or "disturbed" in answer.why
