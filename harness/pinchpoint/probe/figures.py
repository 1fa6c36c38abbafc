"""Figures of a cell over its repetitions: means with spread, percentiles of all I/Os."""

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
"""fio ends a step of a second at a whole millisecond."""


@dataclass(frozen=True, slots=True)
class TrialMean:
    """A figure over repetitions.

    Attributes:
        mean: of all.
        low: of the repetition with the least.
        high: of the one with the most.
        middle: the median, which one that was disturbed does not move: what is judged.
        usual_spread_ratio: as ``spread_ratio``, of the middle, without the third that is furthest from it.
    """

    mean: float
    low: float
    high: float
    middle: float
    usual_spread_ratio: float

    @classmethod
    def of(cls, values: Sequence[float]) -> TrialMean:
        """Of one repetition at least."""
        middle = median(values)
        usual = sorted(values, key=lambda value: abs(value - middle))[: len(values) - len(values) // 3]
        spread = (max(usual) - min(usual)) / 2 / middle if middle else 0.0
        return cls(sum(values) / len(values), min(values), max(values), middle, spread)

    @property
    def spread_ratio(self) -> float:
        """(high - low) ÷ 2 ÷ mean; 0 if nothing was done."""
        return (self.high - self.low) / 2 / self.mean if self.mean else 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one cell. None: the tool does not report it, or no repetition succeeded.

    Attributes:
        trials: repetitions that were measured.
        failed: why others were not, each reason once.
        iops: I/Os per second, reads and writes.
        bytes_per_s: likewise.
        read_iops, write_iops, read_bytes_per_s, write_bytes_per_s: of one of them alone.
        mean_s: mean latency of all I/Os of all repetitions.
        p50_s: half of all I/Os ended within it; p95_s, p99_s and p999_s likewise.
        max_s: the longest.
        seconds: how long all of it was measured.
        uneven_ratio: spread of the rate from step to step, beyond what counting whole I/Os makes.
        irregular_ratio: how far the times between I/Os would spread that make such a spread, from five
            steps on; None also of too few I/Os to know a device's.
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
        """Reads ÷ all I/O, as it came out: a mix is drawn by chance. None if the tool does not report."""
        if not (self.read_iops and self.iops and self.iops.middle):
            return None
        return self.read_iops.middle / self.iops.middle


def figures(probe: Probe) -> Mapping[Cell, Figures]:
    """Every cell's."""
    return {cell: trial_figures(trials) for cell, trials in probe.cells.items()}


def highest(figures: Iterable[Figures], name: str, of: Literal["mean", "middle"] = "mean") -> float | None:
    """The highest rate of that name (``iops``, ``write_bytes_per_s``) of several cells; None without one."""
    means = [getattr(one, name) for one in figures]
    return max((getattr(mean, of) for mean in means if mean is not None), default=None)


def trial_figures(trials: Sequence[Trial]) -> Figures:
    """The figures of one cell."""
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
    """(spread of the middle two thirds of the steps; I/Os a step; how many steps).

    Each step is a share of its repetition's mean. The spread is None of fewer than five, and where nothing
    was done in most.
    """
    shares = []
    for one in done:
        mean = sum(one.series.iops) / len(one.series.iops) if one.series else 0.0
        shares += [value / mean for value in one.series.iops] if one.series and mean else []
    counts = [value * one.series.step_s for one in done if one.series for value in one.series.iops]
    usual = float(np.median(counts)) if counts else 0.0
    return (spread(np.array(shares)) if usual else None), usual, len(shares)


def _irregular(spread_ratio: float, count: float) -> float | None:
    """Of ``count`` I/Os a step, each with a time of its own, the number spreads by that of the times ÷ √.

    None if a device's spread would not be three times what counting leaves open.
    """
    if COUNT_ERROR / math.sqrt(count) > IRREGULAR.value / 3:
        return None
    more = spread_ratio**2 - (COUNT_ERROR / count) ** 2 - CLOCK_ERROR**2
    return math.sqrt(max(0.0, more) * count)


def _latency(done: Sequence[Trial]) -> float | None:
    """Weighted by how many I/Os each repetition had."""
    known = [
        (one.mean_s, one.iops * one.seconds)
        for one in done
        if one.mean_s is not None and one.iops and one.seconds
    ]
    weight = sum(count for _, count in known)
    return sum(mean * count for mean, count in known) / weight if weight else None
