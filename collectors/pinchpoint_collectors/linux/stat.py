"""Parses /proc/stat: CPU time by core, and the number of threads that run or are ready."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pinchpoint_collectors.value import Value


class CoreTimes(NamedTuple):
    """Clock ticks of one core since boot. ``busy`` is user (with guests), nice, system and interrupts."""

    busy: int
    idle: int
    wait: int
    steal: int


@dataclass(frozen=True, slots=True)
class Stat:
    """The parsed file: times by core number, and the number of threads that run or are ready."""

    cores: Mapping[int, CoreTimes]
    running: int


_CORE = re.compile(r"^cpu(\d+) (.*)$", re.MULTILINE)
_RUNNING = re.compile(r"^procs_running (\d+)$", re.MULTILINE)


def parse(text: str) -> Stat:
    """Parse /proc/stat. The summary line is left out, because the caller decides which cores count."""
    cores = {}
    for core, times in _CORE.findall(text):
        user, nice, system, idle, wait, irq, softirq, steal = map(int, times.split()[:8])
        cores[int(core)] = CoreTimes(user + nice + system + irq + softirq, idle, wait, steal)
    running = _RUNNING.search(text)
    return Stat(cores, int(running[1]) if running else 0)


def values(before: Stat | None, after: Stat, usable: Collection[int]) -> Iterator[Value]:
    """Yield CPU ratios of each usable core, and, as instance ``""``, of all of them together.

    busy + steal + wait + idle = 1. Steal is time that the hypervisor gave to others, so a core with busy +
    steal = 1 is saturated. No interval is needed, because the sum of all ticks is the elapsed time.
    """
    # This process runs while it reads, and is not a thread that waits for a core.
    yield Value("cpu.run_queue", "", max(0, after.running - 1))
    if before is None:
        return
    total: list[int] | None = [0, 0, 0, 0]
    for core in sorted(usable):
        if core not in after.cores or core not in before.cores:  # the core was taken offline meanwhile
            yield from _ratios(str(core), None)
            continue
        spent = _spent(before.cores[core], after.cores[core])
        total = [a + b for a, b in zip(total, spent, strict=True)] if total and spent else None
        yield from _ratios(str(core), spent)
    yield from _ratios("", total)


def _spent(before: CoreTimes, after: CoreTimes) -> list[int] | None:
    """Return ticks by state; None after a reset.

    Idle and wait may fall slightly (proc(5)) without a reset.
    """
    busy, idle, wait, steal = (b - a for a, b in zip(before, after, strict=True))
    return None if busy < 0 or steal < 0 else [busy, max(0, idle), max(0, wait), steal]


def _ratios(instance: str, spent: list[int] | None) -> Iterator[Value]:
    total = sum(spent) if spent else 0
    for metric, index in (("cpu.busy_ratio", 0), ("cpu.wait_ratio", 2), ("cpu.steal_ratio", 3)):
        yield Value(metric, instance, spent[index] / total if spent and total else None)
