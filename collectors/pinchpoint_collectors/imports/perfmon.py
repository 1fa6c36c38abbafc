"""Logs of Windows' Performance Monitor as CSV or TSV (perfmon, logman, relog), and what typeperf prints.

The first cell of the header is ``(PDH-CSV 4.0) (<zone>)(<minutes to add for UTC>)``, of typeperf just
``(PDH-CSV 4.0)``; the others are counters' paths. Rows begin with the local time, ``MM/DD/YYYY HH:MM:SS.mmm``
in every language, the end of what the row covers. The first row covers a time that nobody knows: of it only
when it was is used.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pinchpoint_collectors import bounds
from pinchpoint_collectors.imports import numerals
from pinchpoint_collectors.imports.clock import LocalClock
from pinchpoint_collectors.imports.pace import Pace
from pinchpoint_collectors.imports.perfmon_columns import Column, columns_of
from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings
from pinchpoint_collectors.record import Sample

_HEADER = re.compile(r"\(PDH-[CT]SV 4\.0\)\s*(?:\((?P<zone>.*)\)\s*\((?P<minutes>-?\d+)\))?\s*", re.DOTALL)
_BEGINS = re.compile(r"[\ufeff\s]*\"?\(PDH-[CT]SV 4\.0\)")
_TIME = "%m/%d/%Y %H:%M:%S.%f"
_DELIMITER = re.compile(r"\"([,;\t])\"|(?<!\")([,;\t])\\")
"""Between two cells of the header; a spreadsheet that saved the log left the quotes out."""


@dataclass(slots=True)
class _Series:
    """What is known of a column while rows are read.

    Attributes:
        begun: whether it has had a value: an instance may come later than the log.
        negative: how many of its values were below 0, which no counter is: typeperf writes -1 for "invalid".
    """

    column: Column
    begun: bool = False
    negative: int = 0


class Perfmon:
    """Format ``perfmon``."""

    name = "perfmon"
    says = (
        "a log of Windows' Performance Monitor as CSV or TSV (logman, relog -f csv), or what typeperf prints"
    )

    def recognises(self, head: str) -> bool:
        """By the first cell of the header."""
        return _BEGINS.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, found: Found) -> Iterator[Sample]:
        """One sample per counter that is understood and row; see ``Format.read``."""
        rows = _rows(lines)
        number, header = next(rows, (1, []))
        if not header:
            raise ForeignFileError(
                "it holds no header line; allowed: the file as perfmon or typeperf wrote it"
            )
        pace = Pace()
        clock = _clock(header[0], number, settings, pace, found)
        series = [_Series(column) for column in columns_of(header[1:], settings.names, found)]
        last_s: float | None = None
        for line, row in _whole(rows, len(header), found):
            found.line = line
            time_s = clock.utc_s(_local(row[0], line), line)
            if time_s is None:
                continue
            if last_s is not None:
                covered_s = pace.covered_s(last_s, time_s)
                yield from _samples(series, row, time_s, (time_s - last_s, covered_s), line)
            last_s = time_s
        if last_s is None:
            raise ForeignFileError("it holds a header and not a single row; record for longer")
        pace.tell(found)
        _note(series, found)


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of all lines that are not empty; which delimiter it is, the header tells."""
    delimiter = None
    for number, line in enumerate(lines, 1):
        text = line.strip("\ufeff\r\n ")
        if not text:
            continue
        if delimiter is None:
            between = _DELIMITER.search(text)
            delimiter = (between[1] or between[2]) if between else "\t" if "\t" in text else ","
        try:
            row = next(csv.reader([text], delimiter=delimiter))
        except csv.Error as error:
            raise ForeignFileError(f"no line of a CSV: {error}; export the log again", number) from error
        # A cell whose quote is not closed was cut off: what is there of it is no value.
        yield number, row[:-1] if text.startswith('"') and not text.endswith('"') else row


def _whole(
    rows: Iterator[tuple[int, list[str]]], width: int, found: Found
) -> Iterator[tuple[int, list[str]]]:
    """The rows with all their cells. Words after the last one are typeperf's; a last row may be cut off."""
    held: tuple[int, list[str]] | None = None
    ended = False
    for line, row in rows:
        if held is not None:
            yield held
            held = None
        if row and _HEADER.fullmatch(row[0].strip()):
            raise ForeignFileError(
                "another log begins here; split the file before this line, and import the parts one by one",
                line,
            )
        if _is_words(row, width):
            ended = True
        elif ended:
            raise ForeignFileError(
                "readings go on after the end of a log; split the file there, and import the "
                "parts one by one",
                line,
            )
        elif len(row) != width:
            if next(rows, None) is not None:
                raise ForeignFileError(
                    f"found {len(row)} cells, the header has {width}; a line in the middle is damaged: take "
                    "it out, or export the log again (relog LOG.blg -f csv)",
                    line,
                )
            found.note("its last line is cut off, and was left out")
            return
        else:
            held = line, row
    if held is not None:
        yield held


def _is_words(row: Sequence[str], width: int) -> bool:
    """Whether a line is what typeperf says at its end: "Exiting, please wait...", in whatever language.

    With commas it may have as many parts as a row of one counter has cells.
    """
    begins = [cell.strip()[:1] for cell in row]
    return not "".join(begins[:1]).isdigit() and (len(row) != width or not any(map(str.isdigit, begins)))


def _parsed(text: str) -> datetime:
    return datetime.strptime(text.strip(), _TIME)  # noqa: DTZ007 -- local time; the header says of where


def _local(text: str, line: int) -> datetime:
    try:
        return _parsed(text)
    except ValueError as error:
        raise ForeignFileError(
            f"found the time {text[:40]!r}; allowed: MM/DD/YYYY HH:MM:SS.mmm, as perfmon writes it in every "
            "language (a spreadsheet that saved the file may have changed that: export it again)",
            line,
        ) from error


def _clock(cell: str, line: int, settings: Settings, pace: Pace, found: Found) -> LocalClock:
    """The file's clock: by ``--zone``, else by what its header says, else UTC, which is said."""
    match = _HEADER.fullmatch(cell.strip())
    if match is None:
        raise ForeignFileError(
            f"found the first cell {cell[:60]!r}; allowed: (PDH-CSV 4.0), and behind it (ZONE)(MINUTES)", line
        )
    minutes = match["minutes"]
    if settings.zone is None and minutes is None:
        found.zone_assumed = True
        found.note(
            "the file names no time zone (typeperf writes none), so its times were taken for UTC; "
            "--zone says which they are"
        )
    return LocalClock(settings.zone, 60.0 * int(minutes or 0), pace, found)


def _samples(
    series: Sequence[_Series], row: Sequence[str], time_s: float, covered_s: tuple[float, float], line: int
) -> Iterator[Sample]:
    """The samples of a row.

    Args:
        series: its columns.
        row: its cells.
        time_s: UTC seconds of it.
        covered_s: seconds for which its rates stand (PDH's are from reading to reading), and those for which
            its values of the moment do.
        line: where it is.
    """
    time_ns = round(time_s * 1e9)
    for one in series:
        column = one.column
        value = _number(row[column.at], line)
        if value is not None and value < 0:
            one.negative += 1
            value = None
        if value is None and not one.begun:
            continue  # an instance that is not there yet
        one.begun = True
        interval_s = covered_s[column.instant]
        weight = None
        if column.weight_at is not None:
            rate = _number(row[column.weight_at], line)
            weight = None if rate is None else max(0.0, rate) * interval_s
        if column.metric.endswith("_latency_s") and (value == 0 or weight == 0):
            value = None  # of no operation Windows writes the latency 0
        shown = None if value is None else bounds.share(value * column.scale + column.offset)
        yield Sample(time_ns, interval_s, column.host, column.metric, column.instance, shown, weight)


def _number(text: str, line: int) -> float | None:
    """A cell's value; None where it is blank."""
    plain = text.strip()
    if not plain or numerals.is_none(plain):
        return None
    try:
        return numerals.strict(plain.replace(",", ".") if "." not in plain else plain)
    except ValueError as error:
        raise ForeignFileError(
            f"found {plain[:40]!r} where a number should be; allowed: a number, or nothing where "
            "none was read",
            line,
        ) from error


def _note(series: Sequence[_Series], found: Found) -> None:
    never = [one.column.path for one in series if not one.begun]
    if never:
        found.note(f"{len(never)} counters have no value in the whole file, such as {never[0]}")
    negative = sum(one.negative for one in series)
    if negative:
        found.note(f"{negative} values are below 0, which says that they could not be read: not measured")
