"""Creates, limits, describes and removes emulated disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pinchpoint_infra.disks import loop, throttle
from pinchpoint_infra.disks.raid import columns
from pinchpoint_infra.disks.record import DiskError, DiskSpec
from pinchpoint_infra.disks.support import support
from pinchpoint_infra.disks.way import DiskStack

_START_S = 15.0
_NICE = -10
"""The model must wake up in time also on a busy machine: it is the hardware."""

EVENTS = "events.jsonl"


class EmulatedDisk:
    """A block device with a file system of its own, mounted where a tier expects its folder.

    file(s) → [FUSE file with the time model] → [inner loop device, throttled] → loop device → ext4. The last
    device is the one that is watched: all that slows an I/O down lies below it, so its counters show it.

    Args:
        name: ``tier.role``.
        farm_id: the farm's; file names carry it.
        folder: where its own files go.
        mount: the folder it becomes.
        environment: that of its process.
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
        self._caps = throttle.limits(spec) if way.throttle else {}
        self._model: subprocess.Popen[str] | None = None
        self._throttled = ""
        self.device = ""

    def build(self) -> None:
        """Make it, unlimited for now. Raises DiskError."""
        self._folder.mkdir(parents=True, mode=0o700)
        file = self._start_model() if self._way.model else self._backing(0, self._spec.size_bytes)
        device = loop.attach(file)
        if self._way.throttle:
            self._throttled = loop.numbers(device)
            device = loop.attach(Path("/dev") / device)
        self.device = device
        loop.acknowledge_durably(device)
        loop.read_ahead(device, self._spec.read_ahead_bytes)
        # Version 2 charges a journal's I/O to no group: without one nothing escapes.
        loop.make_file_system(device, journal=self._way.throttle != "v2")
        self._mount.mkdir(parents=True, exist_ok=True)
        loop.mount(device, self._mount)

    def apply(self, *, on: bool, group: Path | None) -> None:
        """Let its limits hold from now on, from their beginning; or lift them.

        Args:
            on: which.
            group: the tier's control group, which version 2 puts caps on.
        """
        if on:
            self._forget()
        self._throttle(self._caps if on else {}, group)
        self._report({"apply": on})

    @property
    def limited(self) -> bool:
        """Whether there is anything about it that could be tightened."""
        return bool(self._caps or self._model)

    def slow_to(self, ratio: float, group: Path | None) -> None:
        """While its limits hold: let it work at that share of its speed, without beginning anew; 1: its own.

        Args:
            ratio: caps are multiplied by it, what an I/O takes is divided by it.
            group: as for ``apply``.
        """
        self._throttle({name: max(1, round(cap * ratio)) for name, cap in self._caps.items()}, group)
        self._report({"speed_ratio": ratio})

    def _throttle(self, caps: dict[str, int], group: Path | None) -> None:
        machine = support()
        if self._way.throttle == "v1" and machine.v1:
            throttle.set_v1(machine.v1, self._throttled, caps)
        elif self._way.throttle == "v2" and group:
            throttle.set_v2(group, self._throttled, caps)

    def _report(self, command: dict[str, Any]) -> None:
        if self._model:
            assert self._model.stdin is not None  # noqa: S101 -- it was started with pipes
            assert self._model.stdout is not None  # noqa: S101 -- likewise
            self._model.stdin.write(json.dumps(command) + "\n")
            self._model.stdin.flush()
            if not self._model.stdout.readline():
                raise DiskError(f"the process behind {self.name} has ended: {self._last_words()}")

    def close(self) -> None:
        """Let go of the process behind it, once the disk has been removed."""
        if self._model:
            self._model.communicate(timeout=_START_S)

    def describe(self) -> dict[str, Any]:
        """For the farm's status: JSON types."""
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
        """Take what was read or written until now out of the page cache: reads are to reach the disk."""
        for folder, _, files in os.walk(self._mount):
            for name in files:
                try:
                    descriptor = os.open(Path(folder) / name, os.O_RDONLY | os.O_NOFOLLOW)
                except FileNotFoundError:
                    continue  # a server removed it meanwhile
                try:
                    os.fsync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def remove_all(farm_id: str, directory: Path) -> list[str]:
    """Free every mount, loop device and throttle of a farm; sentences. Raises DiskError.

    The farm's processes must have ended. What is found belongs to the farm because of where it lies.
    """
    done = []
    devices = loop.devices_of(farm_id, directory)
    machine = support()
    if machine.v1:
        for name in devices:  # first: unmounting writes, and device numbers are used again
            throttle.set_v1(machine.v1, loop.numbers(name), {})
    mounts = loop.mounts_below(directory)
    for mount in (m for m in mounts if not m.file_system.startswith("fuse")):
        loop.unmount(Path(mount.mount_point))
    for name in devices:
        loop.detach(name)
    for mount in (m for m in mounts if m.file_system.startswith("fuse")):
        loop.unmount(Path(mount.mount_point))
    if mounts:
        done.append(f"unmounted {len(mounts)} emulated file system{'s' if len(mounts) > 1 else ''}")
    if devices:
        done.append(f"freed the loop device{'s' if len(devices) > 1 else ''} {', '.join(devices)}")
    return done
