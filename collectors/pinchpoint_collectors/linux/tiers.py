"""Measures the CPU of a tier's processes, in total and by its busiest threads, and its available memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pinchpoint_collectors.linux.cgroups import CpuCaps, MemoryCaps, TierMemory
from pinchpoint_collectors.linux.files import Facts
from pinchpoint_collectors.linux.processes import Missing, ProcessReader, Roots
from pinchpoint_collectors.processes import Members, Process, children, lives, tops
from pinchpoint_collectors.record import Processes
from pinchpoint_collectors.value import Value

_BUSY_RATIO = 0.1
"""Share of a core from which the busiest thread of a tier is followed from then on."""
_FOLLOWED_NAMES = 20


class TierProcesses:
    """The processes of one tier on a machine, from reading to reading.

    Args:
        name: name of the tier.
        wanted: root processes of the tier.
        caps: CPU limits of the machine's control groups.
        memory_caps: memory limits of the machine's control groups.
        singles: reads details of single processes.
    """

    def __init__(
        self, name: str, wanted: Processes, caps: CpuCaps, memory_caps: MemoryCaps, singles: ProcessReader
    ) -> None:
        self.name = name
        self._roots = Roots(wanted)
        self._caps = caps
        self._memory_caps = memory_caps
        self._memory = TierMemory(name, memory_caps, singles.page_bytes)
        self._members = Members()
        self._threads = _Threads(singles.ticks_per_s)
        self._singles = singles

    def read(
        self,
        table: Mapping[int, Process],
        by_parent: Mapping[int, list[Process]],
        before: Mapping[int, Process] | None,
        interval_s: float,
    ) -> Iterator[Value]:
        """Return CPU since the last reading, and memory if it is limited, both read now.

        Args:
            table: all processes of the machine now.
            by_parent: parent -> processes of the table.
            before: all processes at the last reading; None at the first.
            interval_s: seconds between the readings.
        """
        self.follow(table, by_parent)
        threads = list(self.threads(self.members, before, interval_s, interval_s))
        yield from self.cpu(before, interval_s, self.cores_used())
        yield from self.memory(interval_s)
        yield from threads

    def follow(self, table: Mapping[int, Process], by_parent: Mapping[int, list[Process]]) -> None:
        """Find its processes in the table."""
        self._members.follow(self._roots.find(table), table, by_parent)

    def find(self, table: Mapping[int, Process]) -> None:
        """Find its processes before the first reading, so that cores and missing() are known."""
        self.follow(table, children(table.values()))

    @property
    def members(self) -> Mapping[int, Process]:
        """Return the processes of the tier at the last reading by id."""
        return self._members.now

    def cpu(
        self, before: Mapping[int, Process] | None, interval_s: float, cores: float | None
    ) -> Iterator[Value]:
        """Yield the CPU of the tier since the last reading, as a ratio of ``cores`` (None: unknown)."""
        instance = f"tier:{self.name}"
        yield Value("cpu.cores", instance, cores or None)
        if before is None or interval_s <= 0:
            return
        possible = (cores or 0.0) * interval_s * self._singles.ticks_per_s
        used = self._members.used_ticks(before)
        yield Value("cpu.busy_ratio", instance, used / possible if possible else None)

    def with_threads(self) -> list[int]:
        """Return the ids of its processes whose threads are read next."""
        return self._threads.wanted(self.members)

    def threads(
        self,
        members: Mapping[int, Process],
        before: Mapping[int, Process] | None,
        interval_s: float,
        threads_s: float,
    ) -> Iterator[Value]:
        """Yield the busiest threads of the tier since the last reading of threads.

        Args:
            members: its processes at the time of the request for their threads.
            before: all processes of the machine at the last request; None at the first.
            interval_s: seconds between these two readings.
            threads_s: seconds between the two readings of threads.
        """
        most = self._threads.read(members, self._singles.threads, before, interval_s, threads_s)
        if before is not None:
            for name, ratio in self._threads.followed(most):
                yield Value("cpu.busy_ratio", f"thread:{name}", ratio)

    def memory(self, interval_s: float) -> Iterator[Value]:
        """Yield its memory, if a control group limits it. ``interval_s`` is the time since the last call."""
        return self._memory.read(tops(self.members), interval_s)

    def missing(self) -> Missing | None:
        """Return why the processes of the tier are missing; None if they exist."""
        return None if self.members else self._roots.missing

    def servers(self) -> list[dict[str, Any]]:
        """Return its root processes: id, name, TCP ports and directory, if known."""
        first = tops(self.members)
        places = self._singles.places(first)
        return [{"pid": pid, "name": self.members[pid].name, **places[pid]._asdict()} for pid in first]

    def cores(self) -> list[int]:
        """Return the cores that its processes may use; empty without processes."""
        return self._singles.cores(self.members)

    def cap_cores(self) -> float | None:
        """Return the limit of its control groups in cores; None without one."""
        return self._caps.cap_cores(tops(self.members))

    def cores_used(self) -> float:
        """Return the base of its CPU ratio: its cores, or its limit if lower; 0 without a process."""
        allowed, cap = len(self.cores()), self.cap_cores()
        return float(allowed) if cap is None else min(float(allowed), cap)

    def cap_bytes(self) -> int | None:
        """Return the memory limit of its control groups in bytes; None without one."""
        capped = self._memory_caps.tightest(tops(self.members))
        return capped.memory.cap_bytes if capped else None


class Tiers:
    """The tiers that are only a part of their machine.

    Args:
        wanted: host -> name of its tier, and root processes of the tier.
        files: files of the machine.
        singles: reads details of single processes.
    """

    def __init__(
        self, wanted: Mapping[str, tuple[str, Processes]], files: Facts, singles: ProcessReader
    ) -> None:
        caps, memory_caps = CpuCaps(files), MemoryCaps(files)
        self.by_host = {
            host: TierProcesses(name, processes, caps, memory_caps, singles)
            for host, (name, processes) in wanted.items()
        }

    def find(self, table: Mapping[int, Process]) -> None:
        """Find their processes before the first reading."""
        for tier in self.by_host.values():
            tier.find(table)

    def facts(self, host: str) -> dict[str, Any]:
        """Return the inventory of the tier of a host."""
        tier = self.by_host.get(host)
        return {
            **({"tier_processes": tier.servers()} if tier else {}),
            "tier_cores": (tier.cores() or None) if tier else None,
            "tier_cap_cores": tier.cap_cores() if tier else None,
            "tier_cap_bytes": tier.cap_bytes() if tier else None,
        }

    def missing(self, host: str) -> Missing | None:
        """Return why the tier of a host has no processes; None if it has some, or needs none."""
        tier = self.by_host.get(host)
        return tier.missing() if tier is not None else None


class _TierProcess(NamedTuple):
    process: Process
    threads: Mapping[int, Process]


class _Threads:
    """Shares of a core by thread. Only the threads of processes that ran are read."""

    def __init__(self, ticks_per_s: int) -> None:
        self._ticks_per_s = ticks_per_s
        self._seen: dict[int, _TierProcess] = {}
        self._names: dict[str, None] = {}  # a dict as an ordered set

    def wanted(self, members: Mapping[int, Process]) -> list[int]:
        """Return the ids of the processes with several threads that ran since their last reading."""
        return [
            pid
            for pid, process in members.items()
            if not self._rested(process) and self._has_several(process)
        ]

    def read(
        self,
        members: Mapping[int, Process],
        threads_of: Callable[[int], Mapping[int, Process]],
        before: Mapping[int, Process] | None,
        interval_s: float,
        threads_s: float,
    ) -> dict[str, float]:
        """Return the largest share of a core of a thread of each name (see ``threads``)."""
        most: dict[str, float] = {}
        seen = {}
        for pid, process in members.items():
            old = self._known(process)
            if old is not None and self._rested(process):
                seen[pid] = old
                most.update({thread.name: most.get(thread.name, 0.0) for thread in old.threads.values()})
                continue
            several = self._has_several(process)
            threads = threads_of(pid) if several else {pid: process}
            seen[pid] = _TierProcess(process, threads)
            is_new = before is not None and not lives(process, before)
            possible = (threads_s if several else interval_s) * self._ticks_per_s
            for tid, thread in threads.items():
                ticks = _ticks_used(thread, old.threads.get(tid) if old else None, fresh=bool(old) or is_new)
                share = ticks / possible if possible else 0.0
                most[thread.name] = max(most.get(thread.name, 0.0), share)
        self._seen = seen
        return most

    def followed(self, most: Mapping[str, float]) -> list[tuple[str, float]]:
        """Return the busiest thread now, and the threads that were the busiest before."""
        busiest = max(most, key=most.__getitem__, default=None)
        names = dict(self._names)
        if busiest is not None and most[busiest] > 0:
            names[busiest] = None
            if most[busiest] >= _BUSY_RATIO and len(self._names) < _FOLLOWED_NAMES:
                self._names[busiest] = None
        return [(name, most[name]) for name in names if name in most]

    def _known(self, process: Process) -> _TierProcess | None:
        old = self._seen.get(process.pid)
        return old if old is not None and old.process.start == process.start else None

    def _rested(self, process: Process) -> bool:
        old = self._known(process)
        return old is not None and old.process.own == process.own

    def _has_several(self, process: Process) -> bool:
        old = self._known(process)
        return process.threads > 1 or (old is not None and len(old.threads) > 1)


def _ticks_used(now: Process, old: Process | None, *, fresh: bool) -> int:
    """Return the ticks since the last reading.

    For a new thread they are all its ticks if ``fresh``, else 0 (unknown).
    """
    if old is not None and old.start == now.start:
        return max(0, now.own - old.own)
    return now.own if fresh else 0
