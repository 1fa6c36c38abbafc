"""Reads SharePoint's crawl log as CSV: the history with a row per crawl, or the log with a row per item.

The file comes from ``CrawlLog.GetCrawlHistory()`` and ``CrawlLog.GetCrawledUrls()`` with ``Export-Csv``. Its
times are UTC. A row of the history becomes one sample over the whole crawl. Items are counted per minute, as
in crawl reports. Rate = documents ÷ duration; SharePoint's own rate is a further metric.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import ALLOWED_POWERSHELL_DATES, POWERSHELL_DATES
from pinchpoint_collectors.imports.times import Dates
from pinchpoint_collectors.record import Sample

MINUTE_S = 60
LONGEST_MIN = 31 * 1440
HISTORY = ("CrawlStartTime", "CrawlEndTime")
ITEMS = ("TimeStampUtc", "FullUrl")
_SUCCESS = ("Successes", "SuccessCount", "Success")
_ERRORS = ("Errors", "ErrorCount", "Error")
_NAMES = ("ContentSourceName", "ContentSource", "ContentSourceID", "ContentSourceId")
_MEANS = ("AverageCrawlRate", "AverageRepositoryTime")

_GROUPED = re.compile(r"\d{1,3}([.,\s'\u2019]\d{3})+")

_Row = tuple[int, Mapping[str, str]]


class CrawlLog:
    """Import format ``crawl-log``."""

    name = "crawl-log"
    says = "SharePoint's crawl history or crawl log as CSV (GetCrawlHistory, GetCrawledUrls, Export-Csv)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the columns of either shape."""
        first = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
        return any(all(name in first for name in names) for names in (HISTORY, ITEMS))

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Samples of ``search.*``, the content source as instance; see ``Format.read``."""
        rows = list(_rows(lines))
        columns = rows[0][1].keys()
        facts.facts("")
        if all(name in columns for name in HISTORY):
            yield from _history(rows, settings, facts)
        elif all(name in columns for name in ITEMS):
            yield from _items(rows, settings, facts)
        else:
            raise ForeignFileError(
                f"found the columns {', '.join(columns)}; allowed: {' and '.join(HISTORY)} (the history), or "
                f"{' and '.join(ITEMS)} (the log), among others"
            )


def _rows(lines: Iterable[str]) -> Iterator[_Row]:
    """Yield line and column -> cell. Export-Csv may first write a line about the type."""
    numbered = itertools.dropwhile(
        lambda each: not each[1].strip("\ufeff \r\n") or each[1].lstrip("\ufeff").startswith("#TYPE"),
        enumerate(lines, 1),
    )
    first = next(numbered, None)
    if first is None:
        raise ForeignFileError("it is empty")
    before, header = first[0] - 1, first[1].lstrip("\ufeff")
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(
        itertools.chain([header], (line for _, line in numbered)), delimiter=delimiter, strict=True
    )
    empty = True
    try:
        for row in reader:
            line = before + reader.line_num
            if None in row or None in row.values():
                raise ForeignFileError(
                    f"its cells do not match the header ({len(reader.fieldnames or ())}); the line is "
                    "damaged, or the file was cut off there: export it again",
                    line,
                )
            empty = False
            yield line, row
    except csv.Error as error:
        raise ForeignFileError(
            f"not a line of a CSV: {error}; the file may be truncated there: export it again",
            before + reader.reader.line_num,
        ) from error
    if empty:
        raise ForeignFileError("it contains a header but no row")


def _history(rows: Iterable[_Row], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
    rows = list(rows)
    clock = _LogTimes([row[name] for _, row in rows for name in HISTORY], settings, facts)
    decimal, open_ = _decimal_mark(rows), 0
    for line, row in rows:
        begun_s, ended_s = (clock.utc_s(row[name], line) for name in HISTORY)
        if begun_s is None or ended_s is None or ended_s <= begun_s:
            open_ += 1
            continue
        facts.line = line
        yield from _crawl(row, line, ended_s, ended_s - begun_s, decimal)
    if open_:
        facts.note(f"ignored {counted(open_, 'crawl')} that had not ended at the export")


def _crawl(
    row: Mapping[str, str], line: int, ended_s: float, length_s: float, decimal: str
) -> Iterator[Sample]:
    source, time_ns = _first(row, _NAMES) or "", round(ended_s * 1e9)
    done, failed = (_count(_first(row, names), line, decimal) for names in (_SUCCESS, _ERRORS))
    reported, latency = (_mean(row.get(name), line, decimal) for name in _MEANS)
    values: dict[str, tuple[float | None, float | None]] = {
        "search.documents_per_s": (None if done is None else done / length_s, None),
        "search.failures_per_s": (None if failed is None else failed / length_s, None),
        "search.reported_documents_per_s": (reported, None),
        "search.repository_latency_s": (None if latency is None else latency / 1000.0, done),
    }
    for metric, (value, weight) in values.items():
        if value is not None:
            yield Sample(time_ns, length_s, "", metric, source, value, weight)


def _items(rows: Iterable[_Row], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
    rows = list(rows)
    clock = _LogTimes([row["TimeStampUtc"] for _, row in rows], settings, facts)
    done: Counter[tuple[str, int]] = Counter()
    failed: Counter[tuple[str, int]] = Counter()
    for line, row in rows:
        time_s = clock.utc_s(row["TimeStampUtc"], line)
        if time_s is None:
            raise ForeignFileError("an item without its time; export the log again", line)
        key = _first(row, _NAMES) or "", int(time_s // MINUTE_S)
        counted = failed if (_count(row.get("ErrorLevel"), line) or 0) >= _ERROR_LEVEL else done
        counted[key] += 1
    for source in sorted({source for source, _ in (*done, *failed)}):
        minutes = [minute for name, minute in (*done, *failed) if name == source]
        if max(minutes) - min(minutes) > LONGEST_MIN:
            raise ForeignFileError(
                f"the items of source {source!r} are more than {LONGEST_MIN // 1440} days apart; "
                "export one crawl"
            )
        for minute in range(min(minutes), max(minutes) + 1):
            time_ns = (minute + 1) * MINUTE_S * 10**9
            for metric, counts in (("search.documents_per_s", done), ("search.failures_per_s", failed)):
                value = counts[source, minute] / MINUTE_S
                yield Sample(time_ns, float(MINUTE_S), "", metric, source, value)


_ERROR_LEVEL = 2
"""``ErrorLevel`` of the crawl log: 0 success, 1 warning, 2 error and above."""


def _first(row: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((row[name].strip() for name in names if row.get(name, "").strip()), None)


def _count(text: str | None, line: int, decimal: str = ".") -> float | None:
    """Return a whole number. It may have thousands separators, as in a workbook or a report."""
    plain = (text or "").strip()
    return _mean(re.sub(r"\D", "", plain) if _GROUPED.fullmatch(plain) else plain, line, decimal)


def _mean(text: str | None, line: int, decimal: str) -> float | None:
    """Return a number. Raises ``ForeignFileError`` if it is none, or can be read in two ways."""
    plain = (text or "").strip()
    if not plain:
        return None
    try:
        return numerals.strict(numerals.plain(plain, decimal))
    except numerals.AmbiguousNumeralError as error:
        raise ForeignFileError(
            f"found {plain[:40]!r}, whose comma stands between thousands or is the decimal mark; write the "
            "numbers with a point and nothing between thousands",
            line,
        ) from error
    except ValueError as error:
        raise ForeignFileError(f"found {plain[:40]!r} where a number should be", line) from error


def _decimal_mark(rows: Iterable[_Row]) -> str:
    """Return the decimal mark of a history: a comma if one of its means allows no other, such as 12,8."""
    cells = (row.get(name, "").strip() for _, row in rows for name in _MEANS)
    return "," if any(_is_number(cell, ",") and not _is_number(cell, ".") for cell in cells) else "."


def _is_number(text: str, decimal: str) -> bool:
    """Return whether the text is, or may be, a number with a decimal mark."""
    try:
        numerals.strict(numerals.plain(text, decimal))
    except numerals.AmbiguousNumeralError:
        return True
    except ValueError:
        return False
    return True


class _LogTimes:
    """Reads the times of one file.

    Args:
        texts: all times of the file.
        settings: settings with the zone, if times are not UTC.
        found: receives notes (see ``Dates``).
    """

    def __init__(self, texts: Sequence[str], settings: Settings, facts: FileFacts) -> None:
        self._dates = Dates(texts, POWERSHELL_DATES, facts)
        self._zone = settings.zone or UTC

    def utc_s(self, text: str, line: int) -> float | None:
        """Return UTC seconds; None if the cell is blank."""
        plain = text.strip()
        if not plain:
            return None
        try:
            moment = self._dates.read(plain)
        except ValueError as error:
            raise ForeignFileError(
                f"found the time {plain[:40]!r}; {ALLOWED_POWERSHELL_DATES}", line
            ) from error
        return (moment if moment.tzinfo else moment.replace(tzinfo=self._zone)).timestamp()
