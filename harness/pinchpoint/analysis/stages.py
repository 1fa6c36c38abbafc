"""Step 1: the load levels of a run, and which part of each is steady.

A crawl's load falls when its sources end, as the users find less work: the level at which most of the
documents were crawled is judged. MSER-5 proposes how much of the start to cut; the cut is made only where a
change-point test agrees that the level changed, as MSER alone also cuts noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        name: ``measure``, or ``base`` and ``peak`` where the load comes in bursts.
        rows: the steps of the window that belong to it, the transient left out.
        cut_steps: how many steps were cut as transient.
        steady: whether the level held; None if there are too few samples.
        unsteady: the scenarios whose throughput still changed.
        fewer_users_steps: how many steps were left out because fewer users of a crawl had work.
    """

    name: str
    rows: Rows
    cut_steps: int
    steady: bool | None
    unsteady: tuple[str, ...]
    fewer_users_steps: int


def find_stages(inputs: Inputs) -> tuple[Stage, ...]:
    """The load levels, the sustained one first. Empty if there is no measured window."""
    steps = inputs.window.steps
    if steps == 0:
        return ()
    judged = np.flatnonzero(_at_main_level(inputs))
    cut, steady, unsteady = _transient(inputs, judged)
    rows = judged[cut:]
    peak = peak_steps(inputs)[rows]
    bursts = peak.sum() * inputs.window.step_s >= MIN_SECONDS.value
    parts = {"base": rows[~peak], "peak": rows[peak]} if bursts else {"measure": rows}
    return tuple(
        Stage(name, part, cut, steady, unsteady, steps - len(judged))
        for name, part in parts.items()
        if len(part)
    )


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


def _at_main_level(inputs: Inputs) -> npt.NDArray[np.bool_]:
    """The steps at the load (users with work) at which most documents were crawled; else all.

    A crawl's load begins with its first document: until then it has found little work for its users.
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
    return inside if inside.sum() * window.step_s >= MIN_SECONDS.value else np.ones_like(inside)


def _users_at_work(inputs: Inputs, load: Load, begins: npt.NDArray[np.int64]) -> Floats:
    """How many users a crawl's sources could keep busy in each step; infinite where that is not known.

    A source that limits its workers keeps no more users busy than those, any other one all of them. When
    sources ended is known once their crawl has ended.

    Args:
        inputs: the run.
        load: the crawl's.
        begins: when each step begins, in UTC seconds.
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


def _transient(inputs: Inputs, judged: Rows) -> tuple[int, bool | None, tuple[str, ...]]:
    """Steps to cut, whether the rest is steady, and who is not.

    Bursts are unsteady on purpose, and so is a load of which several levels are looked at: left out.
    """
    window = inputs.window
    if len(judged) < MIN_SAMPLES.value:
        return 0, None, ()
    flows = {
        load.scenario: inputs.traffic.of(load.scenario).whole().per_step(window)[judged]
        for load in inputs.loads
        if load.model != "burst" and not load.several
    }
    cuts = [mser5(flow) for flow in flows.values() if _shifts(flow)]
    cut = max(cuts, default=0)
    unsteady = tuple(name for name, flow in flows.items() if _shifts(flow[cut:]))
    return cut, not unsteady, unsteady


def _shifts(flow: Floats) -> bool:
    return find_shift(flow, least=MIN_SAMPLES.value, smallest=LEVEL_SHIFT.value) is not None
