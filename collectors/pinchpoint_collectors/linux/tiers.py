"""The CPU a tier's processes use, together and by its busiest threads, and the memory they have left."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pinchpoint_collectors.linux.cgroups import CpuCaps
from pinchpoint_collectors.linux.memory_caps import MemoryCaps, TierMemory
from pinchpoint_collectors.linux.processes import Missing, Roots, read_threads
from pinchpoint_collectors.proc.process import Process, children, tree, used_ticks
from pinchpoint_collectors.proc.value import Value
from pinchpoint_collectors.record import Processes

_BUSY_RATIO = 0.1
"""A thread that has once been its tier's busiest with this share of a core is followed from then on."""
_FOLLOWED_NAMES = 20


class Tier:
    """One tier's processes on this machine, from reading to reading.

    A process once found stays the tier's while it lives, also when its parent ends and another adopts it.
    """

    def __init__(self, name: str, wanted: Processes, caps: CpuCaps, memory_caps: MemoryCaps) -> None:
        self.name = name
        self._roots = Roots(wanted)
        self._caps = caps
        self._memory_caps = memory_caps
        self._memory = TierMemory(name, memory_caps)
        self._members: dict[int, Process] = {}
        self._threads = _Threads()
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def read(
        self,
        table: Mapping[int, Process],
        by_parent: Mapping[int, list[Process]],
        before: Mapping[int, Process] | None,
        interval_s: float,
    ) -> Iterator[Value]:
        """CPU since the reading before, and memory where it is capped.

        Args:
            table: every process of the machine now.
            by_parent: the same by parent.
            before: every process at the reading before, None at the first.
            interval_s: seconds between the two.
        """
        members_before = self._members
        self._members = self._find(table, by_parent)
        used = used_ticks(before, members_before, self._members) if before is not None else None
        most = self._threads.read(self._members, before)
        instance = f"tier:{self.name}"
        cores = self._cores_used()
        yield Value("cpu.cores", instance, cores or None)
        yield from self._memory.read(self._tops(), interval_s)
        if used is None:
            return
        possible = cores * interval_s * self._ticks_per_s
        yield Value("cpu.busy_ratio", instance, used / possible if possible else None)
        for name, ticks in self._threads.followed(most, _BUSY_RATIO * interval_s * self._ticks_per_s):
            yield Value("cpu.busy_ratio", f"thread:{name}", ticks / interval_s / self._ticks_per_s)

    def find(self, table: Mapping[int, Process]) -> None:
        """Look for its processes ahead of the first reading, so that cores and missing() can be asked for."""
        self._members = self._find(table, children(table.values()))

    def missing(self) -> Missing | None:
        """Why the tier's processes are not there; None when they are."""
        return None if self._members else self._roots.missing

    def cores(self) -> list[int]:
        """The cores its processes may run on; empty when there are none."""
        allowed: set[int] = set()
        for pid in self._members:
            try:
                allowed |= os.sched_getaffinity(pid)
            except ProcessLookupError:  # it ended since it was found
                continue
        return sorted(allowed)

    def cap_cores(self) -> float | None:
        """The cap its control groups put on it, in cores; None where there is none."""
        return self._caps.cap_cores(self._tops())

    def cap_bytes(self) -> int | None:
        """The memory cap its control groups put on it; None where there is none."""
        capped = self._memory_caps.tightest(self._tops())
        return capped.memory.cap_bytes if capped else None

    def _tops(self) -> list[int]:
        """Its processes that are not another one's child."""
        return [pid for pid, member in self._members.items() if member.parent not in self._members]

    def _cores_used(self) -> float:
        allowed, cap = len(self.cores()), self.cap_cores()
        return float(allowed) if cap is None else min(float(allowed), cap)

    def _find(
        self, table: Mapping[int, Process], by_parent: Mapping[int, list[Process]]
    ) -> dict[int, Process]:
        known = (table[pid] for pid, old in self._members.items() if _lives(old, table))
        return tree([*known, *self._roots.find(table)], by_parent)


def _lives(old: Process, table: Mapping[int, Process]) -> bool:
    now = table.get(old.pid)
    return now is not None and now.start == old.start


class _Seen(NamedTuple):
    process: Process
    threads: Mapping[int, Process]


class _Threads:
    """Ticks per thread, read only where a process ran: one that did not has no thread that did."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._names: dict[str, None] = {}  # a set that keeps its order

    def read(self, members: Mapping[int, Process], before: Mapping[int, Process] | None) -> dict[str, int]:
        """By thread name, the most ticks any one thread of that name used since the reading before."""
        most: dict[str, int] = {}
        seen = {}
        for pid, process in members.items():
            old = self._seen.get(pid)
            if old is not None and old.process.start != process.start:
                old = None
            if old is not None and old.process.own == process.own:
                seen[pid] = old
                most.update({thread.name: most.get(thread.name, 0) for thread in old.threads.values()})
                continue
            several = process.threads > 1 or (old is not None and len(old.threads) > 1)
            threads = read_threads(pid) if several else {pid: process}
            seen[pid] = _Seen(process, threads)
            is_new = before is not None and not _lives(process, before)
            for tid, thread in threads.items():
                ticks = _ticks_used(thread, old.threads.get(tid) if old else None, fresh=bool(old) or is_new)
                most[thread.name] = max(most.get(thread.name, 0), ticks)
        self._seen = seen
        return most

    def followed(self, most: Mapping[str, int], busy_ticks: float) -> list[tuple[str, int]]:
        """The busiest thread now, and those that are followed because they were it before."""
        busiest = max(most, key=most.__getitem__, default=None)
        names = dict(self._names)
        if busiest is not None and most[busiest] > 0:
            names[busiest] = None
            if most[busiest] >= busy_ticks and len(self._names) < _FOLLOWED_NAMES:
                self._names[busiest] = None
        return [(name, most[name]) for name in names if name in most]


def _ticks_used(now: Process, old: Process | None, *, fresh: bool) -> int:
    """Ticks since the reading before; of a thread not seen then all if it is ``fresh``, else (unknown) 0."""
    if old is not None and old.start == now.start:
        return max(0, now.own - old.own)
    return now.own if fresh else 0
