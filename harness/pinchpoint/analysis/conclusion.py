"""Steps 6 to 8: the outcome of a case: bottleneck, not_reached, inconclusive or invalid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis import output, summary
from pinchpoint.analysis.capacity import demands_of
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.confidence import Trust, trust
from pinchpoint.analysis.coverage import HOST_WITH_ROOM, stolen, unseen
from pinchpoint.analysis.failing import failing_words, failures, said_of
from pinchpoint.analysis.flows import Flow, pressed_words
from pinchpoint.analysis.gates import RECORDED, Gate
from pinchpoint.analysis.levels import during_level
from pinchpoint.analysis.resources.base import NoSingleCause, Resource
from pinchpoint.analysis.resources.cpu import used_by_generator
from pinchpoint.analysis.resources.disk.measures import seldom, seldom_read
from pinchpoint.analysis.resources.kinds import KINDS, facts
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import (
    DRIFTS,
    EXPECTED,
    GROWN,
    GROWN_S,
    KNEE_RISE,
    MIN_SAMPLES,
    MIN_SECONDS,
    OFTEN,
    ROOM,
    STARTED,
    STOLEN,
    UTILISATION,
    exceeds,
)
from pinchpoint.analysis.timeline import in_turn
from pinchpoint.analysis.unanswered import unanswered_words
from pinchpoint.analysis.verdict import Outcome, Suspect
from pinchpoint.base import units, wording
from pinchpoint.base.wording import Summary
from pinchpoint.data.changes import kendall
from pinchpoint.data.inputs import Inputs

CONSTANT = ("open", "soak")
"""Load models whose rate stays: what changes under them is the farm's."""
WHY_FAILING = (
    "Find out why they fail (events.jsonl, the logs of the farm's servers), or declare how many may fail "
    "(objectives: errors); then run the same plan again."
)
UNWATCHED = (
    "Measure what is missing: the CPU and the CPU limit of each tier's container or service, pools, locks, "
    "and every system that the farm calls; then run the same plan again."
)
MORE_LOAD = (
    "Run the same plan with a fifth more load: if throughput follows, {name} has room for that; if not, "
    "it is the limit."
)
FOR_LONGER = (
    "Run the same plan for longer, and at half the rate: if times still grow, the farm cannot sustain this "
    "load."
)


OFTENER = (
    "Have the farm's counters read twice in each burst, in a run of less than an hour (longer ones are kept "
    "in steps of 10 s), or make the bursts longer."
)
READINGS = 2
"""Readings that a burst takes at least, for one of them to be of nothing else."""


def health_checks(case: Case) -> Iterator[NoSingleCause]:
    """All missing measurements, those that could hide other causes first."""
    yield from hidden(case)
    yield from (NoSingleCause(text, HOST_WITH_ROOM) for text in stolen(case.inputs, STOLEN))
    yield from (NoSingleCause(text, WHY_FAILING) for text in failing_words(case.inputs, case.flows))
    answers = (slower_words(case), unanswered_words(case.inputs, case.flows))
    yield from (NoSingleCause(text, UNWATCHED) for text in answers if text)
    if brief := brief_words(case):
        yield NoSingleCause(brief, OFTENER)
    for flow in (one for one in case.flows if one.load.model in CONSTANT):
        yield from (NoSingleCause(text, UNWATCHED) for text in _silence(case.inputs, flow))
        yield from (NoSingleCause(text, FOR_LONGER) for text in _rising(case.inputs, flow))


def without_room(case: Case, stage: Stage, *, served: bool) -> Iterator[tuple[float, NoSingleCause]]:
    """(how much is used, why that is no room), the most used first: an all-clear needs room (docs/rules.md).

    What does more than was declared has another limit. Memory is judged by what is read again for lack of it,
    and connections only where all was ``served``: users who wait fill them.
    """
    result = []
    for one in case.resources:
        kind = KINDS[one.type]
        measured = kind.measure(one, stage.rows)
        used = kind.load_use(one, measured, in_steps=served)
        if used is not None and used >= ROOM.value and not exceeds(used):
            name, limit = kind.name(one, measured), "its declared limit" if one.limits else "its limit"
            text = f"{name} is at {units.percent(used)} of {limit}"
            result.append((used, NoSingleCause(text, MORE_LOAD.format(name=name))))
    yield from sorted(result, key=lambda each: -each[0])


def hidden(case: Case) -> Iterator[NoSingleCause]:
    """What of the farm was not seen, or not often enough to say what it means."""
    missing = tuple(unseen(case.inputs))
    watch = f"Measure the whole farm ({wording.grouped(missing)}), and run the same plan again."
    yield from (NoSingleCause(why, watch) for why in missing)
    if case.stage is not None:
        rows = case.stage.rows
        yield from (seldom(disk, rows) for disk in seldom_read(case.resources, rows))


def slower_words(case: Case) -> str:
    """How much longer operations took than at the first level, if that is why not all were started; else "".

    By Little's law: ``started x service time`` sessions were busy, and at the first level's service time they
    had been enough for all that was scheduled.
    """
    if case.climb is None:
        return ""
    first, last = case.climb.levels[0], case.climb.levels[-1]
    flow = next(flow for flow in case.flows if flow.load.scenario == first.scenario)
    if flow.service is None or flow.started_ratio is None or flow.started_ratio >= STARTED.value:
        return ""
    before = during_level(case.inputs, first).traffic.of(first.scenario).whole().service()
    longer = flow.service.mean_s / before.mean_s if before else 0.0
    if before is None or longer < KNEE_RISE.value or flow.started_ratio * longer < 1:
        return ""
    times = units.seconds(before.mean_s), units.seconds(flow.service.mean_s)
    return (
        f"operations of {first.scenario} took {times[0]} at {first.words} and {times[1]} up to {last.words}"
    )


def brief_words(case: Case) -> str:
    """What was not started of bursts that are shorter than what is known of the farm; "" where none are.

    A quota that is full for 5 s is half used in a mean over ten.
    """
    for flow in case.flows:
        bursts, started = flow.load.bursts, flow.started_ratio
        if bursts is None or started is None or started >= STARTED.value:
            continue
        known_s = _known_s(case)
        if bursts.for_s < READINGS * known_s:
            return (
                f"a burst of {flow.load.scenario} takes {units.seconds(bursts.for_s)}, but the farm was "
                f"measured in means over {units.seconds(known_s)}: saturation within the bursts does not show"
            )
    return ""


def _known_s(case: Case) -> float:
    """Over how many seconds what was read of the farm is a mean, of what was read most seldom."""
    samples = case.inputs.samples
    cpus = samples.keys("cpu.busy_ratio")
    each_s = [samples.reading_s([key.host], key.metric, key.instance) for key in cpus]
    each_s += [one.step_s for one in case.resources]
    return max([float(case.inputs.window.step_s), *each_s])


def _silence(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """That nothing ended for a good part of the time, though several operations should have in any second."""
    window = inputs.window
    ended = inputs.traffic.of(flow.load.scenario).whole().per_step(window)
    usual = flow.finished / len(ended) if len(ended) else 0.0
    silent_s = float((ended == 0).sum() * window.step_s)
    if usual >= EXPECTED.value and silent_s > OFTEN.value * window.seconds:
        whole = units.seconds(float(window.seconds))
        yield f"no operation of {flow.load.scenario} ended in {units.seconds(silent_s)} of {whole}"


def _rising(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """Times that grow: a queue that the farm does not get done with."""
    times = inputs.traffic.of(flow.load.scenario).whole().ok().medians_s(inputs.window)
    times = times[np.isfinite(times)]
    if len(times) < MIN_SAMPLES.value:
        return
    third = len(times) // 3
    first_s, last_s = float(np.median(times[:third])), float(np.median(times[-third:]))
    if last_s <= max(GROWN.value * first_s, first_s + GROWN_S.value):
        return
    tau, p = kendall(times)
    if tau > 0 and p < DRIFTS.value:
        yield (
            f"operations of {flow.load.scenario} took {units.seconds(first_s)} in the first third and "
            f"{units.seconds(last_s)} in the last, at the same rate"
        )


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the steps came to; the verdict adds tables and outlook to it.

    Attributes:
        why: why no bottleneck is named though the run is valid, in words; "" if one is named, or no limit was
            reached. The explanation contains it, and ``sure`` and ``blocking``.
        measured: whether an operation ended in a measure phase.
        served: whether nothing but too little room keeps it from an all-clear.
    """

    outcome: Outcome
    answer: Summary
    bottleneck: Suspect | None = None
    runner_up: Suspect | None = None
    candidates: tuple[Suspect, ...] = ()
    experiment: str | None = None
    sure: Trust | None = None
    blocking: tuple[Gate, ...] = ()
    why: str = ""
    measured: bool = True
    served: bool = False


def conclude(case: Case) -> Conclusion:
    """The first that is true: not valid, nothing to judge, nothing saturated, or a bottleneck."""
    blocking = _blocking(case)
    if blocking:
        fault = output.generator_at_fault(case.inputs, case.stage, blocking)
        return Conclusion("invalid", summary.invalid_words(blocking), fault, blocking=blocking)
    nothing = _nothing_to_judge(case)
    if nothing or case.stage is None:
        why, remedy = nothing or ("nothing was measured", summary.LONGER)
        measured = case.inputs.measured and any(flow.finished for flow in case.flows)
        return Conclusion(
            "inconclusive",
            summary.inconclusive_words(why, ()),
            experiment=remedy,
            why=why,
            measured=measured,
        )
    if case.found:
        return _used_up(case, case.stage)
    return _nothing_saturated(case, case.stage)


def _blocking(case: Case) -> tuple[Gate, ...]:
    """The gates that make the run invalid.

    Of a run too short to name anything only the recorder can be at fault: a few seconds say no more of the
    generator than of the farm.
    """
    brief = case.inputs.window.seconds < MIN_SECONDS.value
    gates = [
        gate
        for gate in case.failed
        if not (gate.excusable and _excused(case)) and not (brief and gate.fact.metric != RECORDED)
    ]
    if case.found and used_by_generator(case.found[0]):
        fact = facts(case.found[0])[0]
        answer = replace(fact, fact=f"the load generator used most of the farm's cores ({fact.fact})")
        gates.append(Gate("", answer, "give the load generator cores of its own"))
    return tuple(gates)


def _excused(case: Case) -> bool:
    """Whether the farm may be the cause of operations that were not started: it is saturated.

    It may also be if it was saturated at times, as in bursts; if its operations took longer than at the first
    level by more than the sessions could make up for; if it no longer answered at the end; and if the farm,
    its locks, or its short bursts were not measured.
    """
    return bool(
        case.found
        or any(hidden(case))
        or any(each.unseen(case.resources, case.flows) for each in KINDS.values())
        or any(_often_full(one) for one in case.resources)
        or slower_words(case)
        or brief_words(case)
        or unanswered_words(case.inputs, case.flows)
    )


def _often_full(resource: Resource) -> bool:
    """Whether a resource hardly had room in more than a tenth of the time."""
    least = KINDS[resource.type].maybe_full
    if least is None:
        return False
    full = resource.columns[least.column] >= least.limit.value
    return bool(len(full)) and float(full.mean()) > OFTEN.value


def _nothing_to_judge(case: Case) -> tuple[str, str] | None:
    """(why, remedy) where no capacity can be read from the run at all."""
    inputs = case.inputs
    if not inputs.measured:
        return "the run ended before its measure phase", "Run the plan to its end."
    if inputs.window.seconds < MIN_SECONDS.value:
        length = units.seconds(float(inputs.window.seconds))
        return f"only {length} was measured; at least {MIN_SECONDS.value:.0f} s are needed", summary.LONGER
    if not any(flow.finished for flow in case.flows):
        return (
            "no operation was recorded",
            "Find out why no operation ended (events, warnings), then run again.",
        )
    if not any(flow.ok for flow in case.flows):
        kinds = sorted({kind for flow in case.flows for kind in failures(inputs, flow)})
        lines = [words for flow in case.flows for words in said_of(inputs, flow)]
        return (
            f"all operations failed ({', '.join([*kinds, *lines])})",
            "Remove the cause of the failures, then run again.",
        )
    return None


def _used_up(case: Case, stage: Stage) -> Conclusion:
    """A bottleneck if one can be separated from the others, else two candidates."""
    first = case.found[0]
    second = next((one for one in case.found[1:] if not one.not_waited_for), None)
    alone = first.not_waited_for and not first.exact
    sure = trust(case.inputs, case.found, case.resources, stage, case.flows, case.knee)
    if sure.level is None or alone:
        why = "; ".join(sure.why_not_more)
        if alone and sure.level is not None:
            why = "the only saturated disk is one that no work is known to wait for"
        candidates = tuple(output.named(case.inputs, stage, one, None) for one in case.found[:2])
        return Conclusion(
            "inconclusive",
            summary.inconclusive_words(why, candidates),
            candidates=candidates,
            experiment=sure.experiment or summary.experiment(case.flows, case.found),
            sure=sure,
            why=why,
        )
    equal = second if second is not None and len(second.evidence) >= len(first.evidence) else None
    return Conclusion(
        "bottleneck",
        summary.bottleneck_words(first, equal, in_bursts=stage.name == "peak"),
        bottleneck=output.named(case.inputs, stage, first, sure),
        runner_up=output.named(case.inputs, stage, second, None) if second else None,
        experiment=sure.experiment or None,
        sure=sure,
    )


def _nothing_saturated(case: Case, stage: Stage) -> Conclusion:
    """No limit reached if the schedule limited the load; if the farm did, something unmeasured limits it."""
    pressed, unhealthy = pressed_words(case.flows), tuple(health_checks(case))
    near = tuple(without_room(case, stage, served=not pressed))
    result = (*(why for _, why in near), *unhealthy)
    if not pressed and not result:
        most_used = next(iter(output.others(None, demands_of(case))), None)
        words = summary.not_reached_words(case.served_per_s(), most_used)
        return Conclusion("not_reached", words)
    turns = [one for one, _ in in_turn(case)] if case.climb is None else []
    candidates = output.candidates(case.inputs, stage, turns) or output.nearest(
        case.inputs, stage, case.resources
    )
    first = f"{pressed}, yet" if pressed else "the offered load was served, and"
    full = any(used >= UTILISATION.value for used, _ in near)
    rest = "no wait for a resource was seen" if full else "no measured resource was saturated"
    why = "; ".join((f"{first} {rest}", *(one.why for one in result)))
    return Conclusion(
        "inconclusive",
        summary.inconclusive_words(why, candidates),
        candidates=candidates,
        experiment=result[0].experiment if result else summary.experiment(case.flows, ()),
        why=why,
        served=not pressed and not unhealthy and not full,
    )
