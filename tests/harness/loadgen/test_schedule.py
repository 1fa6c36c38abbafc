"""Shares of a schedule: nothing is done twice or left out, with any number of workers and losses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from pinchpoint.loadgen.load_schedule import session_numbers
from pinchpoint.loadgen.slots import SLOTS, ArrivalSchedule, deal_slots, reassigned_slots
from pinchpoint.plan.arrivals import Constant, arrival_times

EVERYTHING = frozenset(range(SLOTS))
RATE = 100


def starts(until_s: float) -> Iterator[float]:
    return itertools.takewhile(lambda t: t < until_s, arrival_times(Constant(RATE), "poisson", 1))


@pytest.mark.parametrize("workers", [2, 3, 4, 7])
def test_any_number_of_workers_does_what_one_does(workers: int) -> None:
    """Any number of workers does each arrival exactly once at its time, in about equal shares."""
    alone = list(ArrivalSchedule(starts(60), 0, EVERYTHING))
    owners = deal_slots(map(str, range(workers)))
    shared = [list(ArrivalSchedule(starts(60), 0, slots)) for slots in owners.values()]
    assert sorted(itertools.chain(*shared), key=lambda one: one.at_ns) == alone
    assert max(map(len, shared)) - min(map(len, shared)) <= 60 * RATE / SLOTS + 2


@pytest.mark.parametrize("total", [1, 5, 32, 1000])
@pytest.mark.parametrize("workers", [1, 3, 4])
def test_every_session_of_a_closed_load_is_opened_once(total: int, workers: int) -> None:
    """Every session of a closed load is opened once, also after a worker's loss."""
    owners = deal_slots(map(str, range(workers)))
    for after in (owners, reassigned_slots(owners, "0") or owners):
        numbers = [session_numbers({"model": "closed", "users": total}, 0, slots) for slots in after.values()]
        assert sorted(itertools.chain(*numbers)) == list(range(total))


def test_an_open_load_has_as_many_sessions_on_any_number_of_workers() -> None:
    """No session of an open load is opened twice, and a worker with more slots opens more."""
    load = {"model": "open", "rate_per_s": 300}
    [alone] = [session_numbers(load, 0, EVERYTHING)]
    assert len(alone) == 30
    owners = deal_slots(["a", "b", "c"])
    numbers = [session_numbers(load, worker, slots) for worker, slots in enumerate(owners.values())]
    assert len(set(itertools.chain(*numbers))) == 30
    more = set(session_numbers(load, 0, reassigned_slots(owners, "b")["a"])) - set(numbers[0])
    assert len(more) == 5
    assert not more & set(itertools.chain(*numbers))


def test_whoever_loses_a_worker_has_all_slots_again() -> None:
    """After a loss the remaining workers have all slots, and keep those they had."""
    owners = deal_slots(["a", "b", "c"])
    after = reassigned_slots(owners, "b")
    assert after["a"] >= owners["a"]
    assert after["c"] >= owners["c"]
    assert frozenset().union(*after.values()) == EVERYTHING
    assert sum(map(len, after.values())) == SLOTS
    assert reassigned_slots(deal_slots(["a"]), "a") == {}


def test_what_a_dead_worker_left_is_found() -> None:
    """A loss at 2.0 s that is noticed at 5.0 s leaves known missed arrivals in between."""
    owners = deal_slots(["a", "b"])
    all_of_it = list(ArrivalSchedule(starts(10), 0, EVERYTHING))
    left = ArrivalSchedule(starts(10), 0, owners["a"])
    walk = iter(left)
    take_slots = list(itertools.takewhile(lambda one: one.at_ns < 5e9, walk))
    # The worker's next own arrival is after 5 s, past others' arrivals.
    missed, late = left.take_slots(EVERYTHING, round(5e9), since_ns=round(2e9))
    rest = list(walk)
    of_b = [one for one in all_of_it if one.slot in owners["b"]]
    assert missed == [one for one in of_b if 2e9 <= one.at_ns < 5e9]
    following = [one for one in all_of_it if one.at_ns >= 5e9]
    taken_by_takewhile = next(one for one in following if one.slot in owners["a"])
    assert sorted([*late, *rest, taken_by_takewhile], key=lambda one: one.at_ns) == following
    assert all(one.slot in owners["a"] for one in take_slots)


def test_whoever_walks_late_starts_at_what_was_taken_over_and_not_before() -> None:
    """After two losses, each arrival belongs to its owner at the time it was due."""
    three = deal_slots(["a", "b", "c"])
    two = reassigned_slots(three, "b")
    late = ArrivalSchedule(starts(10), 0, three["a"])
    late.take_slots(two["a"], round(5e9))
    late.take_slots(EVERYTHING, round(7e9))
    owned = [
        one
        for one in ArrivalSchedule(starts(10), 0, EVERYTHING)
        if one.slot in (three["a"] if one.at_ns < 5e9 else two["a"] if one.at_ns < 7e9 else EVERYTHING)
    ]
    assert list(late) == owned
