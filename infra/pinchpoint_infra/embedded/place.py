"""Defines the folders and names of farms."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

from pinchpoint_infra.embedded.record import FarmError

STATE_VARIABLE = "PINCHPOINT_STATE"
MARK = "PINCHPOINT_FARM"
"""Environment variable with the id of the farm. Each process of the farm has it, so that it can be found."""

DISK_MARK = "PINCHPOINT_DISK_OF"
"""Environment variable with the id for the processes of emulated disks, which must end after their users."""

_FOR_ROOT = Path("/var/lib/pinchpoint")  # an unprivileged server cannot enter root's home directory


def farm_id(identity: Path) -> str:
    """Return the short id of a farm. The same file gives the same id."""
    return hashlib.sha256(os.fsencode(identity.resolve())).hexdigest()[:12]


def state_root() -> Path:
    """Return the folder of all farms. It is on a disk, because a flush to memory takes no time.

    The path is absolute, because the processes of a farm have working directories of their own. It has no
    symbolic links, because the kernel reports mounts and working directories without them.
    """
    if given := os.environ.get(STATE_VARIABLE):
        return Path(given).resolve()
    return (_FOR_ROOT if os.geteuid() == 0 else platformdirs.user_state_path("pinchpoint")).resolve()


def farm_directory(identity: Path) -> Path:
    """Return the folder of all files that a farm creates."""
    return directory_of(farm_id(identity))


def directory_of(identifier: str) -> Path:
    """Return the folder of the farm with an id."""
    return state_root() / "farms" / identifier


def known_ids() -> list[str]:
    """Return the ids of all farms with a folder on this machine, running or not."""
    farms = state_root() / "farms"
    return sorted(entry.name for entry in farms.iterdir()) if farms.is_dir() else []


def make_directory(directory: Path) -> None:
    """Create the folder of a farm. Under root, the servers' user may enter it. Raises FarmError."""
    make_farms(directory.parent)
    try:
        directory.mkdir(mode=0o700)
        if os.geteuid() == 0:
            allow_entry(directory)
    except OSError as error:
        raise _cannot_make(directory, error) from error


def make_farms(farms: Path) -> None:
    """Create the folder of all farms and missing parents. Raises FarmError.

    Under root, every user may enter the folders, regardless of root's umask, because an unprivileged server
    works in them.
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
    """Remove the folder of all farms and its parents, if they are empty."""
    for parent in (directory.parent, directory.parent.parent):
        try:
            parent.rmdir()
        except OSError:
            return  # not empty, or of another owner: keep it
