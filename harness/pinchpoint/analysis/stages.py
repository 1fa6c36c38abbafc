"""Finds the load levels of a run, and the steady part of each (step 1).

A crawl's load falls when its sources end, because fewer users have work. So the level is judged at which most
of the documents were crawled. MSER-5 proposes the length of the start to cut. The cut is made only if a
change-point test agrees that the level changed, because MSER alone also cuts noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.thresholds import LEVEL_SHIFT, MIN_SAMPLES, MIN_SECONDS
from pinchpoint.base.clock import seconds_of
from pinchpoint.data.changes import find_shift, mser5
from pinchpoint.data.inputs import Inputs, Load
from pinchpoint.data.series import Floats, added

Rows = npt.NDArray[np.int64]
_TIMES = {"started", "ended"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One load level.

    Attributes:
        name: ``measure``, or ``base`` and ``peak`` if the load comes in bursts.
        rows: numbers of the window's steps in the level, without the transient.
        cut_steps: number of steps that were cut as transient.
        steady: whether throughput was constant; None if there are too few samples.
        unsteady: the scenarios whose throughput still changed.
        fewer_users_steps: number of steps that were left out because fewer users of a crawl had work.
    """

    name: str
    rows: Rows
    cut_steps: int
    steady: bool | None
    unsteady: tuple[str, ...]
    fewer_users_steps: int


def find_stages(inputs: Inputs, fewer_users_steps: int) -> tuple[Stage, ...]:
    """The load levels, the sustained level first; empty without a measured window."""
    if inputs.window.steps == 0:
        return ()
    cut, steady, unsteady = _transient(inputs)
    rows = np.arange(cut, inputs.window.steps)
    peak = peak_steps(inputs)[rows]
    bursts = peak.sum() * inputs.window.step_s >= MIN_SECONDS.value
    parts = {"base": rows[~peak], "peak": rows[peak]} if bursts else {"measure": rows}
    return tuple(
        Stage(name, part, cut, steady, unsteady, fewer_users_steps)
        for name, part in parts.items()
        if len(part)
    )


def peak_steps(inputs: Inputs, scenario: str | None = None) -> npt.NDArray[np.bool_]:
    """Per step, whether a burst (of one scenario, or any) was scheduled: above half-way to its peak."""
    inside = np.zeros(inputs.window.steps, dtype=bool)
    for load in inputs.loads:
        if load.peak_per_s is None or load.base_per_s is None or scenario not in {None, load.scenario}:
            continue
        offered = offered_per_s(inputs, load.scenario)
        inside |= np.nan_to_num(offered) > (load.base_per_s + load.peak_per_s) / 2
    return inside


def offered_per_s(inputs: Inputs, scenario: str) -> Floats:
    """Per step, scheduled operations per second of all generators; NaN if no generator reported any."""
    keys = [key for key in inputs.samples.keys("generator.scheduled_per_s") if key.instance == scenario]
    if not keys:
        return np.full(inputs.window.steps, np.nan)
    # A worker that died or joined late has no data for the rest of the time; the other workers have data.
    return added(inputs.samples.steps(*key) for key in keys)


def at_main_level(inputs: Inputs) -> Inputs:
    """The inputs of the longest stretch at the load at which most documents were crawled; else all."""
    window = inputs.window
    if window.steps == 0 or (inside := _at_main_level(inputs)).all():
        return inputs
    ends = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    stretches = zip(ends[::2], ends[1::2], strict=True)
    begin, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0], default=(0, 0))
    if (end - begin) * window.step_s < MIN_SECONDS.value:
        return inputs
    first_s = window.first_s + int(begin) * window.step_s
    return inputs.during(replace(window, first_s=first_s, steps=int(end - begin)))


def _at_main_level(inputs: Inputs) -> npt.NDArray[np.bool_]:
    """Per step, whether a crawl had the load (users with work) at which most documents were crawled.

    The load begins with the first document, because before that the crawl has found little work for its
    users.
    """
    window = inputs.window
    begins = window.first_s + np.arange(window.steps) * window.step_s
    inside = np.ones(window.steps, dtype=bool)
    for load in (one for one in inputs.loads if one.use == "full-crawl"):
        busy = _users_at_work(inputs, load, begins)
        done = inputs.traffic.of(load.scenario).whole().per_step(window)
        levels = np.unique(busy)
        main = levels[np.argmax([done[busy == level].sum() for level in levels])]
        first_s = next(iter(inputs.whole.of(load.scenario).whole().seconds), -math.inf)
        inside &= (busy == main) & (begins >= first_s)
    return inside


def _users_at_work(inputs: Inputs, load: Load, begins: npt.NDArray[np.int64]) -> Floats:
    """Per step, the number of users that a crawl's sources could keep busy; infinite if unknown.

    A source with a limit of workers keeps at most this number of users busy, any other source all users. The
    times at which sources ended are known once the crawl has ended.

    Args:
        inputs: the inputs of the run.
        load: the load of the crawl.
        begins: start of each step, UTC seconds.
    """
    busy = np.full(len(begins), math.inf)
    for event in inputs.events:
        sources = event.get("sources") or ()
        if event.get("event") != "crawl_ended" or event.get("scenario", load.scenario) != load.scenario:
            continue
        if not all(_TIMES.issubset(source) for source in sources):
            continue
        work = np.zeros(len(begins))
        for source in sources:
            at_work = begins + inputs.window.step_s > seconds_of(source["started"])
            at_work &= begins < seconds_of(source["ended"])
            work += np.where(at_work, source.get("workers") or math.inf, 0)
        busy = np.where(work > 0, work, busy)
    least: Floats = np.minimum(busy, load.users or math.inf)
    return least


def _transient(inputs: Inputs) -> tuple[int, bool | None, tuple[str, ...]]:
    """(number of steps to cut, whether the rest is steady, scenarios that are not steady).

    Bursts are left out because they are unsteady on purpose, and so is a load with several judged levels.
    """
    window = inputs.window
    if window.steps < MIN_SAMPLES.value:
        return 0, None, ()
    flows = {
        load.scenario: inputs.traffic.of(load.scenario).whole().per_step(window)
        for load in inputs.loads
        if load.model != "burst" and not load.several
    }
    cuts = [mser5(flow) for flow in flows.values() if _shifts(flow)]
    cut = max(cuts, default=0)
    unsteady = tuple(name for name, flow in flows.items() if _shifts(flow[cut:]))
    return cut, not unsteady, unsteady


def _shifts(flow: Floats) -> bool:
    return find_shift(flow, least=MIN_SAMPLES.value, smallest=LEVEL_SHIFT.value) is not None
