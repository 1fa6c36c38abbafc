"""Handles times of recorders: their distance, local times as UTC, dates in the formats of cultures.

A Performance Monitor log has its offset from UTC once, at its start. If daylight saving time ends within it,
one hour occurs twice; if it begins, one hour is missing.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from statistics import median_low

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings

GAP = 2.5
"""Factor of the usual interval. Readings further apart have a gap between them."""
_LATEST = 15
"""Number of intervals that determine the usual one."""
_FEWEST = 3
"""Smallest number of intervals for which there is a usual one."""


class ReadingTimes:
    """The readings of one recorder in order.

    A recorder that was stopped has no values for that time. Its next reading covers a moment, or one usual
    interval.
    """

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=_LATEST)
        self._gaps: list[tuple[float, float]] = []

    @property
    def usual_s(self) -> float | None:
        """Return the seconds between two readings; None before the second."""
        return median_low(self._steps) if self._steps else None

    def covered_s(self, before_s: float, time_s: float) -> float:
        """Return the seconds that a value read at ``time_s`` covers: since ``before_s``, or a usual interval.

        Args:
            before_s: UTC seconds of the previous reading.
            time_s: UTC seconds of this reading.
        """
        step_s = time_s - before_s
        usual_s = self.usual_s if len(self._steps) >= _FEWEST else None
        self._steps.append(step_s)
        if usual_s is None or step_s <= GAP * usual_s:
            return step_s
        self._gaps.append((before_s, time_s - usual_s))
        return usual_s

    def report(self, facts: FileFacts, whose: str = "") -> None:
        """Report number and longest duration of gaps."""
        if not self._gaps:
            return
        begin_s, end_s = max(self._gaps, key=lambda gap: gap[1] - gap[0])
        begin, end = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}" for at in (begin_s, end_s))
        times = "once" if len(self._gaps) == 1 else f"{len(self._gaps)} times, for longest"
        facts.note(f"nothing was recorded{whose and f' of {whose}'} {times} from {begin} to {end} UTC")


def begin_of(settings: Settings, facts: FileFacts) -> datetime:
    """Return the start of a recording without a date: ``--start``, or else 1 January 2000, with a note."""
    if settings.start_s is None:
        facts.note("it has no date: 1 January 2000 was assumed; give its beginning with --start")
        return datetime(2000, 1, 1, tzinfo=UTC)
    return datetime.fromtimestamp(settings.start_s, settings.zone or UTC)


LEAST_S = 1.0
"""Shortest interval in seconds of tools that print readings without their times."""


def numbered_s(settings: Settings, facts: FileFacts) -> tuple[float, float]:
    """Return UTC seconds of the first reading, and seconds between two, for readings without times.

    Without ``--every`` they are a second apart, so that nothing appears to last longer than it did. A note
    says so.
    """
    if settings.every_s is None:
        facts.note(
            "its readings have no times: 1 s between them was assumed, the least that such tools print; "
            "give the true interval with --every"
        )
    return begin_of(settings, facts).timestamp(), settings.every_s or LEAST_S


HOUR_S = 3600.0
SET_S = 60.0
"""Largest correction by a time service in seconds."""
NIGHT_ENDS = 5
"""Hour before which clocks change. A missing hour that begins later in the day is a gap in the recording."""


def zoned_s(local: datetime, zone: tzinfo, last_s: float | None) -> float:
    """Return UTC seconds of a local time in its zone.

    Of an hour that occurs twice it is the first, unless that has passed.

    Args:
        local: time without a zone.
        zone: zone of the time.
        last_s: UTC seconds of the last time; None: this is the first time.
    """
    times = [local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)]
    return next((time_s for time_s in times if last_s is None or time_s > last_s), times[0])


class LocalClock:
    """Converts the local times of one recorder, in order, to UTC seconds.

    Args:
        zone: time zone of the recorder, whose rules apply; None: ``offset_s`` applies at the start.
        offset_s: seconds to add to a local time for UTC, if no zone is given.
        pace: usual distance of the recorder's readings.
        found: receives clock changes.
    """

    def __init__(self, zone: tzinfo | None, offset_s: float, pace: ReadingTimes, facts: FileFacts) -> None:
        self._zone = zone
        self._offset_s = offset_s
        self._pace = pace
        self._found = facts
        self._last: datetime | None = None
        self._last_s: float | None = None
        self._was_put_back = False

    def utc_s(self, local: datetime, line: int) -> float | None:
        """Return UTC seconds of the next local time; None for a time that repeats after a clock correction.

        Raises:
            ForeignFileError: a time is before the last one, and no clock change explains this.
        """
        time_s = zoned_s(local, self._zone, self._last_s) if self._zone else self._by_offset(local)
        if self._last_s is not None and time_s <= self._last_s:
            if local == self._last:
                raise ForeignFileError(f"two rows have the time {local}; remove one of the two", line)
            if self._last_s - time_s <= SET_S:
                self._note_put_back()
                return None
            raise ForeignFileError(
                f"the time goes back from {self._last} to {local}, which is not a clock change of an "
                "hour; split the file there and import the parts one by one",
                line,
            )
        self._last, self._last_s = local, time_s
        return time_s

    def _note_put_back(self) -> None:
        if not self._was_put_back:
            self._was_put_back = True
            self._found.note(
                "its clock was put back by less than a minute, first after "
                f"{self._last:%Y-%m-%d %H:%M:%S} local time: rows with repeated times were ignored"
            )

    def _by_offset(self, local: datetime) -> float:
        plain_s = local.replace(tzinfo=UTC).timestamp()
        time_s = plain_s + self._offset_s
        if self._last_s is None or self._last is None:
            return time_s
        change_s = self._change_s(time_s - self._last_s, local)
        if change_s:
            self._offset_s += change_s
            what = "an hour comes twice" if change_s > 0 else "an hour is missing"
            self._found.note(
                f"{what} at {local:%Y-%m-%d %H:%M} local time: a clock change was assumed, because the "
                "file gives its offset from UTC only once; give the name of the time zone with --zone "
                "to apply its rules"
            )
        return time_s + change_s

    def _change_s(self, step_s: float, local: datetime) -> float:
        """Return the seconds to add to the offset from here on: 0 without a clock change."""
        usual_s = self._pace.usual_s or HOUR_S / 60
        # Readings an hour apart must not look like an hour that occurs twice.
        near_s = min(max(1.5 * usual_s, 2.0), HOUR_S / 2)
        if -HOUR_S - near_s <= step_s <= -HOUR_S + near_s + usual_s:
            return HOUR_S
        before = local - timedelta(seconds=HOUR_S)
        at_night = before.hour < NIGHT_ENDS
        if at_night and abs(step_s - usual_s - HOUR_S) <= near_s / 2:
            return -HOUR_S
        return 0.0


_NARROW_SPACE = "\u202f"
"""Space before AM and PM in newer cultures."""


class Dates:
    """Reads the times of one file, all in the same format.

    Args:
        texts: all times; empty ones are ignored.
        formats: candidates for ``datetime.strptime``; the first one that fits most times is used, ISO 8601 if
            none fits.
        found: receives a note if day and month may be exchanged.
    """

    def __init__(self, texts: Sequence[str], formats: Sequence[str], facts: FileFacts) -> None:
        # One time of each day is sufficient, because only days differ.
        days = {text.split()[0]: _plain(text) for text in texts if text.strip()}
        fits = {format_: _fitting(days.values(), format_) for format_ in formats}
        most = max(map(len, fits.values()))
        fitting = [format_ for format_, moments in fits.items() if most and len(moments) == most]
        self._format = next(iter(fitting), None)
        readings = [fits[format_] for format_ in fitting]
        pairs = (pair for others in readings[1:] for pair in zip(readings[0], others, strict=True))
        differing = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if differing is not None:
            taken, other = (f"{moment.day} {moment:%B %Y}" for moment in differing)
            facts.note(
                f"one of its dates is {taken}, or {other}: no date in the file shows whether the day or "
                "the month comes first. The former was assumed; record dates as ISO 8601 to be sure"
            )

    def read(self, text: str) -> datetime:
        """Return a time, with a zone if it has one. Raises ``ValueError`` for another format."""
        plain = _plain(text)
        if self._format is None:
            return datetime.fromisoformat(plain)
        return _parsed(plain, self._format)


def _plain(text: str) -> str:
    return " ".join(text.replace(_NARROW_SPACE, " ").split())


def _parsed(text: str, format_: str) -> datetime:
    return datetime.strptime(text, format_)  # noqa: DTZ007 -- the caller gives it its zone


def _fitting(texts: Iterable[str], format_: str) -> list[datetime]:
    """Return the times in a format."""
    datetimes = []
    for text in texts:
        with contextlib.suppress(ValueError):  # another format: not counted
            datetimes.append(_parsed(text, format_))
    return datetimes
