"""The CPU cap a control group puts on a process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from pinchpoint_collectors.linux.files import HERE, Facts
from pinchpoint_collectors.proc import cgroup, mountinfo


class CpuCaps:
    """Looks up CPU caps, of control groups of version 1 and 2.

    Args:
        files: of the machine.
    """

    def __init__(self, files: Facts = HERE) -> None:
        self._files = files
        mounts = mountinfo.parse(files.fact("/proc/self/mountinfo") or "")
        self._v1 = next(
            (m for m in mounts if m.file_system == "cgroup" and "cpu" in m.super_options.split(",")), None
        )
        self._v2 = next((m for m in mounts if m.file_system == "cgroup2"), None)

    def cap_cores(self, pids: Iterable[int]) -> float | None:
        """Cores the processes may use at most; None where at least one of them is not capped.

        Processes in one group share its cap; caps of different groups add up.
        """
        groups = {self._files.fact(f"/proc/{pid}/cgroup") or "" for pid in pids}
        caps = [self._group_cap(cgroup.parse(text)) for text in groups]
        if not caps or None in caps:
            return None
        return sum(cap for cap in caps if cap is not None)

    def _group_cap(self, paths: dict[str, str]) -> float | None:
        """The lowest cap on the way from a group up to the root: each of them holds."""
        if self._v1 and "cpu" in paths:
            directories = upwards(self._v1, paths["cpu"])
            caps = [_cap_v1(self._files, directory) for directory in directories]
        elif self._v2 and "" in paths:
            directories = upwards(self._v2, paths[""])
            caps = [_cap_v2(self._files, directory) for directory in directories]
        else:
            return None
        return min((cap for cap in caps if cap is not None), default=None)


def upwards(mount: mountinfo.Mount, group: str) -> list[str]:
    """The directories of a group and of all groups above it, as far as they are mounted here."""
    path = PurePosixPath(group)
    inside = path.relative_to(mount.root) if path.is_relative_to(mount.root) else PurePosixPath()
    top = PurePosixPath(mount.mount_point)
    return [str(top / inside), *(str(top / above) for above in inside.parents)]


def _cap_v1(files: Facts, directory: str) -> float | None:
    quota, period = (files.fact(f"{directory}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    return cgroup.cap_cores_v1(quota, period) if quota and period else None


def _cap_v2(files: Facts, directory: str) -> float | None:
    cpu_max = files.fact(f"{directory}/cpu.max")  # the root group has none
    return cgroup.cap_cores(cpu_max) if cpu_max else None
