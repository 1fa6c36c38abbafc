"""Reads results of JMeter's PerfMon Metrics Collector (.jtl) as CSV or XML.

Each line is one value. The label has the host, the metric and its parameters (``db1 Disks I/O fs=/:reads``),
and the elapsed time is the value x 1000. Counts cover the time since the agent's last reading. CPU
``combined`` includes waiting for I/O, which is subtracted if ``iowait`` was also recorded.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import LastLine, cells, csv_cells, number
from pinchpoint_collectors.imports.times import ReadingTimes
from pinchpoint_collectors.record import Sample

_LABEL = re.compile(r"(?P<host>\S+) (?P<metric>CPU|Memory|Swap|Disks I/O|Network I/O)(?: (?P<params>.*))?")
_XML = re.compile(r"<(?:sample|httpSample)\s[^>]*>?")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_NAMES = ("timeStamp", "elapsed", "label", "success")
_DEFAULTS = {
    "CPU": "combined",
    "Memory": "usedperc",
    "Disks I/O": "queue",
    "Network I/O": "bytesrecv",
    "Swap": "used",
}
"""Measured figure if the parameters name none."""
_OF_PROCESSES = frozenset({"pid", "name", "ptql"})
_UNITS = {"kb": 1024.0, "mb": 1024.0 * 1024.0}
_PAGE = 4096.0
_ALL = "all"


class _ReadingMeans(NamedTuple):
    """The meaning of a metric: its value = recorded value x scale + offset, per second for counts."""

    metric: str
    scale: float = 1.0
    offset: float = 0.0
    is_count: bool = False
    has_unit: bool = False


_MEANS: Mapping[tuple[str, str], _ReadingMeans] = {
    ("CPU", "combined"): _ReadingMeans("cpu.busy_ratio", 0.01),
    ("CPU", "idle"): _ReadingMeans("cpu.busy_ratio", -0.01, 1.0),
    ("CPU", "iowait"): _ReadingMeans("cpu.wait_ratio", 0.01),
    ("CPU", "stolen"): _ReadingMeans("cpu.steal_ratio", 0.01),
    ("Memory", "usedperc"): _ReadingMeans("mem.available_ratio", -0.01, 1.0),
    ("Memory", "freeperc"): _ReadingMeans("mem.available_ratio", 0.01),
    ("Memory", "actualfree"): _ReadingMeans("mem.available_bytes", has_unit=True),
    ("Swap", "pagein"): _ReadingMeans("mem.paged_in_bytes_per_s", _PAGE, is_count=True),
    ("Swap", "pageout"): _ReadingMeans("mem.paged_out_bytes_per_s", _PAGE, is_count=True),
    ("Disks I/O", "queue"): _ReadingMeans("disk.outstanding"),
    ("Disks I/O", "reads"): _ReadingMeans("disk.reads_per_s", is_count=True),
    ("Disks I/O", "writes"): _ReadingMeans("disk.writes_per_s", is_count=True),
    ("Disks I/O", "readbytes"): _ReadingMeans("disk.read_bytes_per_s", is_count=True, has_unit=True),
    ("Disks I/O", "writebytes"): _ReadingMeans("disk.write_bytes_per_s", is_count=True, has_unit=True),
    ("Network I/O", "bytesrecv"): _ReadingMeans("net.received_bytes_per_s", is_count=True, has_unit=True),
    ("Network I/O", "bytessent"): _ReadingMeans("net.sent_bytes_per_s", is_count=True, has_unit=True),
    ("Network I/O", "speed"): _ReadingMeans("net.speed_bytes_per_s", 1 / 8),
}


@dataclass(slots=True)
class _LabelReadings:
    """The meaning and the readings of one label.

    Attributes:
        host: host in the label.
        instance: disk, core or interface.
        means: meaning of its values.
        readings: UTC seconds, value and line of each reading.
    """

    host: str
    instance: str
    means: _ReadingMeans
    readings: list[tuple[float, float | None, int]] = field(default_factory=list)


class JMeter:
    """Import format ``jmeter``."""

    name = "jmeter"
    says = "what JMeter's PerfMon Metrics Collector wrote (.jtl), CSV or XML"

    def recognises(self, head: str) -> bool:
        """Return whether the start has the names or the frame of a results file, and a label of PerfMon."""
        lines = head.splitlines()
        is_csv = bool(lines) and all(name in lines[0] for name in _NAMES[:3])
        if is_csv:
            return any(_LABEL.match(cell) for line in lines[1:] for cell in line.split(",")[2:3])
        return "<testResults" in head and any(
            _LABEL.match(html.unescape(value)) for name, value in _ATTRIBUTE.findall(head) if name == "lb"
        )

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:  # noqa: ARG002 -- its times are UTC
        """Yield one sample per value (see ``Format.read``)."""
        series: dict[str, _LabelReadings] = {}
        left: dict[str, None] = {}
        for line, row in _rows(lines, facts):
            label = row["label"]
            one = series.get(label) or _series(label)
            if one is None:
                left[label] = None
                continue
            series[label] = one
            if not row["timeStamp"].isdigit():
                raise ForeignFileError(
                    f"found the time {row['timeStamp'][:40]!r}; allowed: milliseconds since 1970 "
                    "(jmeter.save.saveservice.timestamp_format=ms)",
                    line,
                )
            value = number(row["elapsed"], "elapsed", line) if row.get("success", "true") == "true" else None
            one.readings.append((int(row["timeStamp"]) / 1000, value, line))
        if left:
            labels = counted(len(left), "label")
            facts.note(f"ignored {labels} that Pinchpoint does not use, such as {next(iter(left))}")
        for one in series.values():
            yield from _samples(one, series.values(), facts)


def _rows(lines: Iterable[str], facts: FileFacts) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line and name -> cell of each value, in either form."""
    header: Sequence[str] = ()
    last = LastLine(facts)
    for line, text in last.lines(each.strip().lstrip("\ufeff") for each in lines):
        if text.startswith("<"):
            for sample in _XML.findall(text):
                its = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(sample)}
                if {"ts", "t", "lb"} <= its.keys():
                    values = (its["ts"], its["t"], its["lb"], its.get("s", "true"))
                    yield line, dict(zip(_NAMES, values, strict=True))
                else:
                    words = "found a sample without ts, t or lb; allowed: samples that have all three"
                    last.damaged(ForeignFileError(words, line))
        elif not header:
            header = csv_cells(text, ",", line)
            if missing := [name for name in _NAMES[:3] if name not in header]:
                raise ForeignFileError(
                    f"found no column {', '.join(missing)}; allowed: a results file that begins with the "
                    "column names (jmeter.save.saveservice.print_field_names=true)",
                    line,
                )
        else:
            try:
                yield line, cells(header, csv_cells(text, ",", line), line)
            except ForeignFileError as error:
                last.damaged(error)


def _series(label: str) -> _LabelReadings | None:
    """Return the series of a label; None for a label that is not used, such as that of a process."""
    match = _LABEL.fullmatch(label)
    if match is None:
        return None
    params = [part for part in re.split(r"(?<!\\):", match["params"] or "") if part]
    named = dict(part.split("=", 1) for part in params if "=" in part)
    plain = [part for part in params if "=" not in part]
    means = _MEANS.get((match["metric"], plain[0] if plain else _DEFAULTS[match["metric"]]))
    if means is None or not named.keys().isdisjoint(_OF_PROCESSES):
        return None
    if means.has_unit:
        means = means._replace(scale=means.scale * _UNITS.get(named.get("unit", ""), 1.0))
    instance = named.get("core") or named.get("fs") or named.get("iface") or ""
    if not instance and match["metric"] in {"Disks I/O", "Network I/O"}:
        instance = _ALL
    return _LabelReadings(match["host"], instance, means)


def _samples(readings: _LabelReadings, all_: Iterable[_LabelReadings], facts: FileFacts) -> Iterator[Sample]:
    facts.facts(readings.host)
    means, waits = readings.means, dict[int, float]()
    if means in {_MEANS["CPU", "combined"], _MEANS["CPU", "idle"]}:
        beside = {
            each.means: each
            for each in all_
            if (each.host, each.instance) == (readings.host, readings.instance)
        }
        if means != _MEANS["CPU", "idle"] and _MEANS["CPU", "idle"] in beside:
            return
        if wait := beside.get(_MEANS["CPU", "iowait"]):
            waits = {round(at_s): value for at_s, value, _ in wait.readings if value is not None}
        else:
            facts.note("its CPU utilisation includes waiting for I/O: record CPU iowait as well")
    pace = ReadingTimes()
    before_s: float | None = None
    for at_s, theirs, line in readings.readings:
        facts.line = line
        if before_s is not None and at_s > before_s:
            interval_s = pace.covered_s(before_s, at_s)
            value = None
            if theirs is not None:
                counted_s = at_s - before_s if means.is_count else 1.0
                value = theirs / 1000 * means.scale / counted_s + means.offset
                value -= waits.get(round(at_s), 0.0) / 1e5
            yield Sample(
                round(at_s * 1e9), interval_s, readings.host, means.metric, readings.instance, value, None
            )
        before_s = at_s
