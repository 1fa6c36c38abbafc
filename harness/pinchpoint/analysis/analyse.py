"""Computes the verdict of a stored run by the steps of docs/rules.md, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from pinchpoint.analysis import output
from pinchpoint.analysis.case import Case, build_case
from pinchpoint.analysis.caveats import caveats, credits_of
from pinchpoint.analysis.checkpoints import checkpoint_table, checkpoint_words
from pinchpoint.analysis.conclusion import Conclusion, conclude
from pinchpoint.analysis.crawls import crawl_table
from pinchpoint.analysis.drift import drift_table
from pinchpoint.analysis.explain import explain
from pinchpoint.analysis.flows import find_flows
from pinchpoint.analysis.growth import SteppedLevels
from pinchpoint.analysis.knee import Knee, find_knee
from pinchpoint.analysis.levels import (
    Level,
    held_levels,
    held_words,
    highest_held,
    judged_levels,
    judged_part,
    level_table,
    stepped_objectives,
    unjudged_words,
)
from pinchpoint.analysis.objectives import not_measured_words, objective_table
from pinchpoint.analysis.outlook import Outlook, look_ahead
from pinchpoint.analysis.periods import (
    Period,
    alternating_words,
    at_times_words,
    find_periods,
    full_from_s,
    longest,
    moved,
    moved_at_s,
    moved_words,
    timeline_table,
)
from pinchpoint.analysis.proof import with_proof, without_proof
from pinchpoint.analysis.recordings import is_recording, judge_recording
from pinchpoint.analysis.resources.kinds import find_resources
from pinchpoint.analysis.sample_counts import counted
from pinchpoint.analysis.server_objectives import server_table
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.store_tables import store_table
from pinchpoint.analysis.tables import cpu_table, disk_table, scenario_table
from pinchpoint.analysis.verdict import Bottleneck, Verdict
from pinchpoint.base.wording import capitalised
from pinchpoint.data.inputs import Inputs, read_inputs
from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import holds_values

APART = ("answer", "sure", "blocking", "why", "served")
"""Fields of the conclusion that the verdict stores in another form, or omits."""


def analyse(run: StoredRun) -> Verdict:
    """The verdict of a run, computed from its tables alone: no clock, no files, no global state."""
    return analyse_case(run)[0]


def analyse_case(run: StoredRun) -> tuple[Verdict, Case | None]:
    """(verdict, the case it was computed from); the case is None for a run with samples alone."""
    whole = read_inputs(without_proof(run))
    if is_recording(whole):
        return replace(judge_recording(whole), measured=holds_values(run.samples)), None
    levels, climbed = _levels(run, whole)
    periods = find_periods(whole, levels)
    case = _judged_case(whole, levels, climbed, periods)
    result = _verdict(whole, levels, climbed, case, periods)
    unjudged = unjudged_words(whole, held_levels(run.manifest))
    return with_proof(replace(result, warnings=(*result.warnings, *unjudged)), run, case), case


def judged_case(run: StoredRun) -> Case | None:
    """The case that a run's verdict is computed from; None if the run has samples but no operation."""
    whole = read_inputs(without_proof(run))
    if is_recording(whole):
        return None
    levels, climbed = _levels(run, whole)
    return _judged_case(whole, levels, climbed, find_periods(whole, levels))


def _levels(run: StoredRun, whole: Inputs) -> tuple[tuple[Level, ...], tuple[dict[str, Any], ...]]:
    """(levels of a load in steps, figures of each level); (last level, no figures) if all were too short."""
    noted = held_levels(run.manifest)
    judged = judged_levels(whole, noted)
    return judged or noted[-1:], level_table(whole, judged)


def _verdict(
    whole: Inputs,
    levels: tuple[Level, ...],
    climbed: tuple[dict[str, Any], ...],
    case: Case,
    periods: tuple[Period, ...],
) -> Verdict:
    inputs, concluded, held = case.inputs, conclude(case), highest_held(climbed, whole.objectives)
    # so that the outlook shows the headroom as well
    outcome = "not_reached" if concluded.served else concluded.outcome
    ahead = look_ahead(case, outcome, concluded.candidates, concluded.blocking)
    checkpoints, objectives = checkpoint_table(inputs), tuple(_objectives(whole, levels, inputs))
    course = _course_words(levels, climbed, case, concluded, periods)
    sentences = [*course, *(f"{capitalised(words)}." for words in credits_of(case))]
    return Verdict(
        **{name: getattr(ahead, name) for name in Outlook.__slots__},
        **{
            name: _with_sample_counts(getattr(concluded, name), case)
            for name in Conclusion.__slots__
            if name not in APART
        },
        answer=concluded.answer.then(*sentences, *held_words(held, levels)),
        capacity_at_least_per_s=case.served_per_s() if _kept_up(case, concluded) else {},
        objectives=objectives,
        scenarios=_scenarios(case),
        crawl=tuple(crawl_table(inputs)),
        disks=tuple(disk_table(inputs)),
        cpus=tuple(cpu_table(inputs)),
        stages=tuple(_stage_row(inputs, one) for one in case.stages),
        levels=climbed,
        objectives_held=held,
        knee=asdict(case.knee),
        explanation=explain(case, concluded),
        timeline=timeline_table(periods, next(iter(case.found), None), inputs.window),
        drift=drift_table(inputs),
        checkpoints=checkpoints,
        stores=store_table(inputs),
        warnings=tuple(
            dict.fromkeys(
                [*caveats(case), *not_measured_words(objectives), *checkpoint_words(checkpoints), *course]
            )
        ),
    )


def _scenarios(case: Case) -> dict[str, dict[str, Any]]:
    """Figures of each scenario over the measure phase, and its throughput in the judged part."""
    now = case.now_per_s()
    return {name: {"now_per_s": now.get(name), **row} for name, row in scenario_table(case.inputs).items()}


def _kept_up(case: Case, concluded: Conclusion) -> bool:
    """Whether served throughput is a lower bound of the capacity: no session waited for the farm."""
    no_wait = not any(flow.pressed for flow in case.flows)
    return concluded.outcome == "not_reached" or (concluded.outcome == "inconclusive" and no_wait)


def _with_sample_counts(answer: Any, case: Case) -> Any:
    """The suspect or suspects with the number of samples of each fact; any other value unchanged."""
    if isinstance(answer, tuple):
        return tuple(_with_sample_counts(one, case) for one in answer)
    if isinstance(answer, Bottleneck):
        return replace(answer, evidence=tuple(counted(fact, case) for fact in answer.evidence))
    return answer


def _objectives(whole: Inputs, levels: tuple[Level, ...], inputs: Inputs) -> Iterator[dict[str, Any]]:
    """The rows of all objectives: scenarios in steps over all levels, others over the judged part."""
    yield from stepped_objectives(whole, levels)
    in_steps = {one.scenario for one in levels}
    yield from (row for row in objective_table(inputs) if row["scenario"] not in in_steps)
    yield from server_table(whole if levels else inputs, levels)


def _course_words(
    levels: Sequence[Level],
    climbed: Sequence[dict[str, Any]],
    case: Case,
    concluded: Conclusion,
    periods: Sequence[Period],
) -> tuple[str, ...]:
    """Sentences about a bottleneck that moved, or about resources saturated for part of the time."""
    if not levels and concluded.outcome == "inconclusive" and (turns := alternating_words(case)):
        return (turns,)
    if not levels and not case.found and concluded.outcome in {"inconclusive", "not_reached"}:
        at_times = at_times_words(periods)
        if at_times:
            return (at_times,)
    there = _since_knee(levels, climbed, periods)
    return (moved_words(there),) if moved(there) else ()


def _since_knee(
    levels: Sequence[Level], climbed: Sequence[dict[str, Any]], periods: Sequence[Period]
) -> list[Period]:
    """The periods from the knee on for a load in steps (earlier waits are no limit); else all periods."""
    if not levels:
        return list(periods)
    climber, knee = levels[0].scenario, _knee(levels, climbed)
    begun = [one.start_s for one in levels if one.scenario == climber and one.amount == knee.level]
    return [one for one in periods if knee.found and begun and one.window.end_s > begun[0]]


def _knee(levels: Sequence[Level], climbed: Sequence[dict[str, Any]]) -> Knee:
    """The knee of the scenario whose load was varied."""
    return find_knee([row for row in climbed if row["scenario"] == levels[0].scenario])


def _judged_case(
    whole: Inputs, levels: tuple[Level, ...], climbed: tuple[dict[str, Any], ...], periods: tuple[Period, ...]
) -> Case:
    """The case of the part of the run that is judged."""
    if not levels and moved(periods):
        # Figures over two bottlenecks describe neither of them. So the period of the bottleneck that lasted
        # longest is judged, and the other bottlenecks are reported.
        window = longest(periods).window
        return build_case(whole.during(window), since=whole.during(whole.window.until(window)))
    if not climbed:
        return build_case(judged_part(whole, levels, None))
    end_s = moved_at_s(_since_knee(levels, climbed, periods))
    # For a load in steps the first bottleneck is judged, because later bottlenecks limit another load.
    climbed = tuple(row for level, row in zip(levels, climbed, strict=True) if level.start_s < end_s)
    levels = tuple(level for level in levels if level.start_s < end_s)
    periods = tuple(one for one in periods if one.window.first_s < end_s)
    knee = _knee(levels, climbed)
    part = judged_part(whole, levels, knee, full_from_s(periods))
    return build_case(part, knee, _load_steps(whole, levels, climbed, knee))


def _load_steps(
    whole: Inputs, levels: tuple[Level, ...], climbed: tuple[dict[str, Any], ...], knee: Knee
) -> SteppedLevels:
    """The utilisation of every resource at each load level of the scenario that was varied."""
    name = levels[0].scenario
    rows = [row for row in climbed if row["scenario"] == name]
    return SteppedLevels(
        levels=[level for level in levels if level.scenario == name],
        done=np.array([row["throughput_per_s"] for row in rows]),
        resources=find_resources(whole, find_flows(whole)),
        window=whole.window,
        knee=knee,
        rows_of_levels=rows,
    )


def _stage_row(inputs: Inputs, stage: Stage) -> dict[str, Any]:
    start, end = output.window_of(inputs, stage)
    return {
        "name": stage.name,
        "from": start,
        "to": end,
        "samples": len(stage.rows),
        "cut_s": stage.cut_steps * inputs.window.step_s,
        "steady": stage.steady,
    }
