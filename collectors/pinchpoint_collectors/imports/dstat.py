"""Reads the CSV of dstat, dool and pcp-dstat (``--output``), and their output on the screen.

Two lines name the columns: the group (``dsk/sda``), and the name within it (``read``). The first row covers
the time since the machine's boot and is left out. Times have no year; the date of the header gives it.
Without a column for times, that date and the interval of the command line are used. A file that is appended
to has one header per recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import Reported, available_of, cpu_values, scaled, total
from pinchpoint_collectors.imports.text import LastLine, cells, csv_cells, number, zone_of
from pinchpoint_collectors.imports.times import ReadingTimes, begin_of, numbered_s, zoned_s
from pinchpoint_collectors.record import Sample

_BEGINS = re.compile(r"[\ufeff\s]*\"?(?:pcp-dstat|Dstat|Dool) \S+ CSV output", re.IGNORECASE)
_SCREEN = re.compile(r"[\ufeff\s]*-+total[- ]cpu[- ]usage-+.*")
_CELL = re.compile(r"(?P<number>\d+(?:\.\d*)?)(?P<unit>[BkMGT])")
_DATE = re.compile(r"(?P<date>\d{1,2} \w+ \d{4} \d\d:\d\d:\d\d)\s*(?P<zone>\S*)")
_EVERY = re.compile(r"\s(?P<first>[1-9]\d*)(?:\s+\d+)?\s*$")
"""Pattern of interval and count in a command line."""
_CPU = re.compile(r"(?:total|cpu(?P<core>\d+))(?: cpu)? usage")
_TIMES = ("%d-%m %H:%M:%S", "%b-%d %H:%M:%S")
"""Formats of times in dstat and dool."""
_ALL = "total"
Column = tuple[str, str]
"""The group and the name of a column."""
Row = Mapping[Column, float | None]


class Dstat:
    """Import format ``dstat``."""

    name = "dstat"
    says = "CSV of dstat, dool or pcp-dstat (dstat -tcmsgprdn -D sda -N eth0 --output FILE 5)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the first line."""
        return (_BEGINS.match(head) or _SCREEN.match(head)) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        part: _Section | None = None
        last = LastLine(facts)
        titles: list[str] = []
        for line, text in last.lines(lines):
            if _BEGINS.match(text):
                part = _Section(settings, facts)
            elif _SCREEN.match(text):
                part, titles = part or _Section(settings, facts), text.split()
            elif titles and part is not None:
                part.begin_screen(titles, text)
                titles = []
            elif part is not None:
                yield from last.kept(part.samples(text, line))
        facts.note("the first row covers the time since boot and was ignored")


class _Section:
    """The rows after one header.

    Args:
        settings: user's options (see ``record.Settings``).
        found: receives facts (see ``record.FileFacts``).
    """

    def __init__(self, settings: Settings, facts: FileFacts) -> None:
        self._settings = settings
        self._found = facts
        self._host = ""
        self._begin: datetime | None = None
        self._zone_name = ""
        self._every_s = 1.0
        self._is_screen = False
        self._groups: Sequence[str] = ()
        self._columns: list[Column] = []
        self._pace = ReadingTimes()
        self._last_s: float | None = None

    def begin_screen(self, titles: Sequence[str], text: str) -> None:
        """Process the two lines of names on a screen. They are repeated on each page."""
        groups = [title.strip("-").replace("-", " ") for title in titles]
        names = [part.split() for part in text.split("|")]
        self._columns = [(group, name) for group, its in zip(groups, names, strict=False) for name in its]
        self._groups, self._is_screen = groups, True
        self._found.facts("").update(os="Linux")

    def samples(self, text: str, line: int) -> Iterator[Sample]:
        """Return the samples of one line. Raises ``ForeignFileError``."""
        if self._is_screen:
            yield from self._row(_screen_cells(text), line)
            return
        delimiter = ";" if text.count(";") > text.count(",") else ","
        row = csv_cells(text.strip(), delimiter, line)
        if row[0] in {"Author:", "Host:", "Cmdline:"}:
            self._header(row)
        elif not self._groups:
            self._groups = _filled(row)
        elif not self._columns:
            names = [name.rpartition(":")[2] for name in row]
            if len(names) != len(self._groups):
                raise ForeignFileError(
                    f"found {len(names)} names; allowed: {len(self._groups)}, one for each column group "
                    "of the line above",
                    line,
                )
            self._columns = list(zip(self._groups, names, strict=True))
        else:
            yield from self._row(row, line)

    def _header(self, row: Sequence[str]) -> None:
        answer = dict(pairwise(row))
        if host := answer.get("Host:"):
            self._host = host
            self._found.facts(host).update(os="Linux")
        if every := _EVERY.search(answer.get("Cmdline:", "")):
            self._every_s = float(every["first"])
        if date := _DATE.match(answer.get("Date:", "")):
            self._zone_name = date["zone"]
            try:
                self._begin = datetime.strptime(date["date"], "%d %b %Y %H:%M:%S")  # noqa: DTZ007 -- `_local_s` gives it its zone
            except ValueError:
                self._found.note(f"the date in its header cannot be read: {date['date']}")

    def _row(self, row: Sequence[str], line: int) -> Iterator[Sample]:
        names = [f"{group} {name}" for group, name in self._columns]
        cells(names, row, line)
        result = dict(zip(self._columns, zip(names, row, strict=True), strict=True))
        time_s = self._time_s(result, line)
        if self._last_s is not None and time_s <= self._last_s:
            raise ForeignFileError(
                "the time is not later than that of the row before; split the file where its clock changed",
                line,
            )
        before_s, self._last_s = self._last_s, time_s
        if before_s is None:
            return
        values = {
            column: number(cell, name, line) for column, (name, cell) in result.items() if column[1] in _USED
        }
        interval_s = self._pace.covered_s(before_s, time_s)
        for metric, instance, value, weight in _values(values, interval_s, self._found):
            yield Sample(round(time_s * 1e9), interval_s, self._host, metric, instance, value, weight)

    def _time_s(self, row: Mapping[Column, tuple[str, str]], line: int) -> float:
        epoch, time = (
            next((cell for (_, known), (_, cell) in row.items() if known == name), None)
            for name in ("epoch", "time")
        )
        if epoch is not None and (seconds := number(epoch, "epoch", line)) is not None:
            return seconds
        if time is not None:
            return self._local_s(self._moment(time, line))
        if self._last_s is not None:
            return self._last_s + (self._settings.every_s or self._every_s)
        if self._settings.start_s is not None:
            return self._settings.start_s
        if self._begin is None:
            start_s, self._every_s = numbered_s(self._settings, self._found)
            return start_s
        self._found.note(
            f"its rows have no time: one row per {self._every_s:g} s (its command line) from the date in "
            "its header was assumed; record with -t or --epoch"
        )
        return self._local_s(self._begin)

    def _moment(self, text: str, line: int) -> datetime:
        """Return a time with the year of the header, or with the next year if it is far before that date."""
        begin = self._begin or begin_of(self._settings, self._found).replace(tzinfo=None)
        for format_ in _TIMES:
            for year in (begin.year, begin.year + 1):
                try:
                    moment = datetime.strptime(f"{year} {text.strip()}", f"%Y {format_}")  # noqa: DTZ007 -- its zone is below
                except ValueError:
                    continue
                if (begin - moment).days < _LONG_PAST:
                    return moment
        raise ForeignFileError(
            f"found the time {text!r}; allowed: DD-MM HH:MM:SS, as dstat -t writes it", line
        )

    def _local_s(self, moment: datetime) -> float:
        is_utc = self._zone_name in {"UTC", "GMT"} and self._settings.zone is None
        zone = UTC if is_utc else zone_of(self._settings, self._found)
        return zoned_s(moment, zone, self._last_s)


def _screen_cells(text: str) -> list[str]:
    """Return the cells of a line on the screen, in base units. A time contains a space."""
    result: list[str] = []
    for part in text.split("|"):
        words = [part.strip()] if ":" in part else part.split()
        for word in words:
            match = _CELL.fullmatch(word)
            factor = 1024.0 ** "BkMGT".index(match["unit"]) if match else 1.0
            result.append(str(float(match["number"]) * factor) if match else word)
    return result


def _filled(row: Sequence[str]) -> Sequence[str]:
    """Return the group of each column. The name of a group stands only above its first column."""
    groups: list[str] = []
    for name in row:
        groups.append(name or (groups[-1] if groups else ""))
    return groups


_LONG_PAST = 180
"""Number of days before the date of the header from which a time belongs to the next year."""
_CPU_NAMES = {"idl": "idle", "wai": "iowait", "stl": "steal"}
_DISK: Mapping[Column, tuple[str, float]] = {
    ("dsk", "read"): ("read_bytes_per_s", 1.0),
    ("dsk", "writ"): ("write_bytes_per_s", 1.0),
    ("io", "read"): ("reads_per_s", 1.0),
    ("io", "writ"): ("writes_per_s", 1.0),
    ("dsk", "#read"): ("reads_per_s", 1.0),
    ("dsk", "#writ"): ("writes_per_s", 1.0),
    ("", "avgqu"): ("outstanding", 1.0),
    ("", "util"): ("busy_ratio", 0.01),
    ("", "rawait"): ("read_latency_s", 0.001),
    ("", "wawait"): ("write_latency_s", 0.001),
}
"""Kind of a disk's group, and column -> metric and unit. Groups of some plug-ins are only the name of the
disk."""
_PLAIN: Mapping[Column, str] = {
    ("procs", "run"): "cpu.run_queue",
    ("procs", "blk"): "cpu.blocked_threads",
    ("paging", "in"): "mem.paged_in_bytes_per_s",
    ("paging", "out"): "mem.paged_out_bytes_per_s",
}
_NET = {"recv": "net.received_bytes_per_s", "send": "net.sent_bytes_per_s"}
_MEMORY = ("used", "free", "buff", "cach")
_USED = frozenset({"usr", "sys", *_CPU_NAMES, *_NET, *_MEMORY, *(name for _, name in (*_DISK, *_PLAIN))})


def _values(row: Row, interval_s: float, facts: FileFacts) -> Iterator[Reported]:
    groups = dict.fromkeys(group for group, _ in row)
    is_all = sum(group.startswith("net/") for group in groups) == 1
    for group in groups:
        its = {name: value for (of, name), value in row.items() if of == group}
        if cpu := _CPU.fullmatch(group):
            fields = {_CPU_NAMES.get(name, name): value for name, value in its.items()}
            yield from ((metric, cpu["core"] or "", value, None) for metric, value in cpu_values(fields))
        elif group == "memory usage":
            free, cached = its.get("free"), total(its.get("buff"), its.get("cach"))
            available, size = available_of(None, free, cached, facts), total(free, cached, its.get("used"))
            yield "mem.available_bytes", "", available, None
            share = available / size if available is not None and size else None
            yield "mem.available_ratio", "", share, None
        elif group.startswith("net/") and (group != f"net/{_ALL}" or is_all):
            yield from ((metric, group[len("net/") :], its.get(name), None) for name, metric in _NET.items())
    yield from ((metric, "", row[key], None) for key, metric in _PLAIN.items() if key in row)
    for disk, figures in _disks(row).items():
        for metric, value in figures.items():
            if metric.endswith("_latency_s"):
                rate = figures.get(f"{metric.partition('_')[0]}s_per_s")
                weight = None if rate is None else rate * interval_s
                yield f"disk.{metric}", disk, value if value and rate != 0 else None, weight
            else:
                yield f"disk.{metric}", disk, value, None


def _disks(row: Row) -> Mapping[str, Mapping[str, float | None]]:
    """Return disk -> metric -> value. The total is used only if there are no single disks."""
    result: dict[str, dict[str, float | None]] = {}
    for (group, name), value in row.items():
        kind, slash, disk = group.rpartition("/")
        if known := _DISK.get((kind if slash else "", name)):
            metric, scale = known
            result.setdefault(disk, {}).setdefault(metric, scaled(value, scale))
    return {disk: its for disk, its in result.items() if disk != _ALL or len(result) == 1}
