"""A value without host and time, and the arithmetic of counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

N = TypeVar("N", int, float)


class Value(NamedTuple):
    """A sample without its time and host: what a pure parser can know. Fields as in ``record.Sample``."""

    metric: str
    instance: str
    value: float | None
    weight: float | None = None


def growth(before: N, after: N) -> N | None:
    """How much a counter grew; None if it went backwards (it was reset or wrapped: the truth is lost)."""
    return after - before if after >= before else None


def rate(before: float, after: float, interval_s: float, unit: float = 1.0) -> float | None:
    """Growth of a counter per second, each count worth ``unit``; None if it went backwards."""
    grown = growth(before, after)
    return None if grown is None else grown * unit / interval_s


def mean(metric: str, instance: str, spent: float | None, done: float | None) -> Value:
    """What one operation took, weighted by their number; None if either is unknown, or none was done."""
    if spent is None or done is None:
        return Value(metric, instance, None)
    return Value(metric, instance, spent / done if done else None, done)


class Metric(NamedTuple):
    """What a figure of a server is called here: a table's value, with the server's own name as the key.

    Attributes:
        metric: as in ``Value``.
        instance: likewise.
        unit: what one of the figure is worth in the base unit.
    """

    metric: str
    instance: str = ""
    unit: float = 1.0


def levels(table: Mapping[str, Metric], now: Mapping[str, float | None]) -> Iterator[Value]:
    """The figures of a table as they are now. One the server does not have is not sent."""
    for name, (metric, instance, unit) in table.items():
        value = now.get(name)
        if value is not None:
            yield Value(metric, instance, value if unit == 1.0 else value * unit)


def rates(
    table: Mapping[str, Metric],
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    interval_s: float,
) -> Iterator[Value]:
    """Growth per second of the counters of a table. One the server does not have is not sent."""
    for name, (metric, instance, unit) in table.items():
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None:
            yield Value(metric, instance, rate(old, new, interval_s, unit))


def grown(
    before: Mapping[str, float | None], after: Mapping[str, float | None], *names: str
) -> tuple[float | None, ...]:
    """The growth of each of these counters; None for one that went backwards, or that the server lacks."""
    pairs = ((before.get(name), after.get(name)) for name in names)
    return tuple(None if old is None or new is None else growth(old, new) for old, new in pairs)


def operations(
    name: str, instance: str, done: float | None, spent_s: float | None, interval_s: float
) -> Iterator[Value]:
    """Time per second and latency of a server's ``read`` or ``write``; null where a figure is unknown."""
    if done is None:
        spent_s = None
    yield Value(f"db.{name}_s_per_s", instance, None if spent_s is None else spent_s / interval_s)
    yield mean(f"db.{name}_latency_s", instance, spent_s, done)
