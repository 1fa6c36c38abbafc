"""Reads the CPU and memory limits of a tier's control groups (v1 and v2), and their usage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from pinchpoint_collectors.linux import meminfo, mountinfo
from pinchpoint_collectors.linux.files import HERE, Facts
from pinchpoint_collectors.value import Value, rate


def groups(text: str) -> dict[str, str]:
    """Return the path of the group by controller (version 1), and under ``""`` that of version 2's tree."""
    paths = {}
    for line in text.splitlines():
        _number, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def cap_cores(cpu_max: str) -> float | None:
    """Return the cores that a group may use, from version 2's ``cpu.max`` (``50000 100000``).

    Returns None for ``max``.
    """
    quota, _, period = cpu_max.strip().partition(" ")
    return None if quota == "max" else int(quota) / int(period or 100_000)


def cap_cores_v1(quota_us: str, period_us: str) -> float | None:
    """Return the cores that a group may use, from ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us``.

    Returns None for a quota of -1.
    """
    return None if int(quota_us) < 0 else int(quota_us) / int(period_us)


class Groups:
    """The control groups of processes for one controller, and their directories.

    Args:
        files: files of the machine.
        controller: controller of version 1, such as ``cpu`` and ``memory``; version 2 has one tree for all.
    """

    def __init__(self, files: Facts, controller: str) -> None:
        self._files = files
        self._controller = controller
        mounts = mountinfo.parse(files.fact("/proc/self/mountinfo") or "")
        self._v1 = next(
            (m for m in mounts if m.file_system == "cgroup" and controller in m.super_options.split(",")),
            None,
        )
        self._v2 = next((m for m in mounts if m.file_system == "cgroup2"), None)

    def of(self, pids: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
        """Return for each group with one of the processes its version, and its directories up to the root.

        The version is 0 if the group is not mounted on this machine. A limit of any of its directories
        applies.
        """
        for text in {self._files.fact(f"/proc/{pid}/cgroup") or "" for pid in pids}:
            paths = groups(text)
            if self._v1 and self._controller in paths:
                yield 1, _upwards(self._v1, paths[self._controller])
            elif self._v2 and "" in paths:
                yield 2, _upwards(self._v2, paths[""])
            else:
                yield 0, []


def _upwards(mount: mountinfo.Mount, group: str) -> list[str]:
    """Yield the directories of a group and of all groups above it that are mounted on this machine."""
    path = PurePosixPath(group)
    inside = path.relative_to(mount.root) if path.is_relative_to(mount.root) else PurePosixPath()
    top = PurePosixPath(mount.mount_point)
    return [str(top / inside), *(str(top / above) for above in inside.parents)]


class CpuCaps:
    """Reads CPU limits of processes.

    Args:
        files: files of the machine.
    """

    def __init__(self, files: Facts = HERE) -> None:
        self._files = files
        self._groups = Groups(files, "cpu")

    def cap_cores(self, pids: Iterable[int]) -> float | None:
        """Return the largest number of cores for the processes; None if at least one of them has no limit.

        Processes in one group share its limit; limits of different groups add up.
        """
        caps = [self._lowest(version, directories) for version, directories in self._groups.of(pids)]
        if not caps or None in caps:
            return None
        return sum(cap for cap in caps if cap is not None)

    def _lowest(self, version: int, directories: list[str]) -> float | None:
        read = self._cap_v1 if version == 1 else self._cap_v2
        return min((cap for cap in map(read, directories) if cap is not None), default=None)

    def _cap_v1(self, directory: str) -> float | None:
        quota, period = (self._files.fact(f"{directory}/cpu.cfs_{name}_us") for name in ("quota", "period"))
        return cap_cores_v1(quota, period) if quota and period else None

    def _cap_v2(self, directory: str) -> float | None:
        cpu_max = self._files.fact(f"{directory}/cpu.max")  # the root group has no limit
        return cap_cores(cpu_max) if cpu_max else None


_UNLIMITED_BYTES = 2**62
"""Value by which version 1 means "no limit": the largest number of bytes in whole pages, 2**63 less one
page."""


class GroupMemory(NamedTuple):
    """A group with a memory limit at one time. A counter is None if the kernel does not keep it.

    Attributes:
        cap_bytes: memory limit in bytes.
        used_bytes: used memory in bytes, including file cache.
        inactive_file_bytes: part of the used memory: file cache not used lately, which the kernel reclaims
            first.
        major_faults: number of page faults that read from a disk.
        refaults: number of pages of file cache that were read again soon after they were reclaimed.
        reclaimed: number of reclaimed pages.
        limit_hits: number of allocations that met the limit, so that memory had to be reclaimed first.
    """

    cap_bytes: int
    used_bytes: int
    inactive_file_bytes: int
    major_faults: int | None
    refaults: int | None
    reclaimed: int | None
    limit_hits: int | None

    @property
    def available_bytes(self) -> int:
        """Return limit - working set. The working set is used memory - inactive file cache.

        cAdvisor, and so Kubernetes, defines ``container_memory_working_set_bytes`` in the same way.
        """
        return max(0, self.cap_bytes - max(0, self.used_bytes - self.inactive_file_bytes))


def cap_bytes_v1(limit: str) -> int | None:
    """Return the bytes of version 1's ``memory.limit_in_bytes``; None without a limit."""
    return None if int(limit) >= _UNLIMITED_BYTES else int(limit)


def cap_bytes_v2(limit: str, high: str) -> int | None:
    """Return the lower of version 2's ``memory.max`` and ``memory.high`` in bytes.

    Returns None if both are ``max``.
    """
    return min((int(text) for text in (limit.strip(), high.strip()) if text != "max"), default=None)


def memory_v1(
    cap_bytes: int, usage: str, stat: str, failcnt: str, memsw: tuple[str, str] | None
) -> GroupMemory:
    """Return the memory from ``memory.usage_in_bytes``, ``memory.stat`` and ``memory.failcnt``.

    Groups below are included.

    ``memsw`` is the limit and the failcnt of memory and swap together; None if they are not counted. If that
    limit is not above the memory limit, it is met first, and ``memory.failcnt`` stays 0. Only some kernels
    keep the failcnt of ``memsw`` (6.18 does not), so a 0 there is no evidence.
    """
    result = _numbers(stat)
    return GroupMemory(
        cap_bytes,
        int(usage),
        result["total_inactive_file"],
        result.get("total_pgmajfault"),
        result.get("total_workingset_refault_file"),
        None,
        int(failcnt) if memsw is None or int(memsw[0]) > cap_bytes else int(memsw[1]) or None,
    )


def memory_v2(cap_bytes: int, current: str, stat: str, events: str) -> GroupMemory:
    """Return the memory from ``memory.current``, ``memory.stat`` and ``memory.events``, with subgroups."""
    result, reported = _numbers(stat), _numbers(events)
    # Before kernel 5.9 file and anonymous pages were not counted separately.
    refaults = result.get("workingset_refault_file", result.get("workingset_refault"))
    return GroupMemory(
        cap_bytes,
        int(current),
        result["inactive_file"],
        result.get("pgmajfault"),
        refaults,
        result.get("pgsteal"),
        reported["max"] + reported["high"],
    )


def memory_values(
    before: GroupMemory | None, after: GroupMemory, interval_s: float, instance: str, page_bytes: int
) -> Iterator[Value]:
    """Yield available memory now, and signs of too little memory since ``before``."""
    yield Value("mem.available_bytes", instance, after.available_bytes)
    left = after.available_bytes / after.cap_bytes if after.cap_bytes else 0.0
    yield Value("mem.available_ratio", instance, left)
    if before is None:
        return
    for metric, old, new, unit in (
        ("mem.major_faults_per_s", before.major_faults, after.major_faults, 1),
        ("mem.refaulted_bytes_per_s", before.refaults, after.refaults, page_bytes),
        ("mem.reclaimed_bytes_per_s", before.reclaimed, after.reclaimed, page_bytes),
        ("mem.limit_hits_per_s", before.limit_hits, after.limit_hits, 1),
    ):
        if old is not None and new is not None:
            yield Value(metric, instance, rate(old, new, interval_s, unit))


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


class Capped(NamedTuple):
    """The memory of a group with a limit, and the directory of the group."""

    directory: str
    memory: GroupMemory


class MemoryCaps:
    """Reads the memory of groups with a limit.

    Args:
        files: files of the machine.
    """

    def __init__(self, files: Facts = HERE) -> None:
        self._files = files
        self._groups = Groups(files, "memory")
        self._machine_bytes = meminfo.parse(files.fact("/proc/meminfo") or "").get("MemTotal", 0)

    def tightest(self, pids: Iterable[int]) -> Capped | None:
        """Return the group of the processes with the least memory left; None without a limit.

        A limit above the memory of the machine does not count.
        """
        cappeds: dict[str, Capped] = {}
        for version, directories in self._groups.of(pids):
            read = self._read_v1 if version == 1 else self._read_v2
            for directory in directories:
                capped = read(directory)
                if capped is not None:
                    cappeds[directory] = Capped(directory, capped)
        return min(cappeds.values(), key=lambda capped: capped.memory.available_bytes, default=None)

    def _read_v1(self, directory: str) -> GroupMemory | None:
        cap = cap_bytes_v1(self._files.fact(f"{directory}/memory.limit_in_bytes") or str(2**63))
        if cap is None or cap > self._machine_bytes:
            return None
        usage, stat, failcnt, limit, hits = (
            self._files.fact(f"{directory}/memory.{name}")
            for name in ("usage_in_bytes", "stat", "failcnt", "memsw.limit_in_bytes", "memsw.failcnt")
        )
        if not (usage and stat and failcnt):
            return None  # the group has been removed
        return memory_v1(cap, usage, stat, failcnt, (limit, hits) if limit and hits else None)

    def _read_v2(self, directory: str) -> GroupMemory | None:
        limits = (self._files.fact(f"{directory}/memory.{name}") or "max" for name in ("max", "high"))
        cap = cap_bytes_v2(*limits)  # the root group lacks these files
        if cap is None or cap > self._machine_bytes:
            return None
        current, stat, events = (
            self._files.fact(f"{directory}/memory.{name}") for name in ("current", "stat", "events")
        )
        return memory_v2(cap, current, stat, events) if current and stat and events else None


class TierMemory:
    """The memory of one tier, from reading to reading.

    Args:
        tier: name of the tier.
        caps: memory limits of the machine's groups.
        page_bytes: page size of the machine in bytes.
    """

    def __init__(self, tier: str, caps: MemoryCaps, page_bytes: int) -> None:
        self._instance = f"tier:{tier}"
        self._caps = caps
        self._before: Capped | None = None
        self._page_bytes = page_bytes

    def read(self, pids: Iterable[int], interval_s: float) -> Iterator[Value]:
        """Yield the memory of the tier now; nothing without a limit by a control group.

        Args:
            pids: ids of the root processes of the tier.
            interval_s: seconds since the last reading; 0 at the first.
        """
        before, self._before = self._before, self._caps.tightest(pids)
        if self._before is None:
            return
        same = before is not None and before.directory == self._before.directory and interval_s > 0
        yield from memory_values(
            before.memory if before and same else None,
            self._before.memory,
            interval_s,
            self._instance,
            self._page_bytes,
        )
