"""The assignment of a generator process; separate, so that passing it on loads no scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

# Assigns the slots of a scenario's load to workers. Pure.
#
# A scenario's whole load is cut into ``SLOTS`` slots that never change: arrival ``k`` of an open load and
# session ``n`` belong to the slots ``k % SLOTS`` and ``n % SLOTS``. Every slot has one owner at a time, so
# any number of workers does the same work as one, and a worker that dies only moves its slots.

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


@dataclass(frozen=True, slots=True)
class Assignment:
    """One generator process's part of a run; travels as JSON, ``${ENV}`` unexpanded.

    Attributes:
        name: the worker's name (``generator1``).
        worker: its number from 0, which no other has in this run.
        cores: the cores it runs on; empty: wherever the system puts it.
        beat_s: how far into each second it writes down what the last one measured.
        journal: the run's journal folder; empty if what is measured is sent (another machine).
        seed: the plan's seed.
        endpoints: as in farm.yaml.
        scenarios: plan name -> ``use``, ``params``, ``load`` (base units), ``repeat_s``.
        slots: plan name -> the slots of its load that are done here.
        ranks: plan name -> (which of the workers that do that scenario this is, how many they are at first).
        clock_offset_ns: the controller's UTC clock minus this machine's.
        web_ui_port: where Locust's own page sets the number of users, on this machine; None: the plan does.
    """

    name: str
    worker: int
    cores: list[int]
    beat_s: float
    journal: str
    seed: int
    endpoints: dict[str, dict[str, str]]
    scenarios: dict[str, dict[str, Any]]
    slots: dict[str, list[int]]
    ranks: dict[str, tuple[int, int]]
    clock_offset_ns: int = 0
    web_ui_port: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The assignment as a JSON-ready dictionary."""
        return asdict(self)
