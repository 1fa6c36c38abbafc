"""A value not yet tied to a host and an instant, and the arithmetic of counters."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

N = TypeVar("N", int, float)


class Value(NamedTuple):
    """A sample without its time and host: what a pure parser can know. Fields as in ``record.Sample``."""

    metric: str
    instance: str
    value: float | None
    weight: float | None = None


def growth(before: N, after: N) -> N | None:
    """How much a counter grew; None where it went backwards (it was reset or wrapped: the truth is lost)."""
    return after - before if after >= before else None


def rate(before: float, after: float, interval_s: float, unit: float = 1.0) -> float | None:
    """Growth of a counter per second, each count worth ``unit``; None where it went backwards."""
    grown = growth(before, after)
    return None if grown is None else grown * unit / interval_s
