"""Builds the model from a run: the demand of each operation on each part of the farm.

All figures come from the run. Of an operation's time, the waits for disks are measured
(``analysis.resources.disk.waits``), CPU time is calculated from utilisation, and the unexplained rest is
constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.model.commit import Sessions, flush_of
from pinchpoint.analysis.model.network import OPEN_USERS, Model, Users, fitted
from pinchpoint.analysis.model.parts import UNQUEUED_S, Bound, CoresPart, DiskPart, Part, Wait
from pinchpoint.analysis.resources.base import (
    GENERATOR,
    ChangeableLimit,
    CpuMeasures,
    DiskMeasures,
    Resource,
    ShareMeasures,
)
from pinchpoint.analysis.resources.cpu import measure_cpu, others_share
from pinchpoint.analysis.resources.disk.measures import measure_disk, write_and_flush_s
from pinchpoint.analysis.resources.disk.waits import shares_waited
from pinchpoint.analysis.resources.kinds import KINDS, limit_words, measure
from pinchpoint.analysis.stages import Rows, offered_per_s
from pinchpoint.analysis.thresholds import (
    CAP_MATCH,
    MOSTLY_READS,
    STARTED,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
    at_least,
    exceeds,
)
from pinchpoint.analysis.verdict import Kind
from pinchpoint.data.curve import expected_s
from pinchpoint.data.inputs import Limits
from pinchpoint.data.series import mean

NOTICED = 0.002
"""A wait below this share of a scenario's time means that the disk does not delay the scenario."""
OWN_WRITES = 1.5
"""From this number of writes per commit on, commits do not share the writes of a log at its cap."""
NO_LIMIT_KINDS = ("disk", "disk_latency", "disk_concurrency")
"""Kinds of bottleneck in which disk latency delays operations although the disk is below its limits."""
CHUNK_BYTES = 64 * 2**10
"""Chunk size of a striped array: the bytes on one disk before the next disk follows."""


@dataclass(frozen=True, slots=True)
class Flushes:
    """The flushes of a log, as counted and timed by the database.

    Attributes:
        per_s: flushes per second.
        each_s: seconds per flush; None if the database counts flushes but does not time them.
    """

    per_s: float
    each_s: float | None


@dataclass(frozen=True, slots=True)
class DiskContext:
    """Facts about a disk besides its own measurements.

    Attributes:
        kind: the kind of limit that the analysis found for the disk; None if the disk is not a suspect.
        flushes: flushes of the log on the disk; None if not counted.
        reads_only: whether no scenario writes, so that operations do not cause the writes of the disk.
        starved: whether the CPU allowance of the disk's tier is saturated, so that the reported flush time
            includes waits for CPU.
    """

    kind: Kind | None = None
    flushes: Flushes | None = None
    reads_only: bool = False
    starved: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """Measurements of the disk over the judged rows.

    Attributes:
        waits_s: by scenario, seconds that an operation waits for the disk.
        each_s: seconds per I/O that operations wait for; None if not measured.
    """

    resource: Resource
    found: DiskMeasures
    caps: Limits
    at_limit: bool
    waits_s: Mapping[str, float]
    each_s: float | None


def measured_disk(
    resource: Resource,
    rows: Rows,
    flows: Sequence[Flow],
    seen: Sequence[ScenarioRun],
    shares: Shares,
    beside: DiskContext,
) -> DiskPart | str:
    """The disk as a part of the model; or a sentence that says why the disk cannot be modelled.

    Args:
        resource: a disk with a role.
        rows: the judged steps.
        flows: all scenarios of the case.
        seen: the scenarios in the model.
        shares: shares of each scenario in the work of the tiers.
        beside: facts about the disk besides its own measurements.
    """
    result = measure_disk(resource, rows)
    if result.io is None:
        return "its I/O was not measured"
    waits = shares_waited(resource, result, tuple(flows), [one.flow for one in seen])
    caps, at_limit = _caps(resource, result, max(waits.values(), default=0.0), beside.kind)
    reading = at_least(result.reads_ratio, MOSTLY_READS)
    disk = _Seen(
        resource=resource,
        found=result,
        caps=caps,
        at_limit=at_limit,
        waits_s={one.name: waits[one.name] * one.time_s for one in seen if waits[one.name] >= NOTICED},
        each_s=result.read_s if reading else write_and_flush_s(resource, result),
    )
    if disk.waits_s and not disk.each_s:
        return "operations wait for it, but its latency was not measured"
    if _is_log(disk, seen):
        return _log(disk, seen, shares, beside)
    part = _part(disk, shares)
    if not disk.waits_s and disk.at_limit:
        why = (
            "it is written in the background at full speed, so the gain of a faster disk cannot be predicted"
        )
        part = replace(part, unseen=why)
    return _without_others(part, disk, rows, shares) if beside.reads_only else part


def _caps(resource: Resource, measures: DiskMeasures, wait: float, kind: Kind | None) -> tuple[Limits, bool]:
    """(limits of a disk as declared or measured, whether the disk was at one of the limits)."""
    caps = resource.limits or Limits()
    io, size = measures.io or 0.0, measures.bytes or 0.0
    used = caps.share(io, size)
    # The rate of a mostly idle disk may be constant by chance.
    held = measures.held if measures.busy is None or measures.busy >= WAIT_SHARE.value else None
    if exceeds(used):  # the measured rate exceeds the declared limit
        caps = Limits(iops=io)
    if kind in NO_LIMIT_KINDS:
        # consecutive writes of one session have a constant rate as well, without a regulator
        return caps, False
    if held and not abs(used - 1) <= CAP_MATCH.value:
        level = measures.responses[held].level or (io if held == "io" else size)
        caps = Limits(iops=level) if held == "io" else Limits(bytes_per_s=level)
    elif not caps.known and at_least(measures.outstanding, WAITING_IO) and measures.responses["io"].stays:
        caps = Limits(iops=io)  # a constant rate whatever the queue: the device is at its maximum
    # The disk is idle while a session processes its result: only the busy time counts for the limit.
    busy = min(1.0, measures.busy or 1.0)
    idle = busy if wait >= WAIT_SHARE.value and busy >= WAIT_SHARE.value else 1.0
    return caps, caps.share(io, size) / idle >= UTILISATION.value


def _is_log(disk: _Seen, seen: Sequence[ScenarioRun]) -> bool:
    """Whether commits share the writes of the disk, as on a log.

    A full disk with several writes per commit is not a log in this sense.
    """
    resource, result = disk.resource, disk.found
    if not disk.waits_s or not resource.commit_path or at_least(result.reads_ratio, MOSTLY_READS):
        return False
    commits = sum(one.per_s * _commits(one) for one in seen)
    if not commits or not _committers(disk, seen):
        return False
    by_bytes = disk.at_limit and result.binding == "bytes"
    return not (disk.at_limit and (by_bytes or (result.io or 0.0) / commits >= OWN_WRITES))


def _committers(disk: _Seen, seen: Sequence[ScenarioRun]) -> list[ScenarioRun]:
    """The scenarios that commit and wait for the disk."""
    return [one for one in seen if disk.waits_s.get(one.name) and _commits(one)]


def _commits(run: ScenarioRun) -> float:
    """Commits per operation."""
    flow = run.flow
    if flow.commits is None or not flow.finished:
        return 0.0
    return min(1.0, flow.commits.count / flow.finished) if flow.load.use != "full-crawl" else 1.0


def _log(disk: _Seen, seen: Sequence[ScenarioRun], shares: Shares, beside: DiskContext) -> DiskPart:
    """The log as a part of the model, with a flush time as reported or derived from the commit waits.

    If neither is known, a flush takes the time of its counted writes, or of one write.
    """
    there, flushes = _committers(disk, seen), beside.flushes
    commits = {one.name: _commits(one) for one in there}
    result, write_bytes = _part(disk, shares), disk.found.size_bytes or 0.0
    log = replace(
        result,
        waits={},
        commits=commits,
        writes_per_flush=1.0,
        write_bytes=write_bytes,
        small=write_bytes < CHUNK_BYTES,
    )
    waiting = _sessions(there, commits, disk.waits_s)
    if flushes is not None and flushes.each_s:
        flush_s, occupied = flushes.each_s, min(1.0, flushes.per_s * flushes.each_s)
    elif disk.found.sessions is not None or disk.found.log_waits is not None:
        flush_s = flush_of(waiting)
        occupied = waiting.occupied_ratio(flush_s)
    else:
        counted = (disk.found.io or 0.0) / flushes.per_s if flushes else 1.0
        return replace(log, waited_s={}, writes_per_flush=counted)
    write_s = max(log.each_s or 0.0, disk.caps.share(1.0, write_bytes) * occupied)
    within = flush_s / write_s
    counted = (disk.found.io or 0.0) / flushes.per_s if flushes else within
    if beside.starved:
        within = min(within, (disk.found.io or 0.0) * flush_s / occupied)
        counted = min(counted, within)
    return replace(
        log,
        writes_per_flush=min(counted, within),
        writes_beside=max(0.0, counted - within),
        flush_more_s=0.0 if beside.starved else max(0.0, flush_s - counted * write_s),
    )


def _sessions(
    there: Sequence[ScenarioRun], commits: Mapping[str, float], waits_s: Mapping[str, float]
) -> Sessions:
    columns = (
        (one.users, one.per_s * commits[one.name], waits_s[one.name] / commits[one.name]) for one in there
    )
    return Sessions(*zip(*columns, strict=True))


def _without_others(part: DiskPart, disk: _Seen, rows: Rows, shares: Shares) -> DiskPart:
    """The disk with its writes as background I/O of constant rate, for loads that only read.

    Such writes flush pages that were changed before.
    """
    columns = {name: mean(disk.resource.columns[name][rows]) for name in ("reads", "read_bytes")}
    reads, read_bytes = columns["reads"], columns["read_bytes"]
    if reads is None or read_bytes is None:
        return part
    tiers = disk.resource.tiers
    return replace(
        part,
        io=shares.each(reads, tiers),
        bytes=shares.each(read_bytes, tiers),
        others_io=max(0.0, (disk.found.io or 0.0) - reads),
        others_bytes=max(0.0, (disk.found.bytes or 0.0) - read_bytes),
    )


def _part(disk: _Seen, shares: Shares) -> DiskPart:
    resource, result, role = disk.resource, disk.found, disk.resource.roles[0]
    each_s, at_once = disk.each_s, role.role == "index"
    probed_s = expected_s(role.curve, 1) if role.curve else None
    assumed = disk.at_limit and probed_s is None
    unqueued_s = probed_s if probed_s is not None else UNQUEUED_S
    alone_s = min(each_s, unqueued_s) if each_s is not None and disk.at_limit else each_s
    waited_each_s = each_s
    if at_once and alone_s is not None and result.io:
        waited_each_s = max(alone_s, disk.caps.share(1.0, (result.bytes or 0.0) / result.io))
    return DiskPart(
        key=resource.key,
        name=limit_words(resource, result),
        target=f"{role.tier}.{role.role}",
        host=role.host,
        profile=role.profile,
        stripes=role.stripes,
        attached=role.attached,
        caps=disk.caps,
        io=shares.each(result.io or 0.0, resource.tiers),
        bytes=shares.each(result.bytes or 0.0, resource.tiers),
        each_s=alone_s,
        seen_s=each_s,
        waits={name: wait / waited_each_s for name, wait in disk.waits_s.items()} if waited_each_s else {},
        waited_s=disk.waits_s,
        commits={},
        at_limit=disk.at_limit,
        assumed=assumed,
        seen=disk.caps.known and disk.caps != (resource.limits or Limits()),
        queued=not disk.caps.known and at_least(result.outstanding, WAITING_IO),
        at_once=at_once,
    )


KNOWN = 0.02
"""Relative accuracy of a measured throughput (our value; the standard error of the pairs' runs is
smaller)."""
FELT = 1 / 3
"""The unexplained time is fitted only if at least a third of its change affects throughput (our value)."""
LEAST_USED = 0.05
"""A thread or interface with a utilisation below this ratio is no limit in the model."""


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """The measured load and times of one scenario.

    Attributes:
        flow: figures of the scenario in the analysis.
        per_s: operations per second, successful or not.
        now_per_s: successful operations per second (``Case.now_per_s``).
        time_s: mean seconds per operation.
        users: users of a closed load; ``OPEN_USERS`` for a rate that was kept up; operations in flight for a
            rate that was not kept up.
        think_s: seconds between two operations of a user.
        open: whether the load is a rate that was kept up.
        offered_per_s: requested operations per second of a rate that was not kept up; otherwise infinite.
    """

    flow: Flow
    per_s: float
    now_per_s: float
    time_s: float
    users: float
    think_s: float
    open: bool
    offered_per_s: float = math.inf

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.flow.load.scenario

    @property
    def is_rate(self) -> bool:
        """Whether the load of the scenario is a rate, kept up or not, rather than a number of users."""
        return math.isfinite(self.asked_per_s)

    @property
    def asked_per_s(self) -> float:
        """The requested rate in operations per second; infinite for a number of users."""
        return self.per_s if self.open else self.offered_per_s


@dataclass(frozen=True, slots=True)
class Measured:
    """A run as parts and loads of the model.

    Attributes:
        seen: the scenarios in the model.
        parts: the measured parts of the farm.
        unmeasured: by resource name (``sql.log``), why the resource is not in the model.
        left_out: scenarios that are not in the model, one sentence each.
        loads: loads of the scenarios, with the time that no part explains.
        ends: the loads with the shortest and with the longest unexplained time that the run allows.
    """

    seen: tuple[ScenarioRun, ...]
    parts: tuple[Part, ...]
    unmeasured: Mapping[str, str]
    left_out: tuple[str, ...]
    loads: tuple[Users, ...]
    ends: tuple[tuple[Users, ...], ...] = ()

    @property
    def per_s(self) -> dict[str, float]:
        """Operations per second by scenario."""
        return {one.name: one.per_s for one in self.seen}

    @property
    def time_s(self) -> dict[str, float]:
        """The mean time of an operation by scenario."""
        return {one.name: one.time_s for one in self.seen}

    @property
    def model(self) -> Model:
        """The queueing model of the run."""
        return model_of(self.loads, self.parts)


def model_of(loads: Sequence[Users], parts: Sequence[Part]) -> Model:
    """The queueing model of these loads and parts."""
    return Model(tuple(loads), tuple(station for part in parts for station in part.stations()))


def take(case: Case, rows: Rows, rest: Sequence[Users] | None = None) -> Measured:
    """Measure the parts and loads of the model over some steps of the judged stage.

    Args:
        case: the judged run.
        rows: the steps.
        rest: loads whose unexplained times are used; None: the unexplained times are fitted.
    """
    seen = tuple(_seen(case, rows))
    shares = Shares(seen)
    unmeasured: dict[str, str] = {}
    parts = tuple(_parts(case, rows, seen, shares, unmeasured))
    result = Measured(
        seen, parts, unmeasured, tuple(_left_out(case, seen)), tuple(_with_rest(one, parts) for one in seen)
    )
    if rest is None:
        return _rested(result)
    known = {one.scenario: one.rest_s for one in rest}
    return replace(result, loads=tuple(replace(one, rest_s=known[one.scenario]) for one in result.loads))


def _rested(measured: Measured) -> Measured:
    """The run with unexplained times that make the model as fast as the run.

    A throughput is known to within ``KNOWN`` only. If all users wait for one log, the unexplained time hardly
    affects throughput, so a range of values fits the run. From this range the value nearest to the measured
    one is taken (time of an operation less its waits), or the middle if the commit waits were not measured.
    """
    result = fitted(measured.model, measured.per_s, measured.time_s).loads
    near = model_of(result, measured.parts)
    fastest, slowest = (
        fitted(near, {name: each * factor for name, each in measured.per_s.items()}, measured.time_s).loads
        for factor in (1 + KNOWN, 1 - KNOWN)
    )
    logs = [part for part in measured.parts if isinstance(part, DiskPart) and part.commits]
    loads = []
    for seen, guess, one, low, high in zip(
        measured.seen, measured.loads, result, fastest, slowest, strict=True
    ):
        rest_s = one.rest_s
        if logs and (high.rest_s - low.rest_s) * FELT > 2 * KNOWN * (seen.time_s + seen.think_s):
            complete = all(part.waited_s for part in logs)
            rest_s = min(
                high.rest_s, max(low.rest_s, guess.rest_s if complete else (low.rest_s + high.rest_s) / 2)
            )
        loads.append(replace(one, rest_s=rest_s))
    return replace(measured, loads=tuple(loads), ends=(fastest, slowest))


class Shares:
    """Divides the work of tiers among scenarios by the time that their operations spend in each tier.

    Args:
        seen: the scenarios in the model.
    """

    def __init__(self, seen: Sequence[ScenarioRun]) -> None:
        self._seen = seen

    def of(self, tiers: Sequence[str]) -> dict[str, float]:
        """Share of each scenario in the work of these tiers; if unknown, by the operations in flight."""
        there = {one.name: sum(one.flow.going_on(tier) for tier in set(tiers)) for one in self._seen}
        if not sum(there.values()):
            there = {one.name: one.flow.in_flight for one in self._seen}
        total = sum(there.values())
        return {name: one / total if total else 0.0 for name, one in there.items()}

    def each(self, amount: float, tiers: Sequence[str]) -> dict[str, float]:
        """By scenario, the part of an amount per second that one operation uses."""
        shares = self.of(tiers)
        return {one.name: amount * shares[one.name] / one.per_s for one in self._seen}


def _seen(case: Case, rows: Rows) -> Iterator[ScenarioRun]:
    window, now = case.inputs.window, case.now_per_s()
    for flow in case.flows:
        if flow.load.native or flow.service is None:
            continue
        steps = case.inputs.traffic.of(flow.load.scenario).whole().per_step(window)[rows]
        per_s = float(steps.mean()) if len(steps) else 0.0
        if per_s > 0:
            offered = mean(offered_per_s(case.inputs, flow.load.scenario)[rows])
            # Throughput is known to within ``KNOWN``, so the offered rate must stay above that range.
            offered = max(offered or math.inf, per_s * (1 + 2 * KNOWN))
            yield _scenario(flow, per_s, now.get(flow.load.scenario, 0.0), offered)


def _scenario(flow: Flow, per_s: float, now: float, offered_per_s: float) -> ScenarioRun:
    load = flow.load
    time_s = flow.service.mean_s if flow.service else 0.0  # ``_seen`` leaves out scenarios without it
    if load.users:
        # Little's law gives the time of an operation, with what the generator spends between two operations.
        round_s = load.users / per_s
        return ScenarioRun(
            flow, per_s, now, max(0.0, round_s - flow.think_s), load.users, flow.think_s, open=False
        )
    if flow.started_ratio is not None and flow.started_ratio < STARTED.value:
        users = max(1.0, per_s * time_s)
        return ScenarioRun(flow, per_s, now, time_s, users, 0.0, open=False, offered_per_s=offered_per_s)
    return ScenarioRun(flow, per_s, now, time_s, OPEN_USERS, OPEN_USERS / per_s - time_s, open=True)


def _with_rest(seen: ScenarioRun, parts: Sequence[Part]) -> Users:
    """The load with a first guess of its unexplained time; ``fitted`` finds the final value."""
    spent = 0.0
    for part in parts:
        if not isinstance(part, CoresPart):
            spent += part.waited_s.get(seen.name, 0.0)
        else:
            spent += part.cpu_s.get(seen.name, 0.0) * part.waited.get(seen.name, 1.0)
    rest_s = max(0.0, seen.time_s - spent)
    return Users(seen.name, seen.users, seen.think_s, rest_s, seen.offered_per_s)


def _left_out(case: Case, seen: Sequence[ScenarioRun]) -> Iterator[str]:
    for flow in case.flows:
        if flow.load.scenario not in {one.name for one in seen}:
            why = (
                "the farm decides its rate itself" if flow.load.native else ("its operations were not timed")
            )
            yield f"{flow.load.scenario} is not predicted: {why}"


def _parts(
    case: Case, rows: Rows, seen: tuple[ScenarioRun, ...], shares: Shares, unmeasured: dict[str, str]
) -> Iterator[Part]:
    allowed = tuple(_allowances(case, rows, shares))
    yield from allowed
    limited = {tier for part in allowed for tier in part.tiers}
    reads_only = all(_reads_only(case, flow) for flow in case.flows)
    full = [part for part in allowed if _use(part, seen) >= UTILISATION.value]
    held = dict(_changeable(case, rows))
    for resource in case.resources:
        if resource.type == "cpu":
            yield from _pool(resource, rows, shares, limited, unmeasured)
        elif resource.type == "disk" and resource.whole is None:
            target = f"{resource.roles[0].tier}.{resource.roles[0].role}"
            kind = next((one.kind for one in case.found if one.resource.key == resource.key), None)
            starved = any(set(part.tiers) & set(resource.tiers) for part in full)
            beside = DiskContext(kind, _flushes(case, resource, rows), reads_only, starved)
            there = _beside_held(case, held, resource, seen)
            result = measured_disk(resource, rows, case.flows, there, shares, beside)
            if isinstance(result, DiskPart):
                yield result
            reason = result.unseen if isinstance(result, DiskPart) else result
            if reason:
                unmeasured[target] = reason
        else:
            yield from _bound(resource, rows, shares, held.get(resource.key), seen)
    for one in case.found:
        limit = held.get(one.resource.key)
        if limit is not None and limit.size is None:
            yield from _wait(one.resource, rows, limit, seen)


def _use(part: CoresPart, seen: Sequence[ScenarioRun]) -> float:
    """The utilisation of these cores by the load."""
    return sum(one.per_s * part.cpu_s[one.name] for one in seen) / part.cores


def _reads_only(case: Case, flow: Flow) -> bool:
    """Whether a scenario writes nothing."""
    traffic = case.inputs.traffic.of(flow.load.scenario).whole()
    return flow.load.use == "sql-mix" and not traffic.without("point_read", "range_scan").count


def _flushes(case: Case, resource: Resource, rows: Rows) -> Flushes | None:
    """The flushes of the database's log on a disk; None if the database does not count them."""
    if not resource.commit_path:
        return None
    samples = case.inputs.samples
    for host in resource.hosts:
        per_s = mean(samples.steps(host, "db.fsyncs_per_s", "wal")[rows])
        lasted = mean(samples.steps(host, "db.fsync_s_per_s", "wal")[rows])
        if per_s:
            return Flushes(per_s, lasted / per_s if lasted else None)
    return None


def _allowances(case: Case, rows: Rows, shares: Shares) -> Iterator[CoresPart]:
    """CPU allowances of single tiers that are below the cores of their machine."""
    for resource in (one for one in case.resources if one.type == "allowance"):
        result, cores = measure_cpu(resource, rows), mean(resource.columns["allowed"][rows])
        if result.quota and result.busy is not None and cores:
            each = shares.each(result.busy * cores, resource.tiers)
            name = limit_words(resource, result)
            yield CoresPart(
                resource.key, name, resource.tiers, resource.hosts[0], cores, each, waited={}, allowance=True
            )


def _pool(
    resource: Resource, rows: Rows, shares: Shares, limited: set[str], unmeasured: dict[str, str]
) -> Iterator[CoresPart]:
    """A pool of cores with the CPU time of each operation.

    Other processes use a constant share of the cores.
    """
    result, cores = measure_cpu(resource, rows), resource.cores
    if result.busy is None or cores is None:
        why = "its CPU utilisation was not measured"
        unmeasured.update({f"{tier}.cpu": why for tier in resource.tiers})
        return
    used = result.busy * cores
    by_tier = {tier: result.uses[tier] * used for tier in resource.tiers if tier in result.uses}
    if not by_tier:
        by_tier = {"": used}
    # The CPU use of load generators on these cores grows with the load too, but is no part of an operation's
    # time.
    beside = min(result.uses.get(GENERATOR, 0.0) * used, max(0.0, used - sum(by_tier.values())))
    cpu_s = shares.each(beside, resource.tiers)
    free_s: dict[str, float] = {}
    for tier, amount in by_tier.items():
        for name, each in shares.each(amount, [tier] if tier else resource.tiers).items():
            cpu_s[name] = cpu_s.get(name, 0.0) + each
            free_s[name] = free_s.get(name, 0.0) + (0.0 if tier in limited else each)
    yield CoresPart(
        key=resource.key,
        name=limit_words(resource, result),
        tiers=resource.tiers,
        host=resource.hosts[0],
        cores=float(cores),
        cpu_s=cpu_s,
        waited={name: free_s.get(name, 0.0) / each if each else 1.0 for name, each in cpu_s.items()},
        others_ratio=(others_share(resource, result) or 0.0) * result.busy,
    )


def _changeable(case: Case, rows: Rows) -> Iterator[tuple[str, ChangeableLimit]]:
    """(resource key, what a setting may change) for each limiting resource with such a setting."""
    for one in case.found:
        resource = one.resource
        held = KINDS[resource.type].held(resource, measure(resource, rows), rows, case.flows)
        if held is not None:
            yield resource.key, held


def _beside_held(
    case: Case, held: Mapping[str, ChangeableLimit], disk: Resource, seen: tuple[ScenarioRun, ...]
) -> tuple[ScenarioRun, ...]:
    """The scenarios, less the time that they wait for an interface or a thread of the disk's tiers."""
    for one in case.found:
        limit = held.get(one.resource.key)
        if limit is not None and limit.size is not None and set(one.resource.tiers) & set(disk.tiers):
            waited_s = _waited_s(limit, seen)
            return tuple(replace(each, time_s=each.time_s - waited_s[each.name]) for each in seen)
    return seen


def _wait(
    resource: Resource, rows: Rows, held: ChangeableLimit, seen: Sequence[ScenarioRun]
) -> Iterator[Wait]:
    """The waits of operations for a limiting resource that has no queue in the model."""
    waited_s = _waited_s(held, seen)
    each_s = held.each_s or max(waited_s.values(), default=0.0)
    if each_s:
        waits = {name: one / each_s for name, one in waited_s.items()}
        name = limit_words(resource, measure(resource, rows))
        yield Wait(resource.key, name, held.setting, each_s, waits, held.assumes)


def _waited_s(held: ChangeableLimit, seen: Sequence[ScenarioRun]) -> dict[str, float]:
    """By scenario, seconds that an operation waits for the resource; at most the time of the operation."""
    return {one.name: min(one.time_s, held.waiting.get(one.name, 0.0) / one.per_s) for one in seen}


def _bound(
    resource: Resource, rows: Rows, shares: Shares, held: ChangeableLimit | None, seen: Sequence[ScenarioRun]
) -> Iterator[Bound]:
    """The caps of a machine, an interface or a thread, as a limit on throughput."""
    if resource.type not in {"disk", "network", "thread"}:
        return
    result = measure(resource, rows)
    if isinstance(result, CpuMeasures | ShareMeasures):
        used = result.busy if isinstance(result, CpuMeasures) else result.used
        if used is not None and used >= LEAST_USED and np.isfinite(used):
            name = limit_words(resource, result)
            # A limiting resource is fully used: the measured rate is its limit.
            demand = shares.each(used if held is None else 1.0, resource.tiers)
            one = Bound(resource.key, name, None, resource.hosts, resource.tiers, demand)
            if held is not None and held.size is not None:
                one = replace(one, target=held.setting, size=held.size, assumes=held.assumes)
                one = replace(one, waited_s=_waited_s(held, seen))
            yield one
        return
    caps = resource.limits
    if result.io is None or caps is None:
        return
    if exceeds(caps.share(result.io, result.bytes or 0.0)):  # the measured rate exceeds the declared limit
        caps = Limits()
    yield Bound(
        key=resource.key,
        name=f"the machine {resource.hosts[0]} ({resource.instance}), all its disks",
        machine=resource.whole,
        hosts=resource.hosts,
        tiers=resource.tiers,
        demand_s={},
        caps=caps,
        io=shares.each(result.io, resource.tiers),
        bytes=shares.each(result.bytes or 0.0, resource.tiers),
    )
