"""Step 2: the knee of throughput over load. Too few load levels have none: a typed "cannot be found"."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import MIN_LEVELS


@dataclass(frozen=True, slots=True)
class Knee:
    """What the search for a knee answered.

    Attributes:
        found: False where there is none, None where it could not be looked for.
        levels: load levels there were.
        needed: load levels a fit needs.
        why: the answer as a sentence.
    """

    found: bool | None
    levels: int
    needed: int
    why: str


def find_knee(stages: tuple[Stage, ...]) -> Knee:
    """Say whether a knee can be looked for; with fewer levels than a two-segment fit needs it cannot."""
    needed = int(MIN_LEVELS.value)
    levels = len(stages)
    noun = "one load level" if levels == 1 else f"{levels} load levels"
    return Knee(None, levels, needed, f"{noun}, at least {needed} are needed to find a knee")
