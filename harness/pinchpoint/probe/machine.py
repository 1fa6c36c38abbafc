"""The place where a probe's tools run: a folder here, or on another machine (``remote.py``)."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from pinchpoint.base import units
from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.base.interrupts import Interrupted
from pinchpoint.probe.record import Where
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_scenarios.storage_probe import TOOLS, Tool
from pinchpoint_scenarios.storage_probe.folder import SPARE_RATIO, NoRoom, NotOurs, NotRemoved, claim
from pinchpoint_scenarios.storage_probe.process import ToolOutput, run
from pinchpoint_scenarios.storage_probe.tool import resolved


def check(folder: Path) -> Path:
    """The folder, resolved. Raises GuardError for a device or a file, InputError for what is no folder."""
    if folder.is_block_device() or folder.is_char_device():
        raise GuardError(
            f"{folder}: is a raw device; a probe writes, so its content would be lost. Create a file "
            "system on it, mount it, and give a folder there"
        )
    if folder.is_file():
        raise GuardError(
            f"{folder}: is a file that Pinchpoint did not create, so it is not overwritten; give the "
            "folder that contains it"
        )
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder; give an existing folder on the disk to be probed")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: no write permission; give a folder on that disk that you may write to")
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
        read_ahead_bytes=_read_ahead(found.device) if found.device else None,
    )


def _read_ahead(device: str) -> int | None:
    """The kernel's setting of a disk of this machine; None where it has none."""
    try:
        text = Path(f"/sys/class/block/{device}/queue/read_ahead_kb").read_text(encoding="ascii")
        return int(text) * 1024
    except (OSError, ValueError):
        return None


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
            f"{folder}: a file of {units.bytes_(needed_bytes)} does not fit: {units.bytes_(free_bytes)} "
            f"are free, of which {units.percent(SPARE_RATIO)} of the file system are kept free; free "
            "some space, or give a smaller --size"
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


class ProbedMachine(Protocol):
    """One machine, with a folder of the probe's own on the disk."""

    @property
    def folder(self) -> Path:
        """The folder, as it is called there."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Its memory."""
        ...

    @property
    def root(self) -> bool:
        """Whether tools run as root there."""
        ...

    def tool(self, name: str) -> Tool:
        """The program there that does what a job asks of one of ``TOOLS``. Raises ToolMissing."""
        ...

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        """Run one of a tool's commands in the folder.

        Raises ToolMissing, Stopped as soon as ``stop`` says so, FarmUnavailable where there is no way there.
        """
        ...

    def brought(self) -> Path:
        """A folder of this machine with what the last command left beside its output. FarmUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """This machine."""

    folder: Path

    @property
    def memory_bytes(self) -> int:
        """Its memory."""
        return memory_bytes()

    @property
    def root(self) -> bool:
        """Whether we are root."""
        return os.geteuid() == 0

    def tool(self, name: str) -> Tool:
        """The one of that name."""
        return TOOLS[name]

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        try:
            return run(resolved(tool, command), self.folder, stop)
        except OSError as error:
            raise FarmUnavailable(
                f"{self.folder}: {tool.program} cannot be started: {error.strerror}; is the disk still "
                "mounted?"
            ) from error

    def brought(self) -> Path:
        """The folder itself."""
        return self.folder


def memory_bytes() -> int:
    """This machine's memory."""
    return int(psutil.virtual_memory().total)


@contextmanager
def here(parent: Path, needed_bytes: int) -> Iterator[LocalMachine]:
    """This machine, with a folder of ours that has room. Raises GuardError, FarmUnavailable."""
    with own_folder(parent) as folder:
        usage = shutil.disk_usage(folder)
        check_space(str(folder), needed_bytes, usage.free, usage.total)
        yield LocalMachine(folder)
