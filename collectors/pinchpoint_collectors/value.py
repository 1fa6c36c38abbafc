"""Defines a value without host and time, and the arithmetic of counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

N = TypeVar("N", int, float)


class Value(NamedTuple):
    """A sample without time and host, as a pure parser returns it. The fields are as in ``record.Sample``."""

    metric: str
    instance: str
    value: float | None
    weight: float | None = None


def growth(before: N, after: N) -> N | None:
    """Return the growth of a counter; None if it fell (a reset or an overflow: the growth is unknown)."""
    return after - before if after >= before else None


def rate(before: float, after: float, interval_s: float, unit: float = 1.0) -> float | None:
    """Return the growth of a counter per second, x ``unit``; None if it fell."""
    grown = growth(before, after)
    return None if grown is None else grown * unit / interval_s


def mean(metric: str, instance: str, spent: float | None, done: float | None) -> Value:
    """Return the mean time of an operation, weighted by their number.

    Returns None if it is unknown, or without operations.
    """
    if spent is None or done is None:
        return Value(metric, instance, None)
    return Value(metric, instance, spent / done if done else None, done)


class Metric(NamedTuple):
    """The metric for a server's figure. It is the value of a table whose key is the server's own name.

    Attributes:
        metric: name of the metric as in ``Value``.
        instance: instance as in ``Value``.
        unit: factor from the figure to the base unit.
    """

    metric: str
    instance: str = ""
    unit: float = 1.0


def levels(table: Mapping[str, Metric], now: Mapping[str, float | None]) -> Iterator[Value]:
    """Yield the current figures of a table, without figures that the server lacks."""
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
    """Yield the growth per second of a table's counters, without counters that the server lacks."""
    for name, (metric, instance, unit) in table.items():
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None:
            yield Value(metric, instance, rate(old, new, interval_s, unit))


def grown(
    before: Mapping[str, float | None], after: Mapping[str, float | None], *names: str
) -> tuple[float | None, ...]:
    """Return the growth of each counter; None if it fell, or if the server lacks it."""
    pairs = ((before.get(name), after.get(name)) for name in names)
    return tuple(None if old is None or new is None else growth(old, new) for old, new in pairs)


def operations(
    name: str, instance: str, done: float | None, spent_s: float | None, interval_s: float
) -> Iterator[Value]:
    """Yield time per second and latency of a server's ``read`` or ``write``; null if a figure is unknown."""
    if done is None:
        spent_s = None
    yield Value(f"db.{name}_s_per_s", instance, None if spent_s is None else spent_s / interval_s)
    yield mean(f"db.{name}_latency_s", instance, spent_s, done)
