"""How long the windows of a proof are, and in which order they come. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.plan import Burst, Plan
from pinchpoint.store.schema import COARSE_S

AS_IS, SLOWER, CONTROL = "as_is", "slower", "control"

_LETTERS = {"A": AS_IS, "B": SLOWER, "C": CONTROL}
ORDER = tuple(_LETTERS[letter] for letter in "ABBABAAB")
"""Every kind lies in the middle of the whole on average, so that a load that drifts favours none (the
Thue-Morse sequence: also one whose drift changes)."""
ORDER_WITH_CONTROL = tuple(_LETTERS[letter] for letter in "ABCBAABCBA")
"""Likewise, with a resource beside that is not suspected and needs only be seen to change nothing."""

LEAST_S, MOST_S = 6.0, 15.0
SETTLE_LEAST_S, SETTLE_MOST_S = 2.0, 10.0
OPERATIONS_LONG = 20
"""So many times as long as an operation usually takes: users go round that often (design value)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When windows begin and end.

    Attributes:
        settle_s: what passes at least between a change and the window after it.
        length_s: whole seconds.
        grid_s: windows begin and end at multiples of it: what is kept of operations covers so much.
    """

    settle_s: float
    length_s: int
    grid_s: int

    def begin_s(self, now_s: float) -> int:
        """The UTC second at which a window begins whose change is made now."""
        return math.ceil((now_s + self.settle_s) / self.grid_s) * self.grid_s

    def at_most_s(self, windows: int) -> float:
        """How long so many windows take at most."""
        return windows * (self.settle_s + self.grid_s + self.length_s)


def pace(plan: Plan, verdict: Mapping[str, Any], recorded_s: int) -> Pace | str:
    """The pace for a load, or why there is none.

    Args:
        plan: whose load goes on.
        verdict: of what was measured, for how long operations take.
        recorded_s: seconds that a row of operations will cover: 1, or ten of a long run.
    """
    rows = verdict["scenarios"].values()
    usual_s = max((row["service_p50_s"] or 0.0 for row in rows), default=0.0)
    longest_s = max((row["service_p95_s"] or 0.0 for row in rows), default=0.0)
    settle_s = min(SETTLE_MOST_S, max(SETTLE_LEAST_S, 3 * longest_s))
    length_s = math.ceil(min(MOST_S, max(LEAST_S, OPERATIONS_LONG * usual_s)))
    if recorded_s > 1:
        return Pace(settle_s, 2 * COARSE_S, COARSE_S)
    periods = [one.load.every_s for one in plan.scenarios.values() if isinstance(one.load, Burst)]
    if not periods:
        return Pace(settle_s, length_s, 1)
    period_s = math.ceil(max(periods))
    if period_s > MOST_S or any(period % 1 for period in periods):
        return (
            f"its load comes in bursts every {max(periods):g} s: a window would have to be so long, and of "
            f"whole seconds; up to {MOST_S:g} s can be proved"
        )
    return Pace(settle_s, math.lcm(*(int(period) for period in periods)), 1)
