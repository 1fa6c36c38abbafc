"""Measures the CPU use of other processes on the machine, by program name."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pinchpoint_collectors.linux import stat
from pinchpoint_collectors.linux.files import read_text
from pinchpoint_collectors.linux.inventory import usable_cores
from pinchpoint_collectors.linux.processes import KERNEL_NAME_LETTERS, UNSEEN, ProcessTable, Roots
from pinchpoint_collectors.processes import Members, Process, children, used_by_each
from pinchpoint_collectors.record import Processes, Sample

METRIC = "generator.others_ratio"
"""Metric of the share of the machine's CPU. Instance ``""``: all other processes together."""
HYPERVISOR = "hypervisor"
"""Instance for the CPU time that the hypervisor took (steal of the kernel)."""
PROCESS = "process:"
"""Prefix of instances of single programs. Processes of one name count together."""
_AT_A_TIME = 10
_LEAST_RATIO = 0.005
_NAMES = 100


class OtherProcesses:
    """Measures the CPU of processes other than Pinchpoint's and the farm's own.

    A process that ends between two readings counts under its own name until its last reading. Its later CPU
    time counts under the name of the parent that waited for it.

    Args:
        host: name of the host of the samples.
        ours: processes that are not "others", with their descendants; this process is always included.
    """

    def __init__(self, host: str, ours: Sequence[Processes]) -> None:
        self._host = host
        self._roots = [Roots(wanted) for wanted in (Processes(pids=(os.getpid(),)), *ours)]
        self._table = ProcessTable()
        self._ours = Members()
        self._before: dict[int, Process] | None = None
        self._others: dict[int, Process] = {}
        self._stat: stat.Stat | None = None
        self._read_ns = 0
        self._names: set[str] = set()
        self._usable = usable_cores()
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def read(self) -> Sequence[Sample]:
        """Return the shares since the last reading; none at the first (see ``record.Collector``)."""
        now_ns, times, table = time.monotonic_ns(), stat.parse(read_text("/proc/stat")), self._table.read()
        by_parent = children(table.values())
        roots = [result for one in self._roots for result in one.find(table)]
        self._ours.follow(roots, table, by_parent)
        others = {pid: process for pid, process in table.items() if pid not in self._ours.now}
        before, self._before = self._before, table
        others_before, self._others = self._others, others
        times_before, self._stat = self._stat, times
        interval_s, self._read_ns = (now_ns - self._read_ns) / 1e9, now_ns
        if before is None or interval_s <= 0:
            return ()
        possible = len(self._usable) * interval_s * self._ticks_per_s
        busy = {
            value.metric: value.value
            for value in stat.values(times_before, times, self._usable)
            if value.instance == ""
        }
        used = Counter[str]()
        for pid, ticks in used_by_each(before, others_before, others).items():
            used[others[pid].name] += ticks
        all_busy, ours = busy.get("cpu.busy_ratio"), self._ours.used_ticks(before) / possible
        everyone = None if all_busy is None else max(0.0, all_busy - ours)
        result = {"": everyone, HYPERVISOR: busy.get("cpu.steal_ratio")}
        for name, ticks in sorted(used.items(), key=lambda item: -item[1])[:_AT_A_TIME]:
            ratio = min(1.0, ticks / possible)
            if ratio >= _LEAST_RATIO and (name in self._names or len(self._names) < _NAMES):
                self._names.add(name)
                result[f"{PROCESS}{_whole_name(name, others)}"] = ratio
        return [
            Sample(time.time_ns(), interval_s, self._host, METRIC, instance, value)
            for instance, value in result.items()
        ]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return no facts."""
        return {}

    def close(self) -> None:
        """Do nothing."""


def _whole_name(name: str, table: Mapping[int, Process]) -> str:
    """Return the full name of a program if the kernel cut it at 15 letters.

    Nothing else of its command line is used.
    """
    if len(name) < KERNEL_NAME_LETTERS:
        return name
    for pid in (pid for pid, process in table.items() if process.name == name):
        try:
            whole = PurePosixPath(read_text(f"/proc/{pid}/cmdline").partition("\0")[0]).name
        except UNSEEN:
            continue
        if whole.startswith(name):
            return whole
    return name
