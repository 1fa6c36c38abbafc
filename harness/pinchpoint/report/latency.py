"""Latency from the recorded histograms: merged by adding, percentiles never averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from hdrh.histogram import HdrHistogram

from pinchpoint.report.clock import Clock
from pinchpoint.report.query import over_operations
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


def merged(encoded: Sequence[str]) -> Any | None:
    """The sum of encoded histograms (``hdrh`` ships no types), or ``None`` when nothing was timed."""
    text = histogram.merged(encoded)
    return None if text is None else HdrHistogram.decode(text)


def bucket_percentiles(
    run: StoredRun, clock: Clock, percentiles: Sequence[float]
) -> Iterator[tuple[str, Kind, list[tuple[int, list[float]]]]]:
    """Per scenario: the kind of latency it has and, per bucket of the clock, the percentiles in seconds.

    Buckets are summed one after the other: a histogram takes 188 KB, and a run has many.
    """
    for scenario, kind in _kinds(run):
        rows = _encoded(run, scenario, kind, None)
        buckets = []
        for bucket, same in groupby(rows, key=lambda row: (row[0] - int(clock.start_s)) // clock.bucket_s):
            total = merged([text for _, text in same])
            if total is not None and bucket >= 0:
                buckets.append((bucket, [_seconds_at(total, p) for p in percentiles]))
        if buckets:
            yield scenario, kind, buckets


def distributions(run: StoredRun, window: tuple[float, float] | None) -> tuple[Distribution, ...]:
    """Every scenario's latency over the window (the whole run without one); for open loads both kinds."""
    found = []
    for scenario, kind in _kinds(run):
        wanted: tuple[Kind, ...] = ("service", "response") if kind == "response" else ("service",)
        for each in wanted:
            total = merged([text for _, text in _encoded(run, scenario, each, window)])
            if total is not None:
                found.append(_distribution(scenario, each, total))
    return tuple(found)


def _distribution(scenario: str, kind: Kind, total: Any) -> Distribution:
    count = total.get_total_count()
    bars: dict[int, int] = {}
    for step in total.get_recorded_iterator():
        place = math.floor(math.log10(max(step.value_iterated_to, 1)) * _BINS_PER_DECADE)
        bars[place] = bars.get(place, 0) + step.count_added_in_this_iter_step
    return Distribution(
        scenario=scenario,
        kind=kind,
        count=count,
        bins=tuple(Bin(_edge_s(place), _edge_s(place + 1), bars[place] / count) for place in sorted(bars)),
        p50_s=_seconds_at(total, 50.0),
        p95_s=_seconds_at(total, 95.0),
        p99_s=_seconds_at(total, 99.0),
        max_s=total.get_max_value() / _US,
    )


def _edge_s(place: int) -> float:
    return float(10 ** (place / _BINS_PER_DECADE)) / _US


def _seconds_at(total: Any, percentile: float) -> float:
    return max(float(total.get_value_at_percentile(percentile)), 1.0) / _US


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
    found = []
    for scenario, operation, encoded in rows:
        total = merged(encoded)
        if total is not None:
            points = {f"p{p}_s": _seconds_at(total, float(p)) for p in (50, 95, 99)}
            found.append(
                {
                    "scenario": scenario,
                    "operation": operation,
                    "count": total.get_total_count(),
                    **points,
                    "max_s": total.get_max_value() / _US,
                }
            )
    return found
