"""Finds the reasons against the all-clear (``not_reached``) of a run without a bottleneck."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.coverage import HOST_WITH_ROOM, stolen, unseen
from pinchpoint.analysis.failing import failing_words, unanswered_words
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.levels import during_level
from pinchpoint.analysis.resources.base import NoSingleCause
from pinchpoint.analysis.resources.disk.measures import seldom, seldom_read
from pinchpoint.analysis.resources.kinds import KINDS
from pinchpoint.analysis.stages import Stage
from pinchpoint.analysis.thresholds import (
    DRIFTS,
    EXPECTED,
    GROWN,
    GROWN_S,
    KNEE_RISE,
    MIN_SAMPLES,
    OFTEN,
    ROOM,
    STARTED,
    STOLEN,
    exceeds,
)
from pinchpoint.base import units, wording
from pinchpoint.data.changes import kendall
from pinchpoint.data.inputs import Inputs

CONSTANT = ("open", "soak")
"""Load models with a constant rate: changes of throughput or latency under them come from the farm."""
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
"""Fewest readings per burst, so that at least one reading covers the burst alone."""


def health_checks(case: Case) -> Iterator[NoSingleCause]:
    """All reasons why the run shows no healthy farm; missing measurements come first."""
    yield from coverage_gaps(case)
    yield from (NoSingleCause(text, HOST_WITH_ROOM) for text in stolen(case.inputs, STOLEN))
    yield from (NoSingleCause(text, WHY_FAILING) for text in failing_words(case.inputs, case.flows))
    answers = (slower_words(case), unanswered_words(case.inputs, case.flows))
    yield from (NoSingleCause(text, UNWATCHED) for text in answers if text)
    if brief := brief_words(case):
        yield NoSingleCause(brief, OFTENER)
    for flow in (one for one in case.flows if one.load.model in CONSTANT):
        yield from (NoSingleCause(text, UNWATCHED) for text in _silence(case.inputs, flow))
        yield from (NoSingleCause(text, FOR_LONGER) for text in _rising(case.inputs, flow))


def near_limits(case: Case, stage: Stage, *, served: bool) -> Iterator[tuple[float, NoSingleCause]]:
    """(utilisation, reason) of each resource near its limit, the most used first.

    The all-clear needs headroom.

    A resource whose utilisation exceeds its declared limit has another limit, so it is left out. Memory is
    judged by data read again for lack of memory. Connections are judged only if all operations were
    ``served``, because waiting users fill the connections.
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


def coverage_gaps(case: Case) -> Iterator[NoSingleCause]:
    """Sentences about parts of the farm that were not measured, or too rarely to be judged."""
    missing = tuple(unseen(case.inputs))
    watch = f"Measure the whole farm ({wording.grouped(missing)}), and run the same plan again."
    yield from (NoSingleCause(why, watch) for why in missing)
    if case.stage is not None:
        rows = case.stage.rows
        yield from (seldom(disk, rows) for disk in seldom_read(case.resources, rows))


def slower_words(case: Case) -> str:
    """The growth of operation times since the first level, if it explains unstarted operations; else "".

    By Little's law ``started x service time`` sessions were busy. With the service time of the first level
    the same sessions would have been enough for all scheduled operations.
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
    """A sentence if bursts are too short for the interval of the samples and not all operations started.

    For example, a quota that is full for 5 of 10 s has a mean utilisation of one half over the 10 s.
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
    """The interval of the least frequent readings of the farm, in seconds."""
    samples = case.inputs.samples
    cpus = samples.keys("cpu.busy_ratio")
    each_s = [samples.reading_s([key.host], key.metric, key.instance) for key in cpus]
    each_s += [one.step_s for one in case.resources]
    return max([float(case.inputs.window.step_s), *each_s])


def _silence(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """A sentence if no operation ended for much of the time, though several were expected per second."""
    window = inputs.window
    ended = inputs.traffic.of(flow.load.scenario).whole().per_step(window)
    usual = flow.finished / len(ended) if len(ended) else 0.0
    silent_s = float((ended == 0).sum() * window.step_s)
    if usual >= EXPECTED.value and silent_s > OFTEN.value * window.seconds:
        whole = units.seconds(float(window.seconds))
        yield f"no operation of {flow.load.scenario} ended in {units.seconds(silent_s)} of {whole}"


def _rising(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """A sentence if operation times grow under a constant load: the farm cannot clear its queue."""
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
