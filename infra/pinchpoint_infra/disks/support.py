"""Detects which emulated disks this machine supports."""

from __future__ import annotations

import ctypes.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pinchpoint_collectors.linux import mountinfo

TOOLS = ("losetup", "mkfs.ext4", "mount", "umount")


@dataclass(frozen=True, slots=True)
class DiskSupport:
    """The support of this machine, with reasons for what is missing.

    Attributes:
        v1: mount point of the block I/O controller of version 1; None if not mounted.
        v2: mount point of version 2 with the io controller; None if not mounted.
        fuse: whether the time model can run.
        missing: name (``loop``, ``throttle``, ``model``) -> what is missing, with the remedy.
    """

    v1: Path | None
    v2: Path | None
    fuse: bool
    missing: Mapping[str, str]

    @property
    def loop(self) -> bool:
        """Return whether this machine can create block devices for disks."""
        return "loop" not in self.missing


def support() -> DiskSupport:
    """Check this machine without changing it."""
    v1, v2 = _controllers()
    missing = {}
    if loop := _no_loop():
        missing["loop"] = loop
    if v1 is None and v2 is None:
        missing["throttle"] = "no block I/O controller (control groups: blkio of version 1, io of version 2)"
    if model := _no_model():
        missing["model"] = model
    return DiskSupport(v1, v2, "model" not in missing, missing)


def find_tool(name: str) -> str | None:
    """Return the path of a system program. An ordinary PATH often lacks the folders of system programs."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin")


def _no_loop() -> str | None:
    if os.geteuid() != 0:
        return "no root rights (loop devices and mounts need them)"
    if not Path("/dev/loop-control").exists():
        return "no loop devices (/dev/loop-control): load the kernel module loop"
    absent = [tool for tool in TOOLS if find_tool(tool) is None]
    if absent:
        return f"no {', '.join(absent)}: install the packages mount and e2fsprogs"
    return None


def _no_model() -> str | None:
    if os.geteuid() != 0:
        return "no root rights (FUSE below a loop device needs them)"
    if not Path("/dev/fuse").exists():
        return "no /dev/fuse: load the kernel module fuse"
    if ctypes.util.find_library("fuse3") is None:
        return "no libfuse3: install the package fuse3"
    return None


def _controllers() -> tuple[Path | None, Path | None]:
    """Return the mount points of version 1 (blkio) and of version 2 (io), if they are writable."""
    v1 = v2 = None
    for mount in mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8")):
        place = Path(mount.mount_point)
        if mount.file_system == "cgroup" and "blkio" in mount.super_options.split(","):
            v1 = place if os.access(place / "blkio.throttle.write_iops_device", os.W_OK) else None
        if mount.file_system == "cgroup2" and "io" in _read(place / "cgroup.controllers").split():
            v2 = place if os.access(place / "cgroup.subtree_control", os.W_OK) else None
    return v1, v2


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
