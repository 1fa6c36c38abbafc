"""The daily course of a database host's load from recordings of perfmon, sar and other tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import Figures, ProductionFigure
from pinchpoint.fit.rates import LoadCourse, Rate, course
from pinchpoint.imports import open_source
from pinchpoint.imports.places import HostPlaces
from pinchpoint.imports.reading import Gathered, Read, TimeSpan, read_all
from pinchpoint.imports.source import RecordingFile
from pinchpoint.plan.production import DISK_IO_BYTES, DISK_READ_BYTES, DISK_WRITE_BYTES, LOG_WRITE_BYTES
from pinchpoint_collectors.imports.record import Settings
from pinchpoint_collectors.record import Sample

_NS = 1e9
_READS, _WRITES, _IOS = "disk.reads_per_s", "disk.writes_per_s", "disk.transfers_per_s"
_READ_BYTES, _WRITE_BYTES = "disk.read_bytes_per_s", "disk.write_bytes_per_s"
_LOG_BYTES, _LOG_FLUSHES = "db.log_bytes_per_s", "db.log_flushes_per_s"
_DISKS = (_READS, _WRITES, _IOS, _READ_BYTES, _WRITE_BYTES)
_SERVER = ("db.batches_per_s", "db.transactions_per_s", _LOG_BYTES, _LOG_FLUSHES)
_ACTIVITIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the server's batches", ("db.batches_per_s",)),
    ("the server's transactions", ("db.transactions_per_s",)),
    ("I/Os", (_READS, _WRITES)),
    ("I/Os", (_IOS,)),
)
"""What says how busy the server was, the best first: what clients ask for, else what the disks got of it."""


@dataclass(frozen=True, slots=True)
class DiskReading:
    """A machine in one interval.

    Attributes:
        ended_s: its end, UTC seconds.
        interval_s: its length.
        values: metric -> value, all disks together.
    """

    ended_s: float
    interval_s: float
    values: Mapping[str, float]


def recorded(
    paths: Sequence[Path], zone: tzinfo | None, host: str | None, counted: tuple[float, float] | None
) -> LoadCourse:
    """What recordings of one machine say of its day.

    Args:
        paths: the files.
        zone: of times that name none, and the zone of the hours shown; None: UTC.
        host: the machine whose readings are taken; None: the only one there is.
        counted: when the statements were counted, UTC seconds.

    Raises:
        InputError: a file is of no known kind, is damaged, is of several machines, or has no disks in it.
    """
    sources = [open_source(path, None) for path in paths]
    _not_twice(sources)
    names = ", ".join(path.name for path in paths)
    readings, notes = _readings(sources, zone, host, names)
    for what, metrics in _ACTIVITIES:
        rates = list(_rates(readings, metrics))
        if any(rate.per_s for rate in rates):
            found = course(rates, what, names, zone, counted)
            return replace(found, notes=(*notes, *found.notes), figures=_sizes(readings, names))
    raise InputError(
        f"{names}: no disk did any I/O in it, and no SQL Server had a batch; record the database host's "
        "disks (LogicalDisk of perfmon, sar -d)"
    )


def _not_twice(sources: Sequence[RecordingFile]) -> None:
    seen: dict[str, Path] = {}
    for source in sources:
        if source.sha256 in seen:
            raise InputError(f"{source.path}: is the same as {seen[source.sha256]}; give each recording once")
        seen[source.sha256] = source.path


def _readings(
    sources: Sequence[RecordingFile], zone: tzinfo | None, host: str | None, names: str
) -> tuple[list[DiskReading], tuple[str, ...]]:
    totals: dict[tuple[int, float], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    machines: dict[str, None] = {}
    notes: list[str] = []
    for source in sources:
        samples, read = _read(source, None)
        if read.found.zone_assumed and zone is not None:
            samples, read = _read(source, zone)
        machines |= dict.fromkeys(read.machines)
        notes += [f"{source.path.name}: {note}" for note in read.found.notes]
        for sample in samples:
            if sample.value is not None and (host is None or _same(host, sample.host)):
                totals[sample.time_ns, sample.interval_s][sample.metric] += sample.value
    _one_machine(list(machines), host, names)
    readings = [
        DiskReading(time_ns / _NS, interval_s, values)
        for (time_ns, interval_s), values in sorted(totals.items())
    ]
    return readings, tuple(notes)


def _read(source: RecordingFile, zone: tzinfo | None) -> tuple[list[Sample], Read]:
    """What a file has of disks and of the server; ``zone`` goes before what the file says of its own."""
    gathered = Gathered()
    samples = [
        sample
        for sample in read_all([source], Settings(zone=zone), _Places(), TimeSpan(), gathered)
        if sample.metric in _DISKS or (sample.metric in _SERVER and not sample.instance)
    ]
    return samples, gathered.reads[0]


class _Places(HostPlaces):
    """A file that names no machine is of the one that is asked about."""

    def host_of(self, machine: str, hosts: Iterable[str] = ()) -> str:
        del hosts
        return machine or "production"


def _same(wanted: str, machine: str) -> bool:
    return wanted.casefold() in (machine.casefold(), machine.casefold().partition(".")[0])


def _one_machine(machines: Sequence[str], host: str | None, names: str) -> None:
    listed = ", ".join(machines)
    if host is None and len(machines) > 1:
        raise InputError(f"{names}: of several machines ({listed}); choose one: --host {machines[0]}")
    if host is not None and not any(_same(host, machine) for machine in machines):
        raise InputError(f"--host {host}: no recording contains that machine; found: {listed}")


def _rates(readings: Sequence[DiskReading], metrics: tuple[str, ...]) -> Iterable[Rate]:
    """Their sum, where all of them were recorded."""
    for reading in readings:
        if all(metric in reading.values for metric in metrics):
            per_s = sum(reading.values[metric] for metric in metrics)
            yield Rate(reading.ended_s, reading.interval_s, per_s)


def _sizes(readings: Sequence[DiskReading], names: str) -> Figures:
    """Sizes of I/Os; reads and writes together where the recording has them together, as sar's have."""
    found: Figures = {}
    for figure, counts, sizes, origin in (
        (DISK_READ_BYTES, (_READS,), (_READ_BYTES,), "bytes read ÷ reads, all disks"),
        (DISK_WRITE_BYTES, (_WRITES,), (_WRITE_BYTES,), "bytes written ÷ writes, all disks"),
        (DISK_IO_BYTES, (_IOS,), (_READ_BYTES, _WRITE_BYTES), "bytes ÷ I/Os, all disks"),
        (LOG_WRITE_BYTES, (_LOG_FLUSHES,), (_LOG_BYTES,), "log bytes ÷ log flushes"),
    ):
        both = [reading for reading in readings if {*counts, *sizes} <= reading.values.keys()]
        count, total = (_total(both, metrics) for metrics in (counts, sizes))
        if count and total:
            found[figure] = ProductionFigure(total / count, f"{names}: {origin}")
    if DISK_READ_BYTES in found or DISK_WRITE_BYTES in found:
        found.pop(DISK_IO_BYTES, None)  # each for itself says more
    return found


def _total(readings: Sequence[DiskReading], metrics: tuple[str, ...]) -> float:
    return sum(reading.values[metric] * reading.interval_s for reading in readings for metric in metrics)
