"""Finds the block devices of a machine, and the device of a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pinchpoint_collectors.common.names import nearest
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.diskstats import SECTOR_BYTES
from pinchpoint_collectors.linux.files import HERE, HostFiles
from pinchpoint_collectors.linux.mountinfo import Mount, mount_of
from pinchpoint_collectors.record import NotMeasured

_VIRTUAL = re.compile(r"(loop|ram|zram|dm-|md)\d")
"""Devices made of other devices or of memory. They are measured only if they have a role."""
_COUNTS_ITSELF = re.compile(r"(ram|zram|dm-|md|drbd|bcache)\d")
"""Devices without a request queue. Many kernels count their I/O even if `iostats` is 0."""
_NVME = re.compile(r"(nvme\d+)(n\d+)")
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.sshfs", "lustre", "virtiofs"}
)


@dataclass(frozen=True, slots=True)
class DiskPlace:
    """The device of a disk role.

    Attributes:
        given: device name or path in farm.yaml.
        device: kernel name of the whole disk; None if there is no block device.
        mount: mount of the device; None if it is not mounted.
        why: why there is no device; "" if there is one.
    """

    given: str
    device: str | None
    mount: Mount | None
    why: str | None = None


class Disks:
    """Finds devices in /sys.

    Args:
        mounts: mount table of a process on that machine.
        sys: path of its /sys.
        files: files of the machine.
    """

    def __init__(self, mounts: Sequence[Mount], sys: str | Path = "/sys", files: HostFiles = HERE) -> None:
        self._mounts = mounts
        self._sys = str(sys)
        self._files = files

    def whole(self) -> list[str]:
        """Return the disks, without partitions, virtual devices, empty slots, or hidden paths to a disk."""
        block = f"{self._sys}/block"
        return [
            name
            for name in self._files.names(block)
            if not _VIRTUAL.match(name)
            and self._files.fact(f"{block}/{name}/size") not in (None, "0")
            and self._files.fact(f"{block}/{name}/hidden") != "1"
        ]

    def place(self, given: str) -> DiskPlace:
        """Return the device of a role. Raises ``CollectorError`` for a missing device or path."""
        if not given.startswith("/"):
            return self._named(given, given)
        result = self._files.find(given)
        if result.is_device:
            return self._named(given, self._by_number(result.number) or given)
        mount = mount_of(result.real, self._mounts)
        device = self._by_number(result.number)
        if device is None and mount is not None:
            # btrfs and overlays report device numbers without a device, so the mount table gives the device.
            device = self._by_source(mount.source)
        if device is None:
            return DiskPlace(given, None, mount, _no_device(mount))
        return DiskPlace(given, self._disk_of(device), mount)

    def below(self, device: str) -> list[str]:
        """Return the whole disks below a virtual device, on all levels.

        For a loop device it is the disk of its file.
        """
        result: list[str] = []
        parts = [self._disk_of(name) for name in self._files.names(f"{self._sys}/block/{device}/slaves")]
        backing = self._files.fact(f"{self._sys}/block/{device}/loop/backing_file")
        if backing and self._files.real(backing):
            behind = self.place(backing).device
            parts += [behind] if behind else []
        for part in parts:
            result += [part, *self.below(part)]
        return sorted(set(result))

    def lines(self, device: str) -> list[str]:
        """Return the lines of /proc/diskstats with a disk's I/O; none if the kernel does not count it.

        Before 6.4, kernels count the I/O of an NVMe disk with several paths only for each path.
        """
        paths = self._paths(device)
        stat = self._files.fact(f"{self._sys}/block/{device}/stat")
        counts_paths_only = bool(paths) and stat is not None and not any(map(int, stat.split()))
        if self._counts(device) and not counts_paths_only:
            return [device]
        return paths if all(map(self._counts, paths)) else []

    def not_counted(self, device: str) -> NotMeasured:
        """Return whether a disk has no ``lines``. The zeros of the kernel for it are not measurements."""
        parts = self._paths(device) or [device]
        files = [self._iostats(part) for part in parts if not self._counts(part)]
        return NotMeasured(
            "disk.*",
            device,
            f"the kernel does not count its I/O: 0 is in {', '.join(files)}",
            f"run there as root: {'; '.join(f'echo 1 > {file}' for file in files)}",
        )

    def _counts(self, device: str) -> bool:
        return bool(_COUNTS_ITSELF.match(device)) or self._files.fact(self._iostats(device)) != "0"

    def _iostats(self, device: str) -> str:
        return f"{self._sys}/block/{device}/queue/iostats"

    def _paths(self, device: str) -> list[str]:
        """Return the hidden devices of an NVMe disk with several paths: ``nvme0c1n1`` of ``nvme0n1``."""
        disk = _NVME.fullmatch(device)
        if disk is None:
            return []
        path = re.compile(rf"{disk[1]}c\d+{disk[2]}")
        return [name for name in self._files.names(f"{self._sys}/block") if path.fullmatch(name)]

    def facts(self, device: str) -> dict[str, Any]:
        """Return the kernel's facts about a disk; None for unknown ones."""
        path = f"{self._sys}/block/{device}"
        fact = self._files.fact
        size, rotational = fact(f"{path}/size"), fact(f"{path}/queue/rotational")
        scheduler = re.search(r"\[(.+?)\]", fact(f"{path}/queue/scheduler") or "")
        return {
            "size_bytes": int(size) * SECTOR_BYTES if size else None,
            "model": fact(f"{path}/device/model"),
            "rotational": None if rotational is None else rotational == "1",
            "scheduler": scheduler[1] if scheduler else None,
            "write_cache": fact(f"{path}/queue/write_cache"),
            "members": self.below(device),
        }

    def _named(self, given: str, name: str) -> DiskPlace:
        device = name.removeprefix("/dev/").replace("/", "!")
        folder = f"{self._sys}/class/block"
        if self._files.real(f"{folder}/{device}") is None:
            hint = nearest(device, self._files.names(folder))
            allowed = ", ".join(self.whole()) or "none"
            raise CollectorError(
                f"disk {given!r}: no such device; disks here: {allowed}{hint}; a path must begin with /"
            )
        number = self._files.fact(f"{folder}/{device}/dev")
        mount = next((mount for mount in self._mounts if mount.device == number), None)
        return DiskPlace(given, self._disk_of(device), mount)

    def _by_number(self, number: str | None) -> str | None:
        real = self._files.real(f"{self._sys}/dev/block/{number}") if number else None
        return PurePosixPath(real).name if real else None

    def _by_source(self, source: str) -> str | None:
        try:
            result = self._files.find(source)
        except (
            CollectorError
        ):  # no device file has this name ("overlay", "server:/share"): the caller reports it
            return None
        return self._by_number(result.number) if result.is_device else None

    def _disk_of(self, device: str) -> str:
        """Return the disk of a partition; a disk itself is returned unchanged."""
        path = f"{self._sys}/class/block/{device}"
        real = PurePosixPath(self._files.real(path) or path)
        return real.parent.name if self._files.fact(f"{path}/partition") else real.name


def _no_device(mount: Mount | None) -> str:
    """Return why a path has no block device."""
    if mount is None:
        return "the mount table does not say what it lies on"
    kind = mount.file_system
    if kind in _IN_MEMORY:
        return f"it lies in memory ({kind} at {mount.mount_point}), on no disk"
    if kind in _NETWORK:
        return f"it lies on another machine ({kind}, {mount.source}): watch the disk there"
    if kind == "overlay":
        return "it lies on a container's overlay, whose disk is hidden here: give a path on a volume"
    return f"its file system ({kind}, {mount.source}) does not say which block device it uses"
