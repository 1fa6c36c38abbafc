"""Reads output of ``vmstat -t``.

The first row covers the time since boot and is left out. Disks have only KiB per second, all of them
together. Available memory is missing, so free + cached is used, in KiB (``-S`` changes the unit without a
trace).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import (
    KIB,
    Fields,
    Reported,
    available_of,
    cpu_values,
    scaled,
    total,
)
from pinchpoint_collectors.imports.sysstat import number as figure
from pinchpoint_collectors.imports.text import LastLine, cells, number, zone_of
from pinchpoint_collectors.imports.times import ReadingTimes, numbered_s, zoned_s
from pinchpoint_collectors.record import Sample

_FIRST = re.compile(r"[\ufeff\s]*-*procs-*\s.*memory.*swap")
_TIME = re.compile(r"\s*(?P<figures>.*?)\s+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_NAMES = {"id": "idle", "wa": "iowait", "st": "steal"}
LEAST_KIB = 256 * KIB
"""Smallest sum of free, cached and swap memory. Below it the unit is not KiB, because no server has less."""
ALL = "all"
"""Instance for all disks together."""


class Vmstat:
    """Import format ``vmstat``."""

    name = "vmstat"
    says = "vmstat's text (vmstat -t 5 720)"

    def recognises(self, head: str) -> bool:
        """Return whether the start has the line above vmstat's names."""
        return _FIRST.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        rows = _rows(lines, facts)
        facts.facts("").update(os="Linux")
        held = ("free", "buff", "cache", "swpd")
        cached = [total(*(figure(row, name) for name in held)) for _, _, row in rows]
        most = max((one for one in cached if one is not None), default=None)
        is_kib = most is not None and most >= LEAST_KIB
        if most is not None and not is_kib:
            facts.note("its memory is not in KiB (-S) and its unit is not given: memory was ignored")
        pace, last_s = ReadingTimes(), None
        for at, (line, time, row) in enumerate(rows):
            facts.line = line
            time_s = _time_s(time, at, last_s, line, settings, facts)
            if last_s is not None:
                interval_s = pace.covered_s(last_s, time_s)
                for metric, instance, value, weight in _values(row, is_kib=is_kib, facts=facts):
                    yield Sample(round(time_s * 1e9), interval_s, "", metric, instance, value, weight)
            last_s = time_s
        pace.report(facts)
        facts.note("the first row covers the time since boot and was ignored")


def _rows(lines: Iterable[str], facts: FileFacts) -> list[tuple[int, str, Fields]]:
    """Yield line, time or "", and values of each row. Headers repeat with each screen."""
    columns: list[str] = []
    rows: list[tuple[int, str, Fields]] = []
    last = LastLine(facts)
    for line, text in last.lines("" if _FIRST.match(text) else text for text in lines):
        words = text.split()
        if words[0] == "r":
            # If there are times, the last name is that of the zone.
            columns = [_NAMES.get(word, word) for word in words if word.islower()]
            continue
        match = _TIME.fullmatch(text)
        figures, time = (match["figures"], match["time"]) if match else (text, "")
        try:
            row = cells(columns, figures.split(), line)
            rows.append((line, time, {name: number(cell, name, line) for name, cell in row.items()}))
        except ForeignFileError as error:
            last.damaged(error)
    return rows


def _time_s(
    time: str, at: int, last_s: float | None, line: int, settings: Settings, facts: FileFacts
) -> float:
    if time:
        time_s = zoned_s(datetime.fromisoformat(time), zone_of(settings, facts), last_s)
    else:
        start_s, every_s = numbered_s(settings, facts)
        time_s = start_s + at * every_s
    if last_s is not None and time_s <= last_s:
        raise ForeignFileError(
            "the time is not later than that of the row before; split the file where its clock was changed",
            line,
        )
    return time_s


def _values(row: Fields, *, is_kib: bool, facts: FileFacts) -> Iterator[Reported]:
    yield from ((metric, "", value, None) for metric, value in cpu_values(row))
    yield "cpu.run_queue", "", figure(row, "r"), None
    yield "cpu.blocked_threads", "", figure(row, "b"), None
    if is_kib:
        cached = total(figure(row, "buff"), figure(row, "cache"))
        available = available_of(None, figure(row, "free"), cached, facts)
        yield "mem.available_bytes", "", scaled(available, KIB), None
        yield "mem.paged_in_bytes_per_s", "", scaled(figure(row, "si"), KIB), None
        yield "mem.paged_out_bytes_per_s", "", scaled(figure(row, "so"), KIB), None
    yield "disk.read_bytes_per_s", ALL, scaled(figure(row, "bi"), KIB), None
    yield "disk.write_bytes_per_s", ALL, scaled(figure(row, "bo"), KIB), None
