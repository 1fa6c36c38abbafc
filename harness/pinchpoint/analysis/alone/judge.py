"""The verdict on samples alone: what was used up, for how long and when; never more than they can bear.

Without operations there is no throughput, no level of load, and nobody who is known to have waited. What is
left is one kind of evidence (E1): at most low confidence, and only where one resource was used up and all
others were measured and had room. Otherwise nobody is named; the candidates are, and the experiment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pinchpoint.analysis.alone.crawls import crawl_rows, crawl_words
from pinchpoint.analysis.alone.disks import observe_disk
from pinchpoint.analysis.alone.hosts import observe_host
from pinchpoint.analysis.alone.observed import Observed
from pinchpoint.analysis.alone.stretches import PLATEAU
from pinchpoint.analysis.alone.words import (
    UNKNOWN,
    cannot_tell,
    experiment_words,
    named_words,
    nothing_words,
    short_words,
    thing_words,
    why_nobody,
)
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.knee import no_knee
from pinchpoint.analysis.machine_disks import unknown_machines
from pinchpoint.analysis.rests_on import counted
from pinchpoint.analysis.seen import stolen
from pinchpoint.analysis.tables import cpu_table, disk_table
from pinchpoint.analysis.thresholds import MEMORY_CRITICAL, PRESSURE, SEEN, at_least
from pinchpoint.analysis.verdict import (
    Check,
    Confidence,
    Considered,
    Explanation,
    Fact,
    Headroom,
    Outcome,
    Suspect,
    Verdict,
)
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs, utc

MOST_PERIODS = 20
RECORD_ALL = "Record CPU, memory and disks."


@dataclass(frozen=True, slots=True)
class _Found:
    """What it comes to."""

    outcome: Outcome
    summary: str
    bottleneck: Observed | None = None
    candidates: tuple[Observed, ...] = ()
    experiment: str | None = None


def is_samples_alone(inputs: Inputs) -> bool:
    """Whether no load of ours was planned, and none recorded: all there is are samples."""
    return not inputs.loads and not inputs.whole.count


def judge_samples(inputs: Inputs) -> Verdict:
    """What samples alone prove."""
    observed = sorted(
        (
            *(one for host in inputs.hosts for one in observe_host(inputs, host)),
            *(observe_disk(inputs, disk) for disk in inputs.disks),
        ),
        key=_rank,
    )
    found = _conclude(inputs, observed)
    case = Case(inputs, (), (), (), no_knee(0), (), None, (), None)
    return Verdict(
        outcome=found.outcome,
        bottleneck=_suspect(found.bottleneck, case, "low") if found.bottleneck else None,
        runner_up=None,
        next=None,
        then=None,
        headroom_ratio=None,
        headroom=Headroom(None, "unknown", None, None, None, "no operation was recorded"),
        advice=(),
        demand=(),
        candidates=tuple(_suspect(one, case, None) for one in found.candidates),
        experiment=found.experiment,
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
        explanation=_explained(observed, found, case),
        timeline=_timeline(observed),
        drift=(),
        checkpoints=(),
        summary=found.summary,
        warnings=tuple(dict.fromkeys(_warnings(inputs))),
    )


def _rank(one: Observed) -> tuple[bool, bool, bool, float]:
    """Used up before not; what somebody must have waited for first; then what was used up for longest."""
    return not one.used_up, bool(one.demoted), one.measured, -one.over_s


def _conclude(inputs: Inputs, observed: Sequence[Observed]) -> _Found:
    used_up = tuple(one for one in observed if one.used_up)
    unknown = tuple(one for one in observed if not one.measured)
    if inputs.window.seconds < PLATEAU.value:
        length = units.seconds(float(inputs.window.seconds))
        why = f"only {length} were recorded, {PLATEAU.value:.0f} s are the least"
        return _Found("inconclusive", cannot_tell(why, ()), experiment="Record for longer.")
    if len(used_up) == len(observed) == 1 and not unknown and not used_up[0].demoted:
        why = why_nobody(used_up, ())
        return _Found("inconclusive", cannot_tell(why, used_up), None, used_up, RECORD_ALL)
    if len(used_up) == 1 and not unknown and not used_up[0].demoted:
        [one] = used_up
        return _Found("bottleneck", named_words(one), one, experiment=experiment_words((one,)))
    candidates = (*used_up, *unknown)[:2]
    if candidates:
        why = why_nobody(used_up, unknown)
        return _Found(
            "inconclusive", cannot_tell(why, candidates), None, candidates, experiment_words(candidates)
        )
    if not observed:
        why = "the samples are of nothing that can be used up (CPU, memory, disks, network)"
        return _Found("inconclusive", cannot_tell(why, ()), experiment=RECORD_ALL)
    return _Found("not_reached", nothing_words(observed), experiment=experiment_words(()))


def _suspect(one: Observed, case: Case, confidence: Confidence | None) -> Suspect:
    subject = one.subject
    first = one.stretches[0] if one.stretches else None
    window = case.inputs.window
    span = (
        (utc(round(first.from_s)), utc(round(first.to_s)))
        if first
        else (utc(window.first_s), utc(window.end_s))
    )
    return Suspect(
        kind=subject.kind,
        tier=subject.tier,
        host=subject.host,
        resource=subject.resource,
        instance=subject.instance,
        role=subject.role,
        confidence=confidence,
        window=span,
        evidence=tuple(counted(fact, case) for fact in one.facts),
        why_not_more=(UNKNOWN,) if confidence else (),
    )


def _explained(observed: Sequence[Observed], found: _Found, case: Case) -> Explanation:
    considered = tuple(_considered(one, found, case) for one in observed)
    reasons = [
        f"{thing_words(one)}: {short_words(one)}" for one in observed if one.used_up or not one.measured
    ]
    reasons += [f"no more confidence: {UNKNOWN}"] if found.bottleneck else []
    would_change = (found.experiment,) if found.experiment else ()
    return Explanation((), considered, tuple(reasons or [found.summary]), would_change)


def _considered(one: Observed, found: _Found, case: Case) -> Considered:
    first = counted(one.facts[0], case)
    agree = next((fact for fact in one.facts if fact.metric.startswith("pressure.")), None)
    unknown = Fact("only operations at several levels of load can show it", "", None, one.subject.host)
    nobody = Fact("nobody else was asked", "", None, one.subject.host)
    why = "not used up" if one.measured else "it was not measured"
    if one is found.bottleneck:
        why = "comes first"
    elif one.used_up:
        why = one.demoted or "used up, and so is something else or something was not measured"
    return Considered(
        name=thing_words(one),
        kind=one.subject.kind if one.used_up else None,
        tier=one.subject.tier,
        host=one.subject.host,
        resource=one.subject.resource,
        instance=one.subject.instance,
        role=one.subject.role,
        used_ratio=one.used,
        checks=(
            Check("E1", one.used_up if one.measured else None, first),
            Check("E2", None, unknown),
            Check("E3", None, unknown),
            Check("E4", at_least(agree.value, PRESSURE), counted(agree, case))
            if agree
            else Check("E4", None, nobody),
        ),
        why=why,
    )


def _timeline(observed: Sequence[Observed]) -> tuple[dict[str, Any], ...]:
    """The longest times in which something was over its limit, in their order."""
    periods = [
        (stretch, one.subject)
        for one in observed
        for stretch in one.stretches
        if stretch.seconds >= PLATEAU.value
    ]
    kept = sorted(periods, key=lambda each: -each[0].seconds)[:MOST_PERIODS]
    return tuple(
        {
            "from": utc(round(stretch.from_s)),
            "to": utc(round(stretch.to_s)),
            "level": None,
            "kind": subject.kind,
            "tier": subject.tier,
            "host": subject.host,
            "resource": subject.resource,
            "instance": subject.instance,
            "role": subject.role,
        }
        for stretch, subject in sorted(kept, key=lambda each: (each[0].from_s, each[1].host))
    )


def _disk_row(inputs: Inputs, row: dict[str, Any]) -> dict[str, Any]:
    """Where reads and writes were not told apart, their sum is the disk's I/O."""
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


def _warnings(inputs: Inputs) -> Iterator[str]:
    yield from inputs.warnings
    yield "samples alone: no load was planned or recorded; nothing is known of throughput, or of who waited"
    for host in dict.fromkeys(host.name for host in inputs.hosts):
        seen = inputs.samples.seen_ratio(host, "cpu.busy_ratio")
        if 0 < seen < SEEN.value:
            yield f"{host} was read only {units.percent(seen)} of the time"
        left = inputs.samples.mean(host, "mem.available_ratio")
        if left is not None and left < MEMORY_CRITICAL.value:
            yield f"{host}: only {units.percent(left)} of memory available (PAL: critical below 5 %)"
    yield from _without_disks(inputs)
    yield from crawl_words(inputs)
    yield from stolen(inputs)
    yield from unknown_machines(inputs)
    yield from inputs.samples.nonsense


def _without_disks(inputs: Inputs) -> Iterator[str]:
    """Hosts of which nobody recorded a disk: that is no sign that they had room."""
    with_disks = {disk.host for disk in inputs.disks}
    without = [
        host.name
        for host in inputs.hosts
        if host.name not in with_disks and inputs.samples.series(host.name, "cpu.busy_ratio")
    ]
    if without:
        names = listed(list(dict.fromkeys(without)))
        yield f"no disk of {names} was recorded: whether one was at its limit is not known"
