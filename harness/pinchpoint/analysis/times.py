"""Stored histograms, each decoded once, however often and in whatever choice they are added up."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinchpoint.analysis.series import Floats
from pinchpoint.store import histogram

Ints = npt.NDArray[np.int64]

US = 1e6


class Times:
    """One column of histograms.

    Args:
        column: their texts; null where nothing was timed.
        order: all its rows such that what is asked for together lies together: an operation's rows of one
            outcome, in the order of time. Their sum is that of a stretch of counters, and is kept.
    """

    def __init__(self, column: pa.ChunkedArray, order: Ints) -> None:
        self.timed: npt.NDArray[np.bool_] = np.asarray(column.is_valid().to_numpy(), dtype=bool)
        used = order[self.timed[order]]
        self._place = np.full(len(order), -1, dtype=np.int64)
        self._place[used] = np.arange(len(used))
        found = histogram.entries(column.take(pa.array(used)).to_pylist())
        self._ends, self._counters, self._counts = found
        self._kept: dict[tuple[int, int], histogram.Counts] = {}

    @cached_property
    def longest_s(self) -> Floats:
        """The longest of each row, seconds; 0 where nothing was timed."""
        lowest, width = histogram.values_us(self._counters[self._ends[1:] - 1].astype(np.int64))
        found = np.zeros(len(self._place))
        found[self.timed] = ((lowest + width - 1) / US)[self._place[self.timed]]
        return found

    def sum(self, rows: Ints, *, keep: bool = True) -> histogram.Counts:
        """The counters of some rows, added up; empty where nothing was timed.

        Args:
            rows: their numbers.
            keep: whether the same is likely to be asked for again.
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
        # As floats, counts are exact up to 2^53.
        found = np.bincount(self._counters[there], self._counts[there]).astype(np.int64)
        if keep:
            self._kept[first, end] = found
        return found
