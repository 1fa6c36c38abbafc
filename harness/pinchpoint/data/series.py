"""Adds the samples of each host to a grid of equal steps: a row per series, a column per step.

Only the sums are kept, so that eight hours of twenty hosts fit into memory. Steps are one second long, or ten
seconds in runs of more than an hour.

Samples are added by groups of rows, in the order of the file. Only groups with requested series are read. No
Python loop goes over rows: names become numbers, a sample's series and step become the number of a cell, and
numpy adds by cell. The order is always the same, so the sums are the same to the last digit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinchpoint.store import samples as recorded
from pinchpoint.store.order import numbered
from pinchpoint.store.schema import COARSE_S, LONG_RUN_S
from pinchpoint_collectors import bounds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Key(NamedTuple):
    """The host, metric and instance of a series."""

    host: str
    metric: str
    instance: str


_CORES = re.compile(r"\d+(?:,\d+)+")


def each_core(instance: str) -> list[str]:
    """The instances of a pool of cores ("0,1"), one per core; for any other instance the instance itself."""
    return instance.split(",") if _CORES.fullmatch(instance) else [instance]


@dataclass(frozen=True, slots=True)
class Readings:
    """The single readings of one series, for uses that need more than its steps; nulls are NaN.

    Attributes:
        middle_s: middle of each value's interval, UTC seconds; shape (readings,).
        value: values in base units; shape (readings,).
    """

    middle_s: Floats
    value: Floats


@dataclass(frozen=True, slots=True)
class Series:
    """The sums of one series' samples in each step of the window; arrays of shape (steps,).

    Attributes:
        total: sum of values times weights, in the metric's unit times the unit of ``share``.
        share: sum of weights: operations if values are means of operations, else seconds.
        covered_s: seconds with a measured value.
        highest: largest value; -inf if nothing was measured.
        counts: number of measured values.
        weighted: whether values are means of operations.
    """

    total: Floats
    share: Floats
    covered_s: Floats
    highest: Floats
    counts: Floats
    weighted: bool

    @property
    def measured(self) -> int:
        """The number of measured values."""
        return int(self.counts.sum())

    def mean(self) -> float | None:
        """The mean over operations if values are means of operations, else over time.

        The result is None if nothing was measured.
        """
        share = float(self.share.sum())
        return float(self.total.sum()) / share if share > 0 else None

    def sum(self) -> float:
        """The total of a rate over its measured intervals; a second without a sample adds nothing."""
        return float(self.total.sum())

    def maximum(self) -> float | None:
        """The largest value of any interval; None if nothing was measured."""
        return float(self.highest.max()) if self.measured else None

    def steps(self) -> Floats:
        """The mean of each step; NaN if nothing was measured."""
        result = np.full(len(self.share), np.nan)
        np.divide(self.total, self.share, out=result, where=self.share > 0)
        return result


@dataclass(frozen=True, slots=True)
class Window:
    """The analysed part of a run: whole UTC seconds in equal steps; longer steps are aligned to UTC.

    Attributes:
        first_s: first UTC second of the window.
        step_s: seconds per step.
        steps: number of steps.
    """

    first_s: int
    step_s: int
    steps: int

    @classmethod
    def between(cls, start_s: float, end_s: float, recorded_s: float = 1.0) -> Window:
        """The window of all whole steps from ``start_s`` to ``end_s`` in UTC seconds, possibly none.

        Steps are ten seconds long if the window is longer than an hour or if rows of operations cover ten
        seconds (``recorded_s``). Such steps are aligned like these rows, so that each row lies in one step.
        """
        step = COARSE_S if recorded_s > 1 or end_s - start_s > LONG_RUN_S else 1
        first = int(np.ceil(start_s / step)) * step
        return cls(first, step, max(0, int(end_s // step) * step - first) // step)

    def until(self, part: Window) -> Window:
        """The window from this window's start to the end of ``part``, which lies in this window."""
        return Window(self.first_s, self.step_s, (part.end_s - self.first_s) // self.step_s)

    @property
    def seconds(self) -> int:
        """The length of the window in seconds."""
        return self.steps * self.step_s

    @property
    def end_s(self) -> int:
        """The UTC second at which the window ends (exclusive)."""
        return self.first_s + self.seconds

    def step_of(self, time_s: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The step of each time in UTC seconds; below 0, or at least ``steps``, outside the window."""
        step: Floats = np.subtract(time_s, self.first_s, dtype=np.float64)
        step /= self.step_s
        return np.floor(step, out=step).astype(np.int64)


class Samples:
    """The samples of one window, read by host, metric and instance when requested.

    Args:
        lines: sums of all series, read from the run when requested.
        window: the window of these samples.
        first: index of the window's first step in ``lines``.
        whole: samples of a longer window that includes this one; its cached steps are reused. None: no such
            samples.
    """

    def __init__(
        self, lines: _SeriesSums, window: Window, first: int = 0, whole: Samples | None = None
    ) -> None:
        self.window = window
        self._lines, self._begin, self._whole = lines, first, whole
        self._spread: set[Key] = set()
        self._keys: dict[str, list[Key]] = {}
        self._steps: dict[Key, Floats] = {}
        self._first: dict[tuple[tuple[str, ...], str, str], Floats] = {}
        self._together: dict[tuple[tuple[str, ...], str, tuple[str, ...]], Floats | None] = {}

    def during(self, window: Window) -> Samples:
        """The samples of a shorter window within this window, in the same steps.

        Raises:
            ValueError: the steps of the two windows differ.
        """
        first, between = divmod(window.first_s - self.window.first_s, self.window.step_s)
        if between or window.step_s != self.window.step_s:
            raise ValueError(f"{window}: its steps are not those of {self.window}")
        inside = first >= 0 and first + window.steps <= self.window.steps
        return Samples(self._lines, window, self._begin + first, self if inside else None)

    @property
    def nonsense(self) -> Sequence[str]:
        """Sentences about the impossible values read so far, which count as not measured."""
        return self._lines.nonsense

    def keys(self, metric: str) -> list[Key]:
        """The series of a metric with at least one sample in the window, sorted by host and instance."""
        if metric not in self._keys:
            self._keys[metric] = sorted(self._lines.keys(metric, self._begin, self.window.steps))
        return self._keys[metric]

    def series(self, host: str, metric: str, instance: str = "") -> Series | None:
        """One series; None if it has no sample in the window."""
        return self._lines.part(Key(host, metric, instance), self._begin, self.window.steps)

    def readings(self, host: str, metric: str, instance: str = "") -> Readings:
        """The single readings of one series in the window.

        Raises:
            KeyError: ``add_up`` was not given this series in ``apart``.
        """
        kept = self._lines.readings(Key(host, metric, instance))
        ends = (self.window.first_s, self.window.end_s)
        start, end = np.searchsorted(kept.middle_s, ends)
        return Readings(kept.middle_s[start:end], kept.value[start:end])

    def mean(self, host: str, metric: str, instance: str = "") -> float | None:
        """The mean of a series over the window; None if nothing was measured."""
        series = self.series(host, metric, instance)
        return None if series is None else series.mean()

    def steps(self, host: str, metric: str, instance: str = "") -> Floats:
        """One value per step of the window; NaN if nothing was measured.

        A sample that covers several steps (a collector that reads every five seconds) counts in each of them.
        A disk's sample counts only once, because the steadiness of disks is judged.
        """
        key = Key(host, metric, instance)
        if key not in self._steps:
            self._steps[key] = _kept(self._steps_of(key))
        return self._steps[key]

    def weights(self, host: str, metric: str, instance: str = "") -> Floats:
        """The number of operations behind each step's mean; 0 if there were none."""
        series = self.series(host, metric, instance)
        return series.share if series is not None and series.weighted else np.zeros(self.window.steps)

    def first_of(self, hosts: Iterable[str], metric: str, instance: str = "") -> Floats:
        """One value per step, from the first host with a value; hosts of one machine have the same values."""
        key = tuple(hosts), metric, instance
        if len(key[0]) == 1:
            return self.steps(key[0][0], metric, instance)
        if key not in self._first:
            result = np.full(self.window.steps, np.nan)
            for host in key[0]:
                missing = ~np.isfinite(result)
                if not missing.any():
                    break
                result[missing] = self.steps(host, metric, instance)[missing]
            self._first[key] = _kept(result)
        return self._first[key]

    def together(self, hosts: Iterable[str], metric: str, instances: Iterable[str]) -> Floats | None:
        """The mean over several instances in each step; None if an instance was not measured at all."""
        key = tuple(hosts), metric, tuple(instances)
        if key not in self._together:
            columns = [self.first_of(key[0], metric, instance) for instance in key[2]]
            there = bool(columns) and all(np.isfinite(column).any() for column in columns)
            self._together[key] = _kept(np.asarray(np.mean(columns, axis=0))) if there else None
        return self._together[key]

    def reading_s(self, hosts: Iterable[str], metric: str, instance: str = "") -> float:
        """The median time that a measured step covers, seconds; 5 for readings every five seconds.

        The result is the step's length if nothing was measured.
        """
        for host in hosts:
            series = self.series(host, metric, instance)
            if series is not None and series.measured:
                return float(np.median(series.covered_s[series.counts > 0]))
        return float(self.window.step_s)

    def seen_ratio(self, host: str, metric: str, instance: str = "") -> float:
        """The share of the window for which a series has measured values."""
        series = self.series(host, metric, instance)
        if series is None or self.window.seconds == 0:
            return 0.0
        return min(1.0, float(series.covered_s.sum()) / self.window.seconds)

    def gap_s(self, host: str, metric: str, instance: str = "") -> float:
        """The longest gap of a series within the window, seconds.

        A reading longer than a step is stored in the step of its middle; its full length counts here.
        """
        series = self.series(host, metric, instance)
        at = np.flatnonzero(series.covered_s > 0) if series is not None else np.empty(0, dtype=np.int64)
        if series is None or not len(at):
            return float(self.window.seconds)
        middle_s = (at + 0.5) * self.window.step_s
        half_s = np.maximum(series.covered_s[at], self.window.step_s) / 2
        begins_s = np.append(middle_s - half_s, self.window.seconds)
        ends_s = np.append(0.0, middle_s + half_s)
        return max(0.0, float((begins_s - ends_s).max()))

    def _steps_of(self, key: Key) -> Floats:
        if self._whole is not None:
            values = self._whole.steps(*key)
            if key not in self._whole._spread:
                first = self._begin - self._whole._begin
                return values[first : first + self.window.steps]
        series = self.series(*key)
        if series is None:
            return np.full(self.window.steps, np.nan)
        if key.metric.startswith("disk.") or series.covered_s.max(initial=0.0) < 1.5 * self.window.step_s:
            return series.steps()  # a sample rarely covers two steps
        self._spread.add(key)
        return _held(series, self.window.step_s)


def measured_or_zero(values: Floats) -> Floats:
    """The values with 0 instead of NaN; ``nan_to_num`` takes four times as long."""
    return np.where(np.isnan(values), 0.0, values)


def _kept(values: Floats) -> Floats:
    """The same array, made read-only, because callers share a cached answer."""
    values.flags.writeable = False
    return values


def _held(series: Series, step_s: int) -> Floats:
    """The mean of each step; a step without a sample has the value of a sample that covers the step."""
    values = series.steps()
    each_s = np.divide(series.covered_s, series.counts, out=np.zeros_like(values), where=series.counts > 0)
    lengths = np.round(each_s / step_s).astype(int)
    for at in np.flatnonzero(lengths > 1):
        first = max(0, at - lengths[at] // 2)
        covered = values[first : at - lengths[at] // 2 + lengths[at]]
        covered[np.isnan(covered)] = values[at]
    return values


def weighted_mean(value: Floats, weight: Floats) -> float | None:
    """The weighted mean of the measured values; None if no value has a weight."""
    total = (value * weight).sum()
    if math.isfinite(total) and (weight > 0).all() and len(weight):
        return float(total / weight.sum())  # all values are usable, which takes half the time
    usable = np.isfinite(value) & np.isfinite(weight) & (weight > 0)
    if not usable.any():
        return None
    return float(np.average(value[usable], weights=weight[usable]))


def mean(value: Floats) -> float | None:
    """The mean of the measured values; None without measured values."""
    # ``sum`` takes half as long again, and this function is called 100,000 times
    total = np.add.reduce(value)
    if len(value) and math.isfinite(total):
        return float(total / len(value))  # all values are measured: the usual case, in a third of the time
    measured = value[np.isfinite(value)]
    return float(measured.mean()) if len(measured) else None


def added(columns: Iterable[Floats]) -> Floats:
    """The sum of one or more columns, without values not measured; NaN if none was measured."""
    table = np.array(list(columns))
    return np.where(np.isfinite(table).any(axis=0), np.nansum(table, axis=0), np.nan)


def joined(columns: Iterable[Floats]) -> Floats:
    """The sum of one or more columns in each step; NaN if a column has a gap between measured steps."""
    table = np.array(list(columns))
    known = np.isfinite(table)
    begun = np.logical_or.accumulate(known, axis=1)
    goes_on = np.logical_or.accumulate(known[:, ::-1], axis=1)[:, ::-1]
    whole = known.any(axis=0) & (known | ~(begun & goes_on)).all(axis=0)
    return np.where(whole, np.nansum(table, axis=0), np.nan)


def spread(value: Floats) -> float | None:
    """Half the distance between the 16th and 84th percentile ÷ the median.

    For a normal distribution this is the relative standard deviation; a single outlier, such as a checkpoint,
    hardly changes it. None with fewer than five values or a median of 0.
    """
    measured = value[np.isfinite(value)]
    if len(measured) < 5:
        return None
    low, middle, high = np.quantile(measured, [0.16, 0.5, 0.84])
    return float((high - low) / 2 / middle) if middle > 0 else None


_BLOCK = 128
"""The number of rows that are created together, so that no array has to grow."""

_SUMS = ("rows", "counts", "covered_s", "total", "weight", "weighted_total")
"""The totals of a series in a step, in the order of the array's first axis.

Samples; measured samples; seconds covered; values times seconds; operations behind means; values times
operations.
"""
_ROWS, _COUNTS, _COVERED, _TOTAL, _WEIGHT, _WEIGHTED_TOTAL = range(len(_SUMS))


def add_up(samples: recorded.Samples, window: Window, apart: Collection[Key] = ()) -> Samples:
    """The samples whose interval has its middle in the window, read and added up when requested.

    Args:
        samples: the samples of a run.
        window: window whose steps are used.
        apart: series whose single readings are also kept.
    """
    return Samples(_SeriesSums(samples, window, apart), window)


class _Part(NamedTuple):
    """The totals of one group of rows.

    Attributes:
        keys: series in the group.
        first: first step with samples of the group.
        sums: totals in the order of ``_SUMS``; shape (totals, series, steps), steps from ``first`` on. The
            last two totals are missing if the group has no means of operations.
        highest: largest value of each series in each step; shape (series, steps).
        weighted: whether the values of each series are means of operations; shape (series,).
        readings: single readings of the group's series that are kept apart.
    """

    keys: list[Key]
    first: int
    sums: Floats
    highest: Floats
    weighted: npt.NDArray[np.bool_]
    readings: list[tuple[Key, Readings]]


class _SeriesSums:
    """The sums of all series, read and added up when requested; its results may be views of its arrays."""

    def __init__(self, samples: recorded.Samples, window: Window, apart: Collection[Key]) -> None:
        self._unread = recorded.UnreadSamples(samples)
        self._window = window
        self._asked: set[tuple[str | None, str, str | None]] = set()
        self._number_of: dict[Key, int] = {}
        self._of_metric: dict[str, list[Key]] = {}
        self._weighted: set[int] = set()
        self._blocks: list[_Block] = []
        self._readings: dict[Key, list[Readings]] = {key: [] for key in apart}

    @property
    def nonsense(self) -> Sequence[str]:
        """Sentences about the impossible values read so far."""
        return bounds.sentences(self._unread.nonsense.found.values())

    def keys(self, metric: str, first: int, steps: int) -> Iterator[Key]:
        """The series of a metric with at least one sample in ``steps`` steps from step ``first``."""
        self._read((None, metric, None))
        keys, there = self._of_metric.get(metric, []), slice(max(0, first), max(0, first + steps))
        numbers = np.array([self._number_of[key] for key in keys], dtype=np.int64)
        for block, rows, mine in _by_block(numbers):
            found = self._blocks[block].sums[_ROWS, rows, there].any(axis=1)
            places = np.arange(len(numbers))[mine]
            yield from (keys[place] for place in places[found].tolist())

    def part(self, key: Key, first: int, steps: int) -> Series | None:
        """The ``steps`` steps of one series from step ``first``; None if they have no sample."""
        self._read(key)
        number = self._number_of.get(key)
        if number is None:
            return None
        block, row = divmod(number, _BLOCK)
        (sums, highests), weighted = self._blocks[block], number in self._weighted
        there = slice(max(0, first), max(0, first + steps))
        if not sums[_ROWS, row, there].any():
            return None
        of = (
            (_WEIGHTED_TOTAL, _WEIGHT, _COVERED, _COUNTS)
            if weighted
            else (_TOTAL, _COVERED, _COVERED, _COUNTS)
        )
        result = [*(sums[one, row, there] for one in of), highests[row, there]]
        missing = steps - len(result[0])
        if missing:
            before = min(max(0, -first), missing)
            ends, empty = (before, missing - before), (0, 0, 0, 0, -np.inf)
            result = [
                np.pad(one, ends, constant_values=none) for one, none in zip(result, empty, strict=True)
            ]
        total, share, covered_s, counts, highest = result
        return Series(total, share, covered_s, highest, counts, weighted)

    def readings(self, key: Key) -> Readings:
        """The single readings of one series. Raises KeyError if the series is not kept apart."""
        parts = self._readings[key]
        self._read(key)
        return _in_order(parts)

    def _read(self, names: tuple[str | None, str, str | None]) -> None:
        if names in self._asked or (None, names[1], None) in self._asked:
            return
        self._asked.add(names)
        work = partial(_summed, window=self._window, apart=self._readings.keys())
        for part in self._unread.each(work, recorded.SeriesFilter(*names)):
            if part is not None:
                self._add(part)

    def _add(self, part: _Part) -> None:
        numbers = np.array([self._number(key) for key in part.keys])
        self._weighted.update(numbers[part.weighted].tolist())
        kinds, _, steps = part.sums.shape
        there = slice(part.first, part.first + steps)
        for block, rows, mine in _by_block(numbers):
            sums, highest = self._blocks[block]
            sums[:kinds, rows, there] += part.sums[:, mine]
            highest[rows, there] = np.maximum(highest[rows, there], part.highest[mine])
        for key, readings in part.readings:
            self._readings[key].append(readings)

    def _number(self, key: Key) -> int:
        """The row number of a series; a new series gets the next number."""
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self._number_of)
            self._of_metric.setdefault(key.metric, []).append(key)
            block, row = divmod(number, _BLOCK)
            if row == 0:
                self._blocks.append(_block(self._window.steps))
            self._blocks[block].highest[row] = -np.inf
        return number


class _Block(NamedTuple):
    """Totals of some series: ``sums`` of shape (totals, series, steps), ``highest`` of (series, steps)."""

    sums: Floats
    highest: Floats


def _block(steps: int) -> _Block:
    """A block of empty totals; the system allocates memory only for rows that are written."""
    return _Block(np.zeros((len(_SUMS), _BLOCK, steps)), np.empty((_BLOCK, steps)))


def _by_block(numbers: Ints) -> Iterator[tuple[int, Any, Any]]:
    """(block, rows of the block, their positions in ``numbers``) of each block with rows in ``numbers``."""
    blocks = numbers // _BLOCK
    for block in sorted(set(blocks.tolist())):
        mine = np.flatnonzero(blocks == block)
        rows = numbers[mine] % _BLOCK
        # Rows and positions are usually consecutive; slices are much faster.
        yield block, _span(rows), _span(mine)


def _span(numbers: Ints) -> Any:
    """The numbers as a slice if they are consecutive, else the numbers."""
    follow = bool((np.diff(numbers) == 1).all())
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if follow else numbers


def _summed(table: pa.Table, window: Window, apart: Collection[Key]) -> _Part | None:
    """The totals of one group of rows; None if no row is in the window."""
    middle, step = _times(table, window)
    first, last = int(step.min(initial=window.steps)), int(step.max(initial=0))
    if first < 0 or last >= window.steps:
        inside = (step >= 0) & (step < window.steps)
        table, middle, step = table.filter(pa.array(inside)), middle[inside], step[inside]
        first, last = int(step.min(initial=window.steps)), int(step.max(initial=0))
    if not table.num_rows:
        return None
    keys, number, lengths = _series(table)
    width = last - first + 1
    size = len(keys) * width
    cells = np.repeat(number * width - first, lengths)
    cells += step
    rows = counts = np.bincount(cells, None, size)
    table = table.select(["interval_s", "value", "weight"])
    if table["value"].null_count:
        measured = table["value"].is_valid()
        table, there = table.filter(measured), np.flatnonzero(measured.to_numpy())
        cells, middle = cells[there], middle[there]
        counts = np.bincount(cells, None, size)
    interval, value = (table[name].to_numpy() for name in ("interval_s", "value"))
    over_time = (np.bincount(cells, each, size) for each in (interval, value * interval))
    over_operations, weighted = _means(table["weight"], cells, value, (len(keys), width))
    highest = np.full(size, -np.inf)
    np.maximum.at(highest, cells, value)
    return _Part(
        keys=keys,
        first=first,
        sums=np.array([rows, counts, *over_time, *over_operations]).reshape(-1, len(keys), width),
        highest=highest.reshape(len(keys), width),
        weighted=weighted,
        readings=list(_readings_of(keys, apart, cells, width, Readings(middle, value))),
    )


def _times(table: pa.Table, window: Window) -> tuple[Floats, Ints]:
    """(middle of each row's interval in UTC seconds, step of that middle)."""
    middle = table["time_ns"].to_numpy() / 1e9
    middle -= table["interval_s"].to_numpy() / 2
    return middle, window.step_of(middle)


def _means(
    weight: pa.ChunkedArray, cells: Ints, value: Floats, shape: tuple[int, int]
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """Totals of values that are means: ([operations, values times operations] by cell, series with means)."""
    if weight.null_count == len(weight):
        return [], np.zeros(shape[0], dtype=bool)
    there = np.flatnonzero(weight.is_valid().to_numpy())
    weights, cells = weight.drop_null().to_numpy(), cells[there]
    sums = [np.bincount(cells, each, math.prod(shape)) for each in (weights, value[there] * weights)]
    return sums, np.bincount(cells // shape[1], None, shape[0]) > 0


def _readings_of(
    keys: list[Key], apart: Collection[Key], cells: Ints, width: int, all_rows: Readings
) -> Iterator[tuple[Key, Readings]]:
    """(series, its single readings) of each series that is kept apart."""
    wanted = np.array([key in apart for key in keys])
    if not wanted.any():
        return
    series = cells // width
    rows = np.flatnonzero(wanted[series])
    rows = rows[np.argsort(series[rows], kind="stable")]
    numbers = np.flatnonzero(wanted)
    ends = np.searchsorted(series[rows], numbers, side="right")
    for number, part in zip(numbers.tolist(), np.split(rows, ends[:-1]), strict=True):
        yield keys[number], Readings(all_rows.middle_s[part], all_rows.value[part])


def _series(table: pa.Table) -> tuple[list[Key], Ints, Ints]:
    """Series of a table: (keys, number of the series of each stretch of rows, length of each stretch)."""
    columns = [_dictionary(table[name]) for name in Key._fields]
    names = [column.dictionary.to_pylist() for column in columns]
    numbers = [column.indices.to_numpy() for column in columns]
    # With rows sorted by series, there are few stretches.
    begins = np.zeros(table.num_rows, dtype=bool)
    begins[0] = True
    for each in numbers:
        begins[1:] |= each[1:] != each[:-1]
    first = np.flatnonzero(begins)
    sizes = [len(each) for each in names]
    codes = np.ravel_multi_index([number[first] for number in numbers], sizes)
    number, result = numbered(codes, math.prod(sizes))
    places = zip(names, np.unravel_index(result, sizes), strict=True)
    of_keys = ([each[at] for at in place.tolist()] for each, place in places)
    return list(map(Key, *of_keys)), number, np.diff(first, append=table.num_rows)


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The column as one dictionary array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.unify_dictionaries().combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _in_order(parts: list[Readings]) -> Readings:
    if not parts:
        return Readings(np.empty(0), np.empty(0))
    middle = np.concatenate([part.middle_s for part in parts])
    value = np.concatenate([part.value for part in parts])
    order = np.argsort(middle, kind="stable")
    return Readings(middle[order], value[order])
