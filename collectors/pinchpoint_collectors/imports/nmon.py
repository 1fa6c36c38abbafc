"""Reads recordings of nmon (``nmon -f``) on Linux and AIX, sorted (as its analysers need) or not.

Each line has the number of its snapshot; ``ZZZZ`` lines give the times of snapshots. The first snapshot
begins the recording. Disks have neither latencies nor queues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from pinchpoint_collectors.common.counts import counted
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
from pinchpoint_collectors.imports.text import LastLine, number, zone_of
from pinchpoint_collectors.imports.times import ReadingTimes, zoned_s
from pinchpoint_collectors.record import Sample

_MIB = KIB * KIB
_PAGE = 4096
_BEGINS = re.compile(r"[\ufeff\s]*AAA,")
_NUMBER = re.compile(r"T\d{4,}")
_CPU = re.compile(r"CPU(?:_ALL|(\d+))")
_CPU_NAMES = {"User%": "user", "Sys%": "system", "Wait%": "iowait", "Idle%": "idle", "Steal%": "steal"}
_DISK = re.compile(r"DISK(BUSY|READS?|WRITES?|XFER)\d*")
_DISK_MEANS = {
    "BUSY": ("busy_ratio", 0.01),
    "READ": ("read_bytes_per_s", KIB),
    "WRITE": ("write_bytes_per_s", KIB),
    "XFER": ("transfers_per_s", 1.0),
    "READS": ("reads_per_s", 1.0),
    "WRITES": ("writes_per_s", 1.0),
}
"""Table -> metric and unit. With more than 150 disks there are several tables."""
_NET = re.compile(r"(.+)-(read|write)-KB/s")
_NET_MEANS = {"read": "net.received_bytes_per_s", "write": "net.sent_bytes_per_s"}
_USED = frozenset({"MEM", "MEMNEW", "VM", "PAGE", "PROC", "NET"})
Row = tuple[str, int, Fields]
"""A row: its table, its line, its values."""


class Nmon:
    """Import format ``nmon``."""

    name = "nmon"
    says = "nmon's recording (nmon -f -s 5 -c 720)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the first lines."""
        return (
            _BEGINS.match(head) is not None and re.search(r"^AAA,progname,", head, re.MULTILINE) is not None
        )

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        recording = _Recording(facts)
        last = LastLine(facts)
        for line, text in last.lines(lines):
            try:
                recording.add(text.strip().split(","), line)
            except ForeignFileError as error:
                last.damaged(error)
        facts.line = None
        yield from recording.samples(settings)


class _Recording:
    """The contents of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._found = facts
        self._facts: dict[str, str] = {}
        self._columns: dict[str, Sequence[str]] = {}
        self._moments: dict[str, datetime] = {}
        self._rows: dict[str, list[Row]] = {}
        """Number of a snapshot -> its rows."""

    def add(self, row: Sequence[str], line: int) -> None:
        """Read a line. Raises ``ForeignFileError``."""
        table, second, *rest = *row, ""
        if table == "AAA":
            if second in self._facts and second == "progname":
                raise ForeignFileError(
                    "another recording begins here; split the file before this line and import the parts",
                    line,
                )
            self._facts.setdefault(second, ",".join(rest).rstrip(","))
        elif table == "ZZZZ":
            self._moments[second] = _moment(rest, line)
        elif not (table in _USED or _CPU.fullmatch(table) or _DISK.fullmatch(table)):
            return
        elif _NUMBER.fullmatch(second) is None:
            self._columns[table] = [name.strip() for name in rest[:-1]]
        else:
            self._rows.setdefault(second, []).append((table, line, self._values(table, rest[:-1], line)))

    def _values(self, table: str, cells: Sequence[str], line: int) -> Fields:
        """Return a row by its header, which may have fewer names than the row has cells (VM)."""
        columns = self._columns.get(table)
        if columns is None or len(cells) < len([name for name in columns if name]):
            raise ForeignFileError(
                f"found {len(cells)} cells of {table}; allowed: {len(columns or ())}, one for each name "
                "of its header; remove the line, or record again",
                line,
            )
        return {
            name: number(cell, f"{table} {name}", line) for name, cell in zip(columns, cells, strict=False)
        }

    def samples(self, settings: Settings) -> Iterator[Sample]:
        """Yield the samples of all snapshots with a time, except the first."""
        host = self._facts.get("host", "")
        cores = self._facts.get("cpus", "").partition(",")[0]
        os = self._facts.get("OS", "").partition(",")[0] or ("AIX" if "AIX" in self._facts else "Linux")
        self._found.facts(host).update(os=os, cores=int(cores) if cores.isdecimal() else None)
        if left := self._rows.keys() - self._moments.keys():
            self._found.note(
                f"ignored {counted(len(left), 'snapshot')} without a time (ZZZZ), such as {min(left)}"
            )
        pace, last_s = ReadingTimes(), None
        times: list[tuple[str, float]] = []
        zone = zone_of(settings, self._found)
        for name, moment in sorted(self._moments.items(), key=lambda each: (len(each[0]), each[0])):
            last_s = zoned_s(moment, zone, last_s)
            times.append((name, last_s))
        for (before, before_s), (name, time_s) in pairwise(times):
            if time_s <= before_s:
                raise ForeignFileError(
                    f"snapshot {name} is not later than {before}; split the file where its clock was changed"
                )
            interval_s = pace.covered_s(before_s, time_s)
            for metric, instance, value, weight in self._reported(
                self._rows.get(name, ()), time_s - before_s
            ):
                yield Sample(round(time_s * 1e9), interval_s, host, metric, instance, value, weight)
        pace.report(self._found)

    def _reported(self, rows: Iterable[Row], step_s: float) -> Iterator[Reported]:
        for table, _, its in rows:
            if cpu := _CPU.fullmatch(table):
                fields = {_CPU_NAMES[name]: value for name, value in its.items() if name in _CPU_NAMES}
                core = str(int(cpu[1]) - 1) if cpu[1] else ""
                yield from ((metric, core, value, None) for metric, value in cpu_values(fields))
            elif disk := _DISK.fullmatch(table):
                metric, scale = _DISK_MEANS[disk[1]]
                yield from (
                    (f"disk.{metric}", name, scaled(value, scale), None) for name, value in its.items()
                )
            elif table == "NET":
                for name, value in its.items():
                    if match := _NET.fullmatch(name):
                        yield _NET_MEANS[match[2]], match[1], scaled(value, KIB), None
            elif table == "PROC":
                yield "cpu.run_queue", "", figure(its, "Runnable"), None
                yield "cpu.blocked_threads", "", figure(its, "Blocked"), None
            else:
                yield from _memory(table, its, step_s, self._found)


def _moment(cells: Sequence[str], line: int) -> datetime:
    text = " ".join(cells[:2])
    try:
        return datetime.strptime(text, "%H:%M:%S %d-%b-%Y")  # noqa: DTZ007 -- it gets its zone later
    except ValueError as error:
        raise ForeignFileError(
            f"found the time {text!r}; allowed: HH:MM:SS,DD-MON-YYYY, as nmon writes it", line
        ) from error


def _memory(table: str, its: Fields, step_s: float, facts: FileFacts) -> Iterator[Reported]:
    """Yield memory in MiB. Paging is per snapshot on Linux and per second on AIX."""
    if table == "MEM" and "memtotal" in its:
        cached = total(figure(its, "cached"), figure(its, "buffers"))
        free, size = figure(its, "memfree"), figure(its, "memtotal")
        available = available_of(figure(its, "memavailable"), free, cached, facts)
        yield "mem.available_bytes", "", scaled(available, _MIB), None
        yield "mem.available_ratio", "", available / size if available is not None and size else None, None
    elif table == "MEMNEW":
        share = total(figure(its, "Free%"), figure(its, "FScache%"))
        yield "mem.available_ratio", "", scaled(share, 0.01), None
    elif table in {"VM", "PAGE"}:
        names, scale = (
            (("pswpin", "pswpout"), _PAGE / step_s) if table == "VM" else (("pgsin", "pgsout"), _PAGE)
        )
        yield "mem.paged_in_bytes_per_s", "", scaled(figure(its, names[0]), scale), None
        yield "mem.paged_out_bytes_per_s", "", scaled(figure(its, names[1]), scale), None
