"""A load in steps, judged while it goes on: does throughput still follow, is an objective missed? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.plan import Objective
from pinchpoint.seconds import Told

FOLLOWS = 0.90
"""An open load is served as long as 90 % of what is offered gets through (design value)."""
KNEE = 0.10
"""Saturated: a step adds less than a tenth of what the first level brought per unit (METHOD, step 2)."""
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
    if not closed and all(steps[number].told.ok_per_s < FOLLOWS * steps[number].level for number in judged):
        last = steps[-1]
        return f"{last.told.ok_per_s:.4g}/s of {last.level:.4g}/s were served"
    slope = steps[0].told.ok_per_s / steps[0].level
    if closed and slope and all(_gain(steps, number) < KNEE * slope for number in judged):
        return f"the last {IN_A_ROW} steps added less than a tenth of what their users brought at first"
    return None


def _gain(steps: Sequence[Step], number: int) -> float:
    here, before = steps[number], steps[number - 1]
    return (here.told.ok_per_s - before.told.ok_per_s) / (here.level - before.level)


def missed(step: Step, objectives: Sequence[Objective]) -> str | None:
    """Which objective a level does not meet, as far as can be told live (p95, errors, throughput)."""
    told = step.told
    for objective in objectives:
        if objective.p95_s is not None and told.p95_s is not None and told.p95_s > objective.p95_s:
            return "p95"
        if objective.errors_ratio is not None and (told.error_ratio or 0.0) > objective.errors_ratio:
            return "errors"
        if objective.throughput_per_s is not None and told.ok_per_s < objective.throughput_per_s:
            return "throughput"
    return None
