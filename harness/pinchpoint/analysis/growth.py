"""Computes evidence from several load levels: a queue that grows with load (E2), a ceiling that fits (E3).

Over the levels before the knee the utilisation of a resource is ``U = b + D X`` (docs/rules.md). X is the
throughput of the scenario that is varied while the other scenarios stay constant. The resource is saturated
at the ceiling ``(1 - b) / D``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # loads its parts on first use; most verdicts need no part

from pinchpoint.analysis.knee import Knee
from pinchpoint.analysis.levels import Level
from pinchpoint.analysis.resources.base import (
    Measures,
    Resource,
    Suspicion,
)
from pinchpoint.analysis.resources.kinds import KINDS, measure
from pinchpoint.analysis.thresholds import CEILING, FLAT, MIN_LEVELS, RISES, UTILISATION, Threshold
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.data.series import Floats, Window

LINE = 3
"""Fewest levels for a line through the utilisation."""


@dataclass(frozen=True, slots=True)
class SteppedLevels:
    """The levels of the scenario that was varied.

    Attributes:
        levels: the levels, from low to high.
        done: throughput at each level, operations per second.
        resources: the resources, with columns over the whole measure phase.
        window: the measure phase.
        knee: the knee of throughput over load.
        rows_of_levels: the rows of ``levels.level_table``, in the order of ``levels``.
    """

    levels: Sequence[Level]
    done: Floats
    resources: Sequence[Resource]
    window: Window
    knee: Knee
    rows_of_levels: Sequence[Mapping[str, Any]] = ()

    def rows(self, level: Level) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The numbers of the window's steps that a level covers."""
        span = level.window(self.window.step_s)
        first = (span.first_s - self.window.first_s) // self.window.step_s
        return np.arange(max(0, first), min(self.window.steps, first + span.steps))

    def measured(self, resource: Resource) -> list[Measures]:
        """The measures of a resource at each level; empty if the resource is not in ``resources``."""
        same = next((one for one in self.resources if one.key == resource.key), None)
        return [measure(same, self.rows(level)) for level in self.levels] if same else []


@dataclass(frozen=True, slots=True)
class Line:
    """The utilisation of a resource as a line over throughput.

    Attributes:
        base: utilisation at rest and by the scenarios that are not varied.
        each_s: demand of one operation in seconds (share x seconds).
        levels: number of levels that the line is fitted to.
    """

    base: float
    each_s: float
    levels: int

    @property
    def ceiling_per_s(self) -> float:
        """The throughput at which the resource is saturated, in operations per second."""
        return (1 - self.base) / self.each_s


def with_growth(suspicions: Sequence[Suspicion], climb: SteppedLevels) -> tuple[Suspicion, ...]:
    """The suspicions with the evidence of the load levels; unchanged if there are too few levels."""
    if len(climb.levels) < MIN_LEVELS.value:
        return tuple(suspicions)
    return tuple(_grown(one, climb) for one in suspicions)


def _grown(suspicion: Suspicion, climb: SteppedLevels) -> Suspicion:
    measured = climb.measured(suspicion.resource)
    if not measured:
        return suspicion
    use = np.array([_use(each, suspicion) for each in measured], dtype=float)
    line = find_line(climb, use)
    facts = [
        fact for fact in (_queue(suspicion, measured, use, climb), _ceiling(suspicion, line, climb)) if fact
    ]
    evidence = suspicion.evidence | {fact.evidence for fact in facts}
    return replace(suspicion, evidence=evidence, grown=tuple(facts), outrun=_outrun(line, climb))


def _queue(
    suspicion: Suspicion, measured: Sequence[Measures], use: Floats, climb: SteppedLevels
) -> Fact | None:
    """E2: the queue of a resource grows with the load, by Kendall's rank correlation; None if it does not.

    At a saturated level the queue is as long as a pool of users or connections allows. So all saturated
    levels get the mean of their queues.
    """
    words, metric, show = KINDS[suspicion.resource.type].waiting or ("", "", units.percent)
    waiting = np.array([each.waiting for each in measured], dtype=float)
    known = np.isfinite(waiting)
    if not metric or known.sum() < MIN_LEVELS.value:
        return None
    full = known & (use >= 1 - FLAT.value)
    ranked = np.where(full, waiting[full].mean(), waiting) if full.any() else waiting
    load = np.array([level.amount for level in climb.levels])
    tau, p = scipy.stats.kendalltau(load[known], ranked[known], alternative="greater")
    if not p < RISES.value:  # p is not a number if the queue is the same at all levels
        return None
    first, last = (show(float(waiting[known][at])) for at in (0, -1))
    text = (
        f"{words} grew with the load: {first} at the first level, {last} at the last "
        f"(Kendall's tau {tau:.2f})"
    )
    return _fact(suspicion, text, metric, float(waiting[known][-1]), "E2", RISES)


def why_not_shown(suspicion: Suspicion, climb: SteppedLevels, kind: str) -> str:
    """Why the levels cannot show whether the queue grows (``E2``) or the ceiling fits (``E3``), else ""."""
    if len(climb.levels) < MIN_LEVELS.value:
        return f"{len(climb.levels)} load levels, at least {MIN_LEVELS.value:.0f} are needed"
    measured = climb.measured(suspicion.resource)
    if kind == "E2":
        known = [
            each for each in measured if KINDS[suspicion.resource.type].waiting and each.waiting is not None
        ]
        return "" if len(known) >= MIN_LEVELS.value else "its queue was not measured"
    known = [each for each in measured if _use(each, suspicion) is not None]
    return "" if len(known) >= LINE else "its utilisation is not known"


def _ceiling(suspicion: Suspicion, line: Line | None, climb: SteppedLevels) -> Fact | None:
    """E3: the ceiling by the demand of an operation equals the highest measured throughput; else None."""
    reached = float(climb.done.max())
    if line is None or abs(line.ceiling_per_s / reached - 1) > CEILING.value:
        return None
    text = _used_up_words(line, reached)
    result = _fact(suspicion, text, "operations.throughput_per_s", line.ceiling_per_s, "E3", CEILING)
    return replace(result, host="", instance=climb.levels[0].scenario)


def _outrun(line: Line | None, climb: SteppedLevels) -> str:
    """A sentence if throughput rose far beyond the calculated ceiling; "" otherwise.

    For example, the commits of a log share writes: the more commits wait, the more commits share one write.
    """
    reached = float(climb.done.max())
    if line is None or climb.knee.found is not False or reached <= line.ceiling_per_s * (1 + CEILING.value):
        return ""
    return _used_up_words(line, reached)


def _used_up_words(line: Line, reached: float) -> str:
    return (
        f"by its use for each operation it is saturated at {units.per_second(line.ceiling_per_s)}; "
        f"{units.per_second(reached)} were reached"
    )


def find_line(climb: SteppedLevels, use: Floats) -> Line | None:
    """The line U = b + D X over the unsaturated levels before the knee; b is 0 or more.

    Args:
        climb: the levels, with the throughput at each.
        use: utilisation at each of the levels; NaN if unknown.

    Returns:
        The line; None if fewer than three levels remain, or if the utilisation does not grow with throughput.
    """
    before = np.array([_before(climb, level) for level in climb.levels]) & (use < UTILISATION.value)
    done, used = climb.done[before], use[before]
    if len(done) < LINE or np.ptp(done) == 0:
        return None
    each, base = np.polyfit(done, used, 1)
    if base < 0:
        each, base = float(done @ used) / float(done @ done), 0.0
    return Line(float(base), float(each), len(done)) if each > 0 and base < 1 else None


def _before(climb: SteppedLevels, level: Level) -> bool:
    return not climb.knee.found or level.amount <= (climb.knee.level or 0.0)


def _use(measures: Measures, suspicion: Suspicion) -> float | None:
    """The utilisation of a suspect; unknown for a disk whose cap is unknown or contradicted."""
    return measures.use if KINDS[suspicion.resource.type].grows and not suspicion.contradicted else None


def _fact(suspicion: Suspicion, text: str, metric: str, value: float, kind: str, rule: Threshold) -> Fact:
    """A fact without a threshold, because the rule's number is no value of the metric.

    Pressure and lock waits are measured per host; only disks have series of their own.
    """
    host = suspicion.resource.hosts[0] if suspicion.resource.hosts else ""
    own = suspicion.resource.instance if KINDS[suspicion.resource.type].own_series else ""
    instance = None if suspicion.resource.whole is not None else own
    return Fact(text, metric, value, host, instance, kind, None, rule.source, rule.says)
