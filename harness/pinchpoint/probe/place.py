"""The folder a probe works in: its own, made by it, on the disk that is asked about, and gone afterwards."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pinchpoint.base import units
from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.base.interrupts import Interrupted
from pinchpoint.probe.record import Where
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_scenarios.storage_probe.folder import SPARE_RATIO, NoRoom, NotOurs, NotRemoved, claim


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


def check_space(folder: str, needed_bytes: int, free_bytes: int, total_bytes: int) -> None:
    """Raises FarmUnavailable where the file would not fit, or fill the file system."""
    if needed_bytes > free_bytes - total_bytes * SPARE_RATIO:
        raise FarmUnavailable(
            f"{folder}: a file of {units.bytes_(needed_bytes)} does not fit: {units.bytes_(free_bytes)} are "
            f"free, of which {units.percent(SPARE_RATIO)} of the file system stay so; make room, or give a "
            "smaller --size"
        )


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """A folder of ours in ``parent``, removed at the end.

    One that a killed probe left is removed first. Raises GuardError where a folder of that name is not ours,
    or another probe works in it.
    """
    try:
        claimed = claim(parent)
    except NotOurs as error:
        raise GuardError(str(error)) from error
    except NoRoom as error:
        raise FarmUnavailable(str(error)) from error
    try:
        yield claimed.path
    finally:
        try:
            claimed.release()
        except Interrupted:
            claimed.release()  # Ctrl-C in the midst of it: it raises once, and nothing is to be left
            raise
        except NotRemoved as error:
            raise FarmUnavailable(str(error)) from error
