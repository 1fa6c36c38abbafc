"""How a disk's rate moves when what is outstanding does (METHOD, step 5), from the seconds of one level.

Under a regulator the rate stays and latency moves; where each I/O takes its time whatever else goes on,
latency stays and the rate moves. The movement may be small: a log with one I/O at a time still idles more in
one second than in the next. What a slope is worth is told by its standard error, not by how far things moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.series import Floats, spread
from pinchpoint.analysis.thresholds import (
    FOLLOWS,
    FULL_STEP,
    MIN_STEPS,
    REGULATOR_FLAT,
    SLOPE_ERROR,
    STAYS,
    STEADIER,
)

COUNT_ERROR = 1 / np.sqrt(6)
"""Standard deviation of a count of evenly spaced I/Os in a second that begins and ends anywhere: each end
cuts an interval at a point spread evenly over it (variance 1/12)."""
COUNT_EDGE = 0.5
"""Half of one I/O: so far the middle two thirds of such counts can lie from their median."""
TICK_S = 0.001 * COUNT_ERROR
"""Times of I/O are read in whole milliseconds, at both ends."""
SAME_SIZE = 2.0
"""I/Os up to twice as large or half as large as usual are compared with each other."""
SHARED_SECONDS = 2
"""Neighbouring seconds resemble each other: so many tell what one independent one would."""


@dataclass(frozen=True, slots=True)
class Movement:
    """One rate of one disk over the steps in which it was as full as it gets.

    Attributes:
        spread: of the rate.
        slope: change of the rate ÷ change of what is outstanding, both relative: 0 it stays, 1 it follows.
            None where the steps do not tell.
        steadier: the spread of latency ÷ that of the rate, the rate taken no more exactly than it can be
            counted.
        count: I/Os per step.
        level: the rate, its median.
    """

    spread: float | None
    slope: float | None
    steadier: float | None
    count: float
    level: float | None

    @property
    def follows(self) -> bool:
        """More outstanding I/O gets more done: nothing holds this rate."""
        return self.slope is not None and self.slope >= FOLLOWS.value

    @property
    def stays(self) -> bool:
        """More outstanding I/O gets no more done."""
        return self.slope is not None and self.slope <= STAYS.value

    @property
    def regulated(self) -> bool:
        """Whether the rate is as flat as only a regulator makes it, while latency moves."""
        if self.spread is None or self.count == 0:
            return False
        flat = self.spread <= max(REGULATOR_FLAT.value, COUNT_EDGE / self.count)
        steady = self.steadier is not None and self.steadier >= STEADIER.value
        return flat and not self.follows and (self.stays or steady)


UNKNOWN = Movement(None, None, None, 0.0, None)


def io_movement(io: Floats, size: Floats, outstanding: Floats, busy: Floats, step_s: float) -> Movement:
    """How I/Os per second move. Larger I/Os take longer on any device: first only those of one size count."""
    full = _full(io, outstanding, busy)
    sizes = np.divide(size, io, out=np.full_like(io, np.nan), where=full)
    usual = float(np.nanmedian(sizes)) if np.isfinite(sizes[full]).any() else np.nan
    alike = full & (sizes <= SAME_SIZE * usual) & (sizes >= usual / SAME_SIZE)
    one_size = _movement(io, io, outstanding, alike, step_s)
    return one_size if one_size.slope is not None else _movement(io, io, outstanding, full, step_s)


def bytes_movement(io: Floats, size: Floats, outstanding: Floats, busy: Floats, step_s: float) -> Movement:
    """How bytes per second move; they are counted in whole I/Os."""
    full = _full(io, outstanding, busy) & (np.nan_to_num(size) > 0)
    return _movement(size, io, outstanding, full, step_s)


def _full(io: Floats, outstanding: Floats, busy: Floats) -> npt.NDArray[np.bool_]:
    """The steps in which the disk had about as much of the time something to do as it ever had.

    One that pauses between two bursts of work does less in a second with a pause, however it works.
    """
    usable = np.isfinite(io) & np.isfinite(outstanding) & (io > 0) & (outstanding > 0)
    if not np.isfinite(busy[usable]).any():
        return usable
    fullest = float(np.nanquantile(busy[usable], 0.9))
    return usable & (busy >= FULL_STEP.value * fullest)


def _movement(
    rate: Floats, io: Floats, outstanding: Floats, rows: npt.NDArray[np.bool_], step_s: float
) -> Movement:
    if rows.sum() < MIN_STEPS.value:
        return UNKNOWN
    rate, counts, outstanding = rate[rows], io[rows] * step_s, outstanding[rows]
    flat, count = spread(rate), float(np.median(counts))
    latency = spread(outstanding / rate)
    steadier = None
    if flat is not None and latency is not None:
        steadier = latency / max(flat, COUNT_EDGE / count)
    slope = _slope(rate, counts, outstanding, step_s)
    return Movement(flat, slope, steadier, count, float(np.median(rate)))


def _slope(rate: Floats, counts: Floats, outstanding: Floats, step_s: float) -> float | None:
    """The slope of log rate over log outstanding; None where its standard error is too large.

    An I/O that ends just before or after a second's end is counted, with its time, on one side: that moves
    both alike and is no movement of either. It is taken out of the variances (errors in variables).
    """
    x, y = (np.log(column) - np.log(column).mean() for column in (outstanding, rate))
    counted = float(np.mean((COUNT_ERROR / counts) ** 2))
    ticks = float(np.mean((TICK_S / (outstanding * step_s)) ** 2))
    variance = float(np.mean(x * x)) - counted - ticks
    if variance <= 0:
        return None
    slope = (float(np.mean(x * y)) - counted) / variance
    rest = float(np.mean((y - slope * x) ** 2))
    error = np.sqrt(rest * SHARED_SECONDS / (len(x) * variance))
    return slope if error <= SLOPE_ERROR.value else None
