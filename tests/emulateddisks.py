"""Emulated disks for the tests: built on a real disk and removed after the test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import disk_folder, require

from pinchpoint_infra.disks import DiskSpec, emulated, support
from pinchpoint_infra.disks.emulated import EmulatedDisk, remove_all
from pinchpoint_infra.disks.way import DiskStack, choose


class EmulatedDisks:
    """Builds emulated disks and removes them.

    Args:
        place: path of a folder on a real disk.

    Attributes:
        farm_id: mark of the loop devices, different for each test.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.farm_id = f"{os.getpid():06x}{abs(hash(place)) % 2**24:06x}"
        self._disks: list[EmulatedDisk] = []

    def build(self, spec: DiskSpec, name: str | None = None, way: DiskStack | None = None) -> EmulatedDisk:
        """Build and mount a disk; its limits are inactive until ``apply``."""
        named = name or f"sql.disk{len(self._disks)}"
        chosen = way or choose(spec, support())
        assert isinstance(chosen, DiskStack), chosen
        folder, mount = self.place / "disks" / named, self.place.joinpath(*named.split("."))
        disk = EmulatedDisk(named, self.farm_id, spec, chosen, folder, mount, dict(os.environ))
        disk.build()
        self._disks.append(disk)
        return disk

    def mount(self, disk: EmulatedDisk) -> Path:
        """Return the path where the disk is mounted."""
        return Path(disk.describe()["mount"])

    def close(self) -> None:
        """Remove the disks; raise an error if anything is left."""
        remove_all(self.farm_id, self.place)
        for disk in self._disks:
            disk.close()
        left = emulated.devices_of(self.farm_id, self.place)
        left += [mount.mount_point for mount in emulated.mounts_below(self.place)]
        assert left == []


@contextmanager
def emulated_disks() -> Iterator[EmulatedDisks]:
    """Yield a builder of emulated disks and remove them at the end. Needs root."""
    require("fio", "fio")
    require("fusermount3", "fuse3")
    place = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))  # on a real disk, not in memory
    place.chmod(0o755)
    disks = EmulatedDisks(place)
    try:
        yield disks
    finally:
        try:
            disks.close()
        finally:
            shutil.rmtree(place)
