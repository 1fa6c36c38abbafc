"""What a reader must know beside the verdict: sentences for its warnings."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.contention import find_contention
from pinchpoint.analysis.durability import losses
from pinchpoint.analysis.failing import failures, said_of
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.disk.credits import credit_words
from pinchpoint.analysis.resources.disk.machines import unknown_machines
from pinchpoint.analysis.resources.disk.measures import measure_disk
from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.analysis.seen import stolen, unseen
from pinchpoint.analysis.thresholds import LARGE_IO_BYTES, MEMORY_CRITICAL, NO_LATENCY_S, STRANGERS, exceeds
from pinchpoint.analysis.unanswered import given_up_words
from pinchpoint.base import units, wording
from pinchpoint.data.curve import expected_s
from pinchpoint.data.inputs import Inputs

SLOWER = 2.0
"""A disk is slower than it was probed from twice the latency on (our value)."""


def caveats(case: Case) -> Iterator[str]:
    """What a reader must know beside the verdict."""
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
    if contention is not None and contention.ratio >= STRANGERS.value:
        yield contention.words()
    yield from unseen(inputs)
    yield from stolen(inputs)
    yield from unknown_machines(inputs)
    for name in dict.fromkeys(name for stage in case.stages for name in stage.unsteady):
        yield f"{name}: throughput did not settle; the level changed within the measured window"
    if any(stage.cut_steps for stage in case.stages):
        cut = units.seconds(float(max(stage.cut_steps for stage in case.stages) * inputs.window.step_s))
        yield f"the first {cut} of the measured window were left out: the load was not steady yet"
    yield from (f"{flow.load.scenario}: {text}" for flow in case.flows for text in _lost(inputs, flow))
    yield from credits_of(case)
    yield from _more_than_declared(case)
    yield from _slower_than_probed(case)
    yield from _memory(inputs)
    yield from inputs.samples.nonsense


def _lost(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """What a scenario asked for and did not get."""
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
    """What lives on burst credits, and for how long."""
    if case.stage is not None:
        yield from credit_words(case.resources, case.stage.rows)


def _more_than_declared(case: Case) -> Iterator[str]:
    """Machines whose disks do more together than the machine that farm.yaml names can."""
    for one in case.resources if case.stage else ():
        found = measure_disk(one, case.stage.rows) if one.whole and case.stage else None
        if found is None or one.limits is None or not exceeds(found.utilisation):
            continue
        done = limits_words(found.io, found.bytes)
        caps = limits_words(one.limits.iops, one.limits.bytes_per_s)
        yield (
            f"{one.hosts[0]}: its disks did {done} together, more than {one.instance} does ({caps}): "
            "correct its machine in farm.yaml, or how its disks are attached"
        )


def _slower_than_probed(case: Case) -> Iterator[str]:
    """Disks that take far longer than they did with as much outstanding when a probe had them for itself."""
    for resource in case.resources if case.stage else ():
        curve = resource.roles[0].curve if resource.type == "disk" and resource.role else ()
        found = measure_disk(resource, case.stage.rows) if curve and case.stage else None
        if found is None or not found.io or found.outstanding is None:
            continue
        each_s, expected = found.outstanding / found.io, expected_s(curve, found.outstanding)
        small = found.size_bytes is None or found.size_bytes <= LARGE_IO_BYTES.value
        if expected is not None and small and each_s > max(SLOWER * expected, NO_LATENCY_S.value):
            yield (
                f"{resource.roles[0].tier}.{resource.role}: an I/O takes {units.seconds(each_s)} with "
                f"{found.outstanding:.2g} outstanding, where the probe in farm.yaml found "
                f"{units.seconds(expected)}: other load uses the disk, or the disk changed"
            )


def _memory(inputs: Inputs) -> Iterator[str]:
    for host in dict.fromkeys(host.name for host in inputs.hosts):
        free = inputs.samples.mean(host, "mem.available_ratio")
        if free is not None and free < MEMORY_CRITICAL.value:
            yield f"{host}: only {units.percent(free)} of memory available (PAL: critical below 5 %)"
