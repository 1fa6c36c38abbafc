"""What makes a farm slower than it is: emulated disks, caps and delays, as its supervisor turns them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pinchpoint_infra.disks import DiskError, support
from pinchpoint_infra.disks.emulated import EmulatedDisk
from pinchpoint_infra.disks.way import choose
from pinchpoint_infra.embedded.place import DISK_MARK, MARK
from pinchpoint_infra.embedded.record import FarmError, FarmSpec

DISKS = "disks"


class Knobs:
    """The knobs of one farm.

    Args:
        spec: the farm.
        farm_id: its id.
        directory: its folder; the folder of a tier's disk role is ``tier/role`` there.
    """

    def __init__(self, spec: FarmSpec, farm_id: str, directory: Path) -> None:
        self._spec = spec
        self._farm_id = farm_id
        self._directory = directory
        self._disks: dict[str, EmulatedDisk] = {}
        self.warnings: list[str] = []

    def build_disks(self) -> None:
        """Make and mount them, unlimited. Raises FarmError.

        A disk this machine cannot make stays a plain folder; one warning names all of them.
        """
        machine = support()
        lacking: dict[str, list[str]] = {}
        for name, spec in self._spec.disks.items():
            way = choose(spec, machine)
            if isinstance(way, str):
                lacking.setdefault(way, []).append(name)
                continue
            folder = self._directory / DISKS / name
            mount = self._directory.joinpath(*name.split("."))
            disk = EmulatedDisk(name, self._farm_id, spec, way, folder, mount, self._environment())
            try:
                disk.build()
            except (DiskError, OSError) as error:
                raise FarmError(f"the disk {name} could not be made: {error}") from error
            self._disks[name] = disk
            self.warnings += [f"{name}: {note}" for note in way.notes]
        if lacking:
            self.warnings.append(_lacking_words(lacking))

    def emulates(self, disk: str) -> bool:
        """Whether that disk (``tier.role``) is an emulated one."""
        return disk in self._disks

    def hold(self, *, on: bool) -> None:
        """Let all limits hold from their beginning, or lift them. Raises FarmError."""
        for disk in self._disks.values():
            try:
                disk.apply(on=on, group=None)
            except (DiskError, OSError) as error:
                raise FarmError(f"the limits of the disk {disk.name} could not be set: {error}") from error

    def _environment(self) -> dict[str, str]:
        """Of a process behind a disk: the farm's other mark would have it ended with the tiers."""
        return {**{k: v for k, v in os.environ.items() if k != MARK}, DISK_MARK: self._farm_id}

    def described_disks(self) -> dict[str, dict[str, Any]]:
        """For the farm's state."""
        return {name: disk.describe() for name, disk in self._disks.items()}


def _lacking_words(lacking: dict[str, list[str]]) -> str:
    def sentences() -> Iterator[str]:
        for why, names in lacking.items():
            yield f"{', '.join(names)}: {why}"

    return f"plain folders in place of emulated disks ({'; '.join(sentences())})"
