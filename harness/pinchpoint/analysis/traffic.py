"""Operations as columns: counts, errors and latencies per scenario; histograms are merged by adding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.analysis.series import Floats, Window
from pinchpoint.store import histogram

US = 1e6

NO_ERRORS = ("ok", "skipped", "dropped")
"""Outcomes that are no failure of the farm: a skipped document is none, a dropped operation never started."""


@dataclass(frozen=True, slots=True)
class Latency:
    """A merged histogram's figures, seconds; ``count`` operations were timed."""

    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float


class Traffic:
    """The operations of one stretch of time."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        stage = pc.match_substring(table["operation"], "/")
        self._stage = np.asarray(stage.to_numpy(), dtype=bool)

    def during(self, window: Window) -> Traffic:
        """The operations that ended in the window."""
        times = self._table["time_s"]
        inside = pc.and_(
            pc.greater_equal(times, window.first_s), pc.less(times, window.first_s + window.seconds)
        )
        return Traffic(self._table.filter(inside))

    def of(self, scenario: str) -> Traffic:
        """One scenario's operations."""
        return Traffic(self._table.filter(pc.equal(self._table["scenario"], scenario)))

    def operations(self, *names: str) -> Traffic:
        """The named operations only."""
        return Traffic(self._table.filter(pc.is_in(self._table["operation"], pa.array(names, pa.string()))))

    def ending(self, *ends: str) -> Traffic:
        """The operations whose names end so: the stages of one kind."""
        kept = [name for name in self.operation_names if name.endswith(ends)]
        return self.operations(*kept)

    def without(self, *names: str) -> Traffic:
        """All but the named operations."""
        named = pc.is_in(self._table["operation"], pa.array(names, pa.string()))
        return Traffic(self._table.filter(pc.invert(named)))

    def whole(self) -> Traffic:
        """Without the stages of operations."""
        return Traffic(self._table.filter(pa.array(~self._stage)))

    def at(self, seconds: Iterable[int]) -> Traffic:
        """Those that ended in the given UTC seconds."""
        return Traffic(self._table.filter(pc.is_in(self._table["time_s"], pa.array(seconds, pa.int64()))))

    def ok(self) -> Traffic:
        """Those that did what they should."""
        return Traffic(self._table.filter(pc.equal(self._table["outcome"], "ok")))

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that recorded anything, sorted."""
        return sorted(pc.unique(self._table["scenario"]).to_pylist())

    @property
    def operation_names(self) -> list[str]:
        """All operation names, sorted."""
        return sorted(pc.unique(self._table["operation"]).to_pylist())

    @property
    def count(self) -> int:
        """Finished operations, whatever their outcome."""
        return int(pc.sum(self._table["count"]).as_py() or 0)

    @property
    def dropped(self) -> int:
        """Operations that could not start."""
        return int(pc.sum(self._table["dropped"]).as_py() or 0)

    @property
    def seconds(self) -> list[int]:
        """The UTC seconds of all rows with at least one finished operation, sorted.

        Where rows cover ten seconds each, so do these: when in them an operation ended is not known.
        """
        busy = self._table.filter(pc.greater(self._table["count"], 0))
        rows = zip(busy["time_s"].to_pylist(), busy["interval_s"].to_pylist(), strict=True)
        return sorted({second for first, length in set(rows) for second in range(first, first + int(length))})

    def outcomes(self) -> dict[str, int]:
        """How many operations had which outcome."""
        counted = self._table.group_by("outcome").aggregate([("count", "sum")])
        return dict(zip(counted["outcome"].to_pylist(), counted["count_sum"].to_pylist(), strict=True))

    @property
    def failures(self) -> int:
        """Operations that failed."""
        return sum(count for outcome, count in self.outcomes().items() if outcome not in NO_ERRORS)

    def per_step(self, window: Window) -> Floats:
        """Finished operations per second in each step of the window; 0 where none ended."""
        step = window.step_of(self._table["time_s"].to_numpy())
        count = self._table["count"].to_numpy()
        inside = (step >= 0) & (step < window.steps)
        total = np.bincount(step[inside], count[inside], window.steps)
        return np.asarray(total / window.step_s, dtype=np.float64)

    def service(self) -> Latency | None:
        """Service time of all of them together; None where nothing was timed."""
        return _merged(self._table["service"])

    def response(self) -> Latency | None:
        """Response time likewise; None for closed load."""
        return _merged(self._table["response"])

    def medians_s(self, window: Window) -> Floats:
        """The median response (service where there is none) of each step; NaN where nothing ended."""
        column = "response" if self._table["response"].null_count < self._table.num_rows else "service"
        step = window.step_of(self._table["time_s"].to_numpy())
        result = np.full(window.steps, np.nan)
        for index in np.unique(step[(step >= 0) & (step < window.steps)]):
            latency = _merged(self._table[column].filter(pa.array(step == index)))
            if latency is not None:
                result[index] = latency.p50_s
        return result


def _merged(column: pa.ChunkedArray) -> Latency | None:
    texts = pc.drop_null(column).to_pylist()
    if not texts:
        return None
    return summarised(histogram.summed(texts))


def summarised(counts: histogram.Counts) -> Latency | None:
    """A histogram's figures; None where it is empty.

    The library's own percentiles and mean walk 25,000 counters in Python, a quarter of a second each time;
    a run has one histogram per second. The figures are the same: a value is the highest that its counter
    stands for, the mean takes the middle.
    """
    used = np.flatnonzero(counts)
    if len(used) == 0:
        return None
    reached = np.cumsum(counts[used])
    count = int(reached[-1])
    lowest, width = histogram.values_us(used)
    targets = [max(1, int(count * percent / 100 + 0.5)) for percent in (50, 95, 99, 100)]
    p50, p95, p99, longest = (lowest + width - 1)[np.searchsorted(reached, targets)] / US
    mean = float(np.average(lowest + width // 2, weights=counts[used])) / US
    return Latency(count, mean, float(p50), float(p95), float(p99), float(longest))
