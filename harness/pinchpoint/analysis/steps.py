"""Samples added up to the steps of a window, batch by batch, in the order in which they were recorded.

No loop goes over rows: names become numbers, a sample's series and step become the number of a cell, and
numpy adds up by cell. The order is always the same, so sums are the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.analysis.series import Cells, Floats, Key, Readings, Samples, Window

Ints = npt.NDArray[np.int64]

_BITS = 20
_MASK = (1 << _BITS) - 1
_LARGEST = 2**31


def add_up(tables: Iterable[pa.Table], window: Window, apart: Collection[Key] = ()) -> Samples:
    """The samples whose intervals have their middle in the window.

    Args:
        tables: of ``SAMPLES_SCHEMA``; names may be dictionaries.
        window: its steps.
        apart: series to be kept as they are read, too.
    """
    sums = _Sums(window, apart)
    for table in tables:
        sums.add(table)
    return Samples(sums.cells(), window)


class _Sums:
    """The cells while they are filled; lines are added as new series are met."""

    def __init__(self, window: Window, apart: Collection[Key]) -> None:
        self._window = window
        self._names = _Names()
        self._lines: dict[Key, int] = {}
        self._line_of: dict[int, int] = {}
        numbers = dict.fromkeys(("total", "covered_s", "highest", "weighted_total", "weight"), np.float64)
        kinds = {**numbers, **dict.fromkeys(("counts", "rows"), np.int32)}
        self._columns = {name: np.zeros((0, window.steps), dtype=kind) for name, kind in kinds.items()}
        self._weighted = np.zeros(0, dtype=bool)
        self._apart = set(apart)
        self._readings: dict[int, list[tuple[Floats, Floats]]] = {}

    def add(self, table: pa.Table) -> None:
        """One more table."""
        interval = table["interval_s"].to_numpy()
        middle = table["time_ns"].to_numpy() / 1e9 - interval / 2
        step = self._window.step_of(middle)
        inside = (step >= 0) & (step < self._window.steps)
        if not inside.all():
            table = table.filter(pa.array(inside))
            interval, middle, step = interval[inside], middle[inside], step[inside]
        if not table.num_rows:
            return
        series, codes = self._names.numbered(table)
        first = int(step.min())
        width = int(step.max()) - first + 1
        block = _Block(self._lines_of(codes), first, width)
        cells = series * width + (step - first)
        self._add("rows", block, np.bincount(cells, None, block.size))
        value = table["value"]
        measured = slice(None)
        if value.null_count:
            measured = pc.is_valid(value).to_numpy()
            value = value.drop_null()
        value = value.to_numpy()
        self._add_measured(block, cells[measured], value, interval[measured])
        self._keep(block.lines, series[measured], middle[measured], value)
        self._add_weighted(block, table, cells)

    def cells(self) -> Cells:
        """What was added up."""
        used = slice(0, len(self._lines))
        parts = {key: self._readings.get(self._lines.get(key, -1), []) for key in self._apart}
        readings = {key: _in_order(found) for key, found in parts.items()}
        columns = {name: column[used] for name, column in self._columns.items()}
        return Cells(lines=self._lines, weighted=self._weighted[used], readings=readings, **columns)

    def _add_measured(self, block: _Block, cells: Ints, value: Floats, interval: Floats) -> None:
        self._add("counts", block, np.bincount(cells, None, block.size))
        self._add("covered_s", block, np.bincount(cells, interval, block.size))
        self._add("total", block, np.bincount(cells, value * interval, block.size))
        highest = np.full(block.size, -np.inf)
        np.maximum.at(highest, cells, value)
        there = self._columns["highest"][block.place]
        self._columns["highest"][block.place] = np.maximum(there, highest.reshape(block.shape))

    def _add_weighted(self, block: _Block, table: pa.Table, cells: Ints) -> None:
        """Only some values are means of operations."""
        rows = pc.indices_nonzero(pc.and_(pc.is_valid(table["weight"]), pc.is_valid(table["value"])))
        if not len(rows):
            return
        value, weight = (table[name].take(rows).to_numpy() for name in ("value", "weight"))
        cells = cells[rows.to_numpy()]
        self._add("weight", block, np.bincount(cells, weight, block.size))
        self._add("weighted_total", block, np.bincount(cells, value * weight, block.size))
        there = np.zeros(block.size, dtype=bool)
        there[cells] = True
        self._weighted[block.lines] |= there.reshape(block.shape).any(axis=1)

    def _add(self, name: str, block: _Block, sums: npt.NDArray[Any]) -> None:
        column = self._columns[name]
        column[block.place] += sums.reshape(block.shape).astype(column.dtype, copy=False)

    def _keep(self, lines: Ints, series: Ints, middle: Floats, value: Floats) -> None:
        """The readings of the series that are kept apart."""
        wanted = np.flatnonzero([line in self._readings for line in lines.tolist()])
        if not len(wanted):
            return
        chosen = np.zeros(len(lines), dtype=bool)
        chosen[wanted] = True
        rows = np.flatnonzero(chosen[series])
        rows = rows[np.argsort(series[rows], kind="stable")]
        starts = np.searchsorted(series[rows], wanted)
        for number, part in zip(wanted, np.split(rows, starts[1:]), strict=True):
            self._readings[int(lines[number])].append((middle[part], value[part]))

    def _lines_of(self, codes: Ints) -> Ints:
        """The line of each series; those that are met for the first time get one."""
        known = codes.tolist()
        for code in [code for code in known if code not in self._line_of]:
            line, key = len(self._line_of), self._names.key(code)
            self._line_of[code] = self._lines[key] = line
            if key in self._apart:
                self._readings[line] = []
        room = len(self._weighted)
        if len(self._lines) > room:
            self._grow(max(len(self._lines) - room, room // 4))
        return np.array([self._line_of[code] for code in known])

    def _grow(self, lines: int) -> None:
        for name, column in self._columns.items():
            more = np.zeros((lines, self._window.steps), dtype=column.dtype)
            if name == "highest":
                more[:] = -np.inf
            self._columns[name] = np.concatenate([column, more]) if len(column) else more
        self._weighted = np.concatenate([self._weighted, np.zeros(lines, dtype=bool)])


class _Block:
    """The cells of one table: some lines, and the steps from its first to its last."""

    def __init__(self, lines: Ints, first: int, width: int) -> None:
        self.lines = lines
        self.shape = len(lines), width
        self.size = len(lines) * width
        # Where the tables name the same series in the same order, lines follow each other: much faster.
        follow = len(lines) == lines[-1] - lines[0] + 1 and bool((np.diff(lines) == 1).all())
        chosen = slice(lines[0], lines[-1] + 1) if follow else lines
        self.place = chosen, slice(first, first + width)


class _Names:
    """Numbers for names: those of tables' dictionaries differ from table to table."""

    def __init__(self) -> None:
        self._numbers: tuple[dict[str, int], ...] = ({}, {}, {})

    def numbered(self, table: pa.Table) -> tuple[Ints, Ints]:
        """(the number of each row's series in this table; of each its code, the same in all tables)."""
        host, metric, instance = (_dictionary(table[name]) for name in Key._fields)
        metrics, instances = len(metric.dictionary), len(instance.dictionary)
        possible = len(host.dictionary) * metrics * instances
        kind = np.int32 if possible < _LARGEST else np.int64
        there = np.zeros(possible, dtype=bool)
        each = (_indices(host, kind) * metrics + _indices(metric, kind)) * instances + _indices(
            instance, kind
        )
        there[each] = True
        found = np.flatnonzero(there)
        number = np.empty(possible, dtype=np.int64)  # only what is there is written, and read
        number[found] = np.arange(len(found))
        h, m, i = (self._known(at, column) for at, column in enumerate((host, metric, instance)))
        pair, one = np.divmod(found, instances)
        first, other = np.divmod(pair, metrics)
        return number[each], (h[first] << 2 * _BITS) + (m[other] << _BITS) + i[one]

    def key(self, code: int) -> Key:
        """What a code stands for."""
        parts = code >> 2 * _BITS, code >> _BITS & _MASK, code & _MASK
        return Key(*(list(names)[number] for names, number in zip(self._numbers, parts, strict=True)))

    def _known(self, at: int, column: pa.DictionaryArray) -> Ints:
        numbers = self._numbers[at]
        return np.array([numbers.setdefault(name, len(numbers)) for name in column.dictionary.to_pylist()])


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = coded.unify_dictionaries().combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _indices(column: pa.DictionaryArray, kind: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
    return np.asarray(column.indices.to_numpy(), dtype=kind)


def _in_order(parts: list[tuple[Floats, Floats]]) -> Readings:
    if not parts:
        return Readings(np.empty(0), np.empty(0))
    middle, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(middle, kind="stable")
    return Readings(middle[order], value[order])
