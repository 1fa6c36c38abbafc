"""Bursts one by one: time, throughput, and the time to recover."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.stages import offered_per_s, peak_steps
from pinchpoint.analysis.thresholds import RECOVERED
from pinchpoint.base.clock import seconds_of
from pinchpoint.data.inputs import Inputs, Load
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Floats, Window
from pinchpoint.plan.arrivals import LATEST_START_S

LOAD_BEGUN = "load_begun"
"""The event of a scenario's load that begins: ``scenario``, and ``at``, from when on its schedule counts."""

_SLIVER = 0.05
"""A burst that covers less than this share of a step is not assigned the step."""

Steps = tuple[int, int]
"""A burst's first step of the window, and the one after its last."""


def burst_steps(inputs: Inputs, load: Load) -> list[Steps]:
    """The steps of each burst of a scenario, in order, including ramps and steps shared with the base.

    The schedule gives the times of bursts; counts would add noise. If the manifest lacks the load's begin, a
    burst is where more than the mean of base and peak was scheduled.
    """
    begun_s = _begun_s(inputs, load.scenario)
    if load.bursts is None or begun_s is None:
        inside = peak_steps(inputs, load.scenario)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
        return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
    window = inputs.window
    until_s = window.end_s - begun_s
    windows = [(begun_s + begin, begun_s + end) for begin, end in load.bursts.windows(until_s)]
    return list(_whole_steps(windows, window))


def _begun_s(inputs: Inputs, scenario: str) -> float | None:
    lines = [one for one in inputs.events if one.get("event") == LOAD_BEGUN and one["scenario"] == scenario]
    return seconds_of(lines[-1]["at"]) if lines else None


def _whole_steps(windows: list[tuple[float, float]], window: Window) -> Iterator[Steps]:
    """Times as steps; a step that two bursts share belongs to the first."""
    taken = 0
    for begin_s, end_s in windows:
        begin, end = ((time_s - window.first_s) / window.step_s for time_s in (begin_s, end_s))
        start = max(taken, math.floor(begin + _SLIVER))
        after = min(window.steps, max(math.ceil(end - _SLIVER), math.floor(begin) + 1))
        if start < after:
            yield start, after
            taken = after


def burst_table(inputs: Inputs, load: Load) -> list[dict[str, Any]]:
    """Each burst of a scenario, over its whole steps.

    ``start_s`` (since measuring began), ``duration_s``; ``offered``, ``done``, ``dropped``; ``p50_s`` and
    ``p99_s`` of what was done in it; ``backlog``: what was due by its end and had neither ended nor been
    dropped. ``calm_s`` is the median of the median latencies of the steps between bursts, those left out at
    whose end more waited than arrives in one (what is left of a burst is no calm); None if there is no
    such step, nor any base. ``recovery_s``: until the first step whose median is within 10 % of that; None
    where there was none in ``watched_s``, the time until the next burst or the end of the measuring.
    """
    window, result = inputs.window, burst_steps(inputs, load)
    if not result:
        return []
    inside = np.zeros(window.steps, dtype=bool)
    for start, end in result:
        inside[start:end] = True
    traffic = inputs.traffic.of(load.scenario).whole()
    medians = traffic.ok().medians_s(window)  # what fails at once has not recovered
    offered = offered_per_s(inputs, load.scenario) * window.step_s
    if np.isfinite(offered).any():
        offered = np.nan_to_num(offered)  # of a second in which nothing was due generators say nothing
    waiting = _backlog(inputs, load.scenario, offered)
    base = (load.base_per_s or 0.0) * window.step_s
    # Without a base, what ends after a burst is the burst's own.
    calm = _calm(medians, inside | (waiting > max(1.0, base))) if base else None
    followers = [*(start for start, _ in result[1:]), window.steps]
    return [
        {
            "start_s": start * window.step_s,
            "duration_s": (end - start) * window.step_s,
            "offered": _known(offered[start:end].sum()),
            **_done(traffic, window, start, end),
            "backlog": _known(waiting[end - 1]),
            "calm_s": calm,
            "recovery_s": _recovery(medians[end:following], calm, window.step_s),
            "watched_s": (following - end) * window.step_s,
        }
        for (start, end), following in zip(result, followers, strict=True)
    ]


def _done(traffic: Traffic, window: Window, start: int, end: int) -> dict[str, Any]:
    first, after = (window.first_s + step * window.step_s for step in (start, end))
    burst = traffic.at(range(first, after))
    latency = burst.ok().response() or burst.ok().service()
    return {
        "done": burst.ok().count,
        "dropped": burst.dropped,
        "p50_s": latency.p50_s if latency else None,
        "p99_s": latency.p99_s if latency else None,
    }


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _backlog(inputs: Inputs, scenario: str, offered: Floats) -> Floats:
    """Per step, the number of operations that were due and had neither ended nor been dropped at its end.

    ``offered``: number of operations due in each step. A dropped operation is counted in the second of its
    intended start, and waited from then until it was dropped. The smallest count is subtracted: these
    operations waited before the measure phase began.
    """
    window = inputs.window
    until_late_s = math.ceil(LATEST_START_S / window.step_s) * window.step_s
    late = Window(window.first_s - until_late_s, window.step_s, window.steps)
    ended = inputs.traffic.of(scenario).whole().per_step(window) * window.step_s
    given_up = inputs.whole.of(scenario).whole().dropped_per_step(late)
    waiting = np.cumsum(offered - ended - given_up)
    return np.asarray(waiting - np.fmin.reduce(waiting, initial=0.0), dtype=np.float64)


def _calm(medians: Floats, busy: npt.NDArray[np.bool_]) -> float | None:
    """The median latency between bursts; None without such a time."""
    outside = medians[~busy & np.isfinite(medians)]
    return float(np.median(outside)) if len(outside) else None


def _recovery(after: Floats, calm: float | None, step_s: int) -> float | None:
    """Seconds from a burst's end until the latency is calm again; None if it never was."""
    if calm is None:
        return None
    back = np.flatnonzero(after <= calm * (1 + RECOVERED.value))
    return float(back[0] * step_s) if len(back) else None
