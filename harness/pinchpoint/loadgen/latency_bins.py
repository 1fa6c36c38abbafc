"""Counts the response times of one second in bins that can be added, for live percentiles.

Bins are one percent wide, so a percentile over any number of seconds and workers is exact to half a percent.
Percentiles themselves can be neither added nor averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

_WIDTH = math.log(1.01)


def binned(durations_ns: npt.NDArray[np.int64]) -> list[list[int]]:
    """``[bins, counts]`` of durations in nanoseconds, as JSON types."""
    bins, counts = np.unique(
        np.floor(np.log(np.maximum(durations_ns, 1)) / _WIDTH).astype(np.int64), return_counts=True
    )
    return [bins.tolist(), counts.tolist()]


def percentiles_s(
    reported: Iterable[Sequence[Sequence[int]]], percents: Sequence[float], never: int = 0
) -> list[float] | None:
    """Percentiles in seconds over all durations in results of ``binned``; None without durations.

    ``never`` is the number of further operations that never started; a percentile among them is infinite.
    """
    parts = [part for part in reported if part[0]]
    if not parts:
        return None
    bins = np.concatenate([np.asarray(part[0]) for part in parts])
    counts = np.concatenate([np.asarray(part[1]) for part in parts])
    order = np.argsort(bins, kind="stable")
    reached = np.cumsum(counts[order])
    ranks = [max(1, math.ceil((reached[-1] + never) * percent / 100)) for percent in percents]
    result = np.append(bins[order], np.inf)[np.searchsorted(reached, ranks)]
    return [math.exp((one + 0.5) * _WIDTH) / 1e9 for one in result.tolist()]
