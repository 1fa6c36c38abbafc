"""A load in steps: what each level brought, which is to be judged, and up to which the objectives held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pinchpoint.analysis.inputs import Inputs, seconds_of, utc
from pinchpoint.analysis.objectives import objective_table
from pinchpoint.analysis.series import Window
from pinchpoint.analysis.tables import scenario_table

SETTLE_S = 2.0
"""The begin of a level, in which the level before still shows, is left out (design value)."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a scenario's load, as it was held.

    Attributes:
        scenario: whose load.
        amount: the rate per second, or the number of users.
        unit: ``per_s`` or ``users``.
        start_s, end_s: UTC seconds; its begin, in which the level before still shows, left out.
    """

    scenario: str
    amount: float
    unit: str
    start_s: float
    end_s: float


def held_levels(manifest: Mapping[str, Any]) -> tuple[Level, ...]:
    """The levels a run noted, in their order; empty where no load was in steps."""
    return tuple(
        Level(
            step["scenario"],
            float(step["level"]),
            step["unit"],
            seconds_of(step["from"]) + SETTLE_S,
            seconds_of(step["to"]),
        )
        for step in manifest.get("steps") or ()
    )


def judged_span(levels: tuple[Level, ...]) -> tuple[float, float] | None:
    """What is judged of a load in steps: its last level, which is what the climb ended at."""
    if not levels:
        return None
    last = max(levels, key=lambda level: level.end_s)
    return last.start_s, last.end_s


def level_table(inputs: Inputs, levels: tuple[Level, ...]) -> tuple[dict[str, Any], ...]:
    """One row per level: what was offered, what came of it, and whether the scenario's objectives held."""
    return tuple(_row(inputs, level) for level in levels)


def _row(inputs: Inputs, level: Level) -> dict[str, Any]:
    window = Window.between(level.start_s, level.end_s, float(inputs.window.step_s))
    there = replace(inputs, window=window, traffic=inputs.whole.during(window))
    found = scenario_table(there)[level.scenario]
    objectives = [row for row in objective_table(there) if row["scenario"] == level.scenario]
    figures = (
        "throughput_per_s",
        "response_p95_s",
        "service_p50_s",
        "service_p95_s",
        "error_ratio",
        "dropped",
    )
    return {
        "scenario": level.scenario,
        "level": level.amount,
        "unit": level.unit,
        "from": utc(level.start_s),
        "to": utc(level.end_s),
        **{name: found[name] for name in figures},
        "objectives_met": all(row["met"] for row in objectives) if objectives else None,
    }


def highest_held(rows: tuple[Mapping[str, Any], ...]) -> dict[str, dict[str, Any]]:
    """Per scenario with objectives: the highest level up to which they held without a break."""
    found: dict[str, dict[str, Any]] = {}
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        if own[0]["objectives_met"] is None:
            continue
        held: Mapping[str, Any] | None = None
        for row in own:
            if not row["objectives_met"]:
                break
            held = row
        found[scenario] = {
            "unit": own[0]["unit"],
            "level": held["level"] if held else None,
            "throughput_per_s": held["throughput_per_s"] if held else None,
            "all_held": held is own[-1],
        }
    return found
