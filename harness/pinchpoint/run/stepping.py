"""A load in steps, judged while it goes on: does throughput still follow, is an objective missed? Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.plan import Objective
from pinchpoint.run.seconds import Told

FOLLOWS = 0.95
"""An open load is served as long as 95 % of what is offered gets through (METHOD, step 0)."""
CHANCE = 2.0
"""Independent arrivals are fewer by chance: by two standard deviations in one of forty levels."""
KNEE = 0.10
"""Saturated: a step adds less than a tenth of what the first level brought per unit (METHOD, step 2)."""
EXPLODED = 10.0
"""Half of the operations take ten times as long as at the first level (design value)."""
IN_A_ROW = 2
"""One step can be bad by chance, and what comes after a knee must be seen to be one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One level that has been held for its time.

    Attributes:
        level: the rate, or the number of users.
        told: what the generators told of it.
    """

    level: float
    told: Told


def saturated(steps: Sequence[Step], *, closed: bool) -> str | None:
    """Why the farm no longer follows; None where it does, or that cannot be told yet."""
    if len(steps) <= IN_A_ROW:
        return None
    judged = range(len(steps) - IN_A_ROW, len(steps))
    last, first = steps[-1], steps[0]
    if not closed and not any(_served(steps[number]) for number in judged):
        return f"{last.told.ok_per_s:.4g}/s of {last.level:.4g}/s were served"
    slope = first.told.ok_per_s / first.level
    if closed and slope and all(_gain(steps, number) < KNEE * slope for number in judged):
        return f"the last {IN_A_ROW} steps added less than a tenth of what their users brought at first"
    if not closed and all(_exploded(first, steps[number]) for number in judged):
        return f"half of the operations took {EXPLODED:g} times as long as at the first level"
    return None


def _served(step: Step) -> bool:
    """Whether an open load gets through, or is as near to it as chance makes it."""
    offered = step.level * step.told.seconds
    return step.told.ok >= FOLLOWS * offered - CHANCE * math.sqrt(offered)


def _exploded(first: Step, step: Step) -> bool:
    """Only of an open load: a closed one's users share what there is, and wait as long as they are many."""
    if first.told.p50_s is None or step.told.p50_s is None:
        return False
    return step.told.p50_s > EXPLODED * first.told.p50_s


def _gain(steps: Sequence[Step], number: int) -> float:
    here, before = steps[number], steps[number - 1]
    return (here.told.ok_per_s - before.told.ok_per_s) / (here.level - before.level)


def missed(step: Step, objectives: Sequence[Objective], *, closed: bool = False) -> str | None:
    """Which objective a level does not meet; None where it meets them all.

    Throughput below an objective is no miss where no more was offered, nor where users offer what they can.
    """
    told = step.told
    if told.ok == 0:
        return "nothing got through"
    for objective in objectives:
        for name in ("p50", "p95", "p99"):
            promised, found = getattr(objective, f"{name}_s"), getattr(told, f"{name}_s")
            if promised is not None and found is not None and found > promised:
                return name
        if objective.errors_ratio is not None and (told.error_ratio or 0.0) > objective.errors_ratio:
            return "errors"
        wanted = objective.throughput_per_s
        offered = wanted is not None and not closed and step.level >= wanted
        if offered and wanted is not None and not _served(Step(wanted, told)):
            return "throughput"
    return None
