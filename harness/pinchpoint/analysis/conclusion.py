"""Computes the outcome of a case (steps 6 to 8): bottleneck, not_reached, inconclusive or invalid."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pinchpoint.analysis import output, summary
from pinchpoint.analysis.all_clear import brief_words, coverage_gaps, health_checks, near_limits, slower_words
from pinchpoint.analysis.capacity import demands_of
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.confidence import Trust, trust
from pinchpoint.analysis.failing import failures, said_of, unanswered_words
from pinchpoint.analysis.flows import only_probes, pressed_words
from pinchpoint.analysis.gates import RECORDED, Gate
from pinchpoint.analysis.periods import taking_turns
from pinchpoint.analysis.resources.base import Resource
from pinchpoint.analysis.resources.cpu import used_by_generator
from pinchpoint.analysis.resources.kinds import KINDS, facts
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import (
    MIN_SECONDS,
    OFTEN,
    UTILISATION,
)
from pinchpoint.analysis.verdict import Bottleneck, Outcome
from pinchpoint.base import units
from pinchpoint.base.wording import Summary

ONLY_PROBES = "the plan has storage probes only: they measure a disk, and no application was measured"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome and its reasons; the verdict adds tables and outlook.

    Attributes:
        why: why a valid run has no named bottleneck, in words; "" if a bottleneck is named or no limit was
            reached. ``why``, ``sure`` and ``blocking`` are part of the explanation.
        measured: whether an operation ended in the measure phase.
        served: whether a lack of headroom is the only reason against ``not_reached``.
    """

    outcome: Outcome
    answer: Summary
    bottleneck: Bottleneck | None = None
    runner_up: Bottleneck | None = None
    candidates: tuple[Bottleneck, ...] = ()
    experiment: str | None = None
    sure: Trust | None = None
    blocking: tuple[Gate, ...] = ()
    why: str = ""
    measured: bool = True
    served: bool = False


def conclude(case: Case) -> Conclusion:
    """The first conclusion that applies: invalid, nothing to judge, a bottleneck, or nothing saturated."""
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

    In a run too short to name a bottleneck only the recorder's gate counts: a few seconds do not show a fault
    of the load generator either.
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
    """Whether the farm, not the load generator, may have prevented operations from starting.

    The farm may have prevented operations from starting if a resource was saturated, also if only at times,
    as in bursts; if operations took longer than at the first level by more than the sessions could
    compensate; if the farm no longer answered at the end; or if the farm, its locks, or its short bursts were
    not measured.
    """
    return bool(
        case.found
        or any(coverage_gaps(case))
        or any(each.unseen(case.resources, case.flows) for each in KINDS.values())
        or any(_often_full(one) for one in case.resources)
        or slower_words(case)
        or brief_words(case)
        or unanswered_words(case.inputs, case.flows)
    )


def _often_full(resource: Resource) -> bool:
    """Whether a resource was saturated for more than a tenth of the time."""
    least = KINDS[resource.type].maybe_full
    if least is None:
        return False
    full = resource.columns[least.column] >= least.limit.value
    return bool(len(full)) and float(full.mean()) > OFTEN.value


def _nothing_to_judge(case: Case) -> tuple[str, str] | None:
    """(reason, remedy) if the run shows no capacity at all, else None."""
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
    """The conclusion if resources are saturated: a bottleneck, or two candidates that cannot be separated."""
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
    """The conclusion without a saturated resource: ``not_reached`` if only the schedule limited the load."""
    pressed, unhealthy = pressed_words(case.flows), tuple(health_checks(case))
    near = tuple(near_limits(case, stage, served=not pressed))
    result = (*(why for _, why in near), *unhealthy)
    if not pressed and not result:
        most_used = next(iter(output.others(None, demands_of(case))), None)
        words = summary.not_reached_words(case.served_per_s(), most_used)
        return Conclusion("not_reached", words)
    turns = [one for one, _ in taking_turns(case)] if case.climb is None else []
    candidates = output.candidates(case.inputs, stage, turns) or output.nearest(
        case.inputs, stage, case.resources
    )
    first = f"{pressed}, yet" if pressed else "the offered load was served, and"
    full = any(used >= UTILISATION.value for used, _ in near)
    rest = "no wait for a resource was seen" if full else "no measured resource was saturated"
    what = ONLY_PROBES if only_probes(case.flows) else f"{first} {rest}"
    why = "; ".join((what, *(one.why for one in result)))
    return Conclusion(
        "inconclusive",
        summary.inconclusive_words(why, candidates),
        candidates=candidates,
        experiment=result[0].experiment if result else summary.experiment(case.flows, ()),
        why=why,
        served=not pressed and not unhealthy and not full,
    )
