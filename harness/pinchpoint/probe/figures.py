"""Computes the figures of a cell over its repetitions: means with spread, and percentiles of all I/Os."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from pinchpoint.analysis.resources.disk.rate_response import COUNT_ERROR, COUNTED
from pinchpoint.analysis.thresholds import IRREGULAR, MIN_STEPS
from pinchpoint.data.series import spread
from pinchpoint.probe.record import Probe, Trial
from pinchpoint.store import tool_histogram
from pinchpoint_scenarios.storage_probe import Cell

_SHARES = (0.5, 0.95, 0.99, 0.999)
CLOCK_ERROR = 0.0005
"""Relative error of a step of one second, because fio ends a step at a whole millisecond."""


@dataclass(frozen=True, slots=True)
class TrialMean:
    """A figure over the repetitions of a cell.

    Attributes:
        mean: the mean of all repetitions.
        low: the lowest repetition.
        high: the highest repetition.
        middle: the median, which one disturbed repetition does not change and which is therefore judged.
        usual_spread_ratio: (highest - lowest) ÷ 2 ÷ median, without the third of the repetitions furthest
            from the median.
    """

    mean: float
    low: float
    high: float
    middle: float
    usual_spread_ratio: float

    @classmethod
    def of(cls, values: Sequence[float]) -> TrialMean:
        """Compute the figure from at least one repetition."""
        middle = median(values)
        usual = sorted(values, key=lambda value: abs(value - middle))[: len(values) - len(values) // 3]
        spread = (max(usual) - min(usual)) / 2 / middle if middle else 0.0
        return cls(sum(values) / len(values), min(values), max(values), middle, spread)

    @property
    def spread_ratio(self) -> float:
        """(high - low) ÷ 2 ÷ mean; 0 if the mean is 0."""
        return (self.high - self.low) / 2 / self.mean if self.mean else 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one cell; None if the tool does not report a figure, or no repetition succeeded.

    Attributes:
        trials: number of measured repetitions.
        failed: why the other repetitions failed, without duplicates.
        iops: I/Os per second, reads and writes together.
        bytes_per_s: bytes per second, reads and writes together.
        read_iops, write_iops, read_bytes_per_s, write_bytes_per_s: the rates of reads or writes alone.
        mean_s: mean latency of all I/Os of all repetitions, in seconds.
        p50_s: the median latency in seconds; p95_s, p99_s and p999_s are the other percentiles.
        max_s: the longest latency in seconds.
        seconds: seconds of measurement, all repetitions together.
        uneven_ratio: spread of the rate between steps, less the spread from counting whole I/Os; None with
            fewer than ``MIN_STEPS`` steps.
        irregular_ratio: spread of the times between I/Os that explains the spread of the rate; None with
            fewer than five steps, or too few I/Os to recognise a device.
    """

    trials: int
    failed: tuple[str, ...]
    iops: TrialMean | None
    bytes_per_s: TrialMean | None
    read_iops: TrialMean | None
    write_iops: TrialMean | None
    read_bytes_per_s: TrialMean | None
    write_bytes_per_s: TrialMean | None
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    seconds: float | None
    uneven_ratio: float | None
    irregular_ratio: float | None

    @property
    def reads_ratio(self) -> float | None:
        """Reads ÷ all I/Os as measured, because a mix is drawn at random; None if not reported."""
        if not (self.read_iops and self.iops and self.iops.middle):
            return None
        return self.read_iops.middle / self.iops.middle


def figures(probe: Probe) -> Mapping[Cell, Figures]:
    """Cell -> its figures over all repetitions."""
    return {cell: trial_figures(trials) for cell, trials in probe.cells.items()}


def highest(figures: Iterable[Figures], name: str, of: Literal["mean", "middle"] = "mean") -> float | None:
    """The highest rate ``name`` (``iops``, ``write_bytes_per_s``) of several cells; None without one."""
    means = [getattr(one, name) for one in figures]
    return max((getattr(mean, of) for mean in means if mean is not None), default=None)


def trial_figures(trials: Sequence[Trial]) -> Figures:
    """The figures of one cell, from its repetitions."""
    done = [trial for trial in trials if trial.failed is None]
    p50_s, p95_s, p99_s, p999_s = tool_histogram.quantiles(
        [one.latency for one in done if one.latency], _SHARES
    )
    longest = [one.max_s for one in done if one.max_s is not None]
    lasted = [one.seconds for one in done if one.seconds is not None]
    uneven, count, steps = _steps(done)
    return Figures(
        trials=len(done),
        failed=tuple(dict.fromkeys(one.failed for one in trials if one.failed)),
        iops=_mean([one.iops for one in done]),
        bytes_per_s=_mean([one.bytes_per_s for one in done]),
        read_iops=_mean([one.reads_per_s for one in done]),
        write_iops=_mean([one.writes_per_s for one in done]),
        read_bytes_per_s=_mean([one.read_bytes_per_s for one in done]),
        write_bytes_per_s=_mean([one.write_bytes_per_s for one in done]),
        mean_s=_latency(done),
        p50_s=p50_s,
        p95_s=p95_s,
        p99_s=p99_s,
        p999_s=p999_s,
        max_s=max(longest, default=None),
        seconds=sum(lasted) if lasted else None,
        uneven_ratio=max(0.0, uneven - COUNTED / count)
        if uneven is not None and steps >= MIN_STEPS.value
        else None,
        irregular_ratio=None if uneven is None else _irregular(uneven, count),
    )


def _mean(values: Sequence[float | None]) -> TrialMean | None:
    known = [value for value in values if value is not None]
    return TrialMean.of(known) if known else None


def _steps(done: Sequence[Trial]) -> tuple[float | None, float, int]:
    """(spread of the middle two thirds of the steps; I/Os per step; number of steps).

    Each step is divided by the mean of its repetition. The spread is None with fewer than five steps, or if
    most steps had no I/O.
    """
    shares = []
    for one in done:
        mean = sum(one.series.iops) / len(one.series.iops) if one.series else 0.0
        shares += [value / mean for value in one.series.iops] if one.series and mean else []
    counts = [value * one.series.step_s for one in done if one.series for value in one.series.iops]
    usual = float(np.median(counts)) if counts else 0.0
    return (spread(np.array(shares)) if usual else None), usual, len(shares)


def _irregular(spread_ratio: float, count: float) -> float | None:
    """The spread of the times between I/Os, computed from the spread of ``count`` I/Os per step.

    The spread of a count is the spread of the times ÷ √count.

    None if the spread of a device would be less than three times the counting error.
    """
    if COUNT_ERROR / math.sqrt(count) > IRREGULAR.value / 3:
        return None
    more = spread_ratio**2 - (COUNT_ERROR / count) ** 2 - CLOCK_ERROR**2
    return math.sqrt(max(0.0, more) * count)


def _latency(done: Sequence[Trial]) -> float | None:
    """Mean latency of the repetitions, weighted by their number of I/Os."""
    known = [
        (one.mean_s, one.iops * one.seconds)
        for one in done
        if one.mean_s is not None and one.iops and one.seconds
    ]
    weight = sum(count for _, count in known)
    return sum(mean * count for mean, count in known) / weight if weight else None
