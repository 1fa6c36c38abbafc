"""Shares the load of a scenario between workers: slots, their owners, and the arrivals of each owner. Pure.

A scenario's whole load is cut into ``SLOTS`` slots that never change: arrival ``k`` of an open load and
session ``n`` belong to the slots ``k % SLOTS`` and ``n % SLOTS``. Every slot has one owner at a time, so
any number of workers does the same work as one, and a worker that dies only moves its slots.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

SLOTS = 840
"""Divisible by every number up to 8: this many workers share evenly, more to within a tenth."""
Owners = dict[str, frozenset[int]]
"""Worker -> the slots it owns."""


def slot(number: int) -> int:
    """The slot of an arrival, or of a session, by its number."""
    return number % SLOTS


def deal_slots(workers: Iterable[str]) -> Owners:
    """Every slot to one of the workers, in turn: their first arrivals and sessions alternate."""
    names = list(workers)
    return {name: frozenset(range(first, SLOTS, len(names))) for first, name in enumerate(names)}


def reassigned_slots(owners: Mapping[str, frozenset[int]], lost: str) -> Owners:
    """The lost worker's slots dealt to the others, which keep their own; to none where none is left."""
    left = {name: set(slots) for name, slots in owners.items() if name != lost}
    names = sorted(left)
    for position, one in enumerate(sorted(owners[lost]) if names else ()):
        left[names[position % len(names)]].add(one)
    return {name: frozenset(slots) for name, slots in left.items()}


_KEPT_NS = 30_000_000_000  # arrivals of others: long enough to find those of a worker that died unnoticed


@dataclass(frozen=True, slots=True)
class Arrival:
    """One intended start.

    Attributes:
        slot: the slot it belongs to.
        at_ns: the performance counter's value at which it is due.
    """

    slot: int
    at_ns: int


class ArrivalSchedule:
    """Walks the whole schedule and yields this worker's own arrivals.

    Every worker walks the same arrivals, so none is done twice or left out, however many there are.

    Args:
        starts: intended starts of the whole load, in seconds from its begin.
        begin_ns: the performance counter's value at that begin.
        slots: the slots this worker owns at first.
    """

    def __init__(self, starts: Iterable[float], begin_ns: int, slots: frozenset[int]) -> None:
        self._numbered = enumerate(starts)
        self._begin_ns = begin_ns
        self._owned_ns = dict.fromkeys(slots, begin_ns)  # slot -> from which arrivals on it is owned
        self._others: deque[Arrival] = deque()

    def __iter__(self) -> Iterator[Arrival]:
        for number, start_s in self._numbered:
            arrival = Arrival(slot(number), self._begin_ns + round(start_s * 1e9))
            if arrival.at_ns >= self._owned_ns.get(arrival.slot, math.inf):
                yield arrival
            else:
                self._remember(arrival)

    def take_slots(
        self, slots: frozenset[int], from_ns: int, since_ns: int | None = None
    ) -> tuple[list[Arrival], list[Arrival]]:
        """From now on more slots are owned: a worker that died had them.

        Args:
            slots: all that are owned from then on.
            from_ns: from which arrivals on.
            since_ns: from which arrivals on they are not known; None: it died before the load began.

        Returns:
            (arrivals of the new slots that were not started; those that are to be started yet though this
            worker has walked past them already).
        """
        gained = slots - self._owned_ns.keys()
        self._owned_ns |= dict.fromkeys(gained, from_ns)
        result = [arrival for arrival in self._others if arrival.slot in gained]
        self._others = deque(arrival for arrival in self._others if arrival.slot not in gained)
        missed = [one for one in result if since_ns is not None and since_ns <= one.at_ns < from_ns]
        return missed, [one for one in result if one.at_ns >= from_ns]

    def _remember(self, arrival: Arrival) -> None:
        self._others.append(arrival)
        while self._others[0].at_ns < arrival.at_ns - _KEPT_NS:
            self._others.popleft()
