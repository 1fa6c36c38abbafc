"""Counts and times operations: an array append each, histograms once a second."""

from __future__ import annotations

import time
from array import array
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

LOWEST_US = 1
HIGHEST_US = 3_600_000_000  # an hour
DIGITS = 3

_Key = tuple[int, str, str, str]  # second, scenario, operation, outcome


class _Cell:
    """The operations of one second, scenario, operation and outcome."""

    __slots__ = ("bytes", "response_ns", "service_ns")

    def __init__(self) -> None:
        self.service_ns = array("q")
        self.response_ns = array("q")
        self.bytes = 0


class Recorder:
    """All operations of one generator process, by the UTC second in which they ended.

    Not thread-safe: ``add`` and ``take`` belong to the event loop; what ``take`` returned may be encoded
    anywhere.

    Args:
        clock_offset_ns: the controller's UTC clock minus this machine's: all seconds are the controller's.
    """

    def __init__(self, clock_offset_ns: int = 0) -> None:
        self._clock_offset_ns = clock_offset_ns
        self._cells: defaultdict[_Key, _Cell] = defaultdict(_Cell)
        self._dropped: Counter[tuple[int, str]] = Counter()
        self.follow_clock()

    def follow_clock(self) -> None:
        """Take the distance between the performance counter and UTC anew (UTC is steered, and may step)."""
        self._utc_offset_ns = time.time_ns() - time.perf_counter_ns() + self._clock_offset_ns

    def utc_ns(self, counter_ns: int) -> int:
        """The UTC time of a performance counter's value, in nanoseconds."""
        return counter_ns + self._utc_offset_ns

    def counter_ns(self, utc_ns: int) -> int:
        """The performance counter's value at a UTC time, in nanoseconds."""
        return utc_ns - self._utc_offset_ns

    def add(
        self,
        scenario: str,
        operation: str,
        outcome: str,
        start_ns: int,
        end_ns: int,
        size_bytes: int,
        intended_ns: int | None,
    ) -> None:  # fmt: skip -- one line of arguments reads as the record it is
        """Record one operation; times are performance counter values in ns."""
        second = (end_ns + self._utc_offset_ns) // 1_000_000_000
        cell = self._cells[second, scenario, operation, outcome]
        cell.service_ns.append(end_ns - start_ns)
        if intended_ns is not None:
            cell.response_ns.append(end_ns - intended_ns)
        cell.bytes += size_bytes

    def drop(self, scenario: str, intended_ns: int) -> None:
        """Count an operation that could not start, in the second it was intended for."""
        self._dropped[self.utc_ns(intended_ns) // 1_000_000_000, scenario] += 1

    def take(self, before_s: int) -> Seconds:
        """Hand over everything that ended before the UTC second ``before_s``."""
        keys = [key for key in self._cells if key[0] < before_s]
        dropped = [key for key in self._dropped if key[0] < before_s]
        return Seconds(
            {key: self._cells.pop(key) for key in keys}, {key: self._dropped.pop(key) for key in dropped}
        )


class Seconds:
    """Operations of whole seconds, handed over by the recorder."""

    def __init__(self, cells: dict[_Key, _Cell], dropped: dict[tuple[int, str], int]) -> None:
        self._cells = cells
        self._dropped = dropped

    def rows(self, worker: str) -> list[list[Any]]:
        """Rows of the operations table (``store.schema.OPERATIONS_SCHEMA``)."""
        rows: list[list[Any]] = [
            [second, 1.0, worker, scenario, operation, outcome, len(cell.service_ns), cell.bytes,
             _histogram(cell.service_ns), _histogram(cell.response_ns), 0]
            for (second, scenario, operation, outcome), cell in self._cells.items()
        ]  # fmt: skip
        rows += [
            [second, 1.0, worker, scenario, "", "dropped", 0, 0, None, None, count]
            for (second, scenario), count in self._dropped.items()
        ]
        return rows

    def progress(self) -> dict[str, dict[str, Any]]:
        """Per scenario what a person watching wants to see: ok, failed, dropped, p95 in seconds."""
        found: dict[str, dict[str, Any]] = defaultdict(
            lambda: {"ok": 0, "failed": 0, "dropped": 0, "p95_s": None}
        )
        times: dict[str, list[array[int]]] = defaultdict(list)
        for (_, scenario, operation, outcome), cell in self._cells.items():
            if "/" not in operation:
                found[scenario]["ok" if outcome == "ok" else "failed"] += len(cell.service_ns)
                times[scenario].append(cell.response_ns or cell.service_ns)
        for (_, scenario), count in self._dropped.items():
            found[scenario]["dropped"] += count
        for scenario, arrays in times.items():
            found[scenario]["p95_s"] = float(np.percentile(np.concatenate(arrays), 95)) / 1e9
        return dict(found)


def _histogram(nanoseconds: array[int]) -> str | None:
    if not nanoseconds:
        return None
    microseconds = np.clip(np.rint(np.asarray(nanoseconds) / 1000), LOWEST_US, HIGHEST_US).astype(np.int64)
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    # Distinct values with their counts: a busy second has far fewer of them than operations.
    for value, count in zip(*np.unique(microseconds, return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    return str(histogram.encode().decode("ascii"))
