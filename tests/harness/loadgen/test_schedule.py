"""Shares of a schedule: nothing is done twice or left out, however many workers there are, whoever dies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from pinchpoint.loadgen import shares
from pinchpoint.loadgen.load import session_numbers
from pinchpoint.loadgen.schedule import Arrival, Schedule
from pinchpoint.plan.arrivals import arrival_times
from pinchpoint.plan.profiles import Constant

EVERYTHING = frozenset(range(shares.SLOTS))
RATE = 100


def starts(until_s: float) -> Iterator[float]:
    return itertools.takewhile(lambda t: t < until_s, arrival_times(Constant(RATE), "poisson", 1))


@pytest.mark.parametrize("workers", [2, 3, 4, 7])
def test_any_number_of_workers_does_what_one_does(workers: int) -> None:
    """The same arrivals at the same times, each by exactly one of them, and about evenly."""
    alone = list(Schedule(starts(60), 0, EVERYTHING))
    owners = shares.deal(map(str, range(workers)))
    shared = [list(Schedule(starts(60), 0, slots)) for slots in owners.values()]
    assert sorted(itertools.chain(*shared), key=lambda one: one.at_ns) == alone
    assert max(map(len, shared)) - min(map(len, shared)) <= 60 * RATE / shares.SLOTS + 2


@pytest.mark.parametrize("total", [1, 5, 32, 1000])
@pytest.mark.parametrize("workers", [1, 3, 4])
def test_every_session_of_a_closed_load_is_opened_once(total: int, workers: int) -> None:
    """Also after one has died and another has joined."""
    owners = shares.deal(map(str, range(workers)))
    for after in (owners, shares.joined(shares.without(owners, "0"), "9")):
        numbers = [session_numbers({"model": "closed", "users": total}, 0, slots) for slots in after.values()]
        assert sorted(itertools.chain(*numbers)) == list(range(total))


def test_an_open_load_has_as_many_sessions_on_any_number_of_workers() -> None:
    """None is opened twice, and a worker that gains slots opens what they add."""
    load = {"model": "open", "rate_per_s": 300}
    [alone] = [session_numbers(load, 0, EVERYTHING)]
    assert len(alone) == 30
    owners = shares.deal(["a", "b", "c"])
    numbers = [session_numbers(load, worker, slots) for worker, slots in enumerate(owners.values())]
    assert len(set(itertools.chain(*numbers))) == 30
    more = set(session_numbers(load, 0, shares.without(owners, "b")["a"])) - set(numbers[0])
    assert len(more) == 5
    assert not more & set(itertools.chain(*numbers))


def test_whoever_loses_a_worker_has_all_slots_again() -> None:
    """Slots are neither lost nor given twice, and who had them keeps them."""
    owners = shares.deal(["a", "b", "c"])
    after = shares.without(owners, "b")
    assert after["a"] >= owners["a"]
    assert after["c"] >= owners["c"]
    assert frozenset().union(*after.values()) == EVERYTHING
    assert sum(map(len, after.values())) == shares.SLOTS
    assert shares.without(shares.deal(["a"]), "a") == {}


def test_a_newcomer_gets_an_even_share() -> None:
    """The third of two, taken from both alike, and a share of few users too."""
    after = shares.joined(shares.deal(["a", "b"]), "c")
    assert {name: len(slots) for name, slots in after.items()} == dict.fromkeys("abc", shares.SLOTS // 3)
    assert sum(len(slots & frozenset(range(12))) for slots in after.values()) == 12
    assert len(after["c"] & frozenset(range(12))) == 4


def test_what_a_dead_worker_left_is_found() -> None:
    """It died at 2.0 s, noticed at 5.0: what came between is known as missed, what follows is done."""
    owners = shares.deal(["a", "b"])
    all_of_it = list(Schedule(starts(10), 0, EVERYTHING))
    left = Schedule(starts(10), 0, owners["a"])
    walk = iter(left)
    own = list(itertools.takewhile(lambda one: one.at_ns < 5e9, walk))
    # The walk has gone on to the first own arrival after 5 s; those of others before it are behind it.
    missed, late = left.own(EVERYTHING, round(5e9), since_ns=round(2e9))
    rest = list(walk)
    of_b = [one for one in all_of_it if one.slot in owners["b"]]
    assert missed == [one for one in of_b if 2e9 <= one.at_ns < 5e9]
    following = [one for one in all_of_it if one.at_ns >= 5e9]
    taken_by_takewhile = next(one for one in following if one.slot in owners["a"])
    assert sorted([*late, *rest, taken_by_takewhile], key=lambda one: one.at_ns) == following
    assert all(one.slot in owners["a"] for one in own)


def test_two_workers_that_come_at_once_leave_nothing_out() -> None:
    """The second comes before the first one's share holds: until then all is still the old worker's."""
    first = shares.joined(shares.deal(["a"]), "b")
    both = shares.joined(first, "c")
    a, b, c = Schedule(starts(10), 0, EVERYTHING), *(Schedule(starts(10), 0, frozenset()) for _ in "bc")
    for at_ns, owners in ((5_300_000_000, first), (5_400_000_000, both)):
        for name, schedule in (("a", a), ("b", b), ("c", c)):
            if name in owners:
                schedule.own(owners[name], at_ns)
    shared = [*a, *b, *c]
    assert sorted(shared, key=lambda one: one.at_ns) == list(Schedule(starts(10), 0, EVERYTHING))
    assert b.owns(Arrival(min(first["b"] & both["b"]), 5_350_000_000))


def test_what_is_given_up_is_no_longer_owned() -> None:
    """An arrival that was being waited for when its slot moved belongs to the other from then on."""
    owners = shares.deal(["a", "b"])
    schedule = Schedule(starts(10), 0, EVERYTHING)
    schedule.own(owners["a"], round(5e9))
    b_slot = min(owners["b"])
    assert schedule.owns(Arrival(b_slot, round(4.9e9)))
    assert not schedule.owns(Arrival(b_slot, round(5.1e9)))
    assert [one.slot in owners["a"] for one in schedule if one.at_ns >= 5e9] == [True] * sum(
        one.slot in owners["a"] and one.at_ns >= 5e9 for one in Schedule(starts(10), 0, EVERYTHING)
    )
