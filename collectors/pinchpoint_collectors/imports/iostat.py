"""Reads output of ``iostat -t -x`` as text or as JSON (``-o JSON``).

The first report covers the time since boot and is left out, because the file does not show whether -y was
given. Times have no zone unless the environment had ``S_TIME_FORMAT=ISO``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pinchpoint_collectors.common.legible import ForeignFileError, mapping, mappings
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import (
    BEGINS,
    KIB,
    SECTOR_BYTES,
    TEXT,
    Fields,
    Reported,
    cpu_values,
    host_blocks,
    latency,
    note_machine,
    number,
    scaled,
    text_block,
    total,
)
from pinchpoint_collectors.imports.text import ALLOWED_DATES, DATES, LastLine, cells
from pinchpoint_collectors.imports.text import number as number_of
from pinchpoint_collectors.imports.times import Dates, numbered_s, zoned_s
from pinchpoint_collectors.record import Sample

_PARTITION = re.compile(r"(.+?\d)p\d+|(\D+)\d+")


class Iostat:
    """Import format ``iostat``."""

    name = "iostat"
    says = "iostat's text or JSON (S_TIME_FORMAT=ISO iostat -t -x 5 720)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the frame and by keys of iostat's reports."""
        if TEXT.match(head):
            return any(_is_header(line.split()) for line in head.splitlines())
        return BEGINS.match(head) is not None and '"file-date"' not in head and _reports(head)

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        content = list(lines)
        is_text = TEXT.match("".join(content[:_BEGIN])) is not None
        for block in _text_blocks(content, facts) if is_text else host_blocks(content, facts):
            host = note_machine(block, facts)
            reports = mappings(block.get("statistics"), "statistics")
            if len(reports) < 2:
                raise ForeignFileError(
                    f"found {len(reports)} report of {host}; the first one covers the time since boot "
                    "and is ignored: record for longer (an interval and a count)"
                )
            times = _times(reports, settings, facts)
            facts.note("the first report covers the time since boot and was ignored")
            for report, before_s, time_s in zip(reports[1:], times, times[1:], strict=False):
                interval_s = time_s - before_s
                for metric, instance, value, weight in _values(report, interval_s, facts):
                    yield Sample(round(time_s * 1e9), interval_s, host, metric, instance, value, weight)


_BEGIN = 10
"""Number of lines within which the first line of a text must be."""
_CPU = "avg-cpu:"
_TIME = re.compile(r"Time:\s*(?P<clock>.+)|\d+[-/.年]\d+[-/.月]\d+.*")


def _is_header(words: Sequence[str]) -> bool:
    return words[:1] == [_CPU] or (len(words) > 1 and not {"tps", "r/s"}.isdisjoint(words[1:]))


def _text_blocks(lines: Sequence[str], facts: FileFacts) -> Iterator[Fields]:
    """Return the text as blocks of JSON."""
    blocks: list[_TextBlock] = []
    last = LastLine(facts)
    for line, text in last.lines(lines):
        if begin := TEXT.match(text):
            blocks.append(_TextBlock(text_block(begin)))
            continue
        try:
            blocks[-1].add(text.strip(), line)
        except ForeignFileError as error:
            last.damaged(error)
    facts.line = None
    for block in blocks:
        if block.reports:
            yield {**block.machine, "statistics": block.reports}


class _TextBlock:
    """The reports of a machine, line by line."""

    def __init__(self, machine: Fields) -> None:
        self.machine = machine
        self.reports: list[dict[str, Any]] = []
        self._columns: list[str] = []
        self._name: list[str] = []
        """Name of a disk that is too long for its column. Its figures are in the next line."""

    def add(self, text: str, line: int) -> None:
        """Read a line. Raises ``ForeignFileError``."""
        words = text.split()
        if moment := _TIME.fullmatch(text):
            stamp = f"{self.machine['date']} {moment['clock']}" if moment["clock"] else text
            self.reports.append({"timestamp": stamp})
            self._columns = []
        elif _is_header(words):
            self._begin([word.lstrip("%").removesuffix(":") for word in words])
        elif len(words) == 1 and len(self._columns) > 1 and not self._is_cpu:
            self._name = words
        elif self._columns:
            self._row([*([self._columns[0]] if self._is_cpu else self._name), *words], line)

    @property
    def _is_cpu(self) -> bool:
        return self._columns[:1] == [_CPU[:-1]]

    def _begin(self, columns: list[str]) -> None:
        """Begin a table. Without -t only this shows where a report begins."""
        self._columns = columns
        report = self.reports[-1] if self.reports else None
        if report is None or "disk" in report or (self._is_cpu and "avg-cpu" in report):
            self.reports.append({})
        if not self._is_cpu:
            self.reports[-1]["disk"] = []

    def _row(self, words: Sequence[str], line: int) -> None:
        self._name = []
        figures = cells(self._columns, words, line)
        values = {key: number_of(figures[key], key, line) for key in self._columns[1:]}
        if self._is_cpu:
            self.reports[-1]["avg-cpu"] = values
        else:
            self.reports[-1]["disk"].append({"disk_device": words[0], **values})


def _reports(head: str) -> bool:
    return any(name in head for name in ('"statistics"', '"avg-cpu"', '"disk"'))


def _times(reports: Sequence[Fields], settings: Settings, facts: FileFacts) -> list[float]:
    """Return the UTC seconds of each report, as given or else numbered."""
    if all("timestamp" in report for report in reports):
        times: list[float] = []
        texts = [str(report["timestamp"]) for report in reports]
        dates = Dates(texts, DATES, facts)
        for text in texts:
            last_s = times[-1] if times else None
            times.append(_time_s(_moment(text, dates), last_s, settings, facts))
    else:
        start_s, every_s = numbered_s(settings, facts)
        times = [start_s + place * every_s for place in range(len(reports))]
    for place, (before_s, time_s) in enumerate(itertools.pairwise(times), 2):
        if time_s <= before_s:
            raise ForeignFileError(
                f"report {place} is not later than the one before; split the file where its clock was changed"
            )
    return times


def _time_s(moment: datetime, last_s: float | None, settings: Settings, facts: FileFacts) -> float:
    if moment.tzinfo is not None:
        return moment.timestamp()
    if settings.zone is None:
        facts.zone_assumed = True
        facts.note(
            "its times have no time zone; UTC was assumed: give --zone, or record with S_TIME_FORMAT=ISO"
        )
    return zoned_s(moment, settings.zone or UTC, last_s)


def _moment(text: str, dates: Dates) -> datetime:
    try:
        return dates.read(text)
    except ValueError as error:
        raise ForeignFileError(f"found the time {text!r}; {ALLOWED_DATES}") from error


def _values(report: Fields, interval_s: float, facts: FileFacts) -> Iterator[Reported]:
    if cpu := mapping(report.get("avg-cpu"), "avg-cpu"):
        yield from ((metric, "", value, None) for metric, value in cpu_values(cpu))
    disks = mappings(report.get("disk"), "disk")
    names = {str(disk.get("disk_device")) for disk in disks}
    for disk in disks:
        device = str(disk.get("disk_device"))
        if not _part_of_another(device, names):
            reported = (
                _disk(disk, device, interval_s, facts)
                if _is_extended(disk)
                else _short(disk, device, interval_s, facts)
            )
            yield from reported


def _part_of_another(device: str, names: set[str]) -> bool:
    """Return whether the device is a partition of a disk in the file, which would count I/O twice."""
    match = _PARTITION.fullmatch(device)
    return match is not None and (match[1] or match[2]) in names


def _is_extended(disk: Fields) -> bool:
    return number(disk, "r/s") is not None or number(disk, "w/s") is not None


def _short(disk: Fields, device: str, interval_s: float, facts: FileFacts) -> Iterator[Reported]:
    """Yield the columns without -x, or with -s: reads and writes together."""
    rate = number(disk, "tps")
    yield "disk.transfers_per_s", device, rate, None
    if number(disk, "await") is None:
        facts.note("it was recorded without -x, so it has neither latency nor utilisation of the disks")
    else:
        weight = None if rate is None else rate * interval_s
        yield "disk.transfer_latency_s", device, latency(number(disk, "await"), rate), weight
        yield "disk.outstanding", device, number(disk, "aqu-sz", "avgqu-sz"), None
        yield "disk.busy_ratio", device, scaled(number(disk, "util"), 0.01), None
    for way, theirs in (("read", "read"), ("write", "wrtn")):
        size = _kib(disk, f"kB_{theirs}/s", f"MB_{theirs}/s", f"Blk_{theirs}/s")
        if size is not None:
            yield f"disk.{way}_bytes_per_s", device, size * KIB, None


def _kib(disk: Fields, kib: str, mib: str, sectors: str) -> float | None:
    """Return KiB per second from any unit."""
    units = {kib: 1.0, mib: KIB, sectors: SECTOR_BYTES / KIB}
    result = ((number(disk, name), factor) for name, factor in units.items())
    return next((value * factor for value, factor in result if value is not None), None)


_ROUNDED = 0.1
"""Tolerance between requests x mean size and bytes per second: a tenth, and rounding."""


def _checked(disk: Fields, way: str, size_kib: float | None, facts: FileFacts) -> float | None:
    """Return KiB per second, or requests x size if both differ.

    Some versions print wrong values with -m.
    """
    rate, each_kib = number(disk, f"{way[0]}/s"), number(disk, f"{way[0]}areq-sz")
    if rate is None or each_kib is None or size_kib is None:
        return size_kib
    reckoned = rate * each_kib
    if abs(reckoned - size_kib) <= _ROUNDED * max(reckoned, size_kib) + KIB / 100:
        return size_kib
    facts.note(
        f"its {way}s in bytes a second contradict their number and mean size ({size_kib:,.0f} against "
        f"{reckoned:,.0f} KiB/s of {disk.get('disk_device')}): number and size were taken"
    )
    return reckoned


def _disk(disk: Fields, device: str, interval_s: float, facts: FileFacts) -> Iterator[Reported]:
    rates = {"read": number(disk, "r/s"), "write": number(disk, "w/s"), "flush": number(disk, "f/s")}
    for way, rate in rates.items():
        if rate is None:
            continue  # flushes of an older kernel
        plural = "flushes" if way == "flush" else f"{way}s"
        yield f"disk.{plural}_per_s", device, rate, None
        took = latency(number(disk, f"{way[0]}_await"), rate)
        yield f"disk.{way}_latency_s", device, took, rate * interval_s
    if number(disk, "r_await") is None and number(disk, "await") is not None:  # an older version
        both = total(rates["read"], rates["write"])
        weight = None if both is None else both * interval_s
        yield "disk.transfer_latency_s", device, latency(number(disk, "await"), both), weight
    for way in ("read", "write"):
        size = _kib(disk, f"{way[0]}kB/s", f"{way[0]}MB/s", f"{way[0]}sec/s")
        yield f"disk.{way}_bytes_per_s", device, scaled(_checked(disk, way, size, facts), KIB), None
    yield "disk.outstanding", device, number(disk, "aqu-sz", "avgqu-sz"), None
    yield "disk.busy_ratio", device, scaled(number(disk, "util"), 0.01), None
