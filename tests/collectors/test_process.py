"""Processes and their trees: parsing on recorded texts, CPU accounting on constructed trees."""

from __future__ import annotations

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


def test_a_child_that_ended_is_counted_once() -> None:
    """It had 50, used 7 more, ended: its parent was handed 57, of which 50 were counted already."""
    before = table(made(2, 1, 10), made(3, 2, 50))
    after = table(made(2, 1, 11, reaped=57))
    assert processes.used_ticks(before, before, after) == 1 + 7


def test_a_child_that_came_and_went_between_two_readings() -> None:
    """It was never seen; its parent was handed all it used."""
    before = table(made(2, 1, 10))
    assert processes.used_ticks(before, before, table(made(2, 1, 10, reaped=30))) == 30


def test_a_child_with_an_inheritance_of_its_own() -> None:
    """Parent, child and grandchild; the two lower ones end one after the other, each handing up."""
    before = table(made(2, 1, 0), made(3, 2, 20), made(4, 3, 30))
    after = table(made(2, 1, 0, reaped=20 + 30 + 5))
    assert processes.used_ticks(before, before, after) == 5


def test_a_parent_that_ignores_sigchld_is_handed_nothing() -> None:
    """The kernel drops the child's time: the parent's own growth stays whole."""
    before = table(made(2, 1, 10), made(3, 2, 50))
    assert processes.used_ticks(before, before, table(made(2, 1, 14))) == 4


def test_a_new_process_counts_in_full_and_a_found_one_from_when_it_was_seen() -> None:
    """Process 3 is younger than the reading before; process 4 ran for long before it joined the tree."""
    before = table(made(2, 1, 10), made(4, 1, 1000))
    after = table(made(2, 1, 10), made(3, 2, 6, start=2), made(4, 1, 1003))
    assert processes.used_ticks(before, table(made(2, 1, 10)), after) == 6 + 3


def test_an_id_given_to_a_new_process_is_a_new_process() -> None:
    """The start time tells them apart; the old one's 500 ticks are no reset of the new one's."""
    before = table(made(2, 1, 0), made(3, 2, 500))
    after = table(made(2, 1, 0, reaped=500), made(3, 2, 4, start=9))
    assert processes.used_ticks(before, before, after) == 4


def test_a_server_that_was_restarted() -> None:
    """The whole old tree has gone, the new one is counted from its start."""
    before = table(made(2, 1, 100, reaped=40), made(3, 2, 50))
    after = table(made(7, 1, 3, start=9), made(8, 7, 2, start=9))
    assert processes.used_ticks(before, before, after) == 5
