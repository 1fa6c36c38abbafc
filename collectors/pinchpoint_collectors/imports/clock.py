"""Local times of a recorder as UTC, over a clock change that its file does not mention.

A perfmon log notes its distance from UTC once, when it begins. When daylight saving time ends in the middle
of it, an hour comes twice; when it begins, an hour is missing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from pinchpoint_collectors.imports.pace import Pace
from pinchpoint_collectors.imports.record import ForeignFileError, Found

HOUR_S = 3600.0
SET_S = 60.0
"""A clock that is put right by its time service goes back by no more."""
NIGHT_ENDS = 5
"""Clocks are changed at night: a missing hour that begins later in the day is a gap in the recording."""


def zoned_s(local: datetime, zone: tzinfo, last_s: float | None) -> float:
    """UTC seconds of a local time by its zone's rules; of an hour that is twice there the first, unless past.

    Args:
        local: the time, without a zone.
        zone: its zone.
        last_s: UTC seconds of the time before; None: it is the first.
    """
    times = [local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)]
    return next((time_s for time_s in times if last_s is None or time_s > last_s), times[0])


class LocalClock:
    """Turns the local times of one recorder, in their order, into UTC seconds.

    Args:
        zone: the recorder's time zone, whose rules are then followed; None: ``offset_s`` holds at the begin.
        offset_s: seconds to add to a local time for UTC, where no zone is given.
        pace: how far apart the recorder's readings are.
        found: is told of clock changes.
    """

    def __init__(self, zone: tzinfo | None, offset_s: float, pace: Pace, found: Found) -> None:
        self._zone = zone
        self._offset_s = offset_s
        self._pace = pace
        self._found = found
        self._last: datetime | None = None
        self._last_s: float | None = None
        self._was_put_back = False

    def utc_s(self, local: datetime, line: int) -> float | None:
        """UTC seconds of the next local time; None of one that comes again after the clock was put right.

        Raises:
            ForeignFileError: it lies before the last one by more, and no clock change explains that.
        """
        time_s = zoned_s(local, self._zone, self._last_s) if self._zone else self._by_offset(local)
        if self._last_s is not None and time_s <= self._last_s:
            if local == self._last:
                raise ForeignFileError(f"two rows have the time {local}; take one of the two out", line)
            if self._last_s - time_s <= SET_S:
                self._note_put_back()
                return None
            raise ForeignFileError(
                f"the time goes back from {self._last} to {local}, and that is no clock change of an hour; "
                "split the file where that happens, and import the parts one by one",
                line,
            )
        self._last, self._last_s = local, time_s
        return time_s

    def _note_put_back(self) -> None:
        if not self._was_put_back:
            self._was_put_back = True
            self._found.note(
                f"its clock was put back by less than a minute, first after {self._last:%Y-%m-%d %H:%M:%S} "
                "local time: rows whose times had been there before were left out"
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
                f"{what} at {local:%Y-%m-%d %H:%M} local time: taken for a clock change, as the file notes "
                "its distance from UTC only once; --zone with the name of the time zone follows "
                "its rules instead"
            )
        return time_s + change_s

    def _change_s(self, step_s: float, local: datetime) -> float:
        """Seconds to add to the offset from here on: 0 where there is no clock change."""
        usual_s = self._pace.usual_s or HOUR_S / 60
        # Readings an hour apart must not look like an hour that comes twice.
        near_s = min(max(1.5 * usual_s, 2.0), HOUR_S / 2)
        if -HOUR_S - near_s <= step_s <= -HOUR_S + near_s + usual_s:
            return HOUR_S
        before = local - timedelta(seconds=HOUR_S)
        at_night = before.hour < NIGHT_ENDS
        if at_night and abs(step_s - usual_s - HOUR_S) <= near_s / 2:
            return -HOUR_S
        return 0.0
