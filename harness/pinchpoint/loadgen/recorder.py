"""Records operations: four numbers for each operation, all other figures once a second."""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter, defaultdict
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pinchpoint.loadgen.latency_bins import binned
from pinchpoint.store import histogram
from pinchpoint_scenarios.contract import OK

NO_FAILURES = (OK, "skipped")
"""Outcomes of operations that did not fail."""
_NONE = 0
"""Stands for a missing start or intended start; the performance counter is above 0 since boot."""

_START, _END, _BYTES, _INTENDED = range(4)
_WIDTH = 4
_LAST_NS = 2**63 - 1

_Key = tuple[str, str]  # operation, outcome
_Taken = dict[tuple[str, str, str], npt.NDArray[np.int64]]


class _Cells(dict[_Key, "array[int]"]):
    """One scenario's operations that were not taken yet: start, end, bytes, intended start of each."""

    def __missing__(self, key: _Key) -> array[int]:
        self[key] = made = array("q")
        return made


class Listener(Protocol):
    """Receives every operation as it is recorded."""

    def __call__(
        self, scenario: str, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int
    ) -> None: ...


class UserRecord:
    """The record of one user; ``add`` is the ``Record`` that the user's session gets.

    Attributes:
        intended_ns: intended start of the user's present operation (performance counter, nanoseconds); 0:
            none.
    """

    __slots__ = ("_cells", "intended_ns")

    def __init__(self, cells: _Cells) -> None:
        self._cells = cells
        self.intended_ns = _NONE

    def add(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        # One call with the whole list is fastest: four appends cost 70 ns more, the number of the second 90
        # ns more.
        self._cells[operation, outcome].fromlist([start_ns, end_ns, size_bytes, self.intended_ns])


class ObservedRecord(UserRecord):
    """A user's record that also passes each operation to a listener."""

    __slots__ = ("_listener", "_scenario")

    def __init__(self, cells: _Cells, scenario: str, listener: Listener) -> None:
        super().__init__(cells)
        self._scenario = scenario
        self._listener = listener

    def add(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        super().add(operation, outcome, start_ns, end_ns, size_bytes)
        self._listener(self._scenario, operation, outcome, start_ns, end_ns, size_bytes)


class Recorder:
    """All operations of one generator process, by the UTC second in which they ended.

    Not thread-safe: ``add`` and ``take`` run in the event loop. The result of ``take`` may be encoded in any
    thread.

    Args:
        clock_offset_ns: the controller's UTC clock minus this machine's, nanoseconds: all seconds are the
            controller's.

    Attributes:
        listener: receives every operation of users that were made after it was set; None: no listener.
    """

    def __init__(self, clock_offset_ns: int = 0) -> None:
        self.listener: Listener | None = None
        self._clock_offset_ns = clock_offset_ns
        self._cells: defaultdict[str, _Cells] = defaultdict(_Cells)
        self._dropped: Counter[tuple[int, str]] = Counter()
        self.follow_clock()

    def follow_clock(self) -> None:
        """Measure the distance between the performance counter and UTC again, because UTC may step."""
        self._utc_offset_ns = time.time_ns() - time.perf_counter_ns() + self._clock_offset_ns

    def utc_ns(self, counter_ns: int) -> int:
        """The UTC time of a performance counter's value, in nanoseconds."""
        return counter_ns + self._utc_offset_ns

    def counter_ns(self, utc_ns: int) -> int:
        """The performance counter's value at a UTC time, in nanoseconds."""
        return utc_ns - self._utc_offset_ns

    def user(self, scenario: str) -> UserRecord:
        """The record of one more user of a scenario."""
        if self.listener is not None:
            return ObservedRecord(self._cells[scenario], scenario, self.listener)
        return UserRecord(self._cells[scenario])

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
        numbers = [start_ns, end_ns, size_bytes, intended_ns or _NONE]
        self._cells[scenario][operation, outcome].fromlist(numbers)
        if self.listener is not None:
            self.listener(scenario, operation, outcome, start_ns, end_ns, size_bytes)

    def drop(self, scenario: str, intended_ns: int) -> None:
        """Count an operation that could not start, in the second of its intended start."""
        self._dropped[self.utc_ns(intended_ns) // 1_000_000_000, scenario] += 1

    def take(self, before_s: int) -> Seconds:
        """Return and remove all operations that ended before the UTC second ``before_s``.

        An operation that ended earlier and is recorded later is in the next result, in its own second.
        """
        before_ns = min(self.counter_ns(before_s * 1_000_000_000), _LAST_NS)
        taken: _Taken = {}
        for scenario, cells in self._cells.items():
            waiting = dict(cells)
            cells.clear()
            for key, numbers in waiting.items():
                table = np.frombuffer(numbers, dtype=np.int64).reshape(-1, _WIDTH)
                over = table[:, _END] < before_ns
                if not over.all():
                    cells[key].frombytes(table[~over].tobytes())
                    table = table[over]
                if len(table):
                    taken[scenario, *key] = table
        dropped = [key for key in self._dropped if key[0] < before_s]
        return Seconds(taken, {key: self._dropped.pop(key) for key in dropped}, self._utc_offset_ns, before_s)


class Seconds:
    """Operations of whole seconds, as ``Recorder.take`` returns them."""

    def __init__(
        self, cells: _Taken, dropped: dict[tuple[int, str], int], utc_offset_ns: int, before_s: int
    ) -> None:
        self._cells = cells
        self._dropped = dropped
        self._utc_offset_ns = utc_offset_ns
        self._before_s = before_s

    def rows(self, worker: str) -> list[list[Any]]:
        """The rows of the operations table (``store.schema.OPERATIONS_SCHEMA``)."""
        rows: list[list[Any]] = []
        for names, table in self._cells.items():
            seconds = (table[:, _END] + self._utc_offset_ns) // 1_000_000_000
            rows += [
                [second, 1.0, worker, *names, *_figures(names[1], table[seconds == second])]
                for second in _distinct(seconds)
            ]
        rows += [
            [second, 1.0, worker, scenario, "", "dropped", 0, 0, None, None, count]
            for (second, scenario), count in self._dropped.items()
        ]
        return rows

    def progress(self) -> dict[str, dict[str, Any]]:
        """Scenario -> figures that are needed during the run.

        ``ok``, ``failed``, ``skipped``, ``dropped``: numbers of operations. ``p95_s``: 95th percentile over
        all ended operations. ``times``: durations of the ok operations, as ``latency_bins.binned``.
        ``before_s``: the UTC second before which all these operations ended.
        """
        nothing: dict[str, Any] = {
            "ok": 0,
            "failed": 0,
            "skipped": 0,
            "dropped": 0,
            "p95_s": None,
            "times": [[], []],
        }
        result: dict[str, dict[str, Any]] = defaultdict(lambda: {**nothing, "before_s": self._before_s})
        times: dict[tuple[str, str], list[npt.NDArray[np.int64]]] = defaultdict(list)
        for (scenario, operation, outcome), table in self._cells.items():
            if "/" not in operation:
                state = outcome if outcome in NO_FAILURES else "failed"
                result[scenario][state] += len(table)
                begins = np.where(table[:, _INTENDED] == _NONE, table[:, _START], table[:, _INTENDED])
                timed = begins != _NONE
                if timed.any():
                    times[scenario, state].append((table[:, _END] - begins)[timed])
        for (_, scenario), count in self._dropped.items():
            result[scenario]["dropped"] += count
        for scenario, figures in result.items():
            ok = times.get((scenario, OK), [])
            ended = [array for (of, _), arrays in times.items() if of == scenario for array in arrays]
            if ok:
                figures["times"] = binned(np.concatenate(ok))
            if ended:
                figures["p95_s"] = _p95(np.concatenate(ended)) / 1e9
        return dict(result)


def _distinct(seconds: npt.NDArray[np.int64]) -> list[int]:
    """Each second that occurs, ascending.

    The operations are of one second and the few before it. ``np.unique`` is not used, because its first call
    imports all of ``numpy.ma``: for a tenth of a second no operation would start.
    """
    first = seconds.min()
    result: list[int] = (np.flatnonzero(np.bincount(seconds - first)) + first).tolist()
    return result


def _p95(values: npt.NDArray[np.int64]) -> float:
    rank = math.ceil(0.95 * len(values)) - 1
    return float(np.partition(values, rank)[rank])


def _figures(operation: str, table: npt.NDArray[np.int64]) -> list[Any]:
    """The last columns of a row: count, bytes, service and response histogram, dropped."""
    ends, intended = table[:, _END], table[:, _INTENDED]
    service = None
    begun = table[:, _START] != _NONE
    if begun.any():
        service = histogram.encoded(histogram.counted((ends - table[:, _START])[begun]))
    meant = intended != _NONE
    response = None
    # A stage begins when the stage before it ends: only the whole operation has an intended start.
    if "/" not in operation and meant.any():
        response = histogram.encoded(histogram.counted(ends[meant] - intended[meant]))
    return [len(table), int(table[:, _BYTES].sum()), service, response, 0]
