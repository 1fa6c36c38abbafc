"""From a stored run to its verdict: METHOD's steps in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pinchpoint.analysis import output, summary
from pinchpoint.analysis.blame import suspects, used_by_generator
from pinchpoint.analysis.confidence import stolen, trust, unseen
from pinchpoint.analysis.demand import find_resources
from pinchpoint.analysis.drift import drift_table
from pinchpoint.analysis.facts import facts
from pinchpoint.analysis.flows import Flow, find_flows
from pinchpoint.analysis.gates import Gate, failed_gates
from pinchpoint.analysis.growth import Climb, with_growth
from pinchpoint.analysis.inputs import Inputs, read_inputs
from pinchpoint.analysis.knee import Knee, find_knee, no_knee
from pinchpoint.analysis.levels import (
    Level,
    climbed_objectives,
    held_levels,
    held_words,
    highest_held,
    judged_part,
    level_table,
)
from pinchpoint.analysis.measures import settle
from pinchpoint.analysis.objectives import objective_table
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.signature import Suspicion
from pinchpoint.analysis.stages import Stage, find_stages
from pinchpoint.analysis.tables import cpu_table, crawl_table, disk_table, scenario_table
from pinchpoint.analysis.thresholds import MEMORY_CRITICAL, MIN_SECONDS
from pinchpoint.analysis.verdict import Next, Outcome, Suspect, Verdict
from pinchpoint.report import units
from pinchpoint.store.read import StoredRun


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the steps came to; the verdict adds the tables to it."""

    outcome: Outcome
    summary: str
    bottleneck: Suspect | None = None
    runner_up: Suspect | None = None
    next: Next | None = None
    headroom_ratio: float | None = None
    candidates: tuple[Suspect, ...] = ()
    experiment: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What the conclusion is drawn from: the results of steps 0 to 6.

    Attributes:
        stage: the load level that is judged: the sustained one unless only bursts used something up.
        found: what speaks against which resource there, the cause first.
    """

    inputs: Inputs
    flows: tuple[Flow, ...]
    resources: tuple[Resource, ...]
    gates: tuple[Gate, ...]
    knee: Knee
    stage: Stage | None
    found: tuple[Suspicion, ...]


def analyse(run: StoredRun) -> Verdict:
    """Say which resource gives way first, from tables alone: no clock, no files, no global state."""
    whole = read_inputs(run)
    levels = held_levels(run.manifest)
    climbed = level_table(whole, levels)
    knee = find_knee([row for row in climbed if row["scenario"] == climbed[0]["scenario"]])
    inputs = judged_part(whole, levels, knee)
    flows = find_flows(inputs)
    stages = find_stages(inputs)
    knee = knee if climbed else no_knee(len(stages))
    resources = find_resources(inputs, flows)
    stage, resources, found = _judged(stages, resources, flows)
    if climbed and found:
        found = with_growth(found, _climb(whole, levels, climbed, knee))
    case = Case(inputs, flows, resources, failed_gates(inputs, flows), knee, stage, found)
    concluded = conclude(case)
    held = highest_held(climbed)
    return Verdict(
        **{name: getattr(concluded, name) for name in Conclusion.__slots__ if name != "summary"},
        summary=" ".join([concluded.summary, *held_words(held, levels)]),
        capacity_at_least_per_s=_served(case) if concluded.outcome == "not_reached" else {},
        objectives=(
            *climbed_objectives(whole, levels),
            *(
                row
                for row in objective_table(inputs)
                if row["scenario"] not in {one.scenario for one in levels}
            ),
        ),
        scenarios=scenario_table(inputs),
        crawl=tuple(crawl_table(inputs)),
        disks=tuple(disk_table(inputs)),
        cpus=tuple(cpu_table(inputs)),
        stages=tuple(_stage_row(inputs, one) for one in stages),
        levels=climbed,
        objectives_held=held,
        knee=asdict(case.knee),
        drift=drift_table(inputs),
        warnings=tuple(dict.fromkeys(_warnings(case, stages))),
    )


def _climb(
    whole: Inputs, levels: tuple[Level, ...], climbed: tuple[dict[str, Any], ...], knee: Knee
) -> Climb:
    """What the levels of the scenario that was varied tell of every resource."""
    name = levels[0].scenario
    return Climb(
        levels=[level for level in levels if level.scenario == name],
        done=np.array([row["throughput_per_s"] for row in climbed if row["scenario"] == name]),
        resources=find_resources(whole, find_flows(whole)),
        window=whole.window,
        knee=knee,
    )


def conclude(case: Case) -> Conclusion:
    """The first answer that holds: not valid, nothing to judge, nothing used up, or a bottleneck."""
    blocking = _blocking(case)
    if blocking:
        fault = output.generator_at_fault(case.inputs, case.stage, blocking)
        return Conclusion("invalid", summary.invalid_words(blocking), fault)
    nothing = _nothing_to_judge(case)
    if nothing or case.stage is None:
        why, remedy = nothing or ("nothing was measured", summary.LONGER)
        return Conclusion("inconclusive", summary.inconclusive_words(why, ()), experiment=remedy)
    if case.found:
        return _used_up(case, case.stage)
    return _nothing_used_up(case, case.stage)


def _judged(
    stages: tuple[Stage, ...], resources: tuple[Resource, ...], flows: tuple[Flow, ...]
) -> tuple[Stage | None, tuple[Resource, ...], tuple[Suspicion, ...]]:
    """The first stage in which something is used up (the sustained one comes first), else the first one."""
    first = None
    for stage in stages:
        there = settle(resources, stage.rows)
        first = first or (stage, there)
        found = suspects(there, stage.rows, flows)
        if found:
            return stage, there, found
    return (*first, ()) if first else (None, resources, ())


def _blocking(case: Case) -> tuple[Gate, ...]:
    """The gates that make the run invalid: a farm that is used up excuses operations that were not started.

    So does not having seen the farm: then nobody knows whether it was.
    """
    excused = bool(case.found) or any(unseen(case.inputs))
    gates = [gate for gate in case.gates if not (gate.excusable and excused)]
    if case.found and used_by_generator(case.found[0]):
        fact = facts(case.found[0])[0]
        gates.append(
            Gate("", fact, "the load generator uses most of the farm's cores: give it cores of its own")
        )
    return tuple(gates)


def _nothing_to_judge(case: Case) -> tuple[str, str] | None:
    """(why, remedy) where no capacity can be read from the run at all."""
    inputs = case.inputs
    if not inputs.measured:
        return "its measure phase never began", "Run the plan to its end."
    if inputs.window.seconds < MIN_SECONDS.value:
        length = units.seconds(float(inputs.window.seconds))
        return f"only {length} were measured, {MIN_SECONDS.value:.0f} s are the least", summary.LONGER
    if not any(flow.finished for flow in case.flows):
        return (
            "no operation was recorded",
            "Find out why no operation ended (events, warnings), then run again.",
        )
    if not any(flow.ok for flow in case.flows):
        kinds = sorted({kind for flow in case.flows for kind in _failures(inputs, flow)})
        return (
            f"all operations failed ({', '.join(kinds)})",
            "Remove the cause of the failures, then run again.",
        )
    return None


def _failures(inputs: Inputs, flow: Flow) -> Iterator[str]:
    yield from (
        kind for kind in inputs.traffic.of(flow.load.scenario).whole().outcomes() if kind != "dropped"
    )


def _used_up(case: Case, stage: Stage) -> Conclusion:
    """A bottleneck if it can be told apart, else two candidates."""
    first = case.found[0]
    second = next((one for one in case.found[1:] if not one.demoted), None)
    alone = first.demoted and not first.exact
    sure = trust(case.inputs, case.found, case.resources, stage, case.flows, case.knee)
    if sure.level is None or alone:
        why = (
            "only writes that nothing is known to wait for are slow"
            if alone
            else "; ".join(sure.why_not_more)
        )
        candidates = tuple(output.named(case.inputs, stage, one, None) for one in case.found[:2])
        return Conclusion(
            "inconclusive",
            summary.inconclusive_words(why, candidates),
            candidates=candidates,
            experiment=summary.experiment(case.flows, case.found, ()),
        )
    equal = second if second is not None and len(second.evidence) >= len(first.evidence) else None
    return Conclusion(
        "bottleneck",
        summary.bottleneck_words(first, sure, equal, in_bursts=stage.name == "peak"),
        bottleneck=output.named(case.inputs, stage, first, sure),
        runner_up=output.named(case.inputs, stage, second, None) if second else None,
        next=output.following(case.resources, stage.rows, first),
        headroom_ratio=output.headroom(first),
    )


def _nothing_used_up(case: Case, stage: Stage) -> Conclusion:
    """Not reached if the schedule set the pace; if the farm did, something that is not seen holds it."""
    pressed = [flow.load.scenario for flow in case.flows if flow.pressed]
    if not pressed:
        following = output.following(case.resources, stage.rows, None)
        words = summary.not_reached_words(case.flows, _served(case), following)
        return Conclusion("not_reached", words, next=following)
    hidden = tuple(unseen(case.inputs))
    candidates = output.nearest(case.inputs, stage, case.resources)
    why = f"{summary.listed(pressed)} waited for the farm, yet nothing that was measured is used up"
    if hidden:
        why += f", and {summary.listed(hidden)}"
    return Conclusion(
        "inconclusive",
        summary.inconclusive_words(why, candidates),
        candidates=candidates,
        experiment=summary.experiment(case.flows, (), hidden),
    )


def _served(case: Case) -> dict[str, float]:
    """Throughput per scenario: where nothing gave way, a lower bound of what the farm can do."""
    length = case.inputs.window.seconds
    return {flow.load.scenario: flow.ok / length for flow in case.flows if flow.ok and length}


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


def _warnings(case: Case, stages: tuple[Stage, ...]) -> Iterator[str]:
    """What a reader must know beside the verdict."""
    inputs = case.inputs
    yield from inputs.warnings
    if inputs.state != "finished" and not any("incomplete" in warning for warning in inputs.warnings):
        yield "incomplete: the run did not end as planned; this is what was measured until then"
    for event in inputs.events:
        if event.get("event") == "tier_crashed":
            yield f"the {event.get('tier')} tier ({event.get('host')}) crashed during the run"
    yield from (gate.fact.fact for gate in case.gates)
    yield from unseen(inputs)
    yield from stolen(inputs)
    for name in dict.fromkeys(name for stage in stages for name in stage.unsteady):
        yield f"{name}: throughput did not settle; the level changed within the measured window"
    if any(stage.cut_steps for stage in stages):
        cut = units.seconds(float(max(stage.cut_steps for stage in stages) * inputs.window.step_s))
        yield f"the first {cut} of the measured window were left out: the load had not settled"
    for flow in case.flows:
        if flow.all_failed:
            kinds = summary.listed(list(_failures(inputs, flow)))
            yield f"{flow.load.scenario}: all operations failed ({kinds})"
        elif flow.failures:
            share = units.percent(flow.failures / flow.finished)
            yield f"{flow.load.scenario}: {share} of the operations failed"
        if flow.dropped:
            yield f"{flow.load.scenario}: {flow.dropped:,} operations could not start in time"
    yield from _memory(inputs)


def _memory(inputs: Inputs) -> Iterator[str]:
    for host in dict.fromkeys(host.name for host in inputs.hosts):
        free = inputs.samples.mean(host, "mem.available_ratio")
        if free is not None and free < MEMORY_CRITICAL.value:
            yield f"{host}: only {units.percent(free)} of memory available (PAL: critical below 5 %)"
