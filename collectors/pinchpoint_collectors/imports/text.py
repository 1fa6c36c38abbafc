"""Parses tables in text: cells with numbers, an incomplete last line, times of day without a date."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.times import Dates, zoned_s
from pinchpoint_collectors.record import Sample

DATES = (
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%y %I:%M:%S %p",
    "%d/%m/%Y %I:%M:%S %p",
    "%d/%m/%y %I:%M:%S %p",
    "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%y %H:%M:%S",
    "%d-%m-%y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S",
    "%Y年%m月%d日 %H時%M分%S秒",
    "%Y年%m月%d日 %H时%M分%S秒",
    "%Y年%m月%d日 %H:%M:%S",
)
"""Formats of times in the locales of America, Europe and East Asia. ISO 8601 needs no format."""
ALLOWED_DATES = (
    "allowed: ISO 8601 (S_TIME_FORMAT=ISO in the recorder's environment), or as locales of America, "
    "Europe and East Asia write it, the same for all times of a file"
)
POWERSHELL_DATES = (
    "%m/%d/%Y %I:%M:%S %p",
    "%d/%m/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
)
"""Formats of times in PowerShell's American, European and East Asian cultures."""
ALLOWED_POWERSHELL_DATES = (
    "allowed: ISO 8601, or as PowerShell writes it in America (en-US), Europe (de-DE, fr-FR) or East "
    "Asia (ja-JP), the same for all times of a file"
)
_NOTHING = frozenset({"", "-", "nan", "-nan"})
"""Cells without a value."""


def number(text: str, column: str, line: int) -> float | None:
    """Return the number in a cell, with a decimal point or comma; None if it is marked as missing."""
    plain = text.strip()
    if plain.lower() in _NOTHING or numerals.is_none(plain):
        return None
    try:
        return numerals.strict(plain.replace(",", ".") if "." not in plain else plain)
    except ValueError as error:
        raise ForeignFileError(
            f"found {text[:40]!r} in column {column}; allowed: a number; remove the line, or record again",
            line,
        ) from error


def csv_cells(text: str, delimiter: str, line: int) -> list[str]:
    """Return the cells of one line of a CSV, at least one.

    Raises ``ForeignFileError`` for an invalid line.
    """
    try:
        return next(csv.reader([text.replace("\0", "")], delimiter=delimiter)) or [""]
    except csv.Error as error:
        raise ForeignFileError(
            f"not a line of a CSV: {error}; remove the line, or record again", line
        ) from error


def cells(columns: Sequence[str], words: Sequence[str], line: int) -> Mapping[str, str]:
    """Return column -> cell. Raises ``ForeignFileError`` if a row has more or fewer cells than the header."""
    if len(columns) != len(words):
        raise ForeignFileError(
            f"found {len(words)} cells; allowed: {len(columns)}, one for each column of the header "
            f"({' '.join(columns)[:60]}); remove the line, or record again",
            line,
        )
    return dict(zip(columns, words, strict=True))


class LastLine:
    """Remembers a damaged line. The last line of a file may be incomplete; any other is an error."""

    def __init__(self, facts: FileFacts) -> None:
        self._found = facts
        self._damage: ForeignFileError | None = None

    def lines(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Yield number and text of each line that is not blank.

        ``found`` records the line, and an incomplete last line.

        Raises:
            ForeignFileError: a line that is not the last one is damaged.
        """
        for line, text in enumerate(lines, 1):
            if not text.strip():
                continue
            if self._damage is not None:
                raise self._damage
            self._found.line = line
            yield line, text
        if self._damage is not None:
            self._found.note("the last line is truncated and was ignored")

    def kept(self, samples: Iterable[Sample]) -> Sequence[Sample]:
        """Yield the samples of the current line; none if it is damaged."""
        try:
            return list(samples)
        except ForeignFileError as error:
            self.damaged(error)
            return ()

    def damaged(self, error: ForeignFileError) -> None:
        """Mark the current line as damaged."""
        self._damage = error


class DayClock:
    """Returns UTC seconds of times of day in order. A time before the last one is on the next day.

    Args:
        date: date of the first time, as in the file.
        settings: settings with the zone, if given.
        found: receives a note if times were read as UTC.
    """

    def __init__(self, date: str, settings: Settings, facts: FileFacts) -> None:
        self._date = date
        self._dates: Dates | None = None
        self._settings = settings
        self._found = facts
        self._last: datetime | None = None
        self._last_clock = ""
        self._last_s: float | None = None

    def utc_s(self, clock: str, line: int | None) -> float:
        """Return UTC seconds. Raises ``ForeignFileError`` for an invalid time of day."""
        if clock == self._last_clock and self._last_s is not None:
            return self._last_s
        text = f"{self._date} {clock}"
        self._dates = self._dates or Dates([text], DATES, self._found)
        try:
            local = self._dates.read(text)
        except ValueError as error:
            raise ForeignFileError(f"found the time {text!r}; {ALLOWED_DATES}", line) from error
        while self._last is not None and local < self._last - _SET_BACK:
            local += timedelta(days=1)
        self._last, self._last_clock = local, clock
        self._last_s = zoned_s(local, zone_of(self._settings, self._found), self._last_s)
        return self._last_s


_SET_BACK = timedelta(hours=2)
"""Longest time in seconds by which a clock is set back: an hour at the end of summer time."""


def zone_of(settings: Settings, facts: FileFacts) -> tzinfo:
    """Return the zone of times without one. ``facts`` gets a note if it is unknown."""
    if settings.zone is None:
        facts.zone_assumed = True
        facts.note("its times have no time zone; UTC was assumed: give --zone if that is wrong")
    return settings.zone or UTC
