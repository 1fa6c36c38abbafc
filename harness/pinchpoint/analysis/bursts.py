"""Computes the latency, the throughput and the recovery time of each burst."""

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
"""The event that the load of a ``scenario`` began; its schedule starts at the time ``at``."""

_SLIVER = 0.05
"""A step belongs to a burst only if the burst covers at least this share of the step."""

Steps = tuple[int, int]
"""(first step of a burst, the step after its last one), as numbers of steps in the window."""


def burst_steps(inputs: Inputs, load: Load) -> list[Steps]:
    """The steps of each burst of a scenario, in order, including ramps and steps shared with the base.

    The times come from the schedule, because counts would add noise. If no event gives the begin of the load,
    a burst is a stretch with a scheduled rate above the mean of base and peak.
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
    """The steps of each burst; a step that two bursts share belongs to the first one."""
    taken = 0
    for begin_s, end_s in windows:
        begin, end = ((time_s - window.first_s) / window.step_s for time_s in (begin_s, end_s))
        start = max(taken, math.floor(begin + _SLIVER))
        after = min(window.steps, max(math.ceil(end - _SLIVER), math.floor(begin) + 1))
        if start < after:
            yield start, after
            taken = after


def burst_table(inputs: Inputs, load: Load) -> list[dict[str, Any]]:
    """One row per burst of a scenario, over the whole steps of the burst.

    ``start_s``: seconds since the measure phase began. ``offered``, ``done``, ``dropped``: numbers of
    operations. ``p50_s`` and ``p99_s``: latency of the operations that ended in the burst. ``backlog``:
    number of operations that were due by the end of the burst and had neither ended nor been dropped.
    ``calm_s``: median of the median latencies of the steps between bursts. A step with more waiting
    operations at its end than arrive in one step is left out, because the backlog of a burst is no calm.
    ``calm_s`` is None without such steps or without a base rate. ``recovery_s``: seconds until the first step
    with a median latency of at most 110 % of ``calm_s``; None if there was none within ``watched_s``, the
    seconds until the next burst or the end of the measure phase.
    """
    window, result = inputs.window, burst_steps(inputs, load)
    if not result:
        return []
    inside = np.zeros(window.steps, dtype=bool)
    for start, end in result:
        inside[start:end] = True
    traffic = inputs.traffic.of(load.scenario).whole()
    medians = traffic.ok().medians_s(window)  # an operation that fails fast is no recovery
    offered = offered_per_s(inputs, load.scenario) * window.step_s
    if np.isfinite(offered).any():
        # generators report nothing for a second in which no operation was due
        offered = np.nan_to_num(offered)
    waiting = _backlog(inputs, load.scenario, offered)
    base = (load.base_per_s or 0.0) * window.step_s
    # Without a base rate, the operations that end after a burst belong to the burst.
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
    intended start; it counts as waiting from then until it was dropped. The smallest count is subtracted,
    because these operations waited before the measure phase began.
    """
    window = inputs.window
    until_late_s = math.ceil(LATEST_START_S / window.step_s) * window.step_s
    late = Window(window.first_s - until_late_s, window.step_s, window.steps)
    ended = inputs.traffic.of(scenario).whole().per_step(window) * window.step_s
    given_up = inputs.whole.of(scenario).whole().dropped_per_step(late)
    waiting = np.cumsum(offered - ended - given_up)
    return np.asarray(waiting - np.fmin.reduce(waiting, initial=0.0), dtype=np.float64)


def _calm(medians: Floats, busy: npt.NDArray[np.bool_]) -> float | None:
    """The median latency of the steps between bursts, in seconds; None if there is no such step."""
    outside = medians[~busy & np.isfinite(medians)]
    return float(np.median(outside)) if len(outside) else None


def _recovery(after: Floats, calm: float | None, step_s: int) -> float | None:
    """Seconds from a burst's end until the latency is calm again; None if it stays high."""
    if calm is None:
        return None
    back = np.flatnonzero(after <= calm * (1 + RECOVERED.value))
    return float(back[0] * step_s) if len(back) else None
