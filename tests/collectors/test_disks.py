"""From a role's device or path to its whole disk: on constructed /sys trees, and on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import DiskPlace, Disks
from pinchpoint_collectors.linux.mountinfo import Mount

MOUNTS = """\
27 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
28 27 253:0 / /data rw,noatime - xfs /dev/mapper/vg-data rw
"""


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """A machine with an NVMe disk in two partitions, a volume over two disks, virtual ones."""
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
    """No partition (it would be counted twice), nothing virtual, no empty slot, no hidden path to a disk."""
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
    """A partition to its disk, a volume to itself, with the mount of exactly what was named."""
    place = disks_of(sys).place(given)
    assert place.device == device
    assert (place.mount.mount_point if place.mount else None) == mount_point


def test_a_volume_says_which_disks_are_below_it(sys: Path) -> None:
    """Readers must not add them on top; a partition below counts as its disk."""
    facts = disks_of(sys).facts("dm-0")
    assert facts["members"] == ["sda", "sdb"]
    assert facts["size_bytes"] == 4000 * 512


def test_a_disk_whose_io_is_not_counted_has_no_line(sys: Path) -> None:
    """`iostats` off: its zeros say nothing. A mapped device counts by itself, whatever stands there."""
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
        ("1", "7 0 56 1 9 0 72 1 0 1 2", "1", ["nvme0n1"]),  # a newer kernel: the disk itself is counted
        ("0", "0 0 0 0 0 0 0 0 0 0 0", "1", ["nvme0c0n1", "nvme0c1n1"]),
        ("1", "0 0 0 0 0 0 0 0 0 0 0", "1", ["nvme0c0n1", "nvme0c1n1"]),
        ("0", "0 0 0 0 0 0 0 0 0 0 0", "0", []),
    ],
)
def test_an_nvme_disk_of_several_paths(
    sys: Path, iostats: str, stat: str, paths_iostats: str, lines: list[str]
) -> None:
    """Where the kernel counts its paths only, they are what it has; another disk's are not among them."""
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
    """What /sys says, and None for what it does not."""
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
    """A sentence from which the file can be corrected."""
    message = "disk 'sdbl': no such device; disks here: nvme0n1, sda, sdb; nearest: sdb"
    with pytest.raises(CollectorError, match=re.escape(message)):
        disks_of(sys).place("sdbl")


def test_a_path_that_does_not_exist_is_named(sys: Path, tmp_path: Path) -> None:
    """No guessing by the parent folder: that could be another disk."""
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
    """An answer with a reason, never a guess; here the constructed /sys knows no device of this folder."""
    mount = Mount("0:77", "/", str(tmp_path), "rw", file_system, source, "rw")
    place = Disks([mount], sys).place(str(tmp_path))
    assert place.device is None
    assert place.mount == mount
    assert place.why is not None
    assert expected in place.why


def test_a_path_without_any_mount_says_so(sys: Path, tmp_path: Path) -> None:
    """A mount table that cannot be read leaves nothing to guess from."""
    assert Disks([], sys).place(str(tmp_path)).why == "the mount table does not say what it lies on"


def test_an_anonymous_device_number_is_resolved_by_the_mount_table(sys: Path) -> None:
    """As on btrfs: the folder's number is no device's (here /proc's), but its mount names a device file."""
    source = next((path for path in sorted(Path("/dev").iterdir()) if path.is_block_device()), None)
    if source is None:
        pytest.skip("needs a block device file in /dev")
    number = source.stat().st_rdev
    add(sys, "vdz", f"{os.major(number)}:{os.minor(number)}", {"size": "9"}, replace=True)
    mount = Mount("0:50", "/", "/proc", "rw", "btrfs", str(source), "rw")
    assert Disks([mount], sys).place("/proc") == DiskPlace("/proc", "vdz", mount)


def test_a_real_folder_lies_on_a_real_whole_disk(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """The device is in /sys/block, where partitions are not, and its device file leads to it, too."""
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
    """This machine's own tmpfs."""
    if not os.access("/dev/shm", os.R_OK):
        pytest.skip("needs /dev/shm")
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text()))
    place = disks.place("/dev/shm")
    assert place.device is None
    assert "in memory" in (place.why or "")
