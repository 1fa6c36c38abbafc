"""How much each side can do, apart from how it does what is asked of it: METHOD 4.3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.comparison.loads import is_closed, kept_up, planned_scenarios, side_kept_up
from pinchpoint.comparison.sides import Run, Sides
from pinchpoint.comparison.values import Pair, pair

How = Literal["reached", "at_least", "unknown"]
_AT_ITS_END = ("cpu", "cpu_thread", "disk_cap", "disk_device", "network", "pool", "disk_burst_exhausted")
"""What gives way so is used up: more load brings nothing more."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many operations per second of one scenario a side can do.

    Attributes:
        scenario: its name.
        base, other: of each run the most it did, in the pair; ``ratio`` only where both reached their end.
        base_how: ``reached``: more load would bring no more; ``at_least``: it may do more.
        other_how: likewise.
        kept_up: (base, other): whether all that was offered was done; None of users, who offer no rate.
    """

    scenario: str
    pair: Pair
    base_how: How
    other_how: How
    kept_up: tuple[bool | None, bool | None]


def capacities(sides: Sides) -> Iterator[Capacity]:
    """Of every scenario that is on both sides."""
    planned = planned_scenarios(sides)
    for name in planned:
        found = [[_of(run, name, planned[name]) for run in side.runs] for side in sides]
        hows = [_worst([how for _, how in side]) for side in found]
        labels = sides.base.label, sides.other.label
        open_ = [label for label, how in zip(labels, hows, strict=True) if how != "reached"]
        unlike = f"what {' and '.join(open_)} can do at most was not reached" if open_ else None
        values = [[value for value, _ in side] for side in found]
        yield Capacity(
            scenario=name,
            pair=pair(values[0], values[1], labels, unlike),
            base_how=hows[0],
            other_how=hows[1],
            kept_up=(side_kept_up(sides.base, name), side_kept_up(sides.other, name)),
        )


def _of(run: Run, name: str, planned: Mapping[str, Any]) -> tuple[float | None, How]:
    """The most that a run did of a scenario, and whether that was all it could."""
    row = (run.verdict.get("scenarios") or {}).get(name) or {}
    done = row.get("throughput_per_s")
    levels = [one["throughput_per_s"] for one in run.verdict.get("levels") or () if one["scenario"] == name]
    if levels:
        knee = (run.verdict.get("knee") or {}).get("found")
        return max(levels), "reached" if knee else "at_least"
    if done is None:
        return None, "unknown"
    used_up = (run.verdict.get("bottleneck") or {}).get("kind") in _AT_ITS_END
    at_end = used_up if is_closed(planned) else kept_up(run, name) is False
    return done, "reached" if at_end else "at_least"


def _worst(hows: Sequence[How]) -> How:
    return next((how for how in ("unknown", "at_least") if how in hows), "reached")


def not_kept_up(found: Sequence[Capacity], sides: Sides) -> Iterator[str]:
    """A sentence for every scenario whose offered load was not the load that was done."""
    for one in found:
        behind = [side.label for side, kept in zip(sides, one.kept_up, strict=True) if kept is False]
        if behind:
            yield (
                f"{one.scenario}: {' and '.join(behind)} did not keep up with the load that was offered, so "
                "its times grow for as long as that goes on: what it can do is compared as capacity"
            )
