"""What each scenario was asked to do: by users, who do what they can; by a schedule, which is kept or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.comparison.sides import Run, Side, Sides

KEPT_UP = 0.95
"""Doing less of what was offered is not keeping up: all that can be done is done (METHOD 3.0)."""


def planned_scenarios(sides: Sides) -> Mapping[str, Any]:
    """The scenarios of the first run's plan, and those that only the other side's has."""
    base, other = ((side.manifests[0].get("plan") or {}).get("scenarios") or {} for side in sides)
    return {**base, **{name: given for name, given in other.items() if name not in base}}


def is_closed(planned: Mapping[str, Any] | None) -> bool:
    """Whether a scenario's load is one of users: what it gets done is a result, not a task."""
    load = (planned or {}).get("load") or {}
    top = load.get("to") or load.get("start") or {}
    return load.get("model", "closed") == "closed" or "users" in {key for key, v in top.items() if v}


def side_kept_up(side: Side, name: str) -> bool | None:
    """Whether all runs of a side did what they were offered; None without a schedule of one rate."""
    kept = [kept_up(run, name) for run in side.runs]
    return None if None in kept else all(kept)


def kept_up(run: Run, name: str) -> bool | None:
    """Whether a run did what a schedule of one rate offered it; None without such a schedule."""
    load = (((run.manifest.get("plan") or {}).get("scenarios") or {}).get(name) or {}).get("load") or {}
    row = (run.verdict.get("scenarios") or {}).get(name) or {}
    rate, done = load.get("rate_per_s"), row.get("throughput_per_s")
    if not rate or done is None:
        return None
    failed = row.get("error_ratio") or 0.0
    return bool(done / (1 - failed if failed < 1 else 1.0) >= KEPT_UP * rate)
