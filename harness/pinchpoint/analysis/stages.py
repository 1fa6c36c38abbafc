"""Step 1: the load levels of a run, and which part of each is steady.

MSER-5 proposes how much of the start to cut; the cut is made only where a change-point test agrees that the
level changed, as MSER alone also cuts noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.thresholds import LEVEL_SHIFT, MIN_SAMPLES, MIN_SECONDS
from pinchpoint.data.changes import find_shift, mser5
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, added

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stage:
    """One load level.

    Attributes:
        name: ``measure``, or ``base`` and ``peak`` where the load comes in bursts.
        rows: the steps of the window that belong to it, the transient left out.
        cut_steps: how many steps were cut as transient.
        steady: whether the level held; None if there are too few samples.
        unsteady: the scenarios whose throughput still changed.
    """

    name: str
    rows: Rows
    cut_steps: int
    steady: bool | None
    unsteady: tuple[str, ...]


def find_stages(inputs: Inputs) -> tuple[Stage, ...]:
    """The load levels, the sustained one first. Empty if there is no measured window."""
    steps = inputs.window.steps
    if steps == 0:
        return ()
    cut, steady, unsteady = _transient(inputs)
    rows = np.arange(cut, steps)
    peak = peak_steps(inputs)[cut:]
    if peak.sum() * inputs.window.step_s < MIN_SECONDS.value:
        return (Stage("measure", rows, cut, steady, unsteady),)
    parts = {"base": rows[~peak], "peak": rows[peak]}
    return tuple(Stage(name, part, cut, steady, unsteady) for name, part in parts.items() if len(part))


def peak_steps(inputs: Inputs, scenario: str | None = None) -> npt.NDArray[np.bool_]:
    """The steps in which a burst (of one scenario, or any) was scheduled: above half-way to its peak."""
    inside = np.zeros(inputs.window.steps, dtype=bool)
    for load in inputs.loads:
        if load.peak_per_s is None or load.base_per_s is None or scenario not in {None, load.scenario}:
            continue
        offered = offered_per_s(inputs, load.scenario)
        inside |= np.nan_to_num(offered) > (load.base_per_s + load.peak_per_s) / 2
    return inside


def offered_per_s(inputs: Inputs, scenario: str) -> Floats:
    """Scheduled operations per second in each step, over all generators; NaN if no generator reported any."""
    keys = [key for key in inputs.samples.keys("generator.scheduled_per_s") if key.instance == scenario]
    if not keys:
        return np.full(inputs.window.steps, np.nan)
    # A worker that died or joined late has no data for the rest of the time; the others have.
    return added(inputs.samples.steps(*key) for key in keys)


def _transient(inputs: Inputs) -> tuple[int, bool | None, tuple[str, ...]]:
    """Steps to cut, whether the rest is steady, and who is not.

    Bursts are unsteady on purpose, and so is a load of which several levels are looked at: left out.
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
