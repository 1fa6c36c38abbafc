"""Service-time model of a disk: whether its time depends on the number of I/Os or on bytes (docs/rules.md).

A disk that is given one I/O at a time has no queue that could grow while its rate stays. But where I/Os
differ in size, a limit of bytes takes its time by size, and one of latency takes the same for each.
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
"""The percentiles that count as small and large sizes of I/Os."""
SEVERAL = 4
"""I/Os that a stretch of time has at least, except the last one before the disk idled."""
CHANCE = 1.645
"""Standard errors for one-sided p = .05."""
UNEVEN = 0.05
"""Further difference between the rates of two stretches under a limit (measured: 3 to 5 %)."""


@dataclass(frozen=True, slots=True)
class ServiceTimeModel:
    """How the bytes that a disk does in the time it is occupied go with the size of its I/Os.

    Attributes:
        follows: relative change of bytes per second ÷ relative change of size, at the same number of
            outstanding I/Os: 0 where time goes with bytes, 1 where each I/O takes its time whatever its size
            (measured on emulated disks: -0.3 to 0.3, and 0.9 to 1.2).
        error: its standard error.
        queue: relative change of bytes per second ÷ that of what is outstanding.
        small_bytes, large_bytes: between these sizes.
    """

    follows: float
    error: float
    queue: float
    small_bytes: float
    large_bytes: float

    @property
    def known(self) -> bool:
        """Whether there were enough samples."""
        return CHANCE * self.error <= abs(abs(self.follows) - BY_SIZE.value)

    @property
    def follows_at_most(self) -> float:
        """How much bytes may follow, by what was seen."""
        return max(0.0, self.follows + CHANCE * self.error)

    @property
    def by_bytes(self) -> bool:
        """Whether bytes per second stay, however large I/Os are and however many wait."""
        by_size = abs(self.follows) < BY_SIZE.value and self.known
        varies = self.large_bytes >= SIZES_VARY.value * self.small_bytes
        return by_size and varies and self.queue <= STAYS.value


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of time in which a disk was hardly ever idle, each with several I/Os; one value per stretch.

    Attributes:
        count: I/Os that ended.
        bytes: that they moved.
        busy_s: how long the disk had something to do.
        outstanding: mean number of I/Os in progress.
    """

    count: Floats
    bytes: Floats
    busy_s: Floats
    outstanding: Floats


def fit_service_time(columns: Mapping[str, Floats], step_s: float) -> ServiceTimeModel | None:
    """The service-time model of a disk over its busy seconds; None if they are too few.

    Args:
        columns: ``reads``, ``writes``, ``bytes`` per second, ``busy`` and ``outstanding``, a value per step.
        step_s: seconds that a value covers (``Resource.step_s``).
    """
    answer = _stretches(columns, step_s)
    if answer is None:
        return None
    sizes = answer.bytes / answer.count
    # Counts are off by half an I/O: stretches of few large I/Os show little beside the total spread.
    worth = 1 / np.hypot(UNEVEN, COUNT_ERROR / answer.count)
    queued = float(np.quantile(answer.outstanding, ENDS[1])) >= WAITING_IO.value
    moved = [np.log(sizes), *([np.log(answer.outstanding)] if queued else [])]
    fitted = _fit(np.log(answer.bytes / answer.busy_s), moved, worth)
    if fitted is None:
        return None
    small, large = (float(np.quantile(sizes, end)) for end in ENDS)
    return ServiceTimeModel(*fitted, small, large)


def _stretches(columns: Mapping[str, Floats], step_s: float) -> Stretches | None:
    """Steps in which it was busy, joined until several I/Os have ended: one may take seconds."""
    io, busy, waiting = columns["reads"] + columns["writes"], columns["busy"], columns["outstanding"]
    known = np.isfinite(io + columns["bytes"] + busy + waiting)
    rows = np.flatnonzero(known & (np.nan_to_num(busy) >= MOSTLY_OCCUPIED.value))
    if len(rows) * step_s < MIN_SECONDS.value:
        return None
    table = np.column_stack([io, columns["bytes"], np.minimum(busy, 1.0), waiting])[rows] * step_s
    parts: list[Floats] = []
    for run in np.split(table, np.flatnonzero(np.diff(rows) > 1) + 1):
        # A stretch ends where the count of I/Os passes the next multiple; what is left of a run is one, too.
        ends = np.floor(np.cumsum(run[:, 0]) / SEVERAL)
        cuts = np.flatnonzero(np.diff(ends, prepend=0.0)) + 1
        parts += [np.append(part.sum(axis=0), len(part)) for part in np.split(run, cuts) if len(part)]
    joined = np.array([part for part in parts if part[0] and part[1] and part[3]])
    if len(joined) < MIN_STEPS.value:
        return None
    return Stretches(joined[:, 0], joined[:, 1], joined[:, 2], joined[:, 3] / (joined[:, 4] * step_s))


def _fit(rate: Floats, moved: list[Floats], worth: Floats) -> tuple[float, float, float] | None:
    """(slope over size, its standard error, slope over what is outstanding); None if sizes are the same.

    Least squares over those columns and a constant, each stretch with its weight.
    """
    if not np.ptp(moved[0]):
        return None
    table = np.column_stack([*moved, np.ones(len(rate))]) * worth[:, None]
    inner = np.linalg.pinv(table.T @ table)
    slopes = inner @ table.T @ (rate * worth)
    rest = rate * worth - table @ slopes
    error = np.sqrt(inner[0, 0] * SHARED_SECONDS * float(rest @ rest) / (len(rate) - len(slopes)))
    return float(slopes[0]), float(error), float(slopes[1]) if len(moved) > 1 else 0.0
