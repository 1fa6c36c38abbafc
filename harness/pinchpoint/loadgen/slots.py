"""Shares the load of a scenario between workers: slots, their owners, and the arrivals of each owner.

A scenario's whole load is cut into ``SLOTS`` slots that never change: arrival ``k`` of an open load and
session ``n`` belong to the slots ``k % SLOTS`` and ``n % SLOTS``. Every slot has one owner at a time. So any
number of workers does the same work as one worker, and if a worker dies, only its slots move.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

SLOTS = 840
"""Number of slots, divisible by every number up to 8: up to 8 workers get equal shares, more workers get
shares that are equal to within a tenth."""
Owners = dict[str, frozenset[int]]
"""Worker -> the slots that the worker owns."""


def slot(number: int) -> int:
    """The slot of an arrival, or of a session, by its number."""
    return number % SLOTS


def deal_slots(workers: Iterable[str]) -> Owners:
    """The owners of all slots, dealt in turn, so that the workers' first arrivals and sessions alternate."""
    names = list(workers)
    return {name: frozenset(range(first, SLOTS, len(names))) for first, name in enumerate(names)}


def reassigned_slots(owners: Mapping[str, frozenset[int]], lost: str) -> Owners:
    """The owners after the lost worker's slots were dealt to the others; empty without other workers."""
    left = {name: set(slots) for name, slots in owners.items() if name != lost}
    names = sorted(left)
    for position, one in enumerate(sorted(owners[lost]) if names else ()):
        left[names[position % len(names)]].add(one)
    return {name: frozenset(slots) for name, slots in left.items()}


# time for which arrivals of others are kept, to find those of a worker whose end was noticed late
_KEPT_NS = 30_000_000_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """One intended start of an operation.

    Attributes:
        slot: the slot of the start.
        at_ns: the performance counter's value at which the start is due.
    """

    slot: int
    at_ns: int


class ArrivalSchedule:
    """Reads the whole schedule and yields the arrivals of this worker.

    Every worker reads the same arrivals, so no arrival is done twice or left out, however many workers run.

    Args:
        starts: intended starts of the whole load, in seconds since the load began.
        begin_ns: the performance counter's value when the load began.
        slots: the slots that this worker owns at first.
    """

    def __init__(self, starts: Iterable[float], begin_ns: int, slots: frozenset[int]) -> None:
        self._numbered = enumerate(starts)
        self._begin_ns = begin_ns
        # slot -> due time from which its arrivals are this worker's
        self._owned_ns = dict.fromkeys(slots, begin_ns)
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
        """Own more slots from now on, such as those of a worker that died.

        Args:
            slots: all slots that are owned from then on.
            from_ns: performance counter's value from which due arrivals are started here.
            since_ns: performance counter's value from which the lost worker's arrivals are unknown; None: the
                worker died before the load began.

        Returns:
            (arrivals of the new slots that were not started, arrivals of the new slots that must still start
            though this worker has read past them).
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
