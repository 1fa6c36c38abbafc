"""Rate response of a disk: how its rate changes with the queue depth (docs/rules.md), at one load level.

Under a cap, the rate stays level and latency changes. If each I/O takes a fixed time, latency stays level and
the rate changes. The change may be small: a log with one I/O at a time still idles more in one second than in
the next. The standard error shows how reliable a slope is, not how far the rate moved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.thresholds import (
    FOLLOWS,
    FULL_STEP,
    IRREGULAR,
    MIN_STEPS,
    REGULATOR_FLAT,
    SLOPE_ERROR,
    STAYS,
    STEADIER,
    TELLING_COUNT,
    TIMES_SPREAD,
    WAITING_IO,
)
from pinchpoint.data.series import Floats, spread

COUNT_ERROR = 0.5
"""Counts of evenly spaced I/Os per second differ by one. Their standard deviation is at most half an I/O, and
so is the distance of the middle two thirds from their median."""
ENDS_ERROR = 0.5**0.5
"""Error of a count in I/Os, from both ends of a second. If the rate is a whole number per second, an I/O ends
exactly at each second or just after it: by chance the count is off by a half at either end, and so is the
time of these I/Os."""
COUNTED = 1.5
"""Largest error of a count in I/Os: one from the two ends of a second, and a half from rounding."""
TICK_S = 0.0005
"""Error of I/O times in seconds, at both ends: the times are read in whole milliseconds."""
SAME_SIZE = 2.0
"""I/Os are compared with each other if their sizes differ from the usual size by at most this factor."""
ROUNDING = 1e-9
"""Tolerance for rounding: counts that differ by exactly one are no more uneven than counting makes them."""
SHARED_SECONDS = 2
"""Number of neighbouring seconds that are worth one independent second, because they are correlated."""

Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RateResponse:
    """The response of one rate of a disk, over the steps in which the disk was as busy as it gets.

    Attributes:
        spread: spread of the rate (``series.spread``).
        slope: relative change of the rate ÷ relative change of the outstanding I/Os: 0: the rate stays; 1:
            the rate follows. None if the steps do not show it.
        of_usual_size: the slope for I/Os of the usual size alone.
        steadier: spread of latency ÷ spread of the rate, where the spread of the rate is at least the error
            of counting.
        count: I/Os per step.
        level: median of the rate.
        queued: whether I/Os wait behind other I/Os.
        any_size: whether the rate is the same for any I/O size (``service_time.ServiceTimeModel``).
        scheduled: whether the load follows an even schedule, so that the response says nothing about the
            disk.
    """

    spread: float | None = None
    slope: float | None = None
    of_usual_size: float | None = None
    steadier: float | None = None
    count: float = 0.0
    level: float | None = None
    queued: bool = False
    any_size: bool = False
    scheduled: bool = False

    @property
    def follows(self) -> bool:
        """Whether more outstanding I/O brings a higher rate, so that the rate is not limited."""
        return self.slope is not None and self.slope >= FOLLOWS.value

    @property
    def stays(self) -> bool:
        """Whether more outstanding I/O brings no higher rate."""
        return self.slope is not None and self.slope <= STAYS.value

    @property
    def regulated(self) -> bool:
        """Whether the rate is limited: constant, or the same for any I/O size."""
        return self.flat or self.any_size

    @property
    def flat(self) -> bool:
        """Whether the rate is as flat as only a regulator makes it, while latency moves."""
        if self.spread is None or self.count == 0 or self.follows or self.scheduled:
            return False
        counted = COUNT_ERROR / self.count
        held = self.stays or self._steady
        return self.spread <= max(REGULATOR_FLAT.value, counted + ROUNDING) and held

    @property
    def by_large(self) -> bool:
        """Whether the evidence of a limit comes from larger I/Os alone, which take longer on any disk."""
        stays = self.of_usual_size is not None and self.of_usual_size <= STAYS.value
        return self.flat and not (stays or self._steady)

    @property
    def _steady(self) -> bool:
        return self.steadier is not None and self.steadier >= STEADIER.value

    @property
    def irregular(self) -> bool | None:
        """Whether I/Os complete as irregularly as on a device that serves one I/O after the other.

        If ``count`` I/Os have independent times, their number per second has the spread of these times ÷
        √count. Users in step, whose I/Os all take the same time, have all their I/Os counted in one second or
        in the next: then the number varies, and the times do not. None if the disk was not read often enough.
        """
        if self.spread is None or self.count == 0:
            return None
        if self.steadier is not None and self.steadier < TIMES_SPREAD.value:
            return False
        more = max(0.0, self.spread**2 - (COUNT_ERROR / self.count) ** 2)
        return bool(np.sqrt(more * self.count) >= IRREGULAR.value)


def io_response(io: Floats, size: Floats, outstanding: Floats, busy: Floats, step_s: float) -> RateResponse:
    """The response of I/Os per second.

    I/Os of one size are used if possible, because larger I/Os take longer on any device.
    """
    full = _full(io, outstanding, busy)
    sizes = np.divide(size, io, out=np.full_like(io, np.nan), where=full)
    usual = float(np.nanmedian(sizes)) if np.isfinite(sizes[full]).any() else np.nan
    same_size = full & (sizes <= SAME_SIZE * usual) & (sizes >= usual / SAME_SIZE)
    slope = _slope_of_whole(io, outstanding, busy, same_size, step_s)
    chosen = same_size if _tell(io[same_size], step_s) else full
    return replace(
        _response(io, io, outstanding, chosen, busy, step_s),
        slope=_slope_of_whole(io, outstanding, busy, full, step_s) if slope is None else slope,
        of_usual_size=slope,
    )


def _tell(io: Floats, step_s: float) -> bool:
    """Whether there are enough steps with several I/Os each; joined steps would mix I/O sizes."""
    return len(io) >= MIN_STEPS.value and float(np.median(io)) * step_s >= TELLING_COUNT.value


def bytes_response(
    io: Floats, size: Floats, outstanding: Floats, busy: Floats, step_s: float
) -> RateResponse:
    """The response of bytes per second. Steps with few, large I/Os do not count for its level."""
    full = _full(io, outstanding, busy) & (np.nan_to_num(size) > 0)
    many = full & (io >= np.median(io[full]) / SAME_SIZE) if full.any() else full
    slope = _slope(size, io, outstanding, full, step_s)
    result = _response(size, io, outstanding, many, busy, step_s)
    return replace(result, slope=slope, of_usual_size=slope)


def _full(io: Floats, outstanding: Floats, busy: Floats) -> Rows:
    """The steps in which the disk was about as busy as in its busiest steps, and I/Os completed.

    A step with a pause between two bursts of work has a lower rate, whatever the disk can do.
    """
    return _occupied(io, outstanding, busy) & _working(io, outstanding)


def _working(io: Floats, outstanding: Floats) -> Rows:
    """The steps in which I/Os completed."""
    return np.isfinite(io) & np.isfinite(outstanding) & (io > 0) & (outstanding > 0)


def _occupied(io: Floats, outstanding: Floats, busy: Floats) -> Rows:
    """The steps in which the disk was about as busy as in its busiest steps."""
    working = _working(io, outstanding)
    if not np.isfinite(busy[working]).any():
        return working
    fullest = float(np.nanquantile(busy[working], 0.9))
    return np.isfinite(io) & np.isfinite(outstanding) & (busy >= FULL_STEP.value * fullest)


def _response(
    rate: Floats, io: Floats, outstanding: Floats, rows: Rows, busy: Floats, step_s: float
) -> RateResponse:
    """The response without its slope. ``rows``: the steps to use, joined if they have too few I/Os."""
    if rows.sum() < MIN_STEPS.value:
        return RateResponse()
    few = math.ceil(TELLING_COUNT.value / (float(np.median(io[rows])) * step_s))
    if few == 1:
        return _evenness(rate[rows], io[rows], outstanding[rows], step_s)
    occupied = _occupied(io, outstanding, busy) & np.isfinite(rate)
    level = _while_busy(rate, busy, occupied)
    rate, io, outstanding = _joined((rate, io, outstanding), occupied, few)
    longer = _working(io, outstanding) & (rate > 0)
    if longer.sum() < MIN_STEPS.value:
        return RateResponse(level=level)
    return _evenness(rate[longer], io[longer], outstanding[longer], step_s * few)


def _while_busy(rate: Floats, busy: Floats, occupied: Rows) -> float:
    """The rate over the time in which I/Os were outstanding.

    All seconds count: if I/Os are few, those that complete in the second after the last full one matter.
    """
    known = np.isfinite(rate) & np.isfinite(busy)
    if not busy[known].any():
        return float(rate[occupied].mean())
    return float(rate[known].sum() / np.minimum(busy[known], 1.0).sum())


def _evenness(rate: Floats, io: Floats, outstanding: Floats, step_s: float) -> RateResponse:
    """How steps with several I/Os each differ from each other."""
    flat, count = spread(rate), float(np.median(io)) * step_s
    latency = spread(outstanding / rate)
    steadier = None
    if flat is not None and latency is not None:
        steadier = latency / max(flat, COUNT_ERROR / count)
    queued = float(np.median(outstanding)) >= WAITING_IO.value
    return RateResponse(
        spread=flat, steadier=steadier, count=count, level=float(np.median(rate)), queued=queued
    )


def _joined(columns: Sequence[Floats], rows: Rows, length: int) -> list[Floats]:
    """The means of groups of neighbouring steps; an incomplete group at the end is left out."""
    answer = np.flatnonzero(rows)
    runs = np.split(answer, np.flatnonzero(np.diff(answer) > 1) + 1)
    kept = np.concatenate([run[: len(run) // length * length] for run in runs])
    return [column[kept].reshape(-1, length).mean(axis=1) for column in columns]


def _slope_of_whole(io: Floats, outstanding: Floats, busy: Floats, rows: Rows, step_s: float) -> float | None:
    """The slope of the I/O rate, without steps that end during a long I/O if the rate seems to follow.

    The time of an I/O is counted when it completes: until then, both the outstanding and the completed I/Os
    are too low.
    """
    slope = _slope(io, io, outstanding, rows, step_s)
    if slope is None or slope < FOLLOWS.value:
        return slope
    one = COUNTED * np.divide(outstanding, io * step_s, out=np.zeros_like(io), where=rows)
    return _slope(io, io, outstanding, rows & ~(outstanding < np.minimum(busy, 1.0) - one), step_s)


def _slope(rate: Floats, io: Floats, outstanding: Floats, rows: Rows, step_s: float) -> float | None:
    """The slope of log rate over log outstanding; None if its standard error is too large.

    An I/O that completes near the end of a second is counted, with its time, in one of two seconds. This
    counting error moves both figures together, so it is subtracted from the variances (errors in variables).
    """
    if rows.sum() < MIN_STEPS.value:
        return None
    x, y = (np.log(column[rows]) for column in (outstanding, rate))
    x, y = x - x.mean(), y - y.mean()
    counted = float(np.mean((ENDS_ERROR / (io[rows] * step_s)) ** 2))
    ticks = float(np.mean((TICK_S / (outstanding[rows] * step_s)) ** 2))
    variance = float(np.mean(x * x)) - counted - ticks
    if variance < counted + ticks:
        return None
    slope = (float(np.mean(x * y)) - counted) / variance
    rest = float(np.mean((y - slope * x) ** 2))
    error = np.sqrt(rest * SHARED_SECONDS / (len(x) * variance))
    return slope if error <= SLOPE_ERROR.value else None
