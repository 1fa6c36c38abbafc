"""The load of a fitted scenario, as plan.yaml says it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from pinchpoint.fit.course import Course
from pinchpoint.fit.figures import plain
from pinchpoint.fit.shape import BURST, Bursts

MEASURE_S = 120
_LONG_S = 600.0
_SHORTEST_S = 1.0
"""Latency is seen by the second: a burst lasts at least one."""


def measure_s(days: Iterable[Course | None]) -> int:
    """How long to measure: whole periods, so that the run has the load's mean and shows two of them."""
    known = [(day.bursts.every_s, day.whole_day) for day in days if day and day.bursts]
    if not known:
        return MEASURE_S
    every_s, whole_day = max(known)
    fewest = 1 if whole_day else 3 if every_s <= _LONG_S else 2
    return math.ceil(max(fewest, math.ceil(MEASURE_S / every_s)) * every_s)


def load_lines(rate_per_s: float, day: Course | None) -> Iterator[str]:
    """The load, and why it is so.

    Args:
        rate_per_s: the mean at the busy time.
        day: the course; None: not known.
    """
    if day is None:
        yield "# How it goes over the day is not known: a recording of sar or perfmon would tell."
        yield f"load: {{model: open, rate: {plain(rate_per_s)}/s}}"
        return
    if day.hours and len(day.hours) > 1:
        yield f"# Hours of the day beside the time that was counted ({day.source}: {day.what}):"
        yield from _hours(day)
    if day.bursts is None:
        yield f"# The busy time is even: no two bursts {BURST} times what is between them."
        yield f"load: {{model: open, rate: {plain(rate_per_s)}/s}}"
        return
    yield from _burst(rate_per_s, day.bursts)


def _hours(day: Course) -> Iterator[str]:
    """Six to a line."""
    shown = [f"{hour:02}h x {plain(ratio, 3)}" for hour, ratio in day.hours.items()]
    for start in range(0, len(shown), 6):
        yield f"#   {', '.join(shown[start : start + 6])}"


def _burst(rate_per_s: float, bursts: Bursts) -> Iterator[str]:
    base, peak = rate_per_s * bursts.base_ratio, rate_per_s * bursts.peak_ratio
    for_s = max(_SHORTEST_S, bursts.for_s)
    # What is too short to be seen is as much in a longer, lower burst.
    peak = base + (peak - base) * (bursts.for_s - bursts.ramp_s) / (for_s - bursts.ramp_s)
    seen = f"seen every {plain(bursts.readings_s, 3)} s"
    rises = f"rising in {plain(bursts.ramp_s, 3)} s" if bursts.ramp_s else "at once"
    times = (
        f"{plain(bursts.peak_ratio / bursts.base_ratio, 3)} times as much" if bursts.base_ratio else "Bursts"
    )
    yield f"# {times} for {plain(bursts.for_s, 3)} s every {plain(bursts.every_s, 3)} s, {rises} ({seen})."
    uneven = f", ramp: {plain(bursts.ramp_s)}s" if bursts.ramp_s else ""
    uneven += f", jitter: {plain(100 * bursts.jitter_ratio, 2)}%" if bursts.jitter_ratio else ""
    yield (
        f"load: {{model: burst, base: {plain(base)}/s, peak: {plain(peak)}/s, "
        f"every: {plain(bursts.every_s)}s, for: {plain(for_s)}s{uneven}}}"
    )
