"""Processes of any system, their trees, and the CPU time of a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Process(NamedTuple):
    """One process (or thread) at one instant.

    Attributes:
        pid: its id.
        parent: its parent's id.
        name: its kernel name, at most 15 characters.
        start: clock ticks from boot to its start; distinguishes two processes with the same id.
        threads: number of its threads.
        own: clock ticks of its own CPU time, including ended threads.
        reaped: clock ticks of the children it has waited for, and of their children.
    """

    pid: int
    parent: int
    name: str
    start: int
    threads: int
    own: int
    reaped: int


def children(processes: Iterable[Process]) -> Mapping[int, list[Process]]:
    """The processes by their parent's id."""
    by_parent = defaultdict(list)
    for process in processes:
        by_parent[process.parent].append(process)
    return by_parent


def tree(roots: Iterable[Process], by_parent: Mapping[int, list[Process]]) -> dict[int, Process]:
    """The roots and all their descendants, by id. Sessions and groups do not matter, parents do."""
    result: dict[int, Process] = {}
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process.pid not in result:
            result[process.pid] = process
            waiting.extend(by_parent.get(process.pid, ()))
    return result


def lives(process: Process, table: Mapping[int, Process]) -> bool:
    """Whether a process still exists: a reused id has another start."""
    now = table.get(process.pid)
    return now is not None and now.start == process.start


def tops(members: Mapping[int, Process]) -> list[int]:
    """The processes of a tree without a parent in the tree."""
    return [pid for pid, member in members.items() if member.parent not in members]


class Members:
    """The processes of a tier from reading to reading.

    A process that was found belongs to the tier until its end, even if its parent ends before.

    Attributes:
        now: by id, at the last reading.
    """

    def __init__(self) -> None:
        self.now: dict[int, Process] = {}
        self._earlier: dict[int, Process] = {}

    def follow(
        self,
        roots: Iterable[Process],
        table: Mapping[int, Process],
        by_parent: Mapping[int, list[Process]],
    ) -> None:
        """Find the processes in a new reading.

        Args:
            roots: the root processes of the tier.
            table: every process of the machine.
            by_parent: the same by parent.
        """
        known = (table[pid] for pid, old in self.now.items() if lives(old, table))
        self._earlier, self.now = self.now, tree([*known, *roots], by_parent)

    def used_ticks(self, all_before: Mapping[int, Process]) -> int:
        """CPU ticks since the last reading, which had all these processes."""
        return used_ticks(all_before, self._earlier, self.now)


def used_ticks(
    all_before: Mapping[int, Process], tree_before: Mapping[int, Process], tree_after: Mapping[int, Process]
) -> int:
    """CPU ticks of a tree between two readings, exact also for children that started or ended meanwhile.

    A child that ends passes its time to the parent that waits for it: from the parent's growth, the child's
    ticks at its last reading are subtracted, because they were counted then. A parent that ignores SIGCHLD
    gets nothing: then nothing is subtracted, and only the child's time since its last reading is lost.

    Args:
        all_before: every process of the machine at the reading before.
        tree_before: the tree at the reading before.
        tree_after: the tree now.
    """
    return sum(used_by_each(all_before, tree_before, tree_after).values())


def used_by_each(
    all_before: Mapping[int, Process], tree_before: Mapping[int, Process], tree_after: Mapping[int, Process]
) -> dict[int, int]:
    """The same by existing process: its own ticks and those of its ended children."""
    handed = _handed_over(tree_before, tree_after)
    used = {}
    for pid, process in tree_after.items():
        before = all_before.get(pid)
        if before is None or before.start != process.start:
            used[pid] = process.own + process.reaped
        else:
            reaped = max(0, process.reaped - before.reaped - handed.get(pid, 0))
            used[pid] = process.own - before.own + reaped
    return used


def _handed_over(before: Mapping[int, Process], after: Mapping[int, Process]) -> dict[int, int]:
    """Ticks of ended processes, by the nearest living ancestor."""
    handed: dict[int, int] = defaultdict(int)
    for process in before.values():
        if lives(process, after):
            continue
        heir = before.get(process.parent)
        while heir is not None and not lives(heir, after):
            heir = before.get(heir.parent)
        if heir is not None:
            handed[heir.pid] += process.own + process.reaped
    return handed
