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
        name: the kernel's name of it, at most 15 characters.
        start: clock ticks from boot to its start; distinguishes two users of one id.
        threads: how many it has.
        own: clock ticks of CPU time it used itself, ended threads included.
        reaped: clock ticks used by children it has waited for, and by those they had waited for.
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
    """The roots and all that descend from them, by id. Sessions and groups do not matter, parents do."""
    result: dict[int, Process] = {}
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process.pid not in result:
            result[process.pid] = process
            waiting.extend(by_parent.get(process.pid, ()))
    return result


def lives(process: Process, table: Mapping[int, Process]) -> bool:
    """Whether it is still there: an id that ends is given to another process one day, with another start."""
    now = table.get(process.pid)
    return now is not None and now.start == process.start


def tops(members: Mapping[int, Process]) -> list[int]:
    """The processes of a tree that are no other process's child."""
    return [pid for pid, member in members.items() if member.parent not in members]


class Members:
    """The processes of a tier from reading to reading.

    One that was found stays the tier's while it lives, also when its parent ends and another adopts it.

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
        """Find them in a new reading.

        Args:
            roots: the root processes of the tier.
            table: every process of the machine.
            by_parent: the same by parent.
        """
        known = (table[pid] for pid, old in self.now.items() if lives(old, table))
        self._earlier, self.now = self.now, tree([*known, *roots], by_parent)

    def used_ticks(self, all_before: Mapping[int, Process]) -> int:
        """CPU ticks since the reading before, in which all these processes were there."""
        return used_ticks(all_before, self._earlier, self.now)


def used_ticks(
    all_before: Mapping[int, Process], tree_before: Mapping[int, Process], tree_after: Mapping[int, Process]
) -> int:
    """CPU ticks a tree used between two readings, exact also for children that came or went in between.

    A child that ends hands its time to the parent that waits for it: of the parent's growth what the child
    had when last seen is taken off again, as it was counted then. A parent that ignores SIGCHLD is handed
    nothing: then nothing is taken off, and only the child's time since it was last seen is lost.

    Args:
        all_before: every process of the machine at the reading before.
        tree_before: the tree at the reading before.
        tree_after: the tree now.
    """
    return sum(used_by_each(all_before, tree_before, tree_after).values())


def used_by_each(
    all_before: Mapping[int, Process], tree_before: Mapping[int, Process], tree_after: Mapping[int, Process]
) -> dict[int, int]:
    """The same by the process that is there now: with its own ticks what ended children handed it."""
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
