"""How a load goes over the day: its busiest hour beside the time that was counted, the bursts in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import Figures
from pinchpoint.fit.shape import Bursts, Rate, bursts, mean

HOUR_S, DAY_S = 3600.0, 86_400.0
_HALF = 0.5
"""An hour of which less than that was recorded says little of itself."""
_WHOLE_DAY_H = 23.0
"""The day on which clocks go forward has no more."""


@dataclass(frozen=True, slots=True)
class Course:
    """What is known of a load's course.

    Attributes:
        what: what was counted, in words: ``I/Os``, ``operations``.
        source: where it comes from.
        busiest: the busiest hour, in words.
        peak_ratio: the activity of that hour ÷ that of the time in which the statements were counted.
        bursts: None where that hour is even.
        hours: hour of the day -> its activity ÷ likewise, the mean of all days; hours that were not recorded
            are not there.
        notes: what a reader must know, as sentences.
        figures: what the recording tells besides.
        whole_day: whether ``bursts`` is the day itself, squeezed, and ``peak_ratio`` its mean.
    """

    what: str
    source: str
    busiest: str
    peak_ratio: float
    bursts: Bursts | None
    hours: Mapping[int, float]
    notes: tuple[str, ...] = ()
    figures: Figures = field(default_factory=dict)
    whole_day: bool = False

    def squeezed(self, into_s: float) -> Course:
        """The whole day in so many seconds, in place of its busiest hour.

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
                f"--day: {self.source} has no {listed}: the day's course is not known; record a whole day, "
                "or leave --day out for the busiest hour"
            )
        days = [Rate((hour + 1) * HOUR_S, HOUR_S, self.hours[hour % 24]) for hour in range(3 * 24)]
        swell = bursts(days)
        if swell is None:
            raise InputError(
                f"--day: {self.source}: the day is even, or has no two levels: leave --day out for its "
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
            notes=(*self.notes, f"the day takes {into_s:.0f} s here; bursts within its hours are not in it"),
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
) -> Course:
    """The course of a load.

    Args:
        rates: readings, in the order of time; at least one is above 0.
        what: what they count, in words.
        source: where they come from.
        zone: by whose clock hours are told; None: UTC.
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
    return Course(
        what=what,
        source=source,
        busiest=busiest,
        peak_ratio=mean(busy) / usual,
        bursts=bursts(busy),
        hours={hour: value / usual for hour, value in _of_the_day(fit).items()},
        notes=tuple(notes),
    )


def _by_hour(rates: Iterable[Rate], zone: tzinfo) -> dict[_Hour, list[Rate]]:
    found: dict[_Hour, list[Rate]] = {}
    for rate in rates:
        at = datetime.fromtimestamp(rate.middle_s, zone)
        ahead = at.utcoffset()
        hour = _Hour(at.date(), at.hour, -ahead.total_seconds() if ahead else 0.0)
        found.setdefault(hour, []).append(rate)
    return found


def _of_the_day(hours: Mapping[_Hour, Sequence[Rate]]) -> dict[int, float]:
    """The mean of each hour of the day, over all days."""
    together: dict[int, list[Rate]] = {}
    for hour, rates in sorted(hours.items()):
        together.setdefault(hour.hour, []).extend(rates)
    return {hour: mean(rates) for hour, rates in sorted(together.items())}


def _days(hours: Mapping[_Hour, Sequence[Rate]], source: str) -> list[str]:
    """What the recording leaves out of its days."""
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
