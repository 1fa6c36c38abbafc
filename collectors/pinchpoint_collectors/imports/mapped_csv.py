"""Reads any CSV with a mapping of its columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pinchpoint_collectors import bounds
from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import CsvMapping, FileFacts, MappedColumn, Settings
from pinchpoint_collectors.imports.times import ReadingTimes, zoned_s
from pinchpoint_collectors.record import Sample

METRICS = frozenset(
    {
        *(
            f"cpu.{name}"
            for name in (
                "busy_ratio",
                "steal_ratio",
                "wait_ratio",
                "run_queue",
                "waiting_threads",
                "blocked_threads",
                "stolen_cores",
                "throttled_ratio",
                "used_cores",
                "used_burst_ratio",
            )
        ),
        *(
            f"mem.{name}"
            for name in (
                "available_bytes",
                "available_ratio",
                "paged_in_bytes_per_s",
                "paged_out_bytes_per_s",
                "paged_bytes_per_s",
                "major_faults_per_s",
                "ballooned_bytes",
                "demand_ratio",
                "collecting_ratio",
            )
        ),
        *(f"disk.{way}s_per_s" for way in ("read", "write", "transfer")),
        "disk.flushes_per_s",
        *(f"disk.{way}_bytes_per_s" for way in ("read", "write")),
        *(f"disk.{way}_latency_s" for way in ("read", "write", "flush", "transfer")),
        "disk.outstanding",
        "disk.busy_ratio",
        "disk.used_iops_ratio",
        "disk.used_bytes_ratio",
        "disk.used_burst_ratio",
        *(f"net.{name}_bytes_per_s" for name in ("received", "sent", "total", "speed")),
        "net.used_ratio",
        "net.output_queue",
        "mem.committed_ratio",
        "net.errors_per_s",
        "net.drops_per_s",
        "net.received_dropped_ratio",
        "net.sent_dropped_ratio",
        "net.retransmits_per_s",
        "net.segments_sent_per_s",
        "net.nfs_retransmits_per_s",
        *(f"pressure.{name}_ratio" for name in ("cpu", "io", "memory")),
    }
)
"""Metrics that a column may have. ``db.*``, ``search.*`` and ``web.*`` may have any name."""

_MOST_OUTSTANDING = 10_000.0
"""Largest number of outstanding I/Os (rate x latency) of a disk. Above it, the latency has another unit."""
_UNIX = {"unix": 1.0, "unix_ms": 1e3}
"""Format of times that count since 1970 -> units per second."""
_MS = 1e11
"""Smallest number of a time in milliseconds. In seconds it would be beyond the year 5000."""

_NOTHING = frozenset({"", "nan", "null", "none", "n/a", "-"})
"""Cells without a value, such as errors of a workbook (#N/A, #DIV/0!)."""
_OWN = re.compile(r"(db|search|web)\.[a-z0-9_.]+")


def is_metric(name: str) -> bool:
    """Return whether a mapping may name a metric."""
    return name in METRICS or _OWN.fullmatch(name) is not None


class MappedCsv:
    """Import format ``csv``."""

    name = "csv"
    says = "any CSV, with a mapping of its columns (--kind csv --map MAPPING)"

    def recognises(self, head: str) -> bool:  # noqa: ARG002 -- nothing distinguishes a CSV from text; --kind does
        """Return False: the format is never recognised."""
        return False

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per mapped cell (see ``Format.read``)."""
        mapping = settings.mapping
        if mapping is None:
            raise ForeignFileError(
                "the columns of a CSV are unknown: describe them in a YAML file and give it with --map "
                "MAPPING"
            )
        reader = csv.reader(lines, delimiter=mapping.delimiter)
        try:
            header = [cell.strip("\ufeff ") for cell in _header(reader)]
            rows = _MappedRows(header, mapping, settings, facts)
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield from rows.samples(row, reader.line_num)
            rows.report()
        except csv.Error as error:
            raise ForeignFileError(f"not a line of a CSV: {error}", reader.line_num) from error


def _header(reader: Iterator[list[str]]) -> list[str]:
    """Return the first line that is neither empty nor the separator line of a spreadsheet (``sep=;``)."""
    for row in reader:
        if any(cell.strip("\ufeff ") for cell in row) and not row[0].strip("\ufeff ").startswith("sep="):
            return row
    return []


def _places(header: Sequence[str], mapping: CsvMapping) -> Mapping[str, int]:
    """Return column -> position. Raises ``ForeignFileError`` that names every missing column."""
    places = {name: at for at, name in enumerate(header)}
    wanted = [mapping.time, *([mapping.host_column] if mapping.host_column else []), *mapping.columns]
    wanted += [column.weight for column in mapping.columns.values() if column.weight]
    twice = [name for name in dict.fromkeys(wanted) if header.count(name) > 1]
    if twice:
        raise ForeignFileError(
            f"several columns are named {', '.join(map(repr, twice))}, which the mapping names; give each a "
            "name of its own",
            1,
        )
    missing = [name for name in dict.fromkeys(wanted) if name not in places]
    if missing:
        raise ForeignFileError(
            f"no column {', '.join(map(repr, missing))}, which the mapping names; there are "
            f"{', '.join(map(repr, header[:30]))}; mind the delimiter ({mapping.delimiter!r})",
            1,
        )
    return places


class _MappedRows:
    """Converts the rows of one file to samples, in order.

    Args:
        header: names of the columns.
        mapping: meaning of the columns.
        settings: settings with the zone, if times have none.
        found: receives the hosts.
    """

    def __init__(
        self, header: Sequence[str], mapping: CsvMapping, settings: Settings, facts: FileFacts
    ) -> None:
        self._places = _places(header, mapping)
        self._width = len(header)
        self._mapping = mapping
        self._settings = settings
        self._found = facts
        self._last_s: dict[str, float] = {}
        self._paces: dict[str, ReadingTimes] = {}
        self._seen: dict[str, set[float]] = {}

    def samples(self, row: Sequence[str], line: int) -> Iterator[Sample]:
        """Return the samples of one row. Raises ``ForeignFileError``."""
        mapping, places = self._mapping, self._places
        self._found.line = line
        if len(row) < self._width or any(cell.strip() for cell in row[self._width :]):
            raise ForeignFileError(
                f"found {len(row)} cells, the header has {self._width}; a decimal mark that is the delimiter "
                f"({mapping.delimiter!r}) as well must stand in quotes",
                line,
            )
        host = row[places[mapping.host_column]].strip() if mapping.host_column else mapping.host or ""
        time_s = self._time_s(row[places[mapping.time]].strip(), host, line)
        self._found.facts(host)
        interval_s = self._interval_s(host, time_s, line)
        if interval_s is None:
            return
        for name, column in mapping.columns.items():
            value = self._number(row[places[name]], line)
            weight = None
            if column.weight:
                rate = self._number(row[places[column.weight]], line)
                weight = None if rate is None else rate * interval_s
            sample = _sample(column, time_s, interval_s, host, value, weight)
            _check_latency(sample, name, line)
            yield sample

    def _number(self, text: str, line: int) -> float | None:
        """Return the value of a cell; None if it is blank or marked as missing."""
        plain = text.strip().removesuffix("%").rstrip()
        if plain.lower() in _NOTHING or plain.startswith("#"):
            return None
        if numerals.is_none(plain):
            self._found.note("cells with inf or an unusual nan are not numbers and count as not measured")
            return None
        mapping = self._mapping
        try:
            return numerals.strict(numerals.plain(plain, mapping.decimal, mapping.thousands))
        except ValueError as error:
            raise ForeignFileError(
                f"found {text[:40]!r} where a number should be; mind the decimal mark ({mapping.decimal!r}), "
                "and what stands between thousands (`thousands:` in the mapping)",
                line,
            ) from error

    def report(self) -> None:
        """Report gaps in the recording."""
        for host, pace in self._paces.items():
            pace.report(self._found, host)

    def _time_s(self, text: str, host: str, line: int) -> float:
        """Return the UTC seconds of a row's time."""
        format_ = self._mapping.time_format
        try:
            if format_ in _UNIX:
                return _unix_s(text, format_, line)
            moment = (
                datetime.fromisoformat(text) if format_ is None else datetime.strptime(text, format_)  # noqa: DTZ007 -- it gets its zone below
            )
        except ValueError as error:
            raise ForeignFileError(
                f"found the time {text[:40]!r}; allowed: {format_ or 'ISO 8601'} (format, under time, in the "
                "mapping)",
                line,
            ) from error
        if moment.tzinfo is not None:
            return moment.timestamp()
        if self._settings.zone is None:
            self._found.zone_assumed = True
            self._found.note("its times have no time zone; UTC was assumed: give --zone if that is wrong")
        # Rows with a duration of their own may be in any order: an hour that occurs twice is ambiguous.
        last_s = self._last_s.get(host) if self._mapping.interval_s is None else None
        return zoned_s(moment, self._settings.zone or UTC, last_s)

    def _interval_s(self, host: str, time_s: float, line: int) -> float | None:
        """Return the seconds that a row covers; None for the first row, for which they are unknown."""
        given = self._mapping.interval_s
        before_s = self._last_s.get(host)
        self._last_s[host] = time_s
        seen = self._seen.setdefault(host, set())
        if given is not None:
            if time_s in seen:
                raise ForeignFileError(
                    "there is another row of the same host and time; allowed: one row for both, with a "
                    "column for each disk (a file of a row per disk must be turned around first)",
                    line,
                )
            seen.add(time_s)
            return given
        if before_s is None:
            return None
        if time_s <= before_s:
            raise ForeignFileError(
                "the time is not later than that of the row before; sort the file by time, or give the "
                "interval of a row (interval: 15s in the mapping)",
                line,
            )
        return self._paces.setdefault(host, ReadingTimes()).covered_s(before_s, time_s)


def _check_latency(sample: Sample, column: str, line: int) -> None:
    """Raises ``ForeignFileError`` if the latency means more outstanding I/Os than any disk gets."""
    if not (sample.metric.startswith("disk.") and sample.metric.endswith("_latency_s")):
        return
    if not bounds.is_possible(sample):
        return
    outstanding = (sample.value or 0.0) * (sample.weight or 0.0) / sample.interval_s
    if outstanding > _MOST_OUTSTANDING:
        raise ForeignFileError(
            f"column {column!r} gives {sample.value:g} s for {sample.metric}, with {outstanding:,.0f} "
            "outstanding at a time, which no disk does; for milliseconds write `scale: 0.001` in the "
            "mapping",
            line,
        )


def _sample(
    column: MappedColumn,
    time_s: float,
    interval_s: float,
    host: str,
    value: float | None,
    weight: float | None,
) -> Sample:
    none = column.metric.endswith("_latency_s") and (weight == 0 or (weight is None and value == 0))
    ours = None if value is None or none else value * column.scale + column.offset
    if ours is not None and column.metric.endswith("_ratio"):
        ours = bounds.share(ours)
    return Sample(
        round(time_s * 1e9), interval_s, column.host or host, column.metric, column.instance, ours, weight
    )


def _unix_s(text: str, format_: str, line: int) -> float:
    time_s = numerals.strict(text) / _UNIX[format_]
    if abs(time_s) > _MS:
        raise ForeignFileError(
            f"found the time {text[:40]!r}, which is not in seconds since 1970; for milliseconds write "
            "`format: unix_ms` under time in the mapping",
            line,
        )
    return time_s
