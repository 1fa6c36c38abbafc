"""The folder a probe works in: its own, made by it, on the disk that is asked about, and gone afterwards."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from pinchpoint.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.probe.record import Where
from pinchpoint.report import units
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_collectors.proc import mountinfo

FOLDER = "pinchpoint-probe"
_OWNER = "owner.json"
_SPARE_RATIO = 0.05
"""Of the file system stays free: full ones are slow, and others use it."""


def check(folder: Path) -> Path:
    """The folder, resolved. Raises GuardError for a device or a file, InputError for what is no folder."""
    if folder.is_block_device() or folder.is_char_device():
        raise GuardError(
            f"{folder}: is a raw device, and a probe writes: what is on it would be lost. Make a file "
            "system on it, mount it, and give a folder there"
        )
    if folder.is_file():
        raise GuardError(
            f"{folder}: is a file that Pinchpoint did not make, so it is not written to; "
            "give the folder it lies in"
        )
    if not folder.is_dir():
        raise InputError(f"{folder}: is no folder; give one that is there, on the disk to be probed")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: you may not write there; give a folder of your own on that disk")
    return folder.resolve()


def described(folder: Path, farm: str | None = None, disk: str | None = None) -> Where:
    """The disk a folder lies on, as the kernel knows it."""
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8")))
    try:
        found = disks.place(str(folder))
    except CollectorError as error:
        raise InputError(f"{folder}: {error}") from error
    return Where(
        folder=str(folder),
        host=socket.gethostname(),
        device=found.device,
        file_system=found.mount.file_system if found.mount else None,
        model=disks.facts(found.device)["model"] if found.device else None,
        farm=farm,
        disk=disk,
    )


def mount_of_device(device: str) -> Path | None:
    """Where a device is mounted on this machine; None where it is not."""
    disks = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8")))
    try:
        mount = disks.place(device).mount
    except CollectorError as error:
        raise InputError(str(error)) from error
    return Path(mount.mount_point) if mount else None


def check_space(folder: Path, needed_bytes: int) -> None:
    """Raises FarmUnavailable where the file would not fit, or fill the file system."""
    usage = shutil.disk_usage(folder)
    room = usage.free - usage.total * _SPARE_RATIO
    if needed_bytes > room:
        raise FarmUnavailable(
            f"{folder}: a file of {units.bytes_(needed_bytes)} does not fit: {units.bytes_(usage.free)} are "
            f"free, of which {units.percent(_SPARE_RATIO)} of the file system stay so; make room, or give a "
            "smaller --size"
        )


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """A folder of ours in ``parent``, removed at the end.

    One that a killed probe left is removed first. Raises GuardError where a folder of that name is not ours,
    or another probe works in it.
    """
    folder = parent / FOLDER
    if folder.exists() or folder.is_symlink():
        _remove_left(folder)
    try:
        folder.mkdir(mode=0o700)
        owner = {"pid": os.getpid(), "began": psutil.Process().create_time(), "host": socket.gethostname()}
        (folder / _OWNER).write_text(json.dumps(owner), encoding="utf-8")
    except OSError as error:
        raise FarmUnavailable(f"{folder}: cannot be made: {error.strerror}; give another folder") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _remove_left(folder: Path) -> None:
    """What a killed probe left goes; whatever else has that name stays."""
    owner = _owner(folder)
    if owner is None:
        raise GuardError(
            f"{folder}: is there already, and not by Pinchpoint, so nothing is written to it or removed; "
            "move it away, or give another folder"
        )
    if owner.get("host") != socket.gethostname() or _lives(owner):
        raise GuardError(
            f"{folder}: another probe works there (process {owner.get('pid')} on {owner.get('host')}); "
            "wait for its end. Where it is certain that there is none any more, remove that folder"
        )
    shutil.rmtree(folder)


def _owner(folder: Path) -> dict[str, object] | None:
    if folder.is_symlink() or not folder.is_dir():
        return None
    try:
        found = json.loads((folder / _OWNER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not ours, as far as can be told: the caller leaves it alone
    return found if isinstance(found, dict) else None


def _lives(owner: dict[str, object]) -> bool:
    try:
        return psutil.Process(int(str(owner["pid"]))).create_time() == owner["began"]
    except (psutil.NoSuchProcess, KeyError, ValueError):
        return False
