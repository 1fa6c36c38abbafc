"""Computes latency from recorded histograms, which are merged by adding; percentiles are never averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from pinchpoint.data.queries import over_operations
from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.store import histogram
from pinchpoint.store.read import StoredRun

Kind = Literal["service", "response"]
_US = 1e6
_BINS_PER_DECADE = 20


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a distribution: its edges in seconds and the share of operations in it."""

    from_s: float
    to_s: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of the operation times of one scenario.

    Attributes:
        scenario: name of the scenario in the plan.
        kind: ``service`` (from the actual start) or ``response`` (from the intended start).
        count: number of operations.
        bins: bars with logarithmic edges, without empty bars.
        p50_s, p95_s, p99_s, max_s: percentiles and longest time in seconds, from the histogram itself.
    """

    scenario: str
    kind: Kind
    count: int
    bins: tuple[Bin, ...]
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float


class _Timed:
    """The sum of encoded histograms; the library's figures would loop over 23,552 counters in Python."""

    def __init__(self, encoded: Sequence[str]) -> None:
        counts = histogram.summed(encoded)
        used = np.flatnonzero(counts)
        lowest, width = histogram.values_us(used)
        self.highest_us = (lowest + width - 1).tolist()
        """The highest value, in microseconds, that each counter that is not 0 stands for; ascending."""
        self.counts = counts[used].tolist()
        self._reached = np.cumsum(counts[used])
        self.count = int(self._reached[-1]) if len(used) else 0

    def seconds_at(self, percentile: float) -> float:
        """A percentile (0 to 100) in seconds; the histogram must not be empty."""
        target = max(1, int(self.count * percentile / 100 + 0.5))
        return max(float(self.highest_us[np.searchsorted(self._reached, target)]), 1.0) / _US

    @property
    def longest_s(self) -> float:
        """The longest time in seconds; the histogram must not be empty."""
        return float(self.highest_us[-1]) / _US


def bucket_percentiles(
    run: StoredRun, clock: TimeAxis, percentiles: Sequence[float]
) -> Iterator[tuple[str, Kind, list[tuple[int, list[float]]]]]:
    """(scenario, kind of latency, [(bucket, percentiles in seconds)]) of each scenario; buckets of the axis.

    Buckets are added one after the other to save memory, because a run has many.
    """
    for scenario, kind in _kinds(run):
        rows = _encoded(run, scenario, kind, None)
        buckets = []
        for bucket, same in groupby(rows, key=lambda row: (row[0] - int(clock.start_s)) // clock.bucket_s):
            if bucket >= 0:
                total = _Timed([text for _, text in same])
                buckets.append((bucket, [total.seconds_at(p) for p in percentiles]))
        if buckets:
            yield scenario, kind, buckets


def distributions(run: StoredRun, window: tuple[float, float] | None) -> tuple[Distribution, ...]:
    """Latency distributions of each scenario in the window, or in the whole run; both kinds for open load."""
    result = []
    for scenario, kind in _kinds(run):
        wanted: tuple[Kind, ...] = ("service", "response") if kind == "response" else ("service",)
        for each in wanted:
            total = _Timed([text for _, text in _encoded(run, scenario, each, window)])
            if total.count:
                result.append(_distribution(scenario, each, total))
    return tuple(result)


def _distribution(scenario: str, kind: Kind, total: _Timed) -> Distribution:
    bars: dict[int, int] = {}
    for value, count in zip(total.highest_us, total.counts, strict=True):
        place = math.floor(math.log10(max(value, 1)) * _BINS_PER_DECADE)
        bars[place] = bars.get(place, 0) + count
    return Distribution(
        scenario=scenario,
        kind=kind,
        count=total.count,
        bins=tuple(
            Bin(_edge_s(place), _edge_s(place + 1), bars[place] / total.count) for place in sorted(bars)
        ),
        p50_s=total.seconds_at(50.0),
        p95_s=total.seconds_at(95.0),
        p99_s=total.seconds_at(99.0),
        max_s=total.longest_s,
    )


def _edge_s(place: int) -> float:
    return float(10 ** (place / _BINS_PER_DECADE)) / _US


def _kinds(run: StoredRun) -> list[tuple[str, Kind]]:
    """(scenario, kind of latency) of scenarios with timed operations, in the plan's order.

    The kind is ``response`` if any response time was recorded.
    """
    if not run.operations.num_rows:
        return []
    connection = over_operations(run)
    rows = connection.execute(
        "SELECT scenario, count(response) > 0 FROM operations WHERE outcome = 'ok' "
        "AND NOT contains(operation, '/') GROUP BY scenario ORDER BY scenario"
    ).fetchall()
    kinds: dict[str, Kind] = {scenario: "response" if opened else "service" for scenario, opened in rows}
    return [(scenario, kinds[scenario]) for scenario in in_plan_order(run, kinds)]


def in_plan_order(run: StoredRun, scenarios: Iterable[str]) -> list[str]:
    """Scenarios in the plan's order, so that each has the same place and colour everywhere."""
    planned = list(run.manifest.get("plan", {}).get("scenarios", {}))
    return sorted(
        scenarios, key=lambda name: (planned.index(name) if name in planned else len(planned), name)
    )


def _encoded(
    run: StoredRun, scenario: str, kind: Kind, window: tuple[float, float] | None
) -> list[tuple[int, str]]:
    """(UTC second, histogram) of a scenario's successful operations without stages, in order of time."""
    connection = over_operations(run)
    low, high = window or (-math.inf, math.inf)
    return connection.execute(
        f"SELECT time_s, {kind} FROM operations WHERE scenario = $scenario AND outcome = 'ok' "  # noqa: S608 - one of two literals
        f"AND NOT contains(operation, '/') AND {kind} IS NOT NULL AND time_s >= $low AND time_s < $high "
        "ORDER BY time_s",
        {"scenario": scenario, "low": low, "high": high},
    ).fetchall()


def operation_percentiles(run: StoredRun, window: tuple[float, float] | None) -> list[dict[str, Any]]:
    """Service time percentiles, in seconds, of each operation and stage that succeeded, one row each."""
    if not run.operations.num_rows:
        return []
    low, high = window or (-math.inf, math.inf)
    connection = over_operations(run)
    rows = connection.execute(
        "SELECT scenario, operation, list(service) FROM operations WHERE outcome = 'ok' "
        "AND service IS NOT NULL AND time_s >= $low AND time_s < $high "
        "GROUP BY scenario, operation ORDER BY scenario, operation",
        {"low": low, "high": high},
    ).fetchall()
    result = []
    for scenario, operation, encoded in rows:
        total = _Timed(encoded)
        result.append(
            {
                "scenario": scenario,
                "operation": operation,
                "count": total.count,
                **{f"p{p}_s": total.seconds_at(float(p)) for p in (50, 95, 99)},
                "max_s": total.longest_s,
            }
        )
    return result
