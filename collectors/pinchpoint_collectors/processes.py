"""Handles processes of any system, their trees, and the CPU time of a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Process(NamedTuple):
    """One process (or thread) at one time.

    Attributes:
        pid: id of the process.
        parent: id of the parent.
        name: name in the kernel, at most 15 characters.
        start: clock ticks from boot to its start. It distinguishes two processes with the same id.
        threads: number of threads.
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
    """Return parent's id -> processes."""
    by_parent = defaultdict(list)
    for process in processes:
        by_parent[process.parent].append(process)
    return by_parent


def tree(roots: Iterable[Process], by_parent: Mapping[int, list[Process]]) -> dict[int, Process]:
    """Return the roots and all their descendants by id. Only parents matter, not sessions or groups."""
    result: dict[int, Process] = {}
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process.pid not in result:
            result[process.pid] = process
            waiting.extend(by_parent.get(process.pid, ()))
    return result


def lives(process: Process, table: Mapping[int, Process]) -> bool:
    """Return whether a process still exists. A reused id has another start."""
    now = table.get(process.pid)
    return now is not None and now.start == process.start


def tops(members: Mapping[int, Process]) -> list[int]:
    """Return the processes of a tree without a parent in the tree."""
    return [pid for pid, member in members.items() if member.parent not in members]


class Members:
    """The processes of a tier, from reading to reading.

    A process that was found belongs to the tier until its end, even if its parent ends before.

    Attributes:
        now: id -> process, at the last reading.
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
            roots: root processes of the tier.
            table: all processes of the machine.
            by_parent: parent -> processes of the table.
        """
        known = (table[pid] for pid, old in self.now.items() if lives(old, table))
        self._earlier, self.now = self.now, tree([*known, *roots], by_parent)

    def used_ticks(self, all_before: Mapping[int, Process]) -> int:
        """Return the CPU ticks since the last reading, which had all these processes."""
        return used_ticks(all_before, self._earlier, self.now)


def used_ticks(
    all_before: Mapping[int, Process], tree_before: Mapping[int, Process], tree_after: Mapping[int, Process]
) -> int:
    """Return the CPU ticks of a tree between two readings, also of children that started or ended meanwhile.

    A child that ends passes its time to the parent that waits for it. From the parent's growth, the child's
    ticks at its last reading are subtracted, because they were already counted. A parent that ignores SIGCHLD
    gets nothing. Nothing is subtracted then, and only the child's time since its last reading is lost.

    Args:
        all_before: all processes of the machine at the last reading.
        tree_before: tree at the last reading.
        tree_after: tree now.
    """
    return sum(used_by_each(all_before, tree_before, tree_after).values())


def used_by_each(
    all_before: Mapping[int, Process], tree_before: Mapping[int, Process], tree_after: Mapping[int, Process]
) -> dict[int, int]:
    """Return the same by existing process: its own ticks and those of its ended children."""
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
    """Return ticks of ended processes by their nearest living ancestor."""
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
