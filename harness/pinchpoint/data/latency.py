"""Latency from the recorded histograms: merged by adding, percentiles never averaged."""

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
    """How long the operations of one scenario took.

    Attributes:
        scenario: its name in the plan.
        kind: ``service`` (from the actual start) or ``response`` (from the intended start).
        count: operations behind it.
        bins: logarithmic, empty ones left out.
        p50_s, p95_s, p99_s, max_s: from the histogram itself, not from the bins.
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
    """Encoded histograms, added up. The library's own figures walk 23,552 counters in Python, each time."""

    def __init__(self, encoded: Sequence[str]) -> None:
        counts = histogram.summed(encoded)
        used = np.flatnonzero(counts)
        lowest, width = histogram.values_us(used)
        self.highest_us = (lowest + width - 1).tolist()
        """The value of each counter that is not empty, ascending: the highest that it stands for."""
        self.counts = counts[used].tolist()
        self._reached = np.cumsum(counts[used])
        self.count = int(self._reached[-1]) if len(used) else 0

    def seconds_at(self, percentile: float) -> float:
        """A percentile; there must be something timed."""
        target = max(1, int(self.count * percentile / 100 + 0.5))
        return max(float(self.highest_us[np.searchsorted(self._reached, target)]), 1.0) / _US

    @property
    def longest_s(self) -> float:
        """The longest time; there must be one."""
        return float(self.highest_us[-1]) / _US


def bucket_percentiles(
    run: StoredRun, clock: TimeAxis, percentiles: Sequence[float]
) -> Iterator[tuple[str, Kind, list[tuple[int, list[float]]]]]:
    """Per scenario: the kind of latency it has and, per bucket of the clock, the percentiles in seconds.

    Buckets are summed one after the other: a run has many.
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
    """Every scenario's latency over the window (the whole run without one); for open loads both kinds."""
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
    """Scenarios that timed anything, in the plan's order; response time where any was recorded."""
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
    """Scenarios as the plan lists them, so that each keeps its place and colour everywhere."""
    planned = list(run.manifest.get("plan", {}).get("scenarios", {}))
    return sorted(
        scenarios, key=lambda name: (planned.index(name) if name in planned else len(planned), name)
    )


def _encoded(
    run: StoredRun, scenario: str, kind: Kind, window: tuple[float, float] | None
) -> list[tuple[int, str]]:
    """(second, histogram) of a scenario's operations that succeeded, stages left out, in time order."""
    connection = over_operations(run)
    low, high = window or (-math.inf, math.inf)
    return connection.execute(
        f"SELECT time_s, {kind} FROM operations WHERE scenario = $scenario AND outcome = 'ok' "  # noqa: S608 - one of two literals
        f"AND NOT contains(operation, '/') AND {kind} IS NOT NULL AND time_s >= $low AND time_s < $high "
        "ORDER BY time_s",
        {"scenario": scenario, "low": low, "high": high},
    ).fetchall()


def operation_percentiles(run: StoredRun, window: tuple[float, float] | None) -> list[dict[str, Any]]:
    """Service time of every operation and stage that succeeded: one row each, seconds."""
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
