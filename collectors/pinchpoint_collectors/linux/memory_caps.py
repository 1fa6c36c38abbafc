"""The memory cap a control group puts on a tier, and how the tier stands with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pinchpoint_collectors.linux.cgroups import upwards
from pinchpoint_collectors.linux.files import HERE, Facts
from pinchpoint_collectors.proc import cgroup, meminfo, memory, mountinfo
from pinchpoint_collectors.proc.memory import Memory
from pinchpoint_collectors.proc.value import Value


class Capped(NamedTuple):
    """A capped group's memory, and the group's directory."""

    directory: str
    memory: Memory


class MemoryCaps:
    """Looks up the memory of capped control groups, of version 1 and 2.

    Args:
        files: of the machine.
    """

    def __init__(self, files: Facts = HERE) -> None:
        self._files = files
        mounts = mountinfo.parse(files.fact("/proc/self/mountinfo") or "")
        self._v1 = next(
            (m for m in mounts if m.file_system == "cgroup" and "memory" in m.super_options.split(",")), None
        )
        self._v2 = next((m for m in mounts if m.file_system == "cgroup2"), None)
        self._machine_bytes = meminfo.parse(files.fact("/proc/meminfo") or "").get("MemTotal", 0)

    def tightest(self, pids: Iterable[int]) -> Capped | None:
        """Of all capped groups the processes are in, the one with least left; None where there is no cap.

        A cap on a group holds for all groups below it. One above the machine's own memory is none.
        """
        groups = {self._files.fact(f"/proc/{pid}/cgroup") or "" for pid in pids}
        found = {capped.directory: capped for text in groups for capped in self._capped(cgroup.parse(text))}
        return min(found.values(), key=lambda capped: capped.memory.available_bytes, default=None)

    def _capped(self, paths: dict[str, str]) -> Iterator[Capped]:
        if self._v1 and "memory" in paths:
            directories, read = upwards(self._v1, paths["memory"]), self._read_v1
        elif self._v2 and "" in paths:
            directories, read = upwards(self._v2, paths[""]), self._read_v2
        else:
            return
        for directory in directories:
            found = read(directory)
            if found is not None:
                yield Capped(directory, found)

    def _read_v1(self, directory: str) -> Memory | None:
        cap = memory.cap_v1(self._files.fact(f"{directory}/memory.limit_in_bytes") or str(2**63))
        if cap is None or cap > self._machine_bytes:
            return None
        usage, stat, failcnt, limit, hits = (
            self._files.fact(f"{directory}/memory.{name}")
            for name in ("usage_in_bytes", "stat", "failcnt", "memsw.limit_in_bytes", "memsw.failcnt")
        )
        if not (usage and stat and failcnt):
            return None  # gone meanwhile
        return memory.parse_v1(cap, usage, stat, failcnt, (limit, hits) if limit and hits else None)

    def _read_v2(self, directory: str) -> Memory | None:
        limits = (self._files.fact(f"{directory}/memory.{name}") or "max" for name in ("max", "high"))
        cap = memory.cap_v2(*limits)  # the root group has no such files
        if cap is None or cap > self._machine_bytes:
            return None
        current, stat, events = (
            self._files.fact(f"{directory}/memory.{name}") for name in ("current", "stat", "events")
        )
        return memory.parse_v2(cap, current, stat, events) if current and stat and events else None


class TierMemory:
    """One tier's memory from reading to reading.

    Args:
        tier: its name.
        caps: of the machine.
        page_bytes: a page of its memory; None: this machine's.
    """

    def __init__(self, tier: str, caps: MemoryCaps, page_bytes: int | None = None) -> None:
        self._instance = f"tier:{tier}"
        self._caps = caps
        self._before: Capped | None = None
        self._page_bytes = page_bytes or os.sysconf("SC_PAGE_SIZE")

    def read(self, pids: Iterable[int], interval_s: float) -> Iterator[Value]:
        """The tier's memory now; nothing where no control group caps it.

        Args:
            pids: the processes the tier begins with.
            interval_s: seconds since the reading before, 0 at the first.
        """
        before, self._before = self._before, self._caps.tightest(pids)
        if self._before is None:
            return
        same = before is not None and before.directory == self._before.directory and interval_s > 0
        yield from memory.values(
            before.memory if before and same else None,
            self._before.memory,
            interval_s,
            self._instance,
            self._page_bytes,
        )
