"""Tests of processes and their trees: recorded texts, and CPU time on constructed trees."""

from __future__ import annotations

import pytest

from pinchpoint_collectors import processes
from pinchpoint_collectors.processes import Process


def made(pid: int, parent: int, own: int, reaped: int = 0, start: int = 1) -> Process:
    return Process(pid, parent, f"p{pid}", start, 1, own, reaped)


def table(*processes: Process) -> dict[int, Process]:
    return {each.pid: each for each in processes}


def test_a_tree_holds_all_descendants_and_nobody_else() -> None:
    """A tree has all descendants and no other process; a cycle of reused ids ends."""
    all_of_them = [made(1, 0, 0), made(2, 1, 0), made(3, 2, 0), made(4, 1, 0), made(5, 6, 0), made(6, 5, 0)]
    by_parent = processes.children(all_of_them)
    assert set(processes.tree([all_of_them[1]], by_parent)) == {2, 3}
    assert set(processes.tree([all_of_them[4]], by_parent)) == {5, 6}


def test_growth_of_those_that_stay() -> None:
    """The growth of a tree is that of its parent and child only."""
    before = table(made(2, 1, 10), made(3, 2, 5), made(9, 1, 0))
    after = table(made(2, 1, 14), made(3, 2, 11))
    tree_before = table(before[2], before[3])
    assert processes.used_ticks(before, tree_before, after) == 10


def test_a_new_process_counts_in_full_and_a_found_one_from_when_it_was_seen() -> None:
    """A new process counts fully; an older one that joins the tree counts from its first reading."""
    before = table(made(2, 1, 10), made(4, 1, 1000))
    after = table(made(2, 1, 10), made(3, 2, 6, start=2), made(4, 1, 1003))
    assert processes.used_ticks(before, table(made(2, 1, 10)), after) == 6 + 3


@pytest.mark.parametrize(
    ("before", "after", "ticks"),
    [
        # A child used 50, then 7, and ended: its parent inherits 57, of which 50 were already counted.
        ([made(2, 1, 10), made(3, 2, 50)], [made(2, 1, 11, reaped=57)], 1 + 7),
        # A child between two readings was never seen; its parent inherits all its time.
        ([made(2, 1, 10)], [made(2, 1, 10, reaped=30)], 30),
        # A child and a grandchild end in turn and pass their time up.
        ([made(2, 1, 0), made(3, 2, 20), made(4, 3, 30)], [made(2, 1, 0, reaped=20 + 30 + 5)], 5),
        # A parent that ignores SIGCHLD inherits nothing; its own growth counts fully.
        ([made(2, 1, 10), made(3, 2, 50)], [made(2, 1, 14)], 4),
        # A reused id has a new start time; the old process's 500 ticks are no reset.
        ([made(2, 1, 0), made(3, 2, 500)], [made(2, 1, 0, reaped=500), made(3, 2, 4, start=9)], 4),
        # Time that a parent inherited before the first reading is not counted again.
        ([made(2, 1, 10, reaped=40)], [made(2, 1, 11, reaped=45)], 1 + 5),
        # The old tree has ended; the new one counts from its start, with inherited time.
        (
            [made(2, 1, 100, reaped=40), made(3, 2, 50)],
            [made(7, 1, 3, reaped=6, start=9), made(8, 7, 2, start=9)],
            3 + 6 + 2,
        ),
    ],
)
def test_what_a_tree_used_is_counted_once(before: list[Process], after: list[Process], ticks: int) -> None:
    """A tree's time is counted once, whatever ends, starts or restarts between two readings."""
    assert processes.used_ticks(table(*before), table(*before), table(*after)) == ticks
