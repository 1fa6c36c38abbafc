"""Collects the warnings of a verdict, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.contention import find_contention
from pinchpoint.analysis.coverage import stolen, unseen
from pinchpoint.analysis.durability import losses
from pinchpoint.analysis.failing import failures, given_up_words, said_of
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.disk.limits import credit_words
from pinchpoint.analysis.resources.disk.machines import unknown_machines
from pinchpoint.analysis.resources.kinds import KINDS
from pinchpoint.analysis.thresholds import MEMORY_CRITICAL, OTHER_PROCESSES
from pinchpoint.base import units, wording
from pinchpoint.data.inputs import Inputs


def caveats(case: Case) -> Iterator[str]:
    """All warnings about a case, in the order of the verdict."""
    inputs = case.inputs
    yield from inputs.warnings
    if inputs.state != "finished" and not any("incomplete" in warning for warning in inputs.warnings):
        yield "incomplete: the run did not end as planned; this is what was measured until then"
    for event in inputs.events:
        if event.get("event") == "tier_crashed":
            yield f"the {event.get('tier')} tier ({event.get('host')}) crashed during the run"
    yield from losses(inputs)
    yield from (gate.fact.fact for gate in case.failed)
    contention = find_contention(inputs)
    if contention is not None and contention.ratio >= OTHER_PROCESSES.value:
        yield contention.words()
    yield from unseen(inputs)
    yield from stolen(inputs)
    yield from unknown_machines(inputs)
    for name in dict.fromkeys(name for stage in case.stages for name in stage.unsteady):
        yield f"{name}: throughput did not settle; the level changed within the measured window"
    if any(stage.cut_steps for stage in case.stages):
        cut = units.seconds(float(max(stage.cut_steps for stage in case.stages) * inputs.window.step_s))
        yield f"the first {cut} of the measured window were left out: the load was not steady yet"
    if fewer := max((stage.fewer_users_steps for stage in case.stages), default=0):
        left = units.seconds(float(fewer * inputs.window.step_s))
        why = "fewer users of the crawl had work, before its first document or after sources had ended"
        yield f"{left} of the measured window were left out: {why}"
    yield from (f"{flow.load.scenario}: {text}" for flow in case.flows for text in _lost(inputs, flow))
    yield from credits_of(case)
    if case.stage is not None:
        for one in case.resources:
            yield from KINDS[one.type].caveats(one, case.stage.rows)
    yield from _memory(inputs)
    yield from inputs.samples.nonsense


def _lost(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """Warnings about operations of a scenario that failed, were given up, or were dropped."""
    if flow.all_failed:
        kinds = [*failures(inputs, flow), *said_of(inputs, flow)]
        yield f"all operations failed ({wording.listed(kinds)})"
    elif flow.failures:
        yield f"{units.percent(flow.failures / flow.finished)} of the operations failed"
    if given_up := given_up_words(inputs, flow):
        yield given_up
    if flow.dropped:
        yield f"{flow.dropped:,} operations were dropped: they could not start in time"


def credits_of(case: Case) -> Iterator[str]:
    """Warnings about disks and machines on burst credits, with the time until the credits are spent."""
    if case.stage is not None:
        yield from credit_words(case.resources, case.stage.rows)


def _memory(inputs: Inputs) -> Iterator[str]:
    for host in dict.fromkeys(host.name for host in inputs.hosts):
        free = inputs.samples.mean(host, "mem.available_ratio")
        if free is not None and free < MEMORY_CRITICAL.value:
            yield f"{host}: only {units.percent(free)} of memory available (PAL: critical below 5 %)"
