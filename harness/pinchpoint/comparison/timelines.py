"""Reduces a run over time to a few points for comparison.json; 0 s is the start of the measurement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pinchpoint.data import timeline as recorded
from pinchpoint.data.timeaxis import TimeAxis, clock_of
from pinchpoint.data.timeline import Axis
from pinchpoint.store.read import StoredRun

MOST_POINTS = 120
"""Most points of a timeline, as the timelines of two runs stand side by side, each half a page wide."""
SHOWN = ("throughput", "latency", "cpu", "disk_write_latency", "disk_iops")

_DEVICE = re.compile(r" \([^()]*\)")


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One line of a panel.

    Attributes:
        name: the name in the legend, the same on both sides for the same thing.
        style: the line style, ``solid`` or ``dashed``.
        values: the value at each point in time; None if not measured.
    """

    name: str
    style: Literal["solid", "dashed"]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class TimelinePanel:
    """The lines of one quantity (``data.timeline.Panel``)."""

    name: str
    title: str
    axis: Axis
    logarithmic: bool
    lines: tuple[TimelineLine, ...]


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """One run over time.

    Attributes:
        directory: the directory of the run.
        first_s: the middle of the first point, seconds after the start of the measurement; negative before
            it.
        step_s: seconds between points.
        points: number of points.
        phases: (name, start, end) of each phase, seconds after the start of the measurement.
        panels: the panels with measured values.
    """

    directory: str
    first_s: float
    step_s: int
    points: int
    phases: tuple[tuple[str, float, float], ...]
    panels: tuple[TimelinePanel, ...]


def timeline_of(run: StoredRun) -> RunTimeline:
    """A run over time, with 0 s at the start of the measure phase."""
    clock = _coarser(clock_of(run))
    zero_s = next((phase.from_s for phase in clock.phases if phase.name == "measure"), 0.0)
    points = max(1, math.ceil(clock.length_s / clock.bucket_s))
    return RunTimeline(
        directory=str(run.directory),
        first_s=clock.bucket_s / 2 - zero_s,
        step_s=clock.bucket_s,
        points=points,
        phases=tuple((one.name, one.from_s - zero_s, one.to_s - zero_s) for one in clock.phases),
        panels=tuple(_panels(run, clock, points)),
    )


def _coarser(clock: TimeAxis) -> TimeAxis:
    each = max(1, math.ceil(clock.length_s / MOST_POINTS / clock.bucket_s))
    return replace(clock, bucket_s=clock.bucket_s * each)


def _panels(run: StoredRun, clock: TimeAxis, points: int) -> Iterator[TimelinePanel]:
    for panel in recorded.panels(run, clock):
        if panel.name in SHOWN and panel.series:
            lines = tuple(
                _line(series, clock, points, disk=panel.name.startswith("disk")) for series in panel.series
            )
            yield TimelinePanel(panel.name, panel.title, panel.axis, panel.logarithmic, lines)


def _line(series: recorded.TimelineSeries, clock: TimeAxis, points: int, *, disk: bool) -> TimelineLine:
    values: list[float | None] = [None] * points
    for point in series.points:
        at = int(point.t_s // clock.bucket_s)
        if 0 <= at < points:
            values[at] = float(f"{point.mean:.4g}")
    # Device names differ between the sides, but roles do not.
    name = _DEVICE.sub("", series.name, count=1) if disk else series.name
    return TimelineLine(name, series.style, tuple(values))
