"""What a disk's time goes with: the number of its I/Os, or their bytes (METHOD, step 5).

A disk that is given one I/O at a time has no queue that could grow while its rate stays. But where I/Os
differ in size, a limit of bytes takes its time by size, and one of latency takes the same for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pinchpoint.analysis.series import Floats
from pinchpoint.analysis.thresholds import (
    BY_SIZE,
    BY_SIZE_ERROR,
    MIN_SAMPLES,
    MOSTLY_OCCUPIED,
    SIZES_DIFFER,
    STAYS,
    WAITING_IO,
)

ENDS = (0.05, 0.95)
"""What is small and what is large among the sizes: few I/Os of another kind are neither."""
SHARED_SECONDS = 2
"""Neighbouring seconds resemble each other: so many tell what one independent one would."""
COUNT_ERROR = 0.5
"""I/Os are counted whole, in the second in which they end."""
UNEVEN = 0.05
"""How far the rate of one second lies from the next under a limit, beside that (measured: 3 to 5 %)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How the bytes that a disk does in the time it is occupied go with the size of its I/Os.

    Attributes:
        follows: relative change of bytes per second ÷ relative change of size, at the same number of
            outstanding I/Os: 0 where time goes with bytes, 1 where each I/O takes its time whatever its size.
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
    def by_bytes(self) -> bool:
        """Whether bytes per second stay, however large I/Os are and however many wait."""
        known = self.error <= BY_SIZE_ERROR.value
        differ = self.large_bytes >= SIZES_DIFFER.value * self.small_bytes
        return known and differ and abs(self.follows) <= BY_SIZE.value and self.queue <= STAYS.value


def find_pace(columns: Mapping[str, Floats], step_s: float) -> Pace | None:
    """The pace of a disk over its seconds of hardly any idling; None where they are too few.

    Args:
        columns: ``reads``, ``writes``, ``bytes`` per second, ``busy`` and ``outstanding``, a value per step.
        step_s: seconds per step.
    """
    io, done, busy = columns["reads"] + columns["writes"], columns["bytes"], columns["busy"]
    known = np.isfinite(io + done + busy + columns["outstanding"]) & (io > 0) & (done > 0)
    rows = known & (columns["outstanding"] > 0) & (np.nan_to_num(busy) >= MOSTLY_OCCUPIED.value)
    if rows.sum() < MIN_SAMPLES.value:
        return None
    sizes = done[rows] / io[rows]
    # Counts are off by half an I/O: seconds of few large ones tell little, next to how uneven any second is.
    worth = 1 / np.hypot(UNEVEN, COUNT_ERROR / (io[rows] * step_s))
    waiting = columns["outstanding"][rows]
    queued = float(np.quantile(waiting, ENDS[1])) >= WAITING_IO.value
    moved = [np.log(sizes), *([np.log(waiting)] if queued else [])]
    fitted = _fit(np.log(done[rows] / np.minimum(busy[rows], 1.0)), moved, worth)
    if fitted is None:
        return None
    small, large = (float(np.quantile(sizes, end)) for end in ENDS)
    return Pace(*fitted, small, large)


def _fit(rate: Floats, moved: list[Floats], worth: Floats) -> tuple[float, float, float] | None:
    """(slope over size, its standard error, slope over what is outstanding); None where sizes are alike.

    Least squares over those columns and a constant, each second as much as it is worth.
    """
    if not np.ptp(moved[0]):
        return None
    table = np.column_stack([*moved, np.ones(len(rate))]) * worth[:, None]
    inner = np.linalg.pinv(table.T @ table)
    slopes = inner @ table.T @ (rate * worth)
    rest = rate * worth - table @ slopes
    error = np.sqrt(inner[0, 0] * SHARED_SECONDS * float(rest @ rest) / (len(rate) - len(slopes)))
    return float(slopes[0]), float(error), float(slopes[1]) if len(moved) > 1 else 0.0
