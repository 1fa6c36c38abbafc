"""What was read about each host, added up to one grid of equal steps: a line per series, a column per step.

Nothing else is kept of the samples, so that eight hours of twenty hosts fit into memory (``steps.py`` adds
them up). Steps are a second long, in runs of over an hour ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pinchpoint.store.schema import COARSE_S, LONG_RUN_S

Floats = npt.NDArray[np.float64]


class Key(NamedTuple):
    """What a series is about."""

    host: str
    metric: str
    instance: str


_CORES = re.compile(r"\d+(?:,\d+)+")


def each_core(instance: str) -> list[str]:
    """The series of a pool of cores ("0,1"), each of which has its own; of anything else the one it names."""
    return instance.split(",") if _CORES.fullmatch(instance) else [instance]


@dataclass(frozen=True, slots=True)
class Readings:
    """One series as it was read, where its steps do not suffice; nulls are NaN.

    Attributes:
        middle_s: the middle of each value's interval, UTC seconds.
        value: base units.
    """

    middle_s: Floats
    value: Floats


@dataclass(frozen=True, slots=True)
class Series:
    """One series: for each step of the window what its samples add up to.

    Attributes:
        total: values times their weights, in the metric's unit times that of ``share``.
        share: the weights: operations where values are means of operations, seconds where they are not.
        covered_s: seconds with a measured value.
        highest: the largest value; -inf where nothing was measured.
        counts: how many measured values.
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
        """How many of its values are measured ones."""
        return int(self.counts.sum())

    def mean(self) -> float | None:
        """Mean over the operations where values are means, over time where not; None where nothing was."""
        share = float(self.share.sum())
        return float(self.total.sum()) / share if share > 0 else None

    def sum(self) -> float:
        """What a rate adds up to over the measured intervals; a second without a row adds nothing."""
        return float(self.total.sum())

    def maximum(self) -> float | None:
        """The largest value of one interval."""
        return float(self.highest.max()) if self.measured else None

    def steps(self) -> Floats:
        """The mean of each step, NaN where nothing was measured."""
        result = np.full(len(self.share), np.nan)
        np.divide(self.total, self.share, out=result, where=self.share > 0)
        return result


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

    def until(self, part: Window) -> Window:
        """As far as the end of a part of it."""
        return Window(self.first_s, self.step_s, (part.end_s - self.first_s) // self.step_s)

    @property
    def seconds(self) -> int:
        """How long it is."""
        return self.steps * self.step_s

    @property
    def end_s(self) -> int:
        """The UTC second at which it ends, the first that is no more in it."""
        return self.first_s + self.seconds

    def step_of(self, time_s: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The step each instant falls into; outside the window it is below 0 or at least ``steps``."""
        step: Floats = np.subtract(time_s, self.first_s, dtype=np.float64)
        step /= self.step_s
        return np.floor(step, out=step).astype(np.int64)


class Lines(Protocol):
    """All series there are, each over the same steps; they may be read when they are asked for."""

    @property
    def nonsense(self) -> Sequence[str]:
        """What cannot be in what was read until now, in sentences; it counts as not measured."""

    def keys(self, metric: str) -> Iterable[Key]:
        """The series of a metric, in any order."""

    def part(self, key: Key, first: int, steps: int) -> Series | None:
        """Some steps of one series; None where there is not a single sample in them. May be views.

        Steps there are none of are empty ones.
        """

    def readings(self, key: Key) -> Readings:
        """One series as it was read. Raises KeyError: it is none of those that were to be kept so."""


class Samples:
    """The samples of one window, asked for by host, metric and instance.

    Args:
        lines: all series.
        window: of it.
        first: the step of the lines with which it begins.
        whole: those of a longer window of which they are a part; what it knows already is cut out of it.
    """

    def __init__(self, lines: Lines, window: Window, first: int = 0, whole: Samples | None = None) -> None:
        self.window = window
        self._lines, self._begin, self._whole = lines, first, whole
        self._spread: set[Key] = set()
        self._keys: dict[str, list[Key]] = {}
        self._steps: dict[Key, Floats] = {}
        self._first: dict[tuple[tuple[str, ...], str, str], Floats] = {}
        self._together: dict[tuple[tuple[str, ...], str, tuple[str, ...]], Floats | None] = {}

    def during(self, window: Window) -> Samples:
        """Those of a shorter window within this one, in the same steps.

        Raises:
            ValueError: its steps are not this window's.
        """
        first, between = divmod(window.first_s - self.window.first_s, self.window.step_s)
        if between or window.step_s != self.window.step_s:
            raise ValueError(f"{window}: its steps are not those of {self.window}")
        inside = first >= 0 and first + window.steps <= self.window.steps
        return Samples(self._lines, window, self._begin + first, self if inside else None)

    @property
    def nonsense(self) -> Sequence[str]:
        """What cannot be in what was read until now, in sentences; it counts as not measured."""
        return self._lines.nonsense

    def keys(self, metric: str) -> list[Key]:
        """The series of a metric with at least one sample, in order of host and instance."""
        if metric not in self._keys:
            there = (key for key in self._lines.keys(metric) if self.series(*key) is not None)
            self._keys[metric] = sorted(there)
        return self._keys[metric]

    def series(self, host: str, metric: str, instance: str = "") -> Series | None:
        """One series, or None where there is not a single sample of it."""
        return self._lines.part(Key(host, metric, instance), self._begin, self.window.steps)

    def readings(self, host: str, metric: str, instance: str = "") -> Readings:
        """One series as it was read.

        Raises:
            KeyError: it is none of those that were to be kept so (``steps.add_up``).
        """
        kept = self._lines.readings(Key(host, metric, instance))
        ends = (self.window.first_s, self.window.end_s)
        start, end = np.searchsorted(kept.middle_s, ends)
        return Readings(kept.middle_s[start:end], kept.value[start:end])

    def mean(self, host: str, metric: str, instance: str = "") -> float | None:
        """Its mean over the window, None where nothing was measured."""
        series = self.series(host, metric, instance)
        return None if series is None else series.mean()

    def steps(self, host: str, metric: str, instance: str = "") -> Floats:
        """One value per step of the window, NaN where nothing was measured.

        A sample that covers several steps (a collector that reads every five seconds) holds for all of them;
        but of a disk, whose steadiness is judged, each counts once.
        """
        key = Key(host, metric, instance)
        if key not in self._steps:
            self._steps[key] = _kept(self._steps_of(key))
        return self._steps[key]

    def weights(self, host: str, metric: str, instance: str = "") -> Floats:
        """The operations behind each step's mean; 0 where there were none."""
        series = self.series(host, metric, instance)
        return series.share if series is not None and series.weighted else np.zeros(self.window.steps)

    def first_of(self, hosts: Iterable[str], metric: str, instance: str = "") -> Floats:
        """One value per step, from the first host that has it: hosts of one machine read the same."""
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
        """The mean over several instances in each step; None where one of them was not measured at all."""
        key = tuple(hosts), metric, tuple(instances)
        if key not in self._together:
            columns = [self.first_of(key[0], metric, instance) for instance in key[2]]
            there = bool(columns) and all(np.isfinite(column).any() for column in columns)
            self._together[key] = _kept(np.asarray(np.mean(columns, axis=0))) if there else None
        return self._together[key]

    def reading_s(self, hosts: Iterable[str], metric: str, instance: str = "") -> float:
        """Seconds that a measured step of ``first_of`` tells of, the median: five of what is read every five.

        A step's own length where nothing was measured.
        """
        for host in hosts:
            series = self.series(host, metric, instance)
            if series is not None and series.measured:
                return float(np.median(series.covered_s[series.counts > 0]))
        return float(self.window.step_s)

    def seen_ratio(self, host: str, metric: str, instance: str = "") -> float:
        """The share of the window that a series covers with measured values."""
        series = self.series(host, metric, instance)
        if series is None or self.window.seconds == 0:
            return 0.0
        return min(1.0, float(series.covered_s.sum()) / self.window.seconds)

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
            return series.steps()  # as a rule no sample covers two steps
        self._spread.add(key)
        return _held(series, self.window.step_s)


def _kept(values: Floats) -> Floats:
    """An answer that is given again whenever it is asked for: nobody may change it."""
    values.flags.writeable = False
    return values


def _held(series: Series, step_s: int) -> Floats:
    """The mean of each step; those without one that a neighbour's sample covers have its value."""
    values = series.steps()
    each_s = np.divide(series.covered_s, series.counts, out=np.zeros_like(values), where=series.counts > 0)
    lengths = np.round(each_s / step_s).astype(int)
    for at in np.flatnonzero(lengths > 1):
        first = max(0, at - lengths[at] // 2)
        covered = values[first : at - lengths[at] // 2 + lengths[at]]
        covered[np.isnan(covered)] = values[at]
    return values


def weighted_mean(value: Floats, weight: Floats) -> float | None:
    """Mean of the measured values by weight; None where there is nothing to weigh."""
    total = (value * weight).sum()
    if math.isfinite(total) and (weight > 0).all() and len(weight):
        return float(total / weight.sum())  # all are usable: in half the time
    usable = np.isfinite(value) & np.isfinite(weight) & (weight > 0)
    if not usable.any():
        return None
    return float(np.average(value[usable], weights=weight[usable]))


def mean(value: Floats) -> float | None:
    """Mean of the measured values; None where there are none."""
    total = value.sum()
    if len(value) and math.isfinite(total):
        return float(total / len(value))  # all are measured: the usual case, in a third of the time
    measured = value[np.isfinite(value)]
    return float(measured.mean()) if len(measured) else None


def added(columns: Iterable[Floats]) -> Floats:
    """The sum of one or more columns, without what was not measured; NaN where nothing was."""
    table = np.array(list(columns))
    return np.where(np.isfinite(table).any(axis=0), np.nansum(table, axis=0), np.nan)


def all_told(columns: Iterable[Floats]) -> Floats:
    """The sum of one or more columns where each told that did before and after; NaN elsewhere."""
    table = np.array(list(columns))
    known = np.isfinite(table)
    begun = np.logical_or.accumulate(known, axis=1)
    goes_on = np.logical_or.accumulate(known[:, ::-1], axis=1)[:, ::-1]
    whole = known.any(axis=0) & (known | ~(begun & goes_on)).all(axis=0)
    return np.where(whole, np.nansum(table, axis=0), np.nan)


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
