"""Holds operations as columns: counts, errors and latencies per scenario; histograms are merged by adding."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinchpoint.data.series import Floats, Ints, Window
from pinchpoint.store import histogram
from pinchpoint.store.schema import UNFINISHED

US = 1e6

NO_ERRORS = ("ok", "skipped", "dropped")
"""Outcomes that are not failures of the farm, such as a skipped document or a dropped operation."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Figures of a merged histogram of ``count`` timed operations, seconds.

    A percentile is infinite if it falls on an operation that never started.
    """

    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float


class Times:
    """One column of histograms; each histogram is decoded once and can be added in any selection of rows.

    Args:
        column: texts of the histograms; null if nothing was timed.
        order: row order that makes rows read together adjacent: an operation's rows of one outcome, in order
            of time. The sum over adjacent rows is one slice of counters, and is kept.
    """

    def __init__(self, column: pa.ChunkedArray, order: Ints) -> None:
        self.timed: npt.NDArray[np.bool_] = np.asarray(column.is_valid().to_numpy(), dtype=bool)
        used = order[self.timed[order]]
        self._place = np.full(len(order), -1, dtype=np.int64)
        self._place[used] = np.arange(len(used))
        result = histogram.entries(column.take(pa.array(used)).to_pylist())
        self._ends, self._counters, self._counts = result
        self._kept: dict[tuple[int, int], histogram.Counts] = {}

    @cached_property
    def longest_s(self) -> Floats:
        """The longest time of each row, seconds; 0 if nothing was timed."""
        lowest, width = histogram.values_us(self._counters[self._ends[1:] - 1].astype(np.int64))
        values = np.zeros(len(self._place))
        values[self.timed] = ((lowest + width - 1) / US)[self._place[self.timed]]
        return values

    def sum(self, rows: Ints, *, keep: bool = True) -> histogram.Counts:
        """The sum of the counters of some rows; empty if nothing was timed.

        Args:
            rows: numbers of the rows.
            keep: whether to keep the sum, because the same rows are probably requested again.
        """
        places = np.sort(self._place[rows])
        places = places[np.searchsorted(places, 0) :]
        breaks = np.flatnonzero(np.diff(places) != 1) + 1
        parts = [
            self._part(int(part[0]), int(part[-1]) + 1, keep=keep)
            for part in np.split(places, breaks)
            if len(part)
        ]
        total = np.zeros(max(map(len, parts), default=0), dtype=np.int64)
        for part in parts:
            total[: len(part)] += part
        return total

    def _part(self, first: int, end: int, *, keep: bool) -> histogram.Counts:
        if (first, end) in self._kept:
            return self._kept[first, end]
        there = slice(self._ends[first], self._ends[end])
        # Counts up to 2^53 are exact as floats.
        counts = np.bincount(self._counters[there], self._counts[there]).astype(np.int64)
        if keep:
            self._kept[first, end] = counts
        return counts


class _OperationColumns:
    """All rows of a table as arrays, shared by every ``Traffic`` that selects some of the rows."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.time_s, self.interval_s, self.count, self.dropped = (
            table[name].to_numpy() for name in ("time_s", "interval_s", "count", "dropped")
        )
        self.names, self.codes = {}, {}
        for name in ("scenario", "operation", "outcome"):
            self.names[name], self.codes[name] = _coded(table[name])
        stages = ["/" in name for name in self.names["operation"]]
        self.stage = np.array(stages, dtype=bool)[self.codes["operation"]]

    @cached_property
    def service(self) -> Times:
        """The histograms of service times."""
        return self._times("service")

    @cached_property
    def response(self) -> Times:
        """The histograms of response times."""
        return self._times("response")

    def _times(self, column: str) -> Times:
        codes = [self.codes[name] for name in ("outcome", "operation", "scenario")]
        return Times(self.table[column], np.lexsort((self.time_s, *codes)))


def _coded(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """(names in order of appearance, index of each row's name)."""
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


class Traffic:
    """The operations of a run, or a selection by time, scenario, name or outcome.

    Args:
        table: table of ``OPERATIONS_SCHEMA``.
    """

    def __init__(self, table: pa.Table) -> None:
        self._all = _OperationColumns(table)
        self._rows: Ints = np.arange(table.num_rows)

    def during(self, window: Window) -> Traffic:
        """The operations that ended in the window."""
        times = self._of(self._all.time_s)
        return self._where((times >= window.first_s) & (times < window.end_s))

    def of(self, scenario: str) -> Traffic:
        """The operations of one scenario."""
        return self._named("scenario", [scenario])

    def operations(self, *names: str) -> Traffic:
        """The operations with these names."""
        return self._named("operation", names)

    def ending(self, *ends: str) -> Traffic:
        """The operations whose names have one of these ends: the stages of one kind."""
        return self._named("operation", [name for name in self.operation_names if name.endswith(ends)])

    def without(self, *names: str) -> Traffic:
        """The operations without those of these names."""
        return self._named("operation", [name for name in self.operation_names if name not in names])

    def whole(self) -> Traffic:
        """The operations without their stages."""
        return self._where(~self._of(self._all.stage))

    def at(self, seconds: Iterable[int]) -> Traffic:
        """The operations that ended in these UTC seconds."""
        return self._where(np.isin(self._of(self._all.time_s), np.array(list(seconds), dtype=np.int64)))

    def ok(self) -> Traffic:
        """The operations that succeeded."""
        return self._named("outcome", ["ok"])

    @property
    def scenarios(self) -> list[str]:
        """The names of the scenarios with operations, sorted."""
        return sorted(self._names("scenario"))

    @property
    def operation_names(self) -> list[str]:
        """All operation names, sorted."""
        return sorted(self._names("operation"))

    @property
    def count(self) -> int:
        """The number of finished operations of any outcome."""
        return int(self._of(self._all.count).sum())

    @property
    def dropped(self) -> int:
        """The number of operations that could not start."""
        return int(self._of(self._all.dropped).sum())

    @property
    def seconds(self) -> list[int]:
        """The UTC seconds of all rows with at least one finished operation, sorted.

        All ten seconds of a row that covers ten seconds are included, because the row does not show when
        operations ended.
        """
        busy = self._of(self._all.count) > 0
        firsts, lengths = (
            self._of(column)[busy].tolist() for column in (self._all.time_s, self._all.interval_s)
        )
        rows = set(zip(firsts, lengths, strict=True))
        return sorted({second for first, length in rows for second in range(first, first + int(length))})

    def outcomes(self) -> dict[str, int]:
        """Outcome -> number of operations, in the order in which outcomes first occur."""
        codes, names = self._of(self._all.codes["outcome"]), self._all.names["outcome"]
        counts = np.bincount(codes, self._of(self._all.count), len(names))
        return {names[code]: int(counts[code]) for code in dict.fromkeys(codes.tolist())}

    @property
    def failures(self) -> int:
        """The number of failed operations."""
        return sum(count for outcome, count in self.outcomes().items() if outcome not in NO_ERRORS)

    def per_step(self, window: Window) -> Floats:
        """Finished operations per second in each step of the window; 0 if none ended."""
        step = window.step_of(self._of(self._all.time_s))
        inside = (step >= 0) & (step < window.steps)
        total = np.bincount(step[inside], self._of(self._all.count)[inside], window.steps)
        return np.asarray(total / window.step_s, dtype=np.float64)

    def dropped_per_step(self, window: Window) -> Floats:
        """The number of operations that could not start, by the step of their intended start."""
        step = window.step_of(self._of(self._all.time_s))
        inside = (step >= 0) & (step < window.steps)
        lost = np.bincount(step[inside], self._of(self._all.dropped)[inside], window.steps)
        return np.asarray(lost, dtype=np.float64)

    def under_way(self, at_s: int, since_s: int) -> tuple[int, float]:
        """(number of operations in flight at ``at_s``, sum of their times until then in seconds).

        Args:
            at_s: UTC second; the operations in flight at its start are counted.
            since_s: UTC second; operation time before this second is not counted.
        """
        ends = self._of(self._all.time_s) + self._of(self._all.interval_s) / 2
        reaching = self._where((ends > at_s) & (self._all.service.longest_s[self._rows] > ends - at_s))
        count, total_s = 0, 0.0
        for part in (reaching.whole(), reaching.operations(UNFINISHED)):
            for end_s, counts in part._by_end():
                lowest, width = histogram.values_us(np.arange(len(counts)))
                before_s = (lowest + width / 2) / US - (end_s - at_s)
                count += int(counts[before_s > 0].sum())
                total_s += float(counts @ np.clip(before_s, 0.0, at_s - since_s))
        return count, total_s

    def _by_end(self) -> Iterator[tuple[float, histogram.Counts]]:
        """(middle of an interval in UTC seconds, summed counters of its service times) of each interval."""
        ends = self._of(self._all.time_s) + self._of(self._all.interval_s) / 2
        for end_s in np.unique(ends).tolist():
            yield end_s, self._all.service.sum(self._rows[ends == end_s], keep=False)

    def service(self, never: int = 0) -> Latency | None:
        """Service time of all selected operations; None if nothing was timed.

        Args:
            never: number of further operations that never started, which count as infinitely slow.
        """
        return summarised(self._all.service.sum(self._rows), never)

    def response(self, never: int = 0) -> Latency | None:
        """Response time of all selected operations; None for closed load.

        ``never`` is the number of further operations that never started.
        """
        return summarised(self._all.response.sum(self._rows), never)

    def medians_s(self, window: Window) -> Floats:
        """The median response time, else service time, of each step in seconds; NaN if nothing ended."""
        timed = self._all.response.timed[self._rows].any()
        times = self._all.response if timed else self._all.service
        step = window.step_of(self._of(self._all.time_s))
        result = np.full(window.steps, np.nan)
        inside = np.flatnonzero((step >= 0) & (step < window.steps))
        order = inside[np.argsort(step[inside], kind="stable")]
        value, starts = np.unique(step[order], return_index=True)
        ends = [*starts[1:], len(order)][: len(value)]  # empty if no operation ended
        for index, start, end in zip(value, starts, ends, strict=True):
            latency = summarised(times.sum(self._rows[order[start:end]], keep=False))
            if latency is not None:
                result[index] = latency.p50_s
        return result

    def _of(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return column[self._rows]

    def _where(self, chosen: npt.NDArray[np.bool_]) -> Traffic:
        traffic = Traffic.__new__(Traffic)
        traffic._all, traffic._rows = self._all, self._rows[chosen]
        return traffic

    def _named(self, column: str, names: Collection[str]) -> Traffic:
        wanted = np.array([name in names for name in self._all.names[column]], dtype=bool)
        return self._where(wanted[self._of(self._all.codes[column])])

    def _names(self, column: str) -> list[str]:
        there = np.unique(self._of(self._all.codes[column])).tolist()
        return [self._all.names[column][code] for code in there]


def summarised(counts: histogram.Counts, never: int = 0) -> Latency | None:
    """The figures of a histogram's counters; None if empty.

    ``never`` is the number of further operations that never started.

    The library's own percentiles and mean loop over 25,000 counters in Python, a quarter of a second each
    time; a run has one histogram per second. The figures here are the same: a percentile is the highest value
    of its counter, and the mean uses the middle of each counter.
    """
    used = np.flatnonzero(counts)
    if len(used) == 0:
        return None
    reached = np.cumsum(counts[used])
    count = int(reached[-1])
    lowest, width = histogram.values_us(used)
    highest = lowest + width - 1
    targets = [max(1, int((count + never) * percent / 100 + 0.5)) for percent in (50, 95, 99)]
    p50, p95, p99 = np.append(highest, np.inf)[np.searchsorted(reached, targets)] / US
    mean = float(np.average(lowest + width // 2, weights=counts[used])) / US
    return Latency(count, mean, float(p50), float(p95), float(p99), float(highest[-1]) / US)
