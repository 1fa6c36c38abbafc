"""Samples added up to the steps of a window, group by group, in the order in which they were recorded.

Only what is asked for is read, and what lies in one group of rows with it. No loop goes over rows: names
become numbers, a sample's series and step become the number of a cell, and numpy adds up by cell. The order
is always the same, so sums are the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.analysis.series import Floats, Key, Readings, Samples, Series, Window
from pinchpoint.store import samples as recorded
from pinchpoint.store.order import numbered

Ints = npt.NDArray[np.int64]

_BLOCK = 128
"""Lines are made so many at a time, so that no array has to grow."""


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
        sums: a line per series, a column per step from there to its last: values times the seconds they
            cover (``total``), these (``covered_s``), values times the operations they are means of
            (``weighted_total``), these (``weight``), the largest (``highest``), how many values (``counts``),
            how many samples, measured or not (``rows``).
        weighted: of each series, whether its values are means of operations.
        readings: of those of its series that are kept apart.
    """

    keys: list[Key]
    first: int
    sums: dict[str, npt.NDArray[Any]]
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
        self._blocks: list[dict[str, npt.NDArray[Any]]] = []
        self._readings: dict[Key, list[Readings]] = {key: [] for key in apart}

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
        columns, weighted = self._blocks[block], number in self._weighted
        there = slice(max(0, first), max(0, first + steps))
        if not columns["rows"][row, there].any():
            return None
        names = ("weighted_total", "weight") if weighted else ("total", "covered_s")
        found = [columns[name][row, there] for name in (*names, "covered_s", "highest", "counts")]
        missing = steps - len(found[0])
        if missing:
            before = min(max(0, -first), missing)
            ends, empty = (before, missing - before), (0, 0, 0, -np.inf, 0)
            found = [np.pad(one, ends, constant_values=of) for one, of in zip(found, empty, strict=True)]
        total, share, covered_s, highest, counts = found
        return Series(total, share, covered_s, highest, counts, weighted)

    def readings(self, key: Key) -> Readings:
        """One series as it was read. Raises KeyError: it was not to be kept so."""
        parts = self._readings[key]
        self._read(key)
        return _in_order(parts)

    def _read(self, names: tuple[str | None, str, str | None]) -> None:
        if names in self._asked:
            return
        self._asked.add(names)
        work = partial(_summed, window=self._window, apart=self._readings.keys())
        for part in self._unread.each(work, recorded.Wanted(*names)):
            if part is not None:
                self._add(part)

    def _add(self, part: _Part) -> None:
        numbers = np.array([self._number(key) for key in part.keys])
        self._weighted.update(numbers[part.weighted].tolist())
        for block, rows, mine in _by_block(numbers):
            for name, sums in part.sums.items():
                column = self._blocks[block][name]
                there = rows, slice(part.first, part.first + sums.shape[1])
                join = np.maximum if name == "highest" else np.add
                column[there] = join(column[there], sums[mine])
        for key, readings in part.readings:
            self._readings[key].append(readings)

    def _number(self, key: Key) -> int:
        """The line of a series; one that is met for the first time gets the next."""
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self._number_of)
            self._of_metric.setdefault(key.metric, []).append(key)
            if number % _BLOCK == 0:
                self._blocks.append(_lines(self._window.steps))
        return number


def _lines(steps: int) -> dict[str, npt.NDArray[Any]]:
    """Empty ones."""
    shape = _BLOCK, steps
    names = ("total", "covered_s", "weighted_total", "weight")
    columns: dict[str, npt.NDArray[Any]] = {name: np.zeros(shape) for name in names}
    columns |= {name: np.zeros(shape, dtype=np.int32) for name in ("counts", "rows")}
    return columns | {"highest": np.full(shape, -np.inf)}


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
    interval = table["interval_s"].to_numpy()
    middle = table["time_ns"].to_numpy() / 1e9 - interval / 2
    step = window.step_of(middle)
    inside = (step >= 0) & (step < window.steps)
    if not inside.all():
        table = table.filter(pa.array(inside))
        interval, middle, step = interval[inside], middle[inside], step[inside]
    if not table.num_rows:
        return None
    keys, series = _series(table)
    first = int(step.min())
    shape = len(keys), int(step.max()) - first + 1
    cells = series * shape[1] + (step - first)
    sums = {"rows": np.bincount(cells, None, shape[0] * shape[1])}
    value, measured = table["value"], slice(None)
    if value.null_count:
        measured = pc.is_valid(value).to_numpy()
        value = value.drop_null()
    value = value.to_numpy()
    sums |= _measured(cells[measured], value, interval[measured], sums["rows"])
    found, weighted = _weighted(table, cells, shape)
    return _Part(
        keys=keys,
        first=first,
        sums={name: column.reshape(shape) for name, column in (sums | found).items()},
        weighted=weighted,
        readings=list(_kept(keys, apart, series[measured], middle[measured], value)),
    )


def _measured(cells: Ints, value: Floats, interval: Floats, rows: Ints) -> dict[str, npt.NDArray[Any]]:
    """Of those with a value, by cell; ``rows`` counts all."""
    highest = np.full(len(rows), -np.inf)
    np.maximum.at(highest, cells, value)
    return {
        "counts": rows if len(cells) == rows.sum() else np.bincount(cells, None, len(rows)),
        "covered_s": np.bincount(cells, interval, len(rows)),
        "total": np.bincount(cells, value * interval, len(rows)),
        "highest": highest,
    }


def _weighted(
    table: pa.Table, cells: Ints, shape: tuple[int, int]
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """(sums of those that are means of operations, by cell; which series they are of)."""
    rows = pc.indices_nonzero(pc.and_(pc.is_valid(table["weight"]), pc.is_valid(table["value"])))
    if not len(rows):
        return {}, np.zeros(shape[0], dtype=bool)
    value, weight = (table[name].take(rows).to_numpy() for name in ("value", "weight"))
    cells, size = cells[rows.to_numpy()], shape[0] * shape[1]
    sums = {
        "weight": np.bincount(cells, weight, size),
        "weighted_total": np.bincount(cells, value * weight, size),
    }
    return sums, np.bincount(cells // shape[1], None, shape[0]) > 0


def _kept(
    keys: list[Key], apart: Collection[Key], series: Ints, middle: Floats, value: Floats
) -> Iterator[tuple[Key, Readings]]:
    """The readings of the series that are kept apart."""
    wanted = np.array([key in apart for key in keys])
    if not wanted.any():
        return
    rows = np.flatnonzero(wanted[series])
    rows = rows[np.argsort(series[rows], kind="stable")]
    numbers = np.flatnonzero(wanted)
    ends = np.searchsorted(series[rows], numbers, side="right")
    for number, part in zip(numbers.tolist(), np.split(rows, ends[:-1]), strict=True):
        yield keys[number], Readings(middle[part], value[part])


def _series(table: pa.Table) -> tuple[list[Key], Ints]:
    """(the series of a table; of each row the number of its one)."""
    columns = [_dictionary(table[name]) for name in Key._fields]
    sizes = [len(column.dictionary) for column in columns]
    host, metric, instance = (column.indices.to_numpy().astype(np.int64) for column in columns)
    codes = (host * sizes[1] + metric) * sizes[2] + instance
    # Where rows are in the order of series, few begin another one.
    begins = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    number, found = numbered(codes[begins], sizes[0] * sizes[1] * sizes[2])
    pair, one = np.divmod(found, sizes[2])
    first, other = np.divmod(pair, sizes[1])
    names = (
        column.dictionary.take(pa.array(at)).to_pylist()
        for column, at in zip(columns, (first, other, one), strict=True)
    )
    keys = [Key(*each) for each in zip(*names, strict=True)]
    return keys, np.repeat(number, np.diff(begins, append=len(codes)))


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """In one piece."""
    whole = column.unify_dictionaries().combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _in_order(parts: list[Readings]) -> Readings:
    if not parts:
        return Readings(np.empty(0), np.empty(0))
    middle = np.concatenate([part.middle_s for part in parts])
    value = np.concatenate([part.value for part in parts])
    order = np.argsort(middle, kind="stable")
    return Readings(middle[order], value[order])
