"""Loop devices and what is mounted from them: made, and found again by the folder their files lie in."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from pinchpoint_collectors.linux import mountinfo
from pinchpoint_infra.disks.record import DiskError
from pinchpoint_infra.disks.support import find_tool

_BLOCK = Path("/sys/block")
_PATIENCE_S = 10.0


def run(*command: str) -> str:
    """Run a system program; its output. Raises DiskError with what it said."""
    program = find_tool(command[0])
    if program is None:
        raise DiskError(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise DiskError(f"{' '.join(command)} ended with status {done.returncode}: {said}")
    return done.stdout.strip()


def attach(file: Path) -> str:
    """A loop device over a file or block device, past the page cache; its name (``loop3``)."""
    device = run("losetup", "--find", "--show", "--direct-io=on", str(file))
    name = Path(device).name
    if (_BLOCK / name / "loop" / "dio").read_text().strip() != "1":
        run("losetup", "--detach", device)
        raise DiskError(
            f"the file system of {file} has no direct I/O, so a disk there would be served from memory; "
            "name another folder in PINCHPOINT_STATE"
        )
    return name


def detach(name: str) -> None:
    """Free a loop device."""
    run("losetup", "--detach", f"/dev/{name}")


def acknowledge_durably(name: str) -> None:
    """Make the kernel send no flushes: the device behind loses nothing it has acknowledged.

    Flushes would be counted as writes (METHOD section 2, "Traps") and against caps.
    """
    (_BLOCK / name / "queue" / "write_cache").write_text("write through")


def read_ahead(name: str, size_bytes: int) -> None:
    """Set how far the kernel reads ahead: a device that is used again has its last one's setting."""
    (_BLOCK / name / "queue" / "read_ahead_kb").write_text(str(size_bytes // 1024))


def numbers(name: str) -> str:
    """``major:minor`` of a device."""
    return (_BLOCK / name / "dev").read_text().strip()


def make_file_system(name: str, *, journal: bool) -> None:
    """An empty ext4 with nothing left to be done in the background."""
    features = [] if journal else ["-O", "^has_journal"]
    lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", lazy, *features, f"/dev/{name}")


def mount(name: str, folder: Path) -> None:
    """Mount a device on a folder, which is empty then."""
    run("mount", "-t", "ext4", "-o", "noatime,nodev,nosuid", f"/dev/{name}", str(folder))
    (folder / "lost+found").rmdir()  # servers want their folder empty


def unmount(folder: Path) -> None:
    """Unmount; what is still being written gets a moment."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            run("umount", str(folder))
        except DiskError as error:
            if "not mounted" in str(error) or "no mount point" in str(error):
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def mounts_below(directory: Path) -> list[mountinfo.Mount]:
    """What is mounted below a folder, the deepest and latest first."""
    mounts = mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    return [m for m in reversed(mounts) if Path(m.mount_point).is_relative_to(directory)]


def devices_of(farm_id: str, directory: Path) -> list[str]:
    """Loop devices over a farm's files and over such devices, the outermost first.

    A file is the farm's because it lies in the farm's folder; one whose file system is gone has lost its
    folder, but still carries the farm's id in its name.
    """
    behind = dict(_backing_files())
    inner = [
        name
        for name, file in behind.items()
        if Path(file).is_relative_to(directory) or Path(file).name.startswith(f"{farm_id}.")
    ]
    outer = [name for name, file in behind.items() if Path(file).name in inner and file.startswith("/dev/")]
    return outer + inner


def _backing_files() -> Iterator[tuple[str, str]]:
    for device in _BLOCK.glob("loop*"):
        file = device / "loop" / "backing_file"
        try:
            text = os.fsdecode(file.read_bytes()).removesuffix("\n")
        except FileNotFoundError:
            continue  # free, or being freed at this moment
        yield device.name, text.removesuffix(" (deleted)")
