"""Creates, limits, describes and removes emulated disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pinchpoint_collectors.linux import mountinfo
from pinchpoint_infra.disks.raid import columns
from pinchpoint_infra.disks.record import DiskError, DiskSpec
from pinchpoint_infra.disks.support import find_tool, support
from pinchpoint_infra.disks.way import DiskStack, limits, set_v1, set_v2

# The functions below create loop devices and mounts, and find those of a farm by the folder of their files.

_BLOCK = Path("/sys/block")
_PATIENCE_S = 60.0


def run(*command: str) -> str:
    """Run a system program and return its output. Raises DiskError with its message."""
    program = find_tool(command[0])
    if program is None:
        raise DiskError(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        text = (done.stderr or done.stdout).strip()
        raise DiskError(f"{' '.join(command)} ended with status {done.returncode}: {text}")
    return done.stdout.strip()


def attach(file: Path) -> str:
    """Create a loop device over a file or block device without page cache. Return its name (``loop3``)."""
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
    """Remove a loop device."""
    run("losetup", "--detach", f"/dev/{name}")


def acknowledge_durably(name: str) -> None:
    """Stop the kernel from sending flushes. The device below loses no acknowledged write.

    Flushes would count as writes (docs/metrics.md), also against limits.
    """
    (_BLOCK / name / "queue" / "write_cache").write_text("write through")


def read_ahead(name: str, size_bytes: int) -> None:
    """Set the kernel's read-ahead. A reused device would keep its previous setting."""
    (_BLOCK / name / "queue" / "read_ahead_kb").write_text(str(size_bytes // 1024))


def numbers(name: str) -> str:
    """Return ``major:minor`` of a device."""
    return (_BLOCK / name / "dev").read_text().strip()


def make_file_system(name: str, *, journal: bool) -> None:
    """Create an empty ext4 file system that has no work left for the background."""
    features = [] if journal else ["-O", "^has_journal"]
    lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", lazy, *features, f"/dev/{name}")


def mount(name: str, folder: Path) -> None:
    """Mount a device on a folder. The folder is empty afterwards."""
    run("mount", "-t", "ext4", "-o", "noatime,nodev,nosuid", f"/dev/{name}", str(folder))
    (folder / "lost+found").rmdir()  # servers need an empty folder


def unmount(folder: Path) -> None:
    """Unmount a file system. I/O in flight has a moment to finish."""
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
    """Return the mounts below a folder, the deepest and latest first."""
    mounts = mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    return [m for m in reversed(mounts) if Path(m.mount_point).is_relative_to(directory)]


def devices_of(farm_id: str, directory: Path) -> list[str]:
    """Return the loop devices over a farm's files and over other devices of the farm, the outermost first.

    A file in the folder of a farm belongs to the farm. A file on a removed file system has lost its folder,
    but its name still contains the id of the farm.
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
            continue  # the device is free, or is being freed
        yield device.name, text.removesuffix(" (deleted)")


_START_S = 15.0
_NICE = -10
"""High priority of the model: it stands for hardware and must be on time on a busy machine, too."""

EVENTS = "events.jsonl"


class EmulatedDisk:
    """A block device with a file system of its own, mounted as a folder of a tier.

    The layers are: file(s) → [FUSE file with the time model] → [inner loop device, throttled] → loop device →
    ext4. The last device is measured. All delays are below it, so its counters show them.

    Args:
        name: name of the disk: ``tier.role``.
        farm_id: id of the farm, which is part of the file names.
        folder: folder of the disk's files.
        mount: mount point.
        environment: environment variables of the disk's process.
    """

    def __init__(
        self,
        name: str,
        farm_id: str,
        spec: DiskSpec,
        way: DiskStack,
        folder: Path,
        mount: Path,
        environment: dict[str, str],
    ) -> None:
        self.name = name
        self._spec = spec
        self._way = way
        self._folder = folder
        self._mount = mount
        self._file = f"{farm_id}.{name}"
        self._environment = environment
        self._caps = limits(spec) if way.throttle else {}
        self._model: subprocess.Popen[str] | None = None
        self._throttled = ""
        self.device = ""

    def build(self) -> None:
        """Create the disk without limits. Raises DiskError."""
        self._folder.mkdir(parents=True, mode=0o700)
        file = self._start_model() if self._way.model else self._backing(0, self._spec.size_bytes)
        device = attach(file)
        if self._way.throttle:
            self._throttled = numbers(device)
            device = attach(Path("/dev") / device)
        self.device = device
        acknowledge_durably(device)
        read_ahead(device, self._spec.read_ahead_bytes)
        # Version 2 does not limit the I/O of a journal, so there is no journal.
        make_file_system(device, journal=self._way.throttle != "v2")
        self._mount.mkdir(parents=True, exist_ok=True)
        mount(device, self._mount)

    def apply(self, *, on: bool, group: Path | None) -> None:
        """Start the limits from their initial state, or remove them.

        Args:
            on: whether to start or to remove the limits.
            group: control group of the tier. Version 2 limits a disk for one group.
        """
        if on:
            self._forget()
        self._throttle(self._caps if on else {}, group)
        self._report({"apply": on})

    @property
    def limited(self) -> bool:
        """Return whether the disk has a limit that can be lowered."""
        return bool(self._caps or self._model)

    def slow_to(self, ratio: float, group: Path | None) -> None:
        """Set the speed of a limited disk without resetting its state.

        Args:
            ratio: factor of the limits, and divisor of I/O times; 1: full speed.
            group: control group, as for ``apply``.
        """
        self._throttle({name: max(1, round(cap * ratio)) for name, cap in self._caps.items()}, group)
        self._report({"speed_ratio": ratio})

    def _throttle(self, caps: dict[str, int], group: Path | None) -> None:
        machine = support()
        if self._way.throttle == "v1" and machine.v1:
            set_v1(machine.v1, self._throttled, caps)
        elif self._way.throttle == "v2" and group:
            set_v2(group, self._throttled, caps)

    def _report(self, command: dict[str, Any]) -> None:
        if self._model:
            assert self._model.stdin is not None  # noqa: S101 -- it was started with pipes
            assert self._model.stdout is not None  # noqa: S101 -- likewise
            self._model.stdin.write(json.dumps(command) + "\n")
            self._model.stdin.flush()
            if not self._model.stdout.readline():
                raise DiskError(f"the process behind {self.name} has ended: {self._last_words()}")

    def close(self) -> None:
        """End the disk's process after the disk was removed."""
        if self._model:
            self._model.communicate(timeout=_START_S)

    def describe(self) -> dict[str, Any]:
        """Return the disk as JSON types for the status of the farm."""
        return {
            "device": self.device,
            "mount": str(self._mount),
            "way": str(self._way),
            "notes": list(self._way.notes),
            "events": str(self._folder / EVENTS),
        }

    def _backing(self, number: int, size_bytes: int) -> Path:
        path = self._folder / f"{self._file}.{number}"
        with path.open("xb") as file:
            os.truncate(file.fileno(), size_bytes)
        return path

    def _start_model(self) -> Path:
        spec = self._way.model
        assert spec is not None  # noqa: S101 -- the caller asked
        files = columns(spec.raid, spec.stripes)
        each = -(-self._spec.size_bytes // files)
        place = self._folder / "fuse"
        place.mkdir()
        config = {
            "mount": str(place),
            "file": self._file,
            "backing": [str(self._backing(number, each)) for number in range(files)],
            "size_bytes": self._spec.size_bytes,
            "spec": asdict(spec),
            "seed": self.name,
            "events": str(self._folder / EVENTS),
        }
        with (self._folder / "fuse.log").open("ab") as log:
            self._model = subprocess.Popen(
                [sys.executable, "-m", "pinchpoint_infra.disks.fuse", json.dumps(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                start_new_session=True,
            )
        os.sched_setaffinity(self._model.pid, range(os.cpu_count() or 1))
        os.setpriority(os.PRIO_PROCESS, self._model.pid, _NICE)
        deadline = time.monotonic() + _START_S
        while not (place / self._file).exists():
            if self._model.poll() is not None or time.monotonic() > deadline:
                raise DiskError(f"the process behind {self.name} did not start: {self._last_words()}")
            time.sleep(0.02)
        return place / self._file

    def _last_words(self) -> str:
        lines = (self._folder / "fuse.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "without a word"

    def _forget(self) -> None:
        """Drop the page cache, so that reads reach the disk."""
        for folder, _, files in os.walk(self._mount):
            for name in files:
                try:
                    descriptor = os.open(Path(folder) / name, os.O_RDONLY | os.O_NOFOLLOW)
                except FileNotFoundError:
                    continue  # a server removed the file meanwhile
                try:
                    os.fsync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def remove_all(farm_id: str, directory: Path) -> list[str]:
    """Remove every mount, loop device and limit of a farm. Return sentences. Raises DiskError.

    The processes of the farm must have ended. All files in its folder belong to the farm.
    """
    done = []
    devices = devices_of(farm_id, directory)
    machine = support()
    if machine.v1:
        for name in devices:  # limits first: unmounting writes, and device numbers are used again
            set_v1(machine.v1, numbers(name), {})
    mounts = mounts_below(directory)
    for mount in (m for m in mounts if not m.file_system.startswith("fuse")):
        unmount(Path(mount.mount_point))
    for name in devices:
        detach(name)
    for mount in (m for m in mounts if m.file_system.startswith("fuse")):
        unmount(Path(mount.mount_point))
    if mounts:
        done.append(f"unmounted {len(mounts)} emulated file system{'s' if len(mounts) > 1 else ''}")
    if devices:
        done.append(f"freed the loop device{'s' if len(devices) > 1 else ''} {', '.join(devices)}")
    return done
