"""The folders and names of farms."""

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
    """The folder of all farms: on a disk, never in memory, where a flush would cost nothing.

    Absolute, whatever the variable says: a farm's processes stand in folders of their own. Without symbolic
    links: the kernel knows none where it says what is mounted, and where a process stands.
    """
    if given := os.environ.get(STATE_VARIABLE):
        return Path(given).resolve()
    return (_FOR_ROOT if os.geteuid() == 0 else platformdirs.user_state_path("pinchpoint")).resolve()


def farm_directory(identity: Path) -> Path:
    """The folder of everything that a farm creates."""
    return directory_of(farm_id(identity))


def directory_of(identifier: str) -> Path:
    """The folder of the farm with that id."""
    return state_root() / "farms" / identifier


def known_ids() -> list[str]:
    """The ids of all farms that have left a folder here, up or not."""
    farms = state_root() / "farms"
    return sorted(entry.name for entry in farms.iterdir()) if farms.is_dir() else []


def make_directory(directory: Path) -> None:
    """Make a farm's folder; as root the user an unprivileged server runs as may enter. Raises FarmError."""
    make_farms(directory.parent)
    try:
        directory.mkdir(mode=0o700)
        if os.geteuid() == 0:
            allow_entry(directory)
    except OSError as error:
        raise _cannot_make(directory, error) from error


def make_farms(farms: Path) -> None:
    """Make the folder of all farms, and missing parents. Raises FarmError.

    As root they are enterable by anybody, whatever root's umask is: an unprivileged server lives below.
    """
    try:
        for folder in reversed([each for each in (farms, *farms.parents) if not each.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
            if os.geteuid() == 0:
                allow_entry(folder)
    except OSError as error:
        raise _cannot_make(farms, error) from error


def allow_entry(folder: Path) -> None:
    """Let anybody enter a folder, not list it."""
    folder.chmod(folder.stat().st_mode | 0o011)


def _cannot_make(folder: Path, error: OSError) -> FarmError:
    return FarmError(f"cannot make {folder}: {error.strerror}; name a writable folder in {STATE_VARIABLE}")


def remove_empty_parents(directory: Path) -> None:
    """Remove the folders of farms, after the last one."""
    for parent in (directory.parent, directory.parent.parent):
        try:
            parent.rmdir()
        except OSError:
            return  # not empty, or not ours: it stays
