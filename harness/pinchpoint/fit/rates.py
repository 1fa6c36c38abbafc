"""Finds bursts and the daily course in rates over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo
from statistics import fmean, median, pvariance

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import Figures

BURST = 1.5
"""Ratio of two levels from which the higher one counts as a burst."""
_APART = 3.0
"""Two levels are separate if their distance is at least this many times their spread. Halves of a single
normal distribution are 2.7 spreads apart."""
_EDGE = 0.1
"""A reading further from both levels than this share of their distance is part of a ramp."""
_SHORT = 3
"""A run this many times shorter than a burst is neither a burst nor a pause between bursts."""
_SEEN = 0.25
"""Least share of the distance between levels, outside their variation, that shows the length of a ramp."""
_SEVERAL = 1.5
"""Readings per edge up to which a burst starts at once: an abrupt start within a reading gives one reading
between the levels."""
_JITTERS_FROM = 5
"""Fewest bursts that show whether bursts come at regular times."""
_REGULAR = 0.05


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate in one interval.

    Attributes:
        ended_s: end of the interval, UTC seconds.
        interval_s: length of the interval in seconds.
        per_s: operations per second.
    """

    ended_s: float
    interval_s: float
    per_s: float

    @property
    def middle_s(self) -> float:
        """The middle of the interval, UTC seconds."""
        return self.ended_s - self.interval_s / 2


@dataclass(frozen=True, slots=True)
class FittedBursts:
    """A base rate with bursts, as in the load model ``burst``.

    Attributes:
        base_ratio: rate between bursts ÷ mean rate.
        peak_ratio: rate in a burst ÷ mean rate.
        every_s: seconds from the start of a burst to the start of the next one.
        for_s: duration of a burst in seconds, including its ramps.
        ramp_s: duration of each ramp in seconds; 0 if the readings show none.
        jitter_ratio: largest shift of a burst's start to an earlier time, as a share of the time between
            bursts.
        readings_s: length of a reading in seconds, which is the resolution of the figures.
    """

    base_ratio: float
    peak_ratio: float
    every_s: float
    for_s: float
    ramp_s: float
    jitter_ratio: float
    readings_s: float


def mean(rates: Sequence[Rate]) -> float:
    """Mean rate, weighted by the length of the intervals; 0 without intervals."""
    length_s = sum(rate.interval_s for rate in rates)
    return sum(rate.per_s * rate.interval_s for rate in rates) / length_s if length_s else 0.0


def bursts(rates: Sequence[Rate]) -> FittedBursts | None:
    """Find bursts; None if there are fewer than two, or if the rate has no two levels.

    Args:
        rates: the rates in order of time.
    """
    limit = _limit(rates)
    runs = [] if limit is None else _runs(rates, limit)
    starts = [rates[run.start].ended_s - rates[run.start].interval_s for run in runs if run.start > 0]
    cells = [cell for run, cell in zip(runs, _cells(runs, len(rates)), strict=True) if _whole(run, rates)]
    if len(starts) < 2 or not cells:
        return None
    every_s = _period_s(starts)
    calm, busy = _levels(rates, runs)
    base, peak = fmean(calm), fmean(busy)
    ramp_s = _ramp_s([rates[at] for cell in cells for at in cell], len(cells), calm, busy)
    # The sum of the rates above the base does not depend on how the burst's edges fall on the readings.
    above = fmean(sum((rates[at].per_s - base) * rates[at].interval_s for at in cell) for cell in cells)
    for_s = max(above / (peak - base) + ramp_s, 2 * ramp_s)
    if for_s >= every_s:
        return None
    middle = base + (peak - base) * (for_s - ramp_s) / every_s
    readings_s = fmean(rate.interval_s for rate in rates)
    return FittedBursts(
        base_ratio=base / middle,
        peak_ratio=peak / middle,
        every_s=every_s,
        for_s=for_s,
        ramp_s=ramp_s,
        jitter_ratio=_jitter(starts, readings_s, every_s - for_s),
        readings_s=readings_s,
    )


def _limit(rates: Sequence[Rate]) -> float | None:
    """The rate that best separates two levels (Otsu 1979: largest variance between the levels).

    None if the levels are too close in relation to their variation.
    """
    values = sorted(rate.per_s for rate in rates)
    count, total = len(values), sum(values)
    best, limit, below = 0.0, None, 0.0
    for number, (value, following) in enumerate(itertools.pairwise(values), 1):
        below += value
        between = (below / number - (total - below) / (count - number)) ** 2 * number * (count - number)
        if following > value and between > best:
            best, limit = between, (value + following) / 2
    if limit is None:
        return None
    low, high = _sides(rates, limit)
    spread = math.sqrt((pvariance(low) * len(low) + pvariance(high) * len(high)) / (len(low) + len(high)))
    apart = fmean(high) - fmean(low)
    # The standard deviation of random arrivals is the root of their count, so small counts resemble two
    # levels.
    chance = math.sqrt(mean(rates) / fmean(rate.interval_s for rate in rates))
    return limit if fmean(high) >= BURST * fmean(low) and apart > _APART * max(spread, chance) else None


def _sides(rates: Sequence[Rate], limit: float) -> tuple[list[float], list[float]]:
    """The readings below and above the limit, without readings next to a change if others are left."""
    sides = []
    for above in (False, True):
        side = {at for at, rate in enumerate(rates) if (rate.per_s > limit) == above}
        inner = [at for at in side if {max(0, at - 1), min(len(rates) - 1, at + 1)} <= side]
        sides.append([rates[at].per_s for at in inner or side])
    return sides[0], sides[1]


def _runs(rates: Sequence[Rate], limit: float) -> list[range]:
    """The bursts as ranges of positions of readings above the limit.

    A short drop does not end a burst. A short rise, such as work delayed by a pause, is not a burst.
    """
    ranges: list[range] = []
    place = 0
    for high, several in itertools.groupby(rates, key=lambda rate: rate.per_s > limit):
        length = len(list(several))
        if high:
            run = range(place, place + length)
            gap = run.start - ranges[-1].stop if ranges else place
            halted = bool(ranges) and gap <= max(len(ranges[-1]), length) / _SHORT
            ranges[-1:] = [range(ranges[-1].start, run.stop)] if halted else [*ranges[-1:], run]
        place += length
    usual = median(len(run) for run in ranges) if ranges else 0
    return [run for run in ranges if len(run) > usual / _SHORT]


def _period_s(starts: Sequence[float]) -> float:
    """Seconds between the starts of bursts; a missing burst is counted in."""
    apart = [later - earlier for earlier, later in itertools.pairwise(starts)]
    usual = median(apart)
    return (starts[-1] - starts[0]) / sum(max(1, round(each / usual)) for each in apart)


def _whole(run: range, rates: Sequence[Rate]) -> bool:
    """Whether the readings contain the start and the end of a burst."""
    return run.start > 0 and run.stop < len(rates)


def _cells(runs: Sequence[range], count: int) -> list[range]:
    """The readings of each burst and of half of the time to its neighbours; the outer ones reach the ends."""
    middles = [(one.stop + other.start) // 2 for one, other in itertools.pairwise(runs)]
    return [range(*each) for each in itertools.pairwise([0, *middles, count])] if runs else []


def _levels(rates: Sequence[Rate], runs: Sequence[range]) -> tuple[list[float], list[float]]:
    """(rates between bursts, rates in bursts), without readings close to a ramp."""
    near = {at for run in runs for at in range(run.start - _beside(run, 2), run.stop + _beside(run, 2))}
    calm = [rate.per_s for at, rate in enumerate(rates) if at not in near]
    busy = [
        rates[at].per_s
        for run in runs
        for at in range(run.start + _beside(run, 4), run.stop - _beside(run, 4))
    ]
    high = {at for run in runs for at in run}
    lowest = min(rate.per_s for at, rate in enumerate(rates) if at not in high)
    # If no reading lies completely within a burst, the highest readings show the height of the bursts.
    highest = sorted(max(rates[at].per_s for at in run) for run in runs)
    return calm or [lowest], busy or highest[len(highest) // 2 :]


def _beside(run: range, part: int) -> int:
    """Number of readings at each edge of a burst that may belong to a ramp: its length ÷ ``part``."""
    return max(1, len(run) // part)


def _ramp_s(rates: Sequence[Rate], count: int, calm: Sequence[float], busy: Sequence[float]) -> float:
    """Duration of a ramp in seconds, from the number of readings between the two levels; 0 if none.

    Args:
        rates: the rates of whole bursts and of the time around them.
        count: number of bursts.
        calm: rates between bursts, operations per second.
        busy: rates in bursts, operations per second.
    """
    base, peak = fmean(calm), fmean(busy)
    least = _EDGE * (peak - base)
    # A reading within the variation of a level is not part of a ramp.
    above, below = (max(least, _APART * math.sqrt(pvariance(each))) for each in (calm, busy))
    between = [rate.interval_s for rate in rates if base + above < rate.per_s < peak - below]
    seen = 1 - (above + below) / (peak - base)
    if len(between) <= _SEVERAL * 2 * count or seen < _SEEN:
        return 0.0
    return sum(between) / (2 * count) / seen


def _jitter(starts: Sequence[float], readings_s: float, calm_s: float) -> float:
    """Largest shift of a burst's start as a share of the calm time; 0 if the bursts are regular.

    The load model draws each shift uniformly. The distance of two starts, each shifted by at most ``jitter x
    calm``, has the variance ``(jitter x calm)² / 6``. The length of the readings adds ``readings² / 6``.
    """
    if len(starts) < _JITTERS_FROM or calm_s <= 0:
        return 0.0
    apart = [later - earlier for earlier, later in itertools.pairwise(starts)]
    apart = [
        each for each in apart if each < _SEVERAL * median(apart)
    ]  # without distances that contain a missing burst
    varies = pvariance(apart) - readings_s**2 / 6
    result = math.sqrt(6 * varies) / calm_s if varies > 0 else 0.0
    return min(1.0, result) if result > _REGULAR else 0.0


HOUR_S, DAY_S = 3600.0, 86_400.0
_HALF = 0.5
"""Least recorded share of an hour that counts."""
_WHOLE_DAY_H = 23.0
"""Hours of a whole day; the day on which clocks go forward has 23."""


@dataclass(frozen=True, slots=True)
class LoadCourse:
    """The course of a load over time.

    Attributes:
        what: what was counted, in words: ``I/Os``, ``operations``.
        source: the source, in words.
        busiest: the busiest hour, in words.
        peak_ratio: rate of the busiest hour ÷ mean rate in the time in which statements were counted.
        bursts: the bursts in the busiest hour; None if the rate is even.
        hours: hour of the day -> rate, mean of all days, ÷ the same mean as in ``peak_ratio``; hours without
            a recording have no entry.
        notes: notes for the reader, as sentences.
        figures: further figures of the recording.
        whole_day: True if ``bursts`` is the compressed whole day and ``peak_ratio`` its mean.
    """

    what: str
    source: str
    busiest: str
    peak_ratio: float
    bursts: FittedBursts | None
    hours: Mapping[int, float]
    notes: tuple[str, ...] = ()
    figures: Figures = field(default_factory=dict)
    whole_day: bool = False

    def as_burst_day(self, into_s: float) -> LoadCourse:
        """Compress the whole day into ``into_s`` seconds, to replace the busiest hour.

        The means of the hours are approximated by the load model ``burst``: a quiet level, a busy level and
        ramps.

        Args:
            into_s: seconds into which the day is compressed.

        Raises:
            InputError: an hour of the day was not recorded, or the day has no two levels.
        """
        missing = [hour for hour in range(24) if hour not in self.hours]
        if missing:
            listed = ", ".join(f"{hour:02}h" for hour in missing)
            raise InputError(
                f"--day: {self.source} has no {listed}: its load over the day is unknown; record a whole day "
                "or leave --day out for the busiest hour"
            )
        days = [Rate((hour + 1) * HOUR_S, HOUR_S, self.hours[hour % 24]) for hour in range(3 * 24)]
        swell = bursts(days)
        if swell is None:
            raise InputError(
                f"--day: {self.source}: the load has no two levels over the day: leave --day out for its "
                "busiest hour"
            )
        faster = DAY_S / into_s
        return replace(
            self,
            busiest="the whole day's mean",
            peak_ratio=mean(days),
            bursts=replace(
                swell,
                every_s=into_s,
                for_s=swell.for_s / faster,
                ramp_s=swell.ramp_s / faster,
                jitter_ratio=0.0,
                readings_s=HOUR_S / faster,
            ),
            notes=(*self.notes, f"the day takes {into_s:.0f} s here; bursts within its hours are left out"),
            whole_day=True,
        )


@dataclass(frozen=True, slots=True, order=True)
class _Hour:
    """One hour of local time; the two equal hours when clocks go back are separate."""

    day: date
    hour: int
    ahead_s: float

    @property
    def words(self) -> str:
        return f"{self.day:%Y-%m-%d} {self.hour:02}:00"


def course(
    rates: Sequence[Rate],
    what: str,
    source: str,
    zone: tzinfo | None,
    counted: tuple[float, float] | None = None,
) -> LoadCourse:
    """The course of a load.

    Args:
        rates: the rates in order of time; at least one is above 0.
        what: what the rates count, in words.
        source: the source, in words.
        zone: the time zone of the hours in the result; None for UTC.
        counted: start and end of the time in which statements were counted, UTC seconds; None for the whole
            time.
    """
    hours = _by_hour(rates, zone or UTC)
    fit = {hour: its for hour, its in hours.items() if _covered_s(its) >= _HALF * HOUR_S}
    name = zone.tzname(None) or str(zone) if zone else "UTC"
    notes: list[str] = []
    during = [rate for rate in rates if counted is None or counted[0] <= rate.middle_s <= counted[1]]
    usual = mean(during)
    if not usual:
        usual = mean(rates)
        notes.append(
            f"{source} has nothing of the time in which the statements were counted: their rates are taken "
            "for the mean of the whole recording"
        )
    if len(fit) < 2:  # less than two hours: the whole recording is the busy time
        busy, busiest = list(rates), f"all {_covered_s(rates) / 60:.0f} min of it"
    else:
        at = max(fit, key=lambda hour: mean(fit[hour]))
        busy, busiest = fit[at], f"the busiest hour, {at.words} {name}"
        notes += _days(hours, source)
    return LoadCourse(
        what=what,
        source=source,
        busiest=busiest,
        peak_ratio=mean(busy) / usual,
        bursts=bursts(busy),
        hours={hour: value / usual for hour, value in _of_the_day(fit).items()},
        notes=tuple(notes),
    )


def _by_hour(rates: Iterable[Rate], zone: tzinfo) -> dict[_Hour, list[Rate]]:
    result: dict[_Hour, list[Rate]] = {}
    for rate in rates:
        at = datetime.fromtimestamp(rate.middle_s, zone)
        ahead = at.utcoffset()
        hour = _Hour(at.date(), at.hour, -ahead.total_seconds() if ahead else 0.0)
        result.setdefault(hour, []).append(rate)
    return result


def _of_the_day(hours: Mapping[_Hour, Sequence[Rate]]) -> dict[int, float]:
    """The mean rate of each hour of the day, over all days."""
    together: dict[int, list[Rate]] = {}
    for hour, rates in sorted(hours.items()):
        together.setdefault(hour.hour, []).extend(rates)
    return {hour: mean(rates) for hour, rates in sorted(together.items())}


def _days(hours: Mapping[_Hour, Sequence[Rate]], source: str) -> list[str]:
    """A sentence about days that the recording covers only partly; empty if it covers whole days."""
    covered_h: dict[date, float] = {}
    for hour, rates in hours.items():
        covered_h[hour.day] = covered_h.get(hour.day, 0.0) + _covered_s(rates) / HOUR_S
    partial = {day: length for day, length in covered_h.items() if length < _WHOLE_DAY_H}
    if not partial:
        return []
    shown = ", ".join(f"{length:.1f} h of {day}" for day, length in sorted(partial.items())[:3])
    more = f" and {len(partial) - 3} days more" if len(partial) > 3 else ""
    whole = len(covered_h) - len(partial)
    sentence = (
        f"{source} covers {whole} whole day{'s' * (whole != 1)}, and {shown}{more}: a busier hour may lie in "
        "what was not recorded"
    )
    return [sentence]


def _covered_s(rates: Iterable[Rate]) -> float:
    return sum(rate.interval_s for rate in rates)
