"""Processes and their trees: parsing on recorded texts, CPU accounting on constructed trees."""

from __future__ import annotations

import pytest

from pinchpoint_collectors import processes
from pinchpoint_collectors.processes import Process


def made(pid: int, parent: int, own: int, reaped: int = 0, start: int = 1) -> Process:
    return Process(pid, parent, f"p{pid}", start, 1, own, reaped)


def table(*processes: Process) -> dict[int, Process]:
    return {each.pid: each for each in processes}


def test_a_tree_holds_all_descendants_and_nobody_else() -> None:
    """Grandchildren too; a circle of ids that were reused between two reads ends."""
    all_of_them = [made(1, 0, 0), made(2, 1, 0), made(3, 2, 0), made(4, 1, 0), made(5, 6, 0), made(6, 5, 0)]
    by_parent = processes.children(all_of_them)
    assert set(processes.tree([all_of_them[1]], by_parent)) == {2, 3}
    assert set(processes.tree([all_of_them[4]], by_parent)) == {5, 6}


def test_growth_of_those_that_stay() -> None:
    """Own time of parent and child; nothing of a stranger."""
    before = table(made(2, 1, 10), made(3, 2, 5), made(9, 1, 0))
    after = table(made(2, 1, 14), made(3, 2, 11))
    tree_before = table(before[2], before[3])
    assert processes.used_ticks(before, tree_before, after) == 10


def test_a_new_process_counts_in_full_and_a_found_one_from_when_it_was_seen() -> None:
    """Process 3 is younger than the reading before; process 4 ran for long before it joined the tree."""
    before = table(made(2, 1, 10), made(4, 1, 1000))
    after = table(made(2, 1, 10), made(3, 2, 6, start=2), made(4, 1, 1003))
    assert processes.used_ticks(before, table(made(2, 1, 10)), after) == 6 + 3


@pytest.mark.parametrize(
    ("before", "after", "ticks"),
    [
        # A child had 50, used 7 more, ended: its parent was handed 57, of which 50 were counted already.
        ([made(2, 1, 10), made(3, 2, 50)], [made(2, 1, 11, reaped=57)], 1 + 7),
        # A child that came and went was never seen; its parent was handed all it used.
        ([made(2, 1, 10)], [made(2, 1, 10, reaped=30)], 30),
        # Child and grandchild end one after the other, each handing up.
        ([made(2, 1, 0), made(3, 2, 20), made(4, 3, 30)], [made(2, 1, 0, reaped=20 + 30 + 5)], 5),
        # A parent that ignores SIGCHLD is handed nothing: its own growth stays whole.
        ([made(2, 1, 10), made(3, 2, 50)], [made(2, 1, 14)], 4),
        # An id is given to a new process, as its start tells; the old one's 500 ticks are no reset of it.
        ([made(2, 1, 0), made(3, 2, 500)], [made(2, 1, 0, reaped=500), made(3, 2, 4, start=9)], 4),
        # What a parent was handed before the first reading is not counted again.
        ([made(2, 1, 10, reaped=40)], [made(2, 1, 11, reaped=45)], 1 + 5),
        # The whole old tree has gone; the new one is counted from its start, with what it was handed.
        (
            [made(2, 1, 100, reaped=40), made(3, 2, 50)],
            [made(7, 1, 3, reaped=6, start=9), made(8, 7, 2, start=9)],
            3 + 6 + 2,
        ),
    ],
)
def test_what_a_tree_used_is_counted_once(before: list[Process], after: list[Process], ticks: int) -> None:
    """Whatever ends, begins or is restarted between two readings."""
    assert processes.used_ticks(table(*before), table(*before), table(*after)) == ticks
