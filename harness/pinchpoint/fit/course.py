"""How a production server's load goes over the day, by what perfmon, sar and others recorded of its disks."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pinchpoint.errors import InputError
from pinchpoint.fit.figures import DISK_READ_BYTES, DISK_WRITE_BYTES, Figure, Figures
from pinchpoint.imports import open_source
from pinchpoint.imports.places import Places
from pinchpoint.imports.reading import Between, Gathered, read_all
from pinchpoint_collectors.imports.record import Settings

HOUR_S = 3600
BURST = 1.5
"""A reading so many times the mean of its hour is one of a burst."""
_HOST = "production"
_NS = 1e9
_METRICS = ("disk.reads_per_s", "disk.writes_per_s", "disk.read_bytes_per_s", "disk.write_bytes_per_s")


@dataclass(frozen=True, slots=True)
class Reading:
    """All disks of a machine in one interval.

    Attributes:
        ended_s: its end, UTC seconds.
        interval_s: its length.
        values: of ``_METRICS``, in their order, all disks together.
    """

    ended_s: float
    interval_s: float
    values: tuple[float, float, float, float]

    @property
    def activity_per_s(self) -> float:
        """Reads and writes of all disks."""
        return self.values[0] + self.values[1]


@dataclass(frozen=True, slots=True)
class Bursts:
    """How uneven the busiest hour is.

    Attributes:
        ratio: a burst's rate ÷ the rate between bursts.
        every_s: from one burst's beginning to the next one's.
        for_s: how long one lasts.
    """

    ratio: float
    every_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Course:
    """What the recordings say.

    Attributes:
        figures: sizes of I/Os.
        busiest: the busiest hour, in words.
        peak_ratio: the activity of that hour ÷ that of the time the statements were counted in.
        bursts: None where that hour is even.
        source: where it comes from.
    """

    figures: Figures
    busiest: str
    peak_ratio: float
    bursts: Bursts | None
    source: str


def course(paths: Sequence[Path], began_s: float, ended_s: float) -> Course:
    """What recordings of one machine say of its day.

    Args:
        paths: the files.
        began_s: when the statements began to be counted, UTC seconds.
        ended_s: when that ended.

    Raises:
        InputError: a file is of no known kind, is damaged, or has no disks in it.
    """
    names = ", ".join(path.name for path in paths)
    readings = _readings(paths)
    if not any(reading.activity_per_s for reading in readings):
        raise InputError(f"{names}: no disk did any I/O in it; record the database host's disks")
    hours: dict[int, list[Reading]] = defaultdict(list)
    for reading in readings:
        hours[int((reading.ended_s - reading.interval_s / 2) // HOUR_S)].append(reading)
    at, busiest = max(hours.items(), key=lambda hour: _mean(hour[1]))
    counted = [each for each in readings if began_s <= each.ended_s - each.interval_s / 2 <= ended_s]
    usual = _mean(counted) or _mean(readings)
    return Course(
        figures=_sizes(readings, names),
        busiest=datetime.fromtimestamp(at * HOUR_S, UTC).strftime("%Y-%m-%d %H:00 UTC"),
        peak_ratio=_mean(busiest) / usual,
        bursts=_bursts(busiest),
        source=names,
    )


def _readings(paths: Sequence[Path]) -> list[Reading]:
    totals: dict[tuple[int, float], list[float]] = defaultdict(lambda: [0.0] * len(_METRICS))
    sources = [open_source(path, None) for path in paths]
    for sample in read_all(sources, Settings(), Places(host=_HOST), Between(), Gathered()):
        if sample.metric in _METRICS and sample.value is not None:
            totals[sample.time_ns, sample.interval_s][_METRICS.index(sample.metric)] += sample.value
    return [
        Reading(time_ns / _NS, interval_s, (values[0], values[1], values[2], values[3]))
        for (time_ns, interval_s), values in sorted(totals.items())
    ]


def _mean(readings: Sequence[Reading]) -> float:
    """The activity of a time, weighted by the lengths of its readings; 0 without any."""
    length_s = sum(reading.interval_s for reading in readings)
    if not length_s:
        return 0.0
    return sum(reading.activity_per_s * reading.interval_s for reading in readings) / length_s


def _sizes(readings: Sequence[Reading], names: str) -> Figures:
    found: Figures = {}
    for figure, count, size, what in ((DISK_READ_BYTES, 0, 2, "read"), (DISK_WRITE_BYTES, 1, 3, "written")):
        operations = sum(reading.values[count] * reading.interval_s for reading in readings)
        total = sum(reading.values[size] * reading.interval_s for reading in readings)
        if operations and total:
            found[figure] = Figure(total / operations, f"{names}: bytes {what} ÷ I/Os, all disks")
    return found


def _bursts(hour: Sequence[Reading]) -> Bursts | None:
    """The bursts of an hour, where there are at least two."""
    limit = BURST * _mean(hour)
    high = [reading for reading in hour if reading.activity_per_s > limit]
    low = [reading for reading in hour if reading.activity_per_s <= limit]
    starts = [
        after
        for before, after in itertools.pairwise(hour)
        if after.activity_per_s > limit >= before.activity_per_s
    ]
    if len(starts) < 2 or not _mean(low):
        return None
    span_s = starts[-1].ended_s - starts[0].ended_s
    every_s = span_s / (len(starts) - 1)
    begun_before = hour[0].activity_per_s > limit  # its beginning is not in this hour
    for_s = sum(reading.interval_s for reading in high) / (len(starts) + begun_before)
    return Bursts(_mean(high) / _mean(low), every_s, for_s) if for_s < every_s else None
