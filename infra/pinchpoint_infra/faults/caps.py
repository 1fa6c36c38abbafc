"""Limits the CPU and memory of a farm's tiers by control groups of version 1 or 2."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pinchpoint_collectors.linux import cgroups, mountinfo

_PREFIX = "pinchpoint-"
_PERIOD_US = 10_000
"""Period of a CPU limit in microseconds. It is short, because a limited tier pauses for up to this time. CPU
shares were exact (± 0.005 cores, measured with one and two busy threads at 0.1 to 1.5 cores) for periods from
10 to 100 ms."""
_LEAST_QUOTA_US = 1_000  # smallest value that the kernel allows
_PATIENCE_S = 5.0
_RECLAIM_S = 20.0


@dataclass(frozen=True, slots=True)
class CapSupport:
    """The support of this machine for control groups.

    Attributes:
        roots: controller (``cpu``, ``memory``, ``io``) -> folder under which groups can be created.
        unified: whether the machine has version 2, in which one group has all controllers.
        missing: ``cpu``, ``memory`` -> why this limit is not possible, with the remedy.
    """

    roots: Mapping[str, Path]
    unified: bool
    missing: Mapping[str, str]

    def only(self, controller: str) -> CapSupport:
        """Return the same support with only one controller."""
        return replace(self, roots={controller: self.roots[controller]})


def support() -> CapSupport:
    """Check this machine without changing it."""
    if os.geteuid() != 0:
        why = "no root rights (control groups need them)"
        return CapSupport({}, unified=False, missing={"cpu": why, "memory": why})
    mounts = mountinfo.parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    v1 = {
        controller: Path(mount.mount_point)
        for mount in mounts
        if mount.file_system == "cgroup"
        for controller in ("cpu", "memory")
        if controller in mount.super_options.split(",")
    }
    roots, unified = (v1, False) if v1 else (_unified(mounts), True)
    roots = {name: root for name, root in roots.items() if os.access(root, os.W_OK)}
    missing = {
        name: f"no {name} controller (control groups, version 1 or 2) that may be written"
        for name in ("cpu", "memory")
        if name not in roots
    }
    return CapSupport(roots, unified, missing)


def _unified(mounts: list[mountinfo.Mount]) -> dict[str, Path]:
    for mount in mounts:
        if mount.file_system == "cgroup2":
            place = Path(mount.mount_point)
            offered = (place / "cgroup.controllers").read_text(encoding="utf-8").split()
            return {name: place for name in ("cpu", "memory", "io") if name in offered}
    return {}


class Group:
    """The control group of one tier. Processes that its members start belong to it, too.

    Args:
        farm_id: id of the farm, which is part of the name of the group.
        name: name of the tier.
        machine: the result of ``support()``.
    """

    def __init__(self, farm_id: str, name: str, machine: CapSupport) -> None:
        self._machine = machine
        self._paths = {
            controller: root / f"{_PREFIX}{farm_id}" / name for controller, root in machine.roots.items()
        }

    @property
    def io(self) -> Path | None:
        """Return the folder for I/O limits in version 2; None in version 1."""
        return self._paths.get("io")

    def make(self) -> None:
        """Create the group without limits."""
        for controller, path in self._paths.items():
            if self._machine.unified:
                for above in (path.parent.parent, path.parent):
                    above.mkdir(exist_ok=True)
                    (above / "cgroup.subtree_control").write_text(f"+{controller}")
            path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Move this process into the group during the context, so that its children start in the group."""
        before = cgroups.groups(Path("/proc/self/cgroup").read_text(encoding="utf-8"))
        self.add(os.getpid())
        try:
            yield
        finally:
            for controller, root in self._machine.roots.items():
                place = before["" if self._machine.unified else controller].lstrip("/")
                (root / place / "cgroup.procs").write_text(str(os.getpid()))

    def add(self, pid: int) -> None:
        """Move a process with all its threads into the group."""
        for path in set(self._paths.values()):
            (path / "cgroup.procs").write_text(str(pid))

    def cap_cpu(self, cores: float | None) -> None:
        """Limit all processes of the group together to a number of cores; None removes the limit."""
        path = self._paths["cpu"]
        period_us = max(_PERIOD_US, round(_LEAST_QUOTA_US / cores)) if cores else _PERIOD_US
        if self._machine.unified:
            quota = str(round(cores * period_us)) if cores else "max"
            (path / "cpu.max").write_text(f"{quota} {period_us}")
            return
        # An intermediate pair of period and quota would be invalid in another order.
        (path / "cpu.cfs_quota_us").write_text("-1")
        (path / "cpu.cfs_period_us").write_text(str(period_us))
        if cores:
            (path / "cpu.cfs_quota_us").write_text(str(round(cores * period_us)))

    def cap_memory(self, bytes_: int | None) -> None:
        """Limit the memory of the group, with page cache and without swap; None removes the limit.

        Memory above the limit is reclaimed as far as possible.
        """
        path = self._paths["memory"]
        if self._machine.unified:
            (path / "memory.max").write_text(str(bytes_ or "max"))
            return
        both = path / "memory.memsw.limit_in_bytes"
        files = [path / "memory.limit_in_bytes", *([both] if both.exists() else [])]
        # the limit of memory with swap must not be below that of memory
        for file in files if bytes_ else reversed(files):
            _write_patiently(file, str(bytes_ or -1))


def _write_patiently(file: Path, text: str) -> None:
    """Write with retries while the kernel reports "busy": data not yet on the disk cannot be reclaimed."""
    deadline = time.monotonic() + _RECLAIM_S
    while True:
        try:
            file.write_text(text)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def remove_all(farm_id: str) -> list[str]:
    """Remove every control group of a farm after its processes have ended. Raises OSError."""
    removed = 0
    for place in _places(farm_id):
        for group in (*(child for child in place.iterdir() if child.is_dir()), place):
            _remove(group)
            removed += 1
    return [f"removed {removed} control groups"] if removed else []


def _places(farm_id: str) -> Iterator[Path]:
    for root in dict.fromkeys(support().roots.values()):
        place = root / f"{_PREFIX}{farm_id}"
        if place.exists():
            yield place


def _remove(group: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # a process that has just ended may still be listed
        else:
            return
