"""Computes the time axis of a run: its phases, and the length of a point on the timeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.objects import JsonObject
from pinchpoint.data.series import Window
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun

_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_POINTS = 300  # a page cannot show more points than this


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a run, in seconds since the load began."""

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The time axis of a run.

    Attributes:
        start_s: start of the load, UTC seconds since 1970.
        length_s: seconds from ``start_s`` to the end of the run.
        phases: phases in order; the last phase of an interrupted run ends with its data.
        bucket_s: whole seconds that one point of the timeline covers.
        step_s: whole seconds that a row of operations covers.
        samples_only: whether the run has only imported samples and no load; their recording then began at
            ``start_s``.
        offset_s: offset of the displayed time of day from UTC, seconds; the time zone of imported files.
        relative: whether times count from the start of the measure phase, as in a comparison.
    """

    start_s: float
    length_s: float
    phases: tuple[Phase, ...]
    bucket_s: int
    step_s: int = 1
    samples_only: bool = False
    offset_s: int = 0
    relative: bool = False

    @property
    def zone(self) -> str:
        """The displayed time zone, such as ``UTC`` or ``UTC+01:00``."""
        return zone_words(self.offset_s)

    @property
    def window(self) -> tuple[float, float] | None:
        """(start, end) of the analysed part of the measure phase, UTC seconds; ``None`` without the phase."""
        result = [phase for phase in self.phases if phase.name == "measure"]
        if not result:
            return None
        window = Window.between(
            self.start_s + result[0].from_s, self.start_s + result[-1].to_s, recorded_s=self.step_s
        )
        return window.first_s, window.first_s + window.seconds

    def shown(self, since_start_s: float) -> str:
        """The displayed time of a point, with its UTC time if they differ; in seconds on a relative axis."""
        if self.relative:
            return f"{self.start_s + since_start_s:,g} s"
        utc = datetime.fromtimestamp(self.start_s + since_start_s, UTC)
        if not self.offset_s:
            return f"{utc:%H:%M:%S} UTC"
        return f"{utc + timedelta(seconds=self.offset_s):%H:%M:%S} ({utc:%H:%M:%S} UTC)"


def zone_words(offset_s: int) -> str:
    """The time zone of an offset, such as ``UTC`` or ``UTC+01:00``."""
    if not offset_s:
        return "UTC"
    hours, minutes = divmod(abs(offset_s) // 60, 60)
    return f"UTC{'-' if offset_s < 0 else '+'}{hours:02}:{minutes:02}"


def shown_offset_s(manifest: JsonObject) -> int:
    """The offset of the displayed time from UTC, seconds: that of imported files if they agree, else 0."""
    offsets = {int(each.get("utc_offset_s") or 0) for each in manifest.get("imports") or ()}
    return offsets.pop() if len(offsets) == 1 and not manifest.get("plan") else 0


def has_samples_only(run: StoredRun) -> bool:
    """Whether a run has only imported samples, and no plan or load."""
    return bool(run.manifest.get("imports")) and not run.manifest.get("plan")


def day_and_time(stamp: str | None, offset_s: int = 0) -> str | None:
    """An ISO time in the form ``2026-11-20 09:00:00 UTC``, in the zone of the offset; None without a time."""
    if stamp is None:
        return None
    shown = datetime.fromtimestamp(seconds_of(stamp) + offset_s, UTC)
    return f"{shown:%Y-%m-%d %H:%M:%S} {zone_words(offset_s)}"


def clock_of(run: StoredRun) -> TimeAxis:
    """The time axis of a run, from the first phase (loading of data comes before) to the end of the run.

    If a run has no end or no phases, for example after a kill, the axis covers its data.
    """
    first_s, last_s = _extent(run)
    planned = run.manifest.get("phases") or []
    starts = [seconds_of(phase["from"]) for phase in planned] or [first_s]
    start_s = min(first_s, *starts) if first_s else min(starts)
    ended = run.manifest.get("ended")
    end_s = max(seconds_of(ended) if ended else last_s, start_s)
    phases = tuple(_phase(phase, start_s, end_s) for phase in planned)
    length_s = end_s - start_s
    recorded_s = _longest_interval_s(run)
    # Imported samples may be minutes apart; finer points would be empty.
    apart_s = 0.0 if run.operations.num_rows else samples.usual_interval_s(run.samples)
    wanted_s = max(length_s / _POINTS, recorded_s, apart_s)
    bucket_s = next((step for step in _STEPS_S if step >= wanted_s), math.ceil(wanted_s))
    offset_s = shown_offset_s(run.manifest)
    return TimeAxis(
        start_s, length_s, phases, bucket_s, math.ceil(recorded_s), has_samples_only(run), offset_s
    )


def _phase(phase: JsonObject, start_s: float, end_s: float) -> Phase:
    to = phase.get("to")
    return Phase(
        name=str(phase["name"]),
        from_s=seconds_of(phase["from"]) - start_s,
        to_s=(seconds_of(to) if to else end_s) - start_s,
    )


def _extent(run: StoredRun) -> tuple[float, float]:
    """(start, end) of the recorded data, UTC seconds; (0, 0) for an empty run.

    The first sample covers the interval before its time; the last second of operations may be incomplete.
    """
    firsts: list[float] = []
    lasts: list[float] = []
    sampled = samples.extent(run.samples)
    if sampled:
        firsts.append(sampled[0])
        lasts.append(sampled[1])
    if run.operations.num_rows:
        times = run.operations["time_s"]
        firsts.append(pc.min(times).as_py())
        lasts.append(pc.max(pc.add(times, run.operations["interval_s"])).as_py())
    return (min(firsts), max(lasts)) if firsts else (0.0, 0.0)


def _longest_interval_s(run: StoredRun) -> float:
    """Seconds that the longest row of operations covers (1; 10 in long runs); points must not be shorter."""
    longest = pc.max(run.operations["interval_s"]).as_py() if run.operations.num_rows else None
    return float(longest or 1.0)
