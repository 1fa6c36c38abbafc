"""Builds the model from a run: the demand of each operation on each part of the farm.

Nothing is fitted to later questions. Of an operation's time, what is waited for at disks is measured
(``analysis.waits``), CPU time is calculated from utilisation, and the unexplained rest is constant.
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
"""Whoever waits for a disk less than that share of the time is not delayed by it."""
OWN_WRITES = 1.5
"""Writes per commit from which on commits do not share them: a log at its cap ends at this many commits."""
NO_LIMIT_KINDS = ("disk", "disk_latency", "disk_concurrency")
"""Kinds in which the latency of a disk delays operations while the disk has room."""
CHUNK_BYTES = 64 * 2**10
"""The chunk size of a striped array: bytes on one disk before the next disk follows."""


@dataclass(frozen=True, slots=True)
class Flushes:
    """A log's flushes, as the database counts and times them.

    Attributes:
        per_s: how many.
        each_s: how long one takes; None if they are counted only.
    """

    per_s: float
    each_s: float | None


@dataclass(frozen=True, slots=True)
class DiskContext:
    """Facts about a disk beside its own figures.

    Attributes:
        kind: how it limits by the steps of the verdict; None if they do not name it.
        flushes: of it as a log; None if not counted.
        reads_only: whether no scenario changes anything, so that no operations cause its writes.
        starved: its tier waits for CPU, so that a flush lasts as the server reports it for lack of CPU.
    """

    kind: Kind | None = None
    flushes: Flushes | None = None
    reads_only: bool = False
    starved: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """The disk over the rows that are judged.

    Attributes:
        waits_s: by scenario, how long an operation waits for it.
        each_s: how long one of the I/Os that are waited for takes.
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
    """The disk as a part of the model; a sentence where it cannot be one.

    Args:
        resource: a device with a role.
        rows: what is judged.
        flows: all scenarios of the case.
        seen: those that are modelled.
        shares: who does how much of what a tier does.
        beside: what else is known of it.
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
    """The limits of a disk, declared or as measured, and whether it was at one of them."""
    caps = resource.limits or Limits()
    io, size = measures.io or 0.0, measures.bytes or 0.0
    used = caps.share(io, size)
    # A disk that idles most of the time is flat by chance.
    held = measures.held if measures.busy is None or measures.busy >= WAIT_SHARE.value else None
    if exceeds(used):  # the measurement contradicts the declaration
        caps = Limits(iops=io)
    if kind in NO_LIMIT_KINDS:
        return caps, False  # one write after the other is flat as well, without any regulator
    if held and not abs(used - 1) <= CAP_MATCH.value:
        level = measures.responses[held].level or (io if held == "io" else size)
        caps = Limits(iops=level) if held == "io" else Limits(bytes_per_s=level)
    elif not caps.known and at_least(measures.outstanding, WAITING_IO) and measures.responses["io"].stays:
        caps = Limits(iops=io)  # a device at its maximum, whatever the queue
    # A session that waits and then processes the result leaves the disk idle meanwhile: it is at its cap.
    busy = min(1.0, measures.busy or 1.0)
    idle = busy if wait >= WAIT_SHARE.value and busy >= WAIT_SHARE.value else 1.0
    return caps, caps.share(io, size) / idle >= UTILISATION.value


def _is_log(disk: _Seen, seen: Sequence[ScenarioRun]) -> bool:
    """Whether commits share its writes: a log's do, unless each has several writes and the disk is full."""
    resource, result = disk.resource, disk.found
    if not disk.waits_s or not resource.commit_path or at_least(result.reads_ratio, MOSTLY_READS):
        return False
    commits = sum(one.per_s * _commits(one) for one in seen)
    if not commits or not _committers(disk, seen):
        return False
    by_bytes = disk.at_limit and result.binding == "bytes"
    return not (disk.at_limit and (by_bytes or (result.io or 0.0) / commits >= OWN_WRITES))


def _committers(disk: _Seen, seen: Sequence[ScenarioRun]) -> list[ScenarioRun]:
    """The scenarios that commit, and wait for the disk."""
    return [one for one in seen if disk.waits_s.get(one.name) and _commits(one)]


def _commits(run: ScenarioRun) -> float:
    """Commits per operation."""
    flow = run.flow
    if flow.commits is None or not flow.finished:
        return 0.0
    return min(1.0, flow.commits.count / flow.finished) if flow.load.use != "full-crawl" else 1.0


def _log(disk: _Seen, seen: Sequence[ScenarioRun], shares: Shares, beside: DiskContext) -> DiskPart:
    """A flush takes as long as the database says, or is found from how long it says that commits wait.

    If that is unknown, a flush is assumed to be one write.
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
    """Where nothing is changed, writes come by themselves (pages changed before), at the same rate."""
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
"""A throughput is known within that much (our value; the standard error of the pairs' runs is less)."""
FELT = 1 / 3
"""A rest is fitted only if at least a third of it affects throughput (our value)."""
LEAST_USED = 0.05
"""A thread or an interface with a lower use by the load is no bound."""


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """One scenario as it ran.

    Attributes:
        flow: what the analysis knows of it.
        per_s: operations per second, whatever their outcome.
        now_per_s: of them those that ended well (``Case.now_per_s``).
        time_s: mean time of an operation.
        users: of a closed load; of one that could not be kept up, those in flight.
        think_s: between two operations.
        open: its rate is given, and was kept up.
        offered_per_s: of one that could not be kept up, what was requested; else infinite.
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
        """The scenario's."""
        return self.flow.load.scenario

    @property
    def is_rate(self) -> bool:
        """Whether its load is a rate, kept up or not, and not users."""
        return math.isfinite(self.asked_per_s)

    @property
    def asked_per_s(self) -> float:
        """The rate; infinite of users."""
        return self.per_s if self.open else self.offered_per_s


@dataclass(frozen=True, slots=True)
class Measured:
    """A run as parts and loads.

    Attributes:
        seen: the scenarios.
        parts: of the farm.
        unmeasured: by target, why nothing can be said of it.
        left_out: scenarios that are not modelled, in sentences.
        loads: with the rest that no part explains.
        ends: the same with the shortest and the longest rest that the run allows for.
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
        """The model for the solver."""
        return model_of(self.loads, self.parts)


def model_of(loads: Sequence[Users], parts: Sequence[Part]) -> Model:
    """Loads and parts for the solver."""
    return Model(tuple(loads), tuple(station for part in parts for station in part.stations()))


def take(case: Case, rows: Rows, rest: Sequence[Users] | None = None) -> Measured:
    """The parts of the model, measured over these rows of the judged stage.

    Args:
        case: what is judged of a run.
        rows: of it.
        rest: the loads of the whole stage whose unexplained rests are used; None: they are fitted.
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
    """The model with a rest of time that makes it as fast as the measured run.

    A throughput is known within ``KNOWN`` only. Where all wait for one log a rest makes hardly any difference
    to it: of all rests that the run allows for it is then that which is nearest to what was measured (an
    operation's time less its waits), or their middle where it was not measured how long commits wait.
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
    """Which scenario uses a tier: utilisation is divided by the share of time that each spends there.

    Args:
        seen: the scenarios.
    """

    def __init__(self, seen: Sequence[ScenarioRun]) -> None:
        self._seen = seen

    def of(self, tiers: Sequence[str]) -> dict[str, float]:
        """Each scenario's share of the work of these tiers; by operations in flight if that is unknown."""
        there = {one.name: sum(one.flow.going_on(tier) for tier in set(tiers)) for one in self._seen}
        if not sum(there.values()):
            there = {one.name: one.flow.in_flight for one in self._seen}
        total = sum(there.values())
        return {name: one / total if total else 0.0 for name, one in there.items()}

    def each(self, amount: float, tiers: Sequence[str]) -> dict[str, float]:
        """The part of an amount per second that one operation of each scenario uses."""
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
            # What is known within so much must be within what is asked for.
            offered = max(offered or math.inf, per_s * (1 + 2 * KNOWN))
            yield _scenario(flow, per_s, now.get(flow.load.scenario, 0.0), offered)


def _scenario(flow: Flow, per_s: float, now: float, offered_per_s: float) -> ScenarioRun:
    load = flow.load
    time_s = flow.service.mean_s if flow.service else 0.0  # _seen has looked that there is one
    if load.users:
        # By Little's law: what the generator itself takes between two operations is in it.
        round_s = load.users / per_s
        return ScenarioRun(
            flow, per_s, now, max(0.0, round_s - flow.think_s), load.users, flow.think_s, open=False
        )
    if flow.started_ratio is not None and flow.started_ratio < STARTED.value:
        users = max(1.0, per_s * time_s)
        return ScenarioRun(flow, per_s, now, time_s, users, 0.0, open=False, offered_per_s=offered_per_s)
    return ScenarioRun(flow, per_s, now, time_s, OPEN_USERS, OPEN_USERS / per_s - time_s, open=True)


def _with_rest(seen: ScenarioRun, parts: Sequence[Part]) -> Users:
    """A first guess of what no part explains: the solver finds the rest that fits."""
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
    """The share of these cores that the load takes."""
    return sum(one.per_s * part.cpu_s[one.name] for one in seen) / part.cores


def _reads_only(case: Case, flow: Flow) -> bool:
    """Whether nothing that a scenario does writes anything."""
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
    """CPU limits of single tiers that are below the cores of their machine."""
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
    """A pool of cores: CPU time of its tiers per operation; the use by other processes is constant."""
    result, cores = measure_cpu(resource, rows), resource.cores
    if result.busy is None or cores is None:
        why = "its CPU utilisation was not measured"
        unmeasured.update({f"{tier}.cpu": why for tier in resource.tiers})
        return
    used = result.busy * cores
    by_tier = {tier: result.uses[tier] * used for tier in resource.tiers if tier in result.uses}
    if not by_tier:
        by_tier = {"": used}
    # What load generators use beside them grows with the load, too, and is no part of an operation's time.
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
    """(key of a limiting resource, what a setting may change of it) where there is something."""
    for one in case.found:
        resource = one.resource
        held = KINDS[resource.type].held(resource, measure(resource, rows), rows, case.flows)
        if held is not None:
            yield resource.key, held


def _beside_held(
    case: Case, held: Mapping[str, ChangeableLimit], disk: Resource, seen: tuple[ScenarioRun, ...]
) -> tuple[ScenarioRun, ...]:
    """The scenarios with the time that is left beside waiting for an interface or a thread of its tiers."""
    for one in case.found:
        limit = held.get(one.resource.key)
        if limit is not None and limit.size is not None and set(one.resource.tiers) & set(disk.tiers):
            waited_s = _waited_s(limit, seen)
            return tuple(replace(each, time_s=each.time_s - waited_s[each.name]) for each in seen)
    return seen


def _wait(
    resource: Resource, rows: Rows, held: ChangeableLimit, seen: Sequence[ScenarioRun]
) -> Iterator[Wait]:
    """The waits of operations for a resource that limits and has no queue in the model."""
    waited_s = _waited_s(held, seen)
    each_s = held.each_s or max(waited_s.values(), default=0.0)
    if each_s:
        waits = {name: one / each_s for name, one in waited_s.items()}
        name = limit_words(resource, measure(resource, rows))
        yield Wait(resource.key, name, held.setting, each_s, waits, held.assumes)


def _waited_s(held: ChangeableLimit, seen: Sequence[ScenarioRun]) -> dict[str, float]:
    """The time that an operation of each scenario waits for it: at most the time of the operation."""
    return {one.name: min(one.time_s, held.waiting.get(one.name, 0.0) / one.per_s) for one in seen}


def _bound(
    resource: Resource, rows: Rows, shares: Shares, held: ChangeableLimit | None, seen: Sequence[ScenarioRun]
) -> Iterator[Bound]:
    """A machine's caps, an interface, a thread: what may end throughput before anything else does."""
    if resource.type not in {"disk", "network", "thread"}:
        return
    result = measure(resource, rows)
    if isinstance(result, CpuMeasures | ShareMeasures):
        used = result.busy if isinstance(result, CpuMeasures) else result.used
        if used is not None and used >= LEAST_USED and np.isfinite(used):
            name = limit_words(resource, result)
            # What limits is all used: its limit is what was seen.
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
    if exceeds(caps.share(result.io, result.bytes or 0.0)):  # the measurement contradicts the declaration
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
