"""Samples added up to the steps of a window, group by group, in the order in which they were recorded.

Only what is asked for is read, and what lies in one group of rows with it. No loop goes over rows: names
become numbers, a sample's series and step become the number of a cell, and numpy adds up by cell. The order
is always the same, so sums are the same to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinchpoint.analysis.series import Floats, Key, Readings, Samples, Series, Window
from pinchpoint.store import samples as recorded
from pinchpoint.store.order import numbered
from pinchpoint_collectors import bounds

Ints = npt.NDArray[np.int64]

_BLOCK = 128
"""Lines are made so many at a time, so that no array has to grow."""

_SUMS = ("rows", "counts", "covered_s", "total", "weight", "weighted_total")
"""What is added up of each series in each step: samples, measured or not; those that are measured; the
seconds these cover; values times these; the operations that values are means of; values times these."""
_ROWS, _COUNTS, _COVERED, _TOTAL, _WEIGHT, _WEIGHTED_TOTAL = range(len(_SUMS))


def add_up(samples: recorded.Samples, window: Window, apart: Collection[Key] = ()) -> Samples:
    """The samples whose intervals have their middle in the window, added up as they are asked for.

    Args:
        samples: of a run.
        window: its steps.
        apart: series to be kept as they are read, too.
    """
    return Samples(_Sums(samples, window, apart), window)


class _Part(NamedTuple):
    """What one group of rows adds up to.

    Attributes:
        keys: its series.
        first: the first of the steps it has samples in.
        sums: as ``_SUMS`` (of means of operations its last two are left out where there are none), a line
            per series, a column per step from ``first`` to its last.
        highest: the largest value of each, likewise.
        weighted: of each series, whether its values are means of operations.
        readings: of those of its series that are kept apart.
    """

    keys: list[Key]
    first: int
    sums: Floats
    highest: Floats
    weighted: npt.NDArray[np.bool_]
    readings: list[tuple[Key, Readings]]


class _Sums:
    """All series, added up as they are read (``series.Lines``)."""

    def __init__(self, samples: recorded.Samples, window: Window, apart: Collection[Key]) -> None:
        self._unread = recorded.Unread(samples)
        self._window = window
        self._asked: set[tuple[str | None, str, str | None]] = set()
        self._number_of: dict[Key, int] = {}
        self._of_metric: dict[str, list[Key]] = {}
        self._weighted: set[int] = set()
        self._blocks: list[_Lines] = []
        self._readings: dict[Key, list[Readings]] = {key: [] for key in apart}

    @property
    def nonsense(self) -> Sequence[str]:
        """What cannot be in what was read until now."""
        return bounds.sentences(self._unread.nonsense.found.values())

    def keys(self, metric: str) -> Iterable[Key]:
        """The series of a metric."""
        self._read((None, metric, None))
        return self._of_metric.get(metric, ())

    def part(self, key: Key, first: int, steps: int) -> Series | None:
        """Some steps of one series; None where there is not a single sample in them."""
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
        found = [*(sums[one, row, there] for one in of), highests[row, there]]
        missing = steps - len(found[0])
        if missing:
            before = min(max(0, -first), missing)
            ends, empty = (before, missing - before), (0, 0, 0, 0, -np.inf)
            found = [np.pad(one, ends, constant_values=none) for one, none in zip(found, empty, strict=True)]
        total, share, covered_s, counts, highest = found
        return Series(total, share, covered_s, highest, counts, weighted)

    def readings(self, key: Key) -> Readings:
        """One series as it was read. Raises KeyError: it was not to be kept so."""
        parts = self._readings[key]
        self._read(key)
        return _in_order(parts)

    def _read(self, names: tuple[str | None, str, str | None]) -> None:
        if names in self._asked or (None, names[1], None) in self._asked:
            return
        self._asked.add(names)
        work = partial(_summed, window=self._window, apart=self._readings.keys())
        for part in self._unread.each(work, recorded.Wanted(*names)):
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
        """The line of a series; one that is met for the first time gets the next."""
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self._number_of)
            self._of_metric.setdefault(key.metric, []).append(key)
            block, row = divmod(number, _BLOCK)
            if row == 0:
                self._blocks.append(_lines(self._window.steps))
            self._blocks[block].highest[row] = -np.inf
        return number


class _Lines(NamedTuple):
    """Of some series: ``sums`` (as ``_SUMS``, by series, by step), and each step's ``highest`` value."""

    sums: Floats
    highest: Floats


def _lines(steps: int) -> _Lines:
    """Empty ones; memory is taken when a line is written, so that lines that no series has take none."""
    return _Lines(np.zeros((len(_SUMS), _BLOCK, steps)), np.empty((_BLOCK, steps)))


def _by_block(numbers: Ints) -> Iterator[tuple[int, Any, Any]]:
    """(a block, the rows of it that are these lines, where in ``numbers`` they stand), of each block."""
    blocks = numbers // _BLOCK
    for block in np.unique(blocks).tolist():
        mine = np.flatnonzero(blocks == block)
        rows = numbers[mine] % _BLOCK
        # As a rule both follow each other: much faster.
        yield block, _span(rows), _span(mine)


def _span(numbers: Ints) -> Any:
    """The numbers as a slice, where they follow each other."""
    follow = bool((np.diff(numbers) == 1).all())
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if follow else numbers


def _summed(table: pa.Table, window: Window, apart: Collection[Key]) -> _Part | None:
    """What one group of rows adds up to; None where nothing of it is in the window."""
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
        readings=list(_kept(keys, apart, cells, width, Readings(middle, value))),
    )


def _times(table: pa.Table, window: Window) -> tuple[Floats, Ints]:
    """(the middle of each row's interval, UTC seconds; the step it falls into)."""
    middle = table["time_ns"].to_numpy() / 1e9
    middle -= table["interval_s"].to_numpy() / 2
    return middle, window.step_of(middle)


def _means(
    weight: pa.ChunkedArray, cells: Ints, value: Floats, shape: tuple[int, int]
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """([operations, values times these], by cell, of values that are means; which series they are of)."""
    if weight.null_count == len(weight):
        return [], np.zeros(shape[0], dtype=bool)
    there = np.flatnonzero(weight.is_valid().to_numpy())
    weights, cells = weight.drop_null().to_numpy(), cells[there]
    sums = [np.bincount(cells, each, math.prod(shape)) for each in (weights, value[there] * weights)]
    return sums, np.bincount(cells // shape[1], None, shape[0]) > 0


def _kept(
    keys: list[Key], apart: Collection[Key], cells: Ints, width: int, all_rows: Readings
) -> Iterator[tuple[Key, Readings]]:
    """The readings of the series that are kept apart."""
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
    """(the series of a table; of each stretch of rows of one series its number; how many rows it has)."""
    columns = [_dictionary(table[name]) for name in Key._fields]
    names = [column.dictionary.to_pylist() for column in columns]
    numbers = [column.indices.to_numpy() for column in columns]
    # Where rows are in the order of series, few begin another one.
    begins = np.zeros(table.num_rows, dtype=bool)
    begins[0] = True
    for each in numbers:
        begins[1:] |= each[1:] != each[:-1]
    first = np.flatnonzero(begins)
    sizes = [len(each) for each in names]
    codes = np.ravel_multi_index([number[first] for number in numbers], sizes)
    number, found = numbered(codes, math.prod(sizes))
    places = zip(names, np.unravel_index(found, sizes), strict=True)
    of_keys = ([each[at] for at in place.tolist()] for each, place in places)
    return list(map(Key, *of_keys)), number, np.diff(first, append=table.num_rows)


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """In one piece."""
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
