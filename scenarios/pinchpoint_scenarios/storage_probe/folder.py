"""Creates the probe's folder on the disk under test, and removes it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import ScenarioError

FOLDER = "pinchpoint-probe"
OWNER = "owner.json"
SPARE_RATIO = 0.05
"""Share of the file system that stays free: full file systems are slow, and other programs need space."""
_MIB = 2**20


class ForeignFolder(ScenarioError):  # noqa: N818 -- a state of the folder, named as such
    """The folder exists, but Pinchpoint did not create it, or another probe uses it."""


class NoRoom(ScenarioError):  # noqa: N818 -- likewise
    """The folder cannot be created, or the file does not fit."""


class NotRemoved(ScenarioError):  # noqa: N818 -- likewise
    """The folder cannot be removed, because the disk failed or is read-only."""


@dataclass(slots=True)
class Claimed:
    """A folder that this process created and has locked.

    Attributes:
        path: path of the folder.
    """

    path: Path
    _mark: IO[str]

    def release(self) -> None:
        """Remove the folder with its contents. A second call does nothing. Raises NotRemoved."""
        if self._mark.closed:
            return
        try:
            # the folder was already removed, or its disk is gone
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.path)
        except OSError as error:
            raise NotRemoved(
                f"{self.path}: cannot be removed: {error.strerror}; remove it once the disk can be written to"
            ) from error
        self._mark.close()


def claim(parent: Path) -> Claimed:
    """Create the probe's folder in ``parent``. Raises ForeignFolder, NoRoom.

    The folder contains a file that names its owner. The owner keeps this file locked, so the folder of a
    killed probe is recognised and removed first.
    """
    folder = parent / FOLDER
    if folder.exists() or folder.is_symlink():
        remove_left(folder)
    try:
        folder.mkdir(mode=0o700)
        mark = (folder / OWNER).open("w", encoding="utf-8")
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, mark)
        mark.flush()
    except OSError as error:
        raise NoRoom(f"{folder}: cannot be made: {error.strerror}; give another folder") from error
    return Claimed(folder, mark)


def remove_left(folder: Path) -> None:
    """Remove the folder of a killed probe. Raises ForeignFolder if the folder is not one."""
    owner = _owner(folder)
    if owner is None:
        raise ForeignFolder(
            f"{folder}: is there already, and not by Pinchpoint, so nothing is written to it or removed; "
            "move it away, or give another folder"
        )
    if owner.get("host") != socket.gethostname() or _lives(folder, owner):
        raise ForeignFolder(
            f"{folder}: another probe uses it (process {owner.get('pid')} on {owner.get('host')}); "
            "wait until it ends. If no probe is running, remove that folder"
        )
    shutil.rmtree(folder)


def check_room(place: str, needed_bytes: int, free_bytes: int, total_bytes: int) -> None:
    """Raises NoRoom if the file does not fit, or would fill the file system."""
    if needed_bytes > free_bytes - total_bytes * SPARE_RATIO:
        raise NoRoom(
            f"{place}: a file of {needed_bytes // _MIB:,} MiB does not fit: {free_bytes // _MIB:,} MiB are "
            f"free, of which {SPARE_RATIO:.0%} of the file system stay so; make room, or give a smaller size"
        )


def _owner(folder: Path) -> dict[str, object] | None:
    if folder.is_symlink() or not folder.is_dir():
        return None
    try:
        result = json.loads((folder / OWNER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # Pinchpoint may not have created the folder: the caller does not touch it
    return result if isinstance(result, dict) else None


def _lives(folder: Path, owner: dict[str, object]) -> bool:
    """Return whether the owner of a folder is still running.

    A local owner keeps the file locked. An owner over ssh has no lock, so its process id is checked.
    """
    with (folder / OWNER).open(encoding="utf-8") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    if not owner.get("remote"):
        return False
    try:
        os.kill(int(str(owner.get("pid"))), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:  # a process of another user exists
        return True
    return True
