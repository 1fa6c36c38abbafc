"""Computes the growth of a server's counters between readings, without periods that contain a reset."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar


class Reading(Protocol):
    """The counters of a server, or of one row of its statistics, at one time."""

    @property
    def at_s(self) -> float:
        """The time of the reading, UTC seconds."""

    def number(self, name: str) -> float | None:
        """The value of a counter; None if the server does not report it."""

    def goes_on_from(self, earlier: Self) -> bool:
        """Whether the server reports no restart and no reset since ``earlier``."""


R = TypeVar("R", bound=Reading)


@dataclass(frozen=True, slots=True)
class CounterStep(Generic[R]):
    """Two consecutive readings."""

    before: R
    after: R

    @property
    def length_s(self) -> float:
        """Seconds between the readings."""
        return self.after.at_s - self.before.at_s

    def grown(self, name: str) -> float | None:
        """The increase of a counter; None if the counter is not reported or was reset."""
        before, after = self.before.number(name), self.after.number(name)
        return None if before is None or after is None or after < before else after - before

    def all_grown(self, names: Collection[str]) -> dict[str, float] | None:
        """The increases of several counters; None if one of them is not reported or was reset."""
        grown = {name: value for name in names if (value := self.grown(name)) is not None}
        return grown if len(grown) == len(names) and self.after.goes_on_from(self.before) else None


def steps(readings: Iterable[R]) -> list[CounterStep[R]]:
    """Pairs of consecutive readings, in order of time, without pairs that have a restart or reset between."""
    result = (CounterStep(before, after) for before, after in itertools.pairwise(readings))
    return [step for step in result if step.length_s > 0 and step.after.goes_on_from(step.before)]


def total(steps: Iterable[CounterStep[R]], name: str) -> float:
    """The increase of a counter over all steps."""
    return sum(step.grown(name) or 0.0 for step in steps)
