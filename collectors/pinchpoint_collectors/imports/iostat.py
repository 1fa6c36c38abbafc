"""What ``iostat -t -x -o JSON`` prints.

Its first report covers the time since the machine started (unless -y was given, which it does not say), and
is left out. Times have no zone unless the environment had ``S_TIME_FORMAT=ISO``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings
from pinchpoint_collectors.imports.sysstat import (
    BEGINS,
    KIB,
    Fields,
    Told,
    cpu_values,
    host_blocks,
    latency,
    listed,
    mapping,
    note_machine,
    number,
    scaled,
)
from pinchpoint_collectors.imports.times import Dates, zoned_s
from pinchpoint_collectors.record import Sample

_FORMATS = (
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%y %H:%M:%S",
    "%d/%m/%y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d-%m-%y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S",
    "%Y年%m月%d日 %H時%M分%S秒",
    "%Y年%m月%d日 %H时%M分%S秒",
)
"""As it writes times in the locales of America, Europe and East Asia."""
_PARTITION = re.compile(r"(.+?\d)p\d+|(\D+)\d+")


class Iostat:
    """Format ``iostat``."""

    name = "iostat"
    says = "iostat's JSON (S_TIME_FORMAT=ISO iostat -t -x -o JSON 5 720)"

    def recognises(self, head: str) -> bool:
        """By the frame, and what only iostat's reports have."""
        return BEGINS.match(head) is not None and '"file-date"' not in head and _reports(head)

    def read(self, lines: Iterable[str], settings: Settings, found: Found) -> Iterator[Sample]:
        """One sample per value; see ``Format.read``."""
        for block in host_blocks(lines, found):
            host = note_machine(block, found)
            reports = listed(block.get("statistics"), "statistics")
            if len(reports) < 2:
                raise ForeignFileError(
                    f"found {len(reports)} report of {host}; the first one covers the time since the machine "
                    "started and is left out: record for longer (an interval and a count)"
                )
            times = _times(reports, settings, found)
            found.note("its first report was left out: it covers the time since the machine started")
            for report, before_s, time_s in zip(reports[1:], times, times[1:], strict=False):
                interval_s = time_s - before_s
                for metric, instance, value, weight in _values(report, interval_s, found):
                    yield Sample(round(time_s * 1e9), interval_s, host, metric, instance, value, weight)


def _reports(head: str) -> bool:
    return any(name in head for name in ('"statistics"', '"avg-cpu"', '"disk"'))


def _times(reports: Sequence[Fields], settings: Settings, found: Found) -> list[float]:
    """UTC seconds of each report: as it says, else by ``start_s`` and ``every_s``."""
    if all("timestamp" in report for report in reports):
        times: list[float] = []
        texts = [str(report["timestamp"]) for report in reports]
        dates = Dates(texts, _FORMATS, found)
        for text in texts:
            last_s = times[-1] if times else None
            times.append(_time_s(_moment(text, dates), last_s, settings, found))
    elif settings.start_s is not None and settings.every_s is not None:
        times = [settings.start_s + place * settings.every_s for place in range(len(reports))]
    else:
        raise ForeignFileError(
            "its reports have no time: record with -t (S_TIME_FORMAT=ISO iostat -t -x -o JSON 5), or say "
            "when the first was made and how far apart they are: --start 2026-11-20T09:00:00+01:00 --every 5s"
        )
    for place, (before_s, time_s) in enumerate(itertools.pairwise(times), 2):
        if time_s <= before_s:
            raise ForeignFileError(
                f"report {place} is not later than the one before; split the file where its clock was changed"
            )
    return times


def _time_s(moment: datetime, last_s: float | None, settings: Settings, found: Found) -> float:
    if moment.tzinfo is not None:
        return moment.timestamp()
    if settings.zone is None:
        found.zone_assumed = True
        found.note(
            "its times name no zone and were taken for UTC; --zone says which they are, and with "
            "S_TIME_FORMAT=ISO in its environment iostat writes it"
        )
    return zoned_s(moment, settings.zone or UTC, last_s)


def _moment(text: str, dates: Dates) -> datetime:
    try:
        return dates.read(text)
    except ValueError as error:
        raise ForeignFileError(
            f"found the time {text!r}; allowed: ISO 8601 (S_TIME_FORMAT=ISO in iostat's environment), or as "
            "locales of America, Europe and East Asia write it, all times of a file alike"
        ) from error


def _values(report: Fields, interval_s: float, found: Found) -> Iterator[Told]:
    if cpu := mapping(report.get("avg-cpu"), "avg-cpu"):
        yield from ((metric, "", value, None) for metric, value in cpu_values(cpu))
    disks = listed(report.get("disk"), "disk")
    names = {str(disk.get("disk_device")) for disk in disks}
    for disk in disks:
        device = str(disk.get("disk_device"))
        if not _part_of_another(device, names):
            told = (
                _disk(disk, device, interval_s, found)
                if _is_extended(disk)
                else _short(disk, device, interval_s, found)
            )
            yield from told


def _part_of_another(device: str, names: set[str]) -> bool:
    """Whether it is a partition whose whole disk is there too: it shows the same I/O once more."""
    match = _PARTITION.fullmatch(device)
    return match is not None and (match[1] or match[2]) in names


def _is_extended(disk: Fields) -> bool:
    return number(disk, "r/s") is not None or number(disk, "w/s") is not None


def _short(disk: Fields, device: str, interval_s: float, found: Found) -> Iterator[Told]:
    """What it prints without -x, or with -s: both ways together."""
    rate = number(disk, "tps")
    yield "disk.transfers_per_s", device, rate, None
    if number(disk, "await") is None:
        found.note(
            "it was recorded without -x: of its disks neither latencies nor how busy they were are there"
        )
    else:
        weight = None if rate is None else rate * interval_s
        yield "disk.transfer_latency_s", device, latency(number(disk, "await"), rate), weight
        yield "disk.outstanding", device, number(disk, "aqu-sz", "avgqu-sz"), None
        yield "disk.busy_ratio", device, scaled(number(disk, "util"), 0.01), None
    for way, theirs in (("read", "read"), ("write", "wrtn")):
        size = number(disk, f"kB_{theirs}/s")
        size = scaled(number(disk, f"MB_{theirs}/s"), KIB) if size is None else size
        if size is not None:
            yield f"disk.{way}_bytes_per_s", device, size * KIB, None


_ROUNDED = 0.1
"""Requests x their mean size and bytes a second differ by a tenth at most, and by what is rounded."""


def _checked(disk: Fields, way: str, size_kib: float | None, found: Found) -> float | None:
    """KiB a second; where requests x their size contradict it, these: with -m some versions are wrong."""
    rate, each_kib = number(disk, f"{way[0]}/s"), number(disk, f"{way[0]}areq-sz")
    if rate is None or each_kib is None or size_kib is None:
        return size_kib
    reckoned = rate * each_kib
    if abs(reckoned - size_kib) <= _ROUNDED * max(reckoned, size_kib) + KIB / 100:
        return size_kib
    found.note(
        f"its {way}s in bytes a second contradict their number and mean size ({size_kib:,.0f} against "
        f"{reckoned:,.0f} KiB/s of {disk.get('disk_device')}): number and size were taken"
    )
    return reckoned


def _disk(disk: Fields, device: str, interval_s: float, found: Found) -> Iterator[Told]:
    rates = {"read": number(disk, "r/s"), "write": number(disk, "w/s"), "flush": number(disk, "f/s")}
    for way, rate in rates.items():
        if rate is None:
            continue  # flushes of an older kernel
        plural = "flushes" if way == "flush" else f"{way}s"
        yield f"disk.{plural}_per_s", device, rate, None
        took = latency(number(disk, f"{way[0]}_await"), rate)
        yield f"disk.{way}_latency_s", device, took, rate * interval_s
    for way in ("read", "write"):
        size = number(disk, f"{way[0]}kB/s")
        size = scaled(number(disk, f"{way[0]}MB/s"), KIB) if size is None else size
        yield f"disk.{way}_bytes_per_s", device, scaled(_checked(disk, way, size, found), KIB), None
    yield "disk.outstanding", device, number(disk, "aqu-sz", "avgqu-sz"), None
    yield "disk.busy_ratio", device, scaled(number(disk, "util"), 0.01), None
