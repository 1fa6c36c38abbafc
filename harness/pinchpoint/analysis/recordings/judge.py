"""Judges a recording by its samples: resources, outcome, and the tables of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.coverage import stolen
from pinchpoint.analysis.knee import no_knee
from pinchpoint.analysis.recordings.cpu import cpus
from pinchpoint.analysis.recordings.crawls import crawl_findings, crawl_rows
from pinchpoint.analysis.recordings.disk import disks
from pinchpoint.analysis.recordings.measures import RecordedResource
from pinchpoint.analysis.recordings.memory import memories
from pinchpoint.analysis.recordings.network import interfaces
from pinchpoint.analysis.recordings.outcome import NO_OPERATIONS, RecordingConclusion, conclude_recording
from pinchpoint.analysis.recordings.symptoms import collapses, work
from pinchpoint.analysis.recordings.waiting import (
    dependencies,
    file_servers,
    locks,
    pools,
    replicas,
    sessions,
    waited_mostly,
)
from pinchpoint.analysis.recordings.words import experiment, saturated_words, summary
from pinchpoint.analysis.resources.disk.machines import unknown_machines
from pinchpoint.analysis.sample_counts import counted
from pinchpoint.analysis.tables import cpu_table, disk_table
from pinchpoint.analysis.thresholds import MEMORY_CRITICAL, SEEN, SUSTAINED
from pinchpoint.analysis.verdict import (
    Bottleneck,
    Check,
    Confidence,
    Considered,
    Explanation,
    Fact,
    Headroom,
    Verdict,
)
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs, utc

MOST_PERIODS = 20
RESOURCES = (
    cpus,
    memories,
    disks,
    interfaces,
    file_servers,
    locks,
    sessions,
    waited_mostly,
    replicas,
    pools,
    dependencies,
    collapses,
    work,
)
"""One function per kind of resource of a host; a new kind is one more function."""


def is_recording(inputs: Inputs) -> bool:
    """Whether the run has samples only: no load was planned and no operation recorded."""
    return not inputs.loads and not inputs.whole.count


def judge_recording(inputs: Inputs) -> Verdict:
    """The verdict on samples without operations."""
    value = [one for host in inputs.hosts for of_kind in RESOURCES for one in of_kind(inputs, host)]
    value.sort(key=lambda one: (not one.saturated, bool(one.doubt), bool(one.measures), -one.over_s))
    result = conclude_recording(inputs, value, _recorded_s(inputs, value))
    case = Case(inputs, (), (), (), no_knee(0), (), None, (), None)
    candidates = () if result.named else result.others
    runner_up = result.others[0] if result.named and result.others else None
    return Verdict(
        outcome=result.outcome,
        bottleneck=_suspect(result.named, case, result.confidence, result.limits) if result.named else None,
        runner_up=_suspect(runner_up, case, None) if runner_up else None,
        next=None,
        then=None,
        headroom_ratio=None,
        headroom=Headroom(None, "unknown", None, None, None, "no operation was recorded"),
        advice=(),
        demand=(),
        candidates=tuple(_suspect(one, case, None) for one in candidates),
        experiment=experiment(result),
        capacity_at_least_per_s={},
        objectives=(),
        scenarios={},
        crawl=tuple(crawl_rows(inputs)),
        disks=tuple(_disk_row(inputs, row) for row in disk_table(inputs)),
        cpus=tuple(cpu_table(inputs)),
        stages=(),
        levels=(),
        objectives_held={},
        knee=asdict(case.knee),
        explanation=_explained(value, result, case),
        timeline=_timeline(value),
        drift=(),
        checkpoints=(),
        answer=summary(result, value, next(crawl_findings(inputs), ""), inputs.utc_offset_s),
        warnings=tuple(dict.fromkeys(_warnings(inputs, value))),
    )


def _recorded_s(inputs: Inputs, resources: Sequence[RecordedResource]) -> float:
    """The length of the recording in seconds.

    The last reading is included: 60 readings of a second are a minute, though 59 s lie between them.
    """
    measured = [one.measured_s for each in resources for one in each.measures]
    return max([float(inputs.window.seconds), *measured])


def _suspect(
    resource: RecordedResource, case: Case, confidence: Confidence | None, limits: Sequence[str] = ()
) -> Bottleneck:
    first = resource.stretches[0] if resource.stretches else None
    window = case.inputs.window
    begin_s, end_s = (first.from_s, first.to_s) if first else (window.first_s, window.end_s)
    return Bottleneck(
        kind=resource.kind,
        tier=resource.tier,
        host=resource.host,
        resource=resource.resource,
        instance=resource.instance,
        role=resource.role,
        confidence=confidence,
        window=(utc(round(begin_s)), utc(round(end_s))),
        evidence=tuple(counted(fact, case) for fact in resource.facts()),
        why_not_more=tuple(limits),
    )


def _explained(resources: Sequence[RecordedResource], result: RecordingConclusion, case: Case) -> Explanation:
    considered = tuple(_considered(one, result, case) for one in resources)
    offset_s = case.inputs.utc_offset_s
    named = [one for one in resources if one.saturated or one.missing]
    reasons = [f"{one.name}: {saturated_words(one, offset_s)}" for one in named]
    reasons += [f"why the confidence is not higher: {each}" for each in result.limits]
    decides = experiment(result)
    return Explanation(
        (),
        considered,
        tuple(reasons or [str(summary(result, resources, next(crawl_findings(case.inputs), ""), offset_s))]),
        (decides,) if decides else (),
    )


def _considered(resource: RecordedResource, result: RecordingConclusion, case: Case) -> Considered:
    facts = [counted(fact, case) for fact in resource.facts()]
    agree = next((fact for fact in facts if fact.evidence == "E4"), None)
    unknown = Fact("only operations at several levels of load can show it", "", None, resource.host)
    unconfirmed = Fact("no second measure of it was at its limit", "", None, resource.host)
    used = next((each for each in resource.measures if each.what == "utilisation"), None)
    why = "not saturated" if resource.measures else resource.missing or "not measured"
    if resource is result.named:
        why = "the bottleneck"
    elif resource.saturated:
        why = resource.doubt or "saturated as well"
    return Considered(
        name=resource.name,
        kind=resource.kind if resource.saturated else None,
        tier=resource.tier,
        host=resource.host,
        resource=resource.resource,
        instance=resource.instance,
        role=resource.role,
        used_ratio=used.value if used and used.limit.value <= 1 else None,
        checks=(
            Check("E1", bool(resource.saturated) if resource.measures else None, facts[0]),
            Check("E2", None, unknown),
            Check("E3", None, unknown),
            Check("E4", True if agree else None, agree or unconfirmed),
        ),
        why=why,
    )


def _timeline(resources: Sequence[RecordedResource]) -> tuple[dict[str, Any], ...]:
    """The longest times in which a resource was saturated, in order of time."""
    periods = [
        (stretch, one) for one in resources for stretch in one.stretches if stretch.seconds >= SUSTAINED.value
    ]
    kept = sorted(periods, key=lambda each: -each[0].seconds)[:MOST_PERIODS]
    return tuple(
        {
            "from": utc(round(stretch.from_s)),
            "to": utc(round(stretch.to_s)),
            "level": None,
            "kind": one.kind,
            "tier": one.tier,
            "host": one.host,
            "resource": one.resource,
            "instance": one.instance,
            "role": one.role,
        }
        for stretch, one in sorted(kept, key=lambda each: (each[0].from_s, each[1].host))
    )


def _disk_row(inputs: Inputs, row: dict[str, Any]) -> dict[str, Any]:
    """The row of a disk; if reads and writes were recorded together, their sum is the disk's I/O."""
    if row["iops_mean"] is not None or row["device"] is None:
        return row
    series = inputs.samples.series(row["host"], "disk.transfers_per_s", row["device"])
    if series is None or not series.measured:
        return row
    why = "latency: reads and writes were recorded together"
    took = inputs.samples.series(row["host"], "disk.transfer_latency_s", row["device"])
    return {
        **row,
        "iops_mean": series.mean(),
        "iops_max": series.maximum(),
        "transfer_latency_mean_s": took.mean() if took else None,
        "why_not_measured": why,
    }


def _warnings(inputs: Inputs, resources: Sequence[RecordedResource]) -> Iterator[str]:
    yield from inputs.warnings
    yield NO_OPERATIONS
    for host in dict.fromkeys(host.name for host in inputs.hosts):
        seen = inputs.samples.seen_ratio(host, "cpu.busy_ratio")
        if 0 < seen < SEEN.value:
            yield f"the CPU of {host} was read only {units.percent(seen)} of the time"
        left = inputs.samples.mean(host, "mem.available_ratio")
        if left is not None and left < MEMORY_CRITICAL.value:
            yield f"{host}: only {units.percent(left)} of memory available (PAL: critical below 5 %)"
    yield from (one.missing for one in resources if one.missing and one.resource == "disk")
    if any(one.measures for one in resources):  # otherwise the summary has the finding
        for finding in crawl_findings(inputs):
            yield f"crawl: {finding}; if that source is outside of the farm, it limits this crawl"
    yield from stolen(inputs)
    yield from unknown_machines(inputs)
    yield from inputs.samples.nonsense
