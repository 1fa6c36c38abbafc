"""The folders and names of farms."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

from pinchpoint_infra.embedded.record import FarmError

STATE_VARIABLE = "PINCHPOINT_STATE"
MARK = "PINCHPOINT_FARM"
"""Environment variable with the farm's id in each of its processes, by which they are found."""

DISK_MARK = "PINCHPOINT_DISK_OF"
"""The same for the processes of its emulated disks, which must end after all their users."""

_FOR_ROOT = Path("/var/lib/pinchpoint")  # an unprivileged server cannot enter root's home directory


def farm_id(identity: Path) -> str:
    """A farm's short id: the same file is the same farm."""
    return hashlib.sha256(os.fsencode(identity.resolve())).hexdigest()[:12]


def state_root() -> Path:
    """The folder of all farms: on a disk, because in memory a flush takes no time.

    The path is absolute, because a farm's processes have working directories of their own, and free of
    symbolic links, because the kernel reports mounts and working directories without them.
    """
    if given := os.environ.get(STATE_VARIABLE):
        return Path(given).resolve()
    return (_FOR_ROOT if os.geteuid() == 0 else platformdirs.user_state_path("pinchpoint")).resolve()


def farm_directory(identity: Path) -> Path:
    """The folder of all files that a farm creates."""
    return directory_of(farm_id(identity))


def directory_of(identifier: str) -> Path:
    """The folder of the farm with this id."""
    return state_root() / "farms" / identifier


def known_ids() -> list[str]:
    """The ids of all farms with a folder on this machine, up or not."""
    farms = state_root() / "farms"
    return sorted(entry.name for entry in farms.iterdir()) if farms.is_dir() else []


def make_directory(directory: Path) -> None:
    """Create a farm's folder; under root the servers' unprivileged user may enter it. Raises FarmError."""
    make_farms(directory.parent)
    try:
        directory.mkdir(mode=0o700)
        if os.geteuid() == 0:
            allow_entry(directory)
    except OSError as error:
        raise _cannot_make(directory, error) from error


def make_farms(farms: Path) -> None:
    """Make the folder of all farms, and missing parents. Raises FarmError.

    Under root every user may enter the folders, whatever root's umask: an unprivileged server works below.
    """
    try:
        for folder in reversed([each for each in (farms, *farms.parents) if not each.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
            if os.geteuid() == 0:
                allow_entry(folder)
    except OSError as error:
        raise _cannot_make(farms, error) from error


def allow_entry(folder: Path) -> None:
    """Let all users enter a folder, but not list it."""
    folder.chmod(folder.stat().st_mode | 0o011)


def _cannot_make(folder: Path, error: OSError) -> FarmError:
    return FarmError(f"cannot make {folder}: {error.strerror}; name a writable folder in {STATE_VARIABLE}")


def remove_empty_parents(directory: Path) -> None:
    """Remove the folders of farms, after the last one."""
    for parent in (directory.parent, directory.parent.parent):
        try:
            parent.rmdir()
        except OSError:
            return  # not empty, or not ours: keep it
