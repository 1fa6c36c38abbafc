"""Computes the throughput of each load level, the levels to judge, and the last that met the objectives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pinchpoint.analysis.knee import Knee
from pinchpoint.analysis.objectives import THROUGHPUT, objective_table
from pinchpoint.analysis.tables import scenario_table
from pinchpoint.analysis.thresholds import MIN_SECONDS, STARTED
from pinchpoint.base import units
from pinchpoint.base.clock import seconds_of
from pinchpoint.data.inputs import Inputs, utc
from pinchpoint.data.series import Window

SETTLE_S = 2.0
"""Seconds at the start of a level that are left out, because the level before still shows (design value)."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a scenario's load.

    Attributes:
        scenario: the scenario that is loaded.
        amount: the rate per second, or the number of users.
        unit: ``per_s`` or ``users``.
        start_s, end_s: UTC seconds; the first ``SETTLE_S`` of the level are left out.
    """

    scenario: str
    amount: float
    unit: str
    start_s: float
    end_s: float

    @property
    def words(self) -> str:
        """The level in words: ``50/s`` or ``4 users``."""
        return units.load_level(self.amount, self.unit)

    def window(self, step_s: int) -> Window:
        """The whole steps of ``step_s`` seconds within the level; none if the level is shorter."""
        return Window.between(self.start_s, self.end_s, float(step_s))


def held_levels(manifest: Mapping[str, Any]) -> tuple[Level, ...]:
    """The levels in a run's manifest, in their order; empty if no load was in steps."""
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


def judged_levels(inputs: Inputs, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Levels that contain a whole step: in a run of hours with steps of ten seconds a short level may not."""
    return tuple(level for level in levels if level.window(inputs.window.step_s).steps)


def unjudged_words(inputs: Inputs, noted: Sequence[Level]) -> Iterator[str]:
    """A warning about each scenario with load levels that were too short to judge."""
    judged, step_s = judged_levels(inputs, noted), inputs.window.step_s
    for scenario in dict.fromkeys(level.scenario for level in noted if level not in judged):
        every = [level for level in noted if level.scenario == scenario]
        missing = sum(level not in judged for level in every)
        yield (
            f"{missing} of {len(every)} levels of {scenario} were too short to judge: a run of this "
            f"length is stored in steps of {step_s} s; hold each for {3 * step_s} s or more"
        )


def judged_part(
    inputs: Inputs, levels: Sequence[Level], knee: Knee | None, full_from_s: float = math.inf
) -> Inputs:
    """The part of a run that is judged, as if nothing else had been measured.

    For a load in steps: the levels beyond the knee, and the knee's own level if the same resource was
    saturated for all of it (since ``full_from_s``). Without a knee: the last levels if a resource was
    saturated there, else the last level alone, which is the highest. For a ramp: the part after the ramp's
    end.
    """
    if levels:
        climber, top = levels[0].scenario, max(levels, key=lambda level: level.end_s)
        knee_at = knee.level if knee and knee.found and knee.level is not None else math.inf
        own = [one for one in levels if one.scenario == climber]
        full_s = full_from_s - float(inputs.window.step_s)  # ``full_from_s`` is known to one step
        judged = [
            one for one in own if one.amount > knee_at or (one.amount == knee_at and one.start_s > full_s)
        ]
        judged = judged or [one for one in own if one.end_s > full_from_s] or [top]
        start_s, end_s = min(one.start_s for one in judged), max(one.end_s for one in judged)
        part = _cut(inputs, start_s, end_s, _users(levels, start_s, end_s))
        several = len(judged) > 1
        loads = (replace(one, several=several and one.scenario == climber) for one in part.loads)
        return replace(part, loads=tuple(loads))
    begun = inputs.window.first_s
    ends = [begun + load.over_s + SETTLE_S for load in inputs.loads if load.over_s is not None]
    end_s = begun + inputs.window.seconds
    if ends and end_s - max(ends) >= MIN_SECONDS.value:
        return _cut(inputs, max(ends), end_s, {})
    return inputs


def _cut(inputs: Inputs, start_s: float, end_s: float, users: Mapping[str, float]) -> Inputs:
    part = inputs.during(Window.between(start_s, end_s, float(inputs.window.step_s)))
    loads = tuple(replace(one, users=users.get(one.scenario, one.users)) for one in inputs.loads)
    return replace(part, loads=loads)


def _users(levels: Sequence[Level], start_s: float, end_s: float) -> dict[str, float]:
    """Scenario -> mean number of users."""
    there = [one for one in levels if one.unit == "users" and one.end_s > start_s and one.start_s < end_s]
    return {
        name: sum(one.amount for one in there if one.scenario == name)
        / sum(1 for one in there if one.scenario == name)
        for name in {one.scenario for one in there}
    }


def level_table(inputs: Inputs, levels: Sequence[Level]) -> tuple[dict[str, Any], ...]:
    """One row per level: offered load, throughput, and whether the scenario's objectives were met."""
    return tuple(_row(inputs, level) for level in levels)


def during_level(inputs: Inputs, level: Level) -> Inputs:
    """The operations of one level, as if only it had been measured; samples are unchanged."""
    window = level.window(inputs.window.step_s)
    return replace(inputs, window=window, traffic=inputs.whole.during(window))


def _row(inputs: Inputs, level: Level) -> dict[str, Any]:
    there = during_level(inputs, level)
    result = scenario_table(there)[level.scenario]
    objectives = list(_due(there, level))
    figures = (
        "throughput_per_s",
        "response_p50_s",
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
        **{name: result[name] for name in figures},
        "objectives_met": all(row["met"] for row in objectives) if objectives else None,
    }


def _due(there: Inputs, level: Level) -> Iterator[dict[str, Any]]:
    """The scenario's objectives that this level can meet: throughput cannot exceed the offered rate.

    If the offered rate equals the target and was served, chance decides whether throughput reaches the
    target.
    """
    for row in objective_table(there):
        offered = level.unit == "per_s" and level.amount >= row["target"]
        counts = row["met"] or (row["value"] or 0.0) < STARTED.value * level.amount
        if row["scenario"] == level.scenario and (row["metric"] != THROUGHPUT or (offered and counts)):
            yield row


def stepped_objectives(inputs: Inputs, levels: Sequence[Level]) -> tuple[dict[str, Any], ...]:
    """One row per objective of a scenario in steps: met up to the level before the first that misses it.

    The load rises until a limit is reached, so the last level does not show whether an objective can be met.
    The value is that of the highest level that met the objective. The throughput is that of the best level.
    """
    rows: list[dict[str, Any]] = []
    for scenario in dict.fromkeys(level.scenario for level in levels):
        own = [level for level in levels if level.scenario == scenario]
        tables = [
            [row for row in objective_table(during_level(inputs, one)) if row["scenario"] == scenario]
            for one in own
        ]
        rows += [_over_levels(own, found) for found in zip(*tables, strict=True)]
    return tuple(rows)


def _over_levels(levels: Sequence[Level], value: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of one objective, from the objective's row at each level."""
    if value[0]["metric"] == THROUGHPUT:
        best = max(range(len(value)), key=lambda at: value[at]["value"] or 0.0)
        if value[best]["met"] is None:
            return {**value[best], "result": "not measured", "holds": "not measured"}
        holds = f"{units.per_second(value[best]['value'])} at {levels[best].words}, the highest throughput"
        return {**value[best], "result": f"{value[best]['result']}, at {levels[best].words}", "holds": holds}
    first = next((at for at, row in enumerate(value) if row["met"] is not None), 0)
    held = first - 1
    while held + 1 < len(value) and value[held + 1]["met"]:
        held += 1
    if value[first]["met"] is None:
        return {**value[first], "result": "not measured", "holds": "not measured"}
    if held < first:
        words = levels[first].words
        holds = f"held at no level; whether it holds below {words} is not known"
        return {**value[first], "result": f"{value[first]['result']}, from {words} on", "holds": holds}
    more = "the highest there was" if held + 1 == len(value) else f"not at {levels[held + 1].words}"
    holds = f"met up to {levels[held].words}, {more}"
    return {**value[held], "result": f"met up to {levels[held].words}", "holds": holds}


def highest_held(
    rows: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Per scenario with objectives: the highest level up to which every level met the objectives.

    ``never_per_s``: a target throughput that no level came near; None if there is none. The other objectives
    were met.
    """
    result: dict[str, dict[str, Any]] = {}
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        asked = [row for row in own if row["objectives_met"] is not None]
        if not asked:
            continue
        held: Mapping[str, Any] | None = None
        for row in own:
            if row["objectives_met"] is False:
                break
            if row["objectives_met"]:  # None: there is no objective that this level can meet
                held = row
        result[scenario] = {
            "unit": own[0]["unit"],
            "level": held["level"] if held else None,
            "throughput_per_s": held["throughput_per_s"] if held else None,
            "all_held": held is own[-1],
            "never_per_s": _never(own, [one for one in objectives if one["scenario"] == scenario]),
        }
    return result


def _never(own: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]]) -> float | None:
    """The target throughput of a scenario if no level reached 95 % of it."""
    wanted = max((one.get(THROUGHPUT) or 0.0 for one in objectives), default=0.0)
    most = max(row["throughput_per_s"] or 0.0 for row in own)
    return wanted if most < STARTED.value * wanted else None


def held_words(held: Mapping[str, Mapping[str, Any]], levels: Sequence[Level]) -> Iterator[str]:
    """Sentences about the highest load at which the objectives were met, for the summary."""
    words = {(level.scenario, level.amount): level.words for level in levels}
    for scenario, result in held.items():
        if result["level"] is None:
            yield f"The objectives of {scenario} were met at no level."
        else:
            most = ", the highest there was" if result["all_held"] else ""
            up_to = f"{words[scenario, result['level']]}{most}{never_words(result)}"
            yield f"The objectives of {scenario} were met up to {up_to}."


def never_words(held: Mapping[str, Any]) -> str:
    """Words about a target throughput that no level reached; "" if there is none."""
    wanted = held["never_per_s"]
    if wanted is None:
        return ""
    return f", except for the goal of {units.per_second(wanted)}: no level reached it"
