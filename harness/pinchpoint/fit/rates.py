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
"""A level this many times the other one is a burst's."""
_APART = 3.0
"""Two levels are two where they are this many of their own spreads apart: one that chance alone moves splits
into halves 2.7 apart (a normal distribution's)."""
_EDGE = 0.1
"""A reading that is further than that from both levels, of the way between, is on the way."""
_SHORT = 3
"""Something this many times shorter than a burst is no burst, and no time between two."""
_SEEN = 0.25
"""Where less than that of the way stands out from what both levels vary, its length cannot be known."""
_SEVERAL = 1.5
"""A burst that begins at once has one such reading or none, by when it began within it."""
_JITTERS_FROM = 5
"""This many bursts report whether they come regularly."""
_REGULAR = 0.05


@dataclass(frozen=True, slots=True)
class Rate:
    """How much was done in one interval.

    Attributes:
        ended_s: its end, UTC seconds.
        interval_s: its length.
        per_s: the rate.
    """

    ended_s: float
    interval_s: float
    per_s: float

    @property
    def middle_s(self) -> float:
        """The interval's middle, UTC seconds."""
        return self.ended_s - self.interval_s / 2


@dataclass(frozen=True, slots=True)
class FittedBursts:
    """A base rate with bursts, as in the load model ``burst``.

    Attributes:
        base_ratio: the rate between bursts ÷ the mean.
        peak_ratio: the rate in a burst ÷ the mean.
        every_s: from one burst's beginning to the next one's.
        for_s: how long one lasts, its rise and its fall included.
        ramp_s: how long it rises, and falls again; 0: at once, as far as the readings show.
        jitter_ratio: by how much of the time between they come earlier than regular ones.
        readings_s: how long a reading is: what is shorter is not seen.
    """

    base_ratio: float
    peak_ratio: float
    every_s: float
    for_s: float
    ramp_s: float
    jitter_ratio: float
    readings_s: float


def mean(rates: Sequence[Rate]) -> float:
    """The mean, weighted by the lengths of the readings; 0 without any."""
    length_s = sum(rate.interval_s for rate in rates)
    return sum(rate.per_s * rate.interval_s for rate in rates) / length_s if length_s else 0.0


def bursts(rates: Sequence[Rate]) -> FittedBursts | None:
    """The bursts of a time, where there are at least two; None if it is even, or wanders.

    Args:
        rates: in the order of time.
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
    # What lies above the base is the burst, however its edges fall on the readings.
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
    """The rate that divides the readings into two levels best (Otsu 1979: the most variance between the two).

    None if the two are no levels: not far enough apart for what each of them varies.
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
    # What arrives by chance varies by the root of its count: small counts look like two levels.
    chance = math.sqrt(mean(rates) / fmean(rate.interval_s for rate in rates))
    return limit if fmean(high) >= BURST * fmean(low) and apart > _APART * max(spread, chance) else None


def _sides(rates: Sequence[Rate], limit: float) -> tuple[list[float], list[float]]:
    """The readings on both sides, but those where one goes over into the other, if others are left."""
    sides = []
    for above in (False, True):
        side = {at for at, rate in enumerate(rates) if (rate.per_s > limit) == above}
        inner = [at for at in side if {max(0, at - 1), min(len(rates) - 1, at + 1)} <= side]
        sides.append([rates[at].per_s for at in inner or side])
    return sides[0], sides[1]


def _runs(rates: Sequence[Rate], limit: float) -> list[range]:
    """The places of readings above the limit that follow one another.

    A short halt within a burst ends it not, and what is made up for after a halt is none.
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
    """From one beginning to the next, though one in between be missing."""
    apart = [later - earlier for earlier, later in itertools.pairwise(starts)]
    usual = median(apart)
    return (starts[-1] - starts[0]) / sum(max(1, round(each / usual)) for each in apart)


def _whole(run: range, rates: Sequence[Rate]) -> bool:
    """Whether a burst's beginning and its end were both seen."""
    return run.start > 0 and run.stop < len(rates)


def _cells(runs: Sequence[range], count: int) -> list[range]:
    """Each burst with half of the time to its neighbours, and all before the first and after the last."""
    middles = [(one.stop + other.start) // 2 for one, other in itertools.pairwise(runs)]
    return [range(*each) for each in itertools.pairwise([0, *middles, count])] if runs else []


def _levels(rates: Sequence[Rate], runs: Sequence[range]) -> tuple[list[float], list[float]]:
    """The rates between bursts and in them, by readings away from where one goes over into the other."""
    near = {at for run in runs for at in range(run.start - _beside(run, 2), run.stop + _beside(run, 2))}
    calm = [rate.per_s for at, rate in enumerate(rates) if at not in near]
    busy = [
        rates[at].per_s
        for run in runs
        for at in range(run.start + _beside(run, 4), run.stop - _beside(run, 4))
    ]
    high = {at for run in runs for at in run}
    lowest = min(rate.per_s for at, rate in enumerate(rates) if at not in high)
    # None of a short burst's readings may lie whole within it: those that do most show its height.
    highest = sorted(max(rates[at].per_s for at in run) for run in runs)
    return calm or [lowest], busy or highest[len(highest) // 2 :]


def _beside(run: range, part: int) -> int:
    """How many readings at a burst's edge may belong to its rise or fall."""
    return max(1, len(run) // part)


def _ramp_s(rates: Sequence[Rate], count: int, calm: Sequence[float], busy: Sequence[float]) -> float:
    """How long a burst takes to rise, by how many readings lie between the two levels at each edge.

    Args:
        rates: of whole bursts and what is around them.
        count: how many bursts these are.
        calm: rates between bursts.
        busy: rates in them.
    """
    base, peak = fmean(calm), fmean(busy)
    least = _EDGE * (peak - base)
    # What each level varies by itself is no way from one to the other.
    above, below = (max(least, _APART * math.sqrt(pvariance(each))) for each in (calm, busy))
    between = [rate.interval_s for rate in rates if base + above < rate.per_s < peak - below]
    seen = 1 - (above + below) / (peak - base)
    if len(between) <= _SEVERAL * 2 * count or seen < _SEEN:
        return 0.0
    return sum(between) / (2 * count) / seen


def _jitter(starts: Sequence[float], readings_s: float, calm_s: float) -> float:
    """The part of the calm time by which bursts come earlier, for a load model that draws it evenly.

    Of two beginnings, each ``jitter x calm`` early at most, the distance varies by ``(jitter x calm)² / 6``;
    that they are seen to a reading adds ``readings² / 6``.
    """
    if len(starts) < _JITTERS_FROM or calm_s <= 0:
        return 0.0
    apart = [later - earlier for earlier, later in itertools.pairwise(starts)]
    apart = [
        each for each in apart if each < _SEVERAL * median(apart)
    ]  # without those that one is missing in
    varies = pvariance(apart) - readings_s**2 / 6
    result = math.sqrt(6 * varies) / calm_s if varies > 0 else 0.0
    return min(1.0, result) if result > _REGULAR else 0.0


HOUR_S, DAY_S = 3600.0, 86_400.0
_HALF = 0.5
"""An hour of which less than that was recorded says little of itself."""
_WHOLE_DAY_H = 23.0
"""The day on which clocks go forward has no more."""


@dataclass(frozen=True, slots=True)
class LoadCourse:
    """The course of a load over time.

    Attributes:
        what: what was counted, in words: ``I/Os``, ``operations``.
        source: where it comes from.
        busiest: the busiest hour, in words.
        peak_ratio: the activity of that hour ÷ that of the time in which the statements were counted.
        bursts: None if that hour is even.
        hours: hour of the day -> its activity ÷ likewise, the mean of all days; hours that were not recorded
            are not there.
        notes: what a reader must know, as sentences.
        figures: further figures of the recording.
        whole_day: whether ``bursts`` is the day itself, squeezed, and ``peak_ratio`` its mean.
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
        """The whole day in this many seconds, in place of its busiest hour.

        Its hours' means become what the load model ``burst`` can be: a quiet level, a busy one, and the
        way up and down.

        Args:
            into_s: how long the day is to take.

        Raises:
            InputError: an hour of the day was not recorded, or the day is even.
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
    """One hour by the clock on the wall; of the one that comes twice when clocks go back, each for itself."""

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
        rates: readings, in the order of time; at least one is above 0.
        what: what they count, in words.
        source: where they come from.
        zone: the zone of the hours shown; None: UTC.
        counted: when the statements were counted, UTC seconds; None: all the time.
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
    if len(fit) < 2:  # less than two hours: all of it is the busy time
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
    """The mean of each hour of the day, over all days."""
    together: dict[int, list[Rate]] = {}
    for hour, rates in sorted(hours.items()):
        together.setdefault(hour.hour, []).extend(rates)
    return {hour: mean(rates) for hour, rates in sorted(together.items())}


def _days(hours: Mapping[_Hour, Sequence[Rate]], source: str) -> list[str]:
    """Parts of its days that the recording lacks."""
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
