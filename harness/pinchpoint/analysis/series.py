"""Samples as columns: what was read about each host, raw and on one grid of equal steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.store.schema import COARSE_S, LONG_RUN_S

Floats = npt.NDArray[np.float64]


class Key(NamedTuple):
    """What a series is about."""

    host: str
    metric: str
    instance: str


@dataclass(frozen=True, slots=True)
class Raw:
    """One series as it was read; nulls are NaN.

    Attributes:
        middle_s: the middle of each value's interval, UTC seconds.
        interval_s: seconds each value covers.
        value: base units.
        weight: operations behind each mean.
    """

    middle_s: Floats
    interval_s: Floats
    value: Floats
    weight: Floats

    def mean(self) -> float | None:
        """Mean over the operations where values are means, over time where not; None where nothing was."""
        weighted = np.isfinite(self.weight).any()
        weight = np.where(np.isfinite(self.weight), self.weight, 0.0) if weighted else self.interval_s
        return weighted_mean(self.value, weight)

    def total(self) -> float:
        """What a rate adds up to over the measured intervals; a second without a row adds nothing."""
        return float(np.nansum(self.value * self.interval_s))

    def during(self, window: Window) -> Raw:
        """The part whose intervals have their middle in the window."""
        ends = (window.first_s, window.first_s + window.seconds)
        start, end = np.searchsorted(self.middle_s, ends)
        columns = (self.middle_s, self.interval_s, self.value, self.weight)
        return Raw(*(column[start:end] for column in columns))

    def maximum(self) -> float | None:
        """The largest value of one interval."""
        measured = self.value[np.isfinite(self.value)]
        return float(measured.max()) if len(measured) else None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a run that is looked at: whole UTC seconds, in equal steps; long steps are aligned to UTC.

    Attributes:
        first_s: its first second.
        step_s: seconds per step.
        steps: how many.
    """

    first_s: int
    step_s: int
    steps: int

    @classmethod
    def between(cls, start_s: float, end_s: float, recorded_s: float = 1.0) -> Window:
        """All whole steps from ``start_s`` to ``end_s`` (none where that is less than one).

        Over an hour, and where operations were recorded in steps of ten seconds (``recorded_s``), they are
        ten seconds long and begin where those begin: each row of operations lies in one step.
        """
        step = COARSE_S if recorded_s > 1 or end_s - start_s > LONG_RUN_S else 1
        first = int(np.ceil(start_s / step)) * step
        return cls(first, step, max(0, int(end_s // step) * step - first) // step)

    @property
    def seconds(self) -> int:
        """How long it is."""
        return self.steps * self.step_s

    def step_of(self, time_s: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The step each instant falls into; outside the window it is below 0 or at least ``steps``."""
        return np.floor((time_s - self.first_s) / self.step_s).astype(np.int64)


class Samples:
    """The samples of one window, grouped into series once."""

    def __init__(self, series: Mapping[Key, Raw], window: Window) -> None:
        self.window = window
        self._series = series

    def during(self, window: Window) -> Samples:
        """Those of a shorter window within this one."""
        cut = {key: raw.during(window) for key, raw in self._series.items()}
        return Samples({key: raw for key, raw in cut.items() if len(raw.value)}, window)

    def keys(self, metric: str) -> list[Key]:
        """The series of a metric, in order of host and instance."""
        return sorted(key for key in self._series if key.metric == metric)

    def raw(self, host: str, metric: str, instance: str = "") -> Raw | None:
        """One series as it was read, or None where there is not a single row of it."""
        return self._series.get(Key(host, metric, instance))

    def mean(self, host: str, metric: str, instance: str = "") -> float | None:
        """Its mean over the window, None where nothing was measured."""
        raw = self.raw(host, metric, instance)
        return None if raw is None else raw.mean()

    def steps(self, host: str, metric: str, instance: str = "") -> Floats:
        """One value per step of the window, NaN where nothing was measured."""
        raw = self.raw(host, metric, instance)
        if raw is None:
            return np.full(self.window.steps, np.nan)
        weight = np.where(np.isfinite(raw.weight), raw.weight, raw.interval_s)
        usable = np.isfinite(raw.value) & (weight > 0)
        step = self.window.step_of(raw.middle_s[usable])
        total = np.bincount(step, raw.value[usable] * weight[usable], self.window.steps)
        share = np.bincount(step, weight[usable], self.window.steps)
        result = np.full(self.window.steps, np.nan)
        np.divide(total, share, out=result, where=share > 0)
        return result

    def weights(self, host: str, metric: str, instance: str = "") -> Floats:
        """The operations behind each step's mean; 0 where there were none."""
        raw = self.raw(host, metric, instance)
        if raw is None:
            return np.zeros(self.window.steps)
        usable = np.isfinite(raw.value) & np.isfinite(raw.weight)
        step = self.window.step_of(raw.middle_s[usable])
        return np.asarray(np.bincount(step, raw.weight[usable], self.window.steps), dtype=np.float64)

    def first_of(self, hosts: Iterable[str], metric: str, instance: str = "") -> Floats:
        """One value per step, from the first host that has it: hosts of one machine read the same."""
        result = np.full(self.window.steps, np.nan)
        for host in hosts:
            missing = ~np.isfinite(result)
            if not missing.any():
                break
            result[missing] = self.steps(host, metric, instance)[missing]
        return result

    def seen_ratio(self, host: str, metric: str, instance: str = "") -> float:
        """The share of the window that a series covers with measured values."""
        raw = self.raw(host, metric, instance)
        if raw is None or self.window.seconds == 0:
            return 0.0
        covered = float(raw.interval_s[np.isfinite(raw.value)].sum())
        return min(1.0, covered / self.window.seconds)


def group(table: pa.Table, window: Window) -> Samples:
    """Sort the samples of a window into series: one pass over the columns, no loop over rows.

    Names are handled as numbers: as text, eight hours of a hundred series would be a gigabyte.
    """
    middle = table["time_ns"].to_numpy() / 1e9 - table["interval_s"].to_numpy() / 2
    inside = np.flatnonzero((middle >= window.first_s) & (middle < window.first_s + window.seconds))
    if len(inside) == 0:
        return Samples({}, window)
    names = [_numbered(table[name]) for name in ("host", "metric", "instance")]
    number = np.zeros(table.num_rows, dtype=np.int64)
    for name in names:
        number = number * len(name.dictionary) + name.indices.to_numpy()
    order = inside[np.lexsort((middle[inside], number[inside]))]
    starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(number[order])), [len(order)]])
    columns = [middle[order], *(_floats(table[name])[order] for name in ("interval_s", "value", "weight"))]
    series: dict[Key, Raw] = {}
    for start, end in itertools.pairwise(starts):
        key = Key(*(name[int(order[start])].as_py() for name in names))
        series[key] = Raw(*(column[start:end] for column in columns))
    return Samples(series, window)


def _numbered(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return column.dictionary_encode().unify_dictionaries().combine_chunks()


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.fill_null(column, float("nan")).to_numpy(), dtype=np.float64)


def weighted_mean(value: Floats, weight: Floats) -> float | None:
    """Mean of the measured values by weight; None where there is nothing to weigh."""
    usable = np.isfinite(value) & np.isfinite(weight) & (weight > 0)
    if not usable.any():
        return None
    return float(np.average(value[usable], weights=weight[usable]))


def mean(value: Floats) -> float | None:
    """Mean of the measured values; None where there are none."""
    measured = value[np.isfinite(value)]
    return float(measured.mean()) if len(measured) else None


def spread(value: Floats) -> float | None:
    """Half the distance between the 16th and 84th percentile ÷ the median.

    That is the relative standard deviation of a normal distribution, but one checkpoint does not widen
    it. None with fewer than five values or a median of 0.
    """
    measured = value[np.isfinite(value)]
    if len(measured) < 5:
        return None
    low, middle, high = np.quantile(measured, [0.16, 0.5, 0.84])
    return float((high - low) / 2 / middle) if middle > 0 else None
