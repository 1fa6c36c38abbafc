"""Where farms lie, and under which name."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

from pinchpoint_infra.embedded.record import FarmError

STATE_VARIABLE = "PINCHPOINT_STATE"
MARK = "PINCHPOINT_FARM"
"""Every process of a farm carries its id in this environment variable: that is how one is found again."""

DISK_MARK = "PINCHPOINT_DISK_OF"
"""Likewise of the processes behind its emulated disks, which must outlive all that use them."""

_FOR_ROOT = Path("/var/lib/pinchpoint")  # an unprivileged server must reach it: not below root's home


def farm_id(identity: Path) -> str:
    """A farm's short id: the same file is the same farm."""
    return hashlib.sha256(os.fsencode(identity.resolve())).hexdigest()[:12]


def state_root() -> Path:
    """The folder below which farms lie: on a disk, never in memory, where a flush would cost nothing.

    Absolute, whatever the variable says: a farm's processes stand in folders of their own.
    """
    if given := os.environ.get(STATE_VARIABLE):
        return Path(given).absolute()
    return _FOR_ROOT if os.geteuid() == 0 else platformdirs.user_state_path("pinchpoint").absolute()


def farm_directory(identity: Path) -> Path:
    """Everything a farm makes lies below this folder."""
    return directory_of(farm_id(identity))


def directory_of(identifier: str) -> Path:
    """The folder of the farm with that id."""
    return state_root() / "farms" / identifier


def known_ids() -> list[str]:
    """The ids of all farms that have left a folder here, up or not."""
    farms = state_root() / "farms"
    return sorted(entry.name for entry in farms.iterdir()) if farms.is_dir() else []


def make_directory(directory: Path) -> None:
    """Make a farm's folder, enterable by the user an unprivileged server runs as. Raises FarmError."""
    try:
        directory.mkdir(parents=True, mode=0o755)
        directory.chmod(0o711)
    except OSError as error:
        raise FarmError(
            f"cannot make {directory}: {error.strerror}; name a writable folder in {STATE_VARIABLE}"
        ) from error


def remove_empty_parents(directory: Path) -> None:
    """Remove the folders that only held farms, when the last one is gone."""
    for parent in (directory.parent, directory.parent.parent):
        try:
            parent.rmdir()
        except OSError:
            return  # not empty, or not ours: it stays
