"""Service-time model of a disk: whether its time depends on the number of I/Os or on bytes (docs/rules.md).

A disk that gets one I/O at a time has no queue that could grow while the rate stays. But if I/Os differ in
size, a limit in bytes takes time in proportion to size, and a latency takes the same time for each I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pinchpoint.analysis.resources.disk.rate_response import COUNT_ERROR, SHARED_SECONDS
from pinchpoint.analysis.thresholds import (
    BY_SIZE,
    MIN_SECONDS,
    MIN_STEPS,
    MOSTLY_OCCUPIED,
    SIZES_VARY,
    STAYS,
    WAITING_IO,
)
from pinchpoint.data.series import Floats

ENDS = (0.05, 0.95)
"""Percentiles that count as small and large I/O sizes."""
SEVERAL = 4
"""Minimum number of I/Os in a stretch of time, except in the last stretch before the disk idled."""
CHANCE = 1.645
"""Number of standard errors for a one-sided p of .05."""
UNEVEN = 0.05
"""Relative difference between the rates of two stretches under a limit, beside counting (measured: 3 to 5
%)."""


@dataclass(frozen=True, slots=True)
class ServiceTimeModel:
    """How the bytes that a disk moves per busy second change with the size of its I/Os.

    Attributes:
        follows: relative change of bytes per second ÷ relative change of size, at the same number of
            outstanding I/Os: 0: the time depends on bytes; 1: each I/O takes the same time (measured on
            emulated disks: -0.3 to 0.3, and 0.9 to 1.2).
        error: standard error of ``follows``.
        queue: relative change of bytes per second ÷ relative change of the outstanding I/Os. ``small_bytes``
            and ``large_bytes`` are the sizes between which the model was fitted.
    """

    follows: float
    error: float
    queue: float
    small_bytes: float
    large_bytes: float

    @property
    def known(self) -> bool:
        """Whether the error is small enough to decide between bytes and I/Os."""
        return CHANCE * self.error <= abs(abs(self.follows) - BY_SIZE.value)

    @property
    def follows_at_most(self) -> float:
        """Upper confidence limit of ``follows``."""
        return max(0.0, self.follows + CHANCE * self.error)

    @property
    def by_bytes(self) -> bool:
        """Whether bytes per second are the same for any I/O size and any number of outstanding I/Os."""
        by_size = abs(self.follows) < BY_SIZE.value and self.known
        varies = self.large_bytes >= SIZES_VARY.value * self.small_bytes
        return by_size and varies and self.queue <= STAYS.value


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of time in which a disk was hardly ever idle, with several I/Os each; one value per stretch.

    Attributes:
        count: number of completed I/Os.
        bytes: bytes moved by these I/Os.
        busy_s: seconds in which the disk was busy.
        outstanding: mean number of I/Os in progress.
    """

    count: Floats
    bytes: Floats
    busy_s: Floats
    outstanding: Floats


def fit_service_time(columns: Mapping[str, Floats], step_s: float) -> ServiceTimeModel | None:
    """The service-time model of a disk over its busy seconds; None if these are too few.

    Args:
        columns: by name (``reads``, ``writes``, ``bytes`` per second, ``busy``, ``outstanding``), one value
            per step.
        step_s: seconds that one value covers (``Resource.step_s``).
    """
    answer = _stretches(columns, step_s)
    if answer is None:
        return None
    sizes = answer.bytes / answer.count
    # Counts are off by half an I/O, so stretches with few, large I/Os have little weight.
    worth = 1 / np.hypot(UNEVEN, COUNT_ERROR / answer.count)
    queued = float(np.quantile(answer.outstanding, ENDS[1])) >= WAITING_IO.value
    moved = [np.log(sizes), *([np.log(answer.outstanding)] if queued else [])]
    fitted = _fit(np.log(answer.bytes / answer.busy_s), moved, worth)
    if fitted is None:
        return None
    small, large = (float(np.quantile(sizes, end)) for end in ENDS)
    return ServiceTimeModel(*fitted, small, large)


def _stretches(columns: Mapping[str, Floats], step_s: float) -> Stretches | None:
    """Busy steps, joined until several I/Os have completed, because one may take seconds; None if too few."""
    io, busy, waiting = columns["reads"] + columns["writes"], columns["busy"], columns["outstanding"]
    known = np.isfinite(io + columns["bytes"] + busy + waiting)
    rows = np.flatnonzero(known & (np.nan_to_num(busy) >= MOSTLY_OCCUPIED.value))
    if len(rows) * step_s < MIN_SECONDS.value:
        return None
    table = np.column_stack([io, columns["bytes"], np.minimum(busy, 1.0), waiting])[rows] * step_s
    parts: list[Floats] = []
    for run in np.split(table, np.flatnonzero(np.diff(rows) > 1) + 1):
        # A stretch ends where the count of I/Os passes the next multiple of ``SEVERAL``. The end of a run is
        # a stretch too.
        ends = np.floor(np.cumsum(run[:, 0]) / SEVERAL)
        cuts = np.flatnonzero(np.diff(ends, prepend=0.0)) + 1
        parts += [np.append(part.sum(axis=0), len(part)) for part in np.split(run, cuts) if len(part)]
    joined = np.array([part for part in parts if part[0] and part[1] and part[3]])
    if len(joined) < MIN_STEPS.value:
        return None
    return Stretches(joined[:, 0], joined[:, 1], joined[:, 2], joined[:, 3] / (joined[:, 4] * step_s))


def _fit(rate: Floats, moved: list[Floats], worth: Floats) -> tuple[float, float, float] | None:
    """(slope over size, its standard error, slope over outstanding I/Os); None if all sizes are the same.

    Least squares over these columns and a constant; ``worth`` is the weight of each stretch.
    """
    if not np.ptp(moved[0]):
        return None
    table = np.column_stack([*moved, np.ones(len(rate))]) * worth[:, None]
    inner = np.linalg.pinv(table.T @ table)
    slopes = inner @ table.T @ (rate * worth)
    rest = rate * worth - table @ slopes
    error = np.sqrt(inner[0, 0] * SHARED_SECONDS * float(rest @ rest) / (len(rate) - len(slopes)))
    return float(slopes[0]), float(error), float(slopes[1]) if len(moved) > 1 else 0.0
