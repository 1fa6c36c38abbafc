"""The time axis of a run: its phases, and the length of a point on the timeline."""

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
_POINTS = 300  # more points than this cannot be distinguished on a page


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a run, in seconds since the load began."""

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The run's time axis.

    Attributes:
        start_s: UTC seconds since 1970 at which the load began.
        length_s: seconds from there to the end of the run.
        phases: in order; the phase an interrupted run was in ends where the data end.
        bucket_s: whole seconds that one point of the timeline covers.
        step_s: whole seconds that a row of the operations covers.
        samples_only: whether nothing was loaded: other tools' samples, whose recording began at ``start_s``.
        offset_s: how far the shown time of day is ahead of UTC: that of an imported file's own zone.
        relative: whether times count from the begin of the measure phase, as in a comparison.
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
        """``UTC`` or ``UTC+01:00``."""
        return zone_words(self.offset_s)

    @property
    def window(self) -> tuple[float, float] | None:
        """The whole UTC steps of the measure phase, as the analysis takes them; ``None`` without one."""
        result = [phase for phase in self.phases if phase.name == "measure"]
        if not result:
            return None
        window = Window.between(
            self.start_s + result[0].from_s, self.start_s + result[-1].to_s, recorded_s=self.step_s
        )
        return window.first_s, window.first_s + window.seconds

    def shown(self, since_start_s: float) -> str:
        """The time of day of a point, with the UTC time where the two differ; seconds of a relative one."""
        if self.relative:
            return f"{self.start_s + since_start_s:,g} s"
        utc = datetime.fromtimestamp(self.start_s + since_start_s, UTC)
        if not self.offset_s:
            return f"{utc:%H:%M:%S} UTC"
        return f"{utc + timedelta(seconds=self.offset_s):%H:%M:%S} ({utc:%H:%M:%S} UTC)"


def zone_words(offset_s: int) -> str:
    """``UTC`` or ``UTC+01:00``."""
    if not offset_s:
        return "UTC"
    hours, minutes = divmod(abs(offset_s) // 60, 60)
    return f"UTC{'-' if offset_s < 0 else '+'}{hours:02}:{minutes:02}"


def shown_offset_s(manifest: JsonObject) -> int:
    """How far the time of day that people read is ahead of UTC: as in the imported files, where all agree."""
    offsets = {int(each.get("utc_offset_s") or 0) for each in manifest.get("imports") or ()}
    return offsets.pop() if len(offsets) == 1 and not manifest.get("plan") else 0


def has_samples_only(run: StoredRun) -> bool:
    """Whether a run is one of imported samples alone: nothing was planned or loaded."""
    return bool(run.manifest.get("imports")) and not run.manifest.get("plan")


def day_and_time(stamp: str | None, offset_s: int = 0) -> str | None:
    """An ISO time in the form ``2026-11-20 09:00:00 UTC``, in a zone with this offset."""
    if stamp is None:
        return None
    shown = datetime.fromtimestamp(seconds_of(stamp) + offset_s, UTC)
    return f"{shown:%Y-%m-%d %H:%M:%S} {zone_words(offset_s)}"


def clock_of(run: StoredRun) -> TimeAxis:
    """The time axis of a run: from the first phase on (data were loaded before it) to the end of the run.

    A run that lacks an end, or phases, as one that was killed does, begins and ends with its data.
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
    # Samples alone may be minutes apart: a point that is finer would be an empty one.
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
    """When measuring began and ended, UTC seconds; (0, 0) for an empty run.

    The first sample covers the interval before it; the last second of the operations may be cut short.
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
    """The coarsest grid of the operations (1 s; 10 s in long runs): a point must not be finer."""
    longest = pc.max(run.operations["interval_s"]).as_py() if run.operations.num_rows else None
    return float(longest or 1.0)
