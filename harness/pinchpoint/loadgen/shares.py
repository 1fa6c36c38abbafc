"""Assigns the slots of a scenario's load to workers. Pure.

A scenario's whole load is cut into ``SLOTS`` slots that never change: arrival ``k`` of an open load and
session ``n`` belong to the slots ``k % SLOTS`` and ``n % SLOTS``. Every slot has one owner at a time, so any
number of workers does the same work as one, and who dies moves slots and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SLOTS = 840
"""Divisible by every number up to 8: this many workers share evenly, more to within a tenth."""

Owners = dict[str, frozenset[int]]
"""Worker -> the slots it owns."""


def slot(number: int) -> int:
    """The slot of an arrival, or of a session, by its number."""
    return number % SLOTS


def deal(workers: Iterable[str]) -> Owners:
    """Every slot to one of the workers, in turn: their first arrivals and sessions alternate."""
    names = list(workers)
    return {name: frozenset(range(first, SLOTS, len(names))) for first, name in enumerate(names)}


def without(owners: Mapping[str, frozenset[int]], lost: str) -> Owners:
    """The lost worker's slots dealt to the others, which keep their own; to none where none is left."""
    left = {name: set(slots) for name, slots in owners.items() if name != lost}
    names = sorted(left)
    for position, one in enumerate(sorted(owners[lost]) if names else ()):
        left[names[position % len(names)]].add(one)
    return {name: frozenset(slots) for name, slots in left.items()}
