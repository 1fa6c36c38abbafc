"""A disk of a run as a part of the model: its limits, the operations that wait for it, its flushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.model.commit import Sessions, flush_of
from pinchpoint.analysis.model.parts import UNQUEUED_S, Caps, Disk
from pinchpoint.analysis.resources.base import DiskMeasures, Resource
from pinchpoint.analysis.resources.disk.measures import measure_disk
from pinchpoint.analysis.resources.disk.slowness import write_and_flush_s
from pinchpoint.analysis.resources.disk.waits import waited
from pinchpoint.analysis.resources.kinds import limit_words
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import (
    CAP_MATCH,
    MOSTLY_READS,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
    at_least,
)
from pinchpoint.analysis.verdict import Kind
from pinchpoint.data.curve import expected_s
from pinchpoint.data.series import mean

NOTICED = 0.002
"""Whoever waits for a disk less than that share of the time is not delayed by it."""
OWN_WRITES = 1.5
"""Writes per commit from which on commits do not share them: a log at its cap ends at this many commits."""
NO_LIMIT_KINDS = ("disk", "disk_latency", "disk_concurrency")
"""Kinds in which a disk holds operations up by the time it takes, and has room."""
CHUNK_BYTES = 64 * 2**10
"""What lies on one disk of a stripe before the next one's turn comes, as most arrays have it."""


class Running(Protocol):
    """What is to be known of a scenario (``measured.Seen``)."""

    @property
    def name(self) -> str:
        """The scenario's."""

    @property
    def flow(self) -> Flow:
        """What the analysis knows of it."""

    @property
    def per_s(self) -> float:
        """Operations per second."""

    @property
    def time_s(self) -> float:
        """Mean time of an operation."""

    @property
    def users(self) -> float:
        """Who come round."""


class Sharing(Protocol):
    """Who does how much of what a tier does (``measured.Shares``)."""

    def each(self, amount: float, tiers: Sequence[str]) -> dict[str, float]:
        """By scenario, what one operation takes of an amount per second."""


@dataclass(frozen=True, slots=True)
class Flushes:
    """A log's flushes, as the database counts and times them.

    Attributes:
        per_s: how many.
        each_s: how long one takes; None where they are counted only.
    """

    per_s: float
    each_s: float | None


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a disk beside its own figures.

    Attributes:
        kind: how the verdict's steps say that it limits; None where they say nothing of it.
        flushes: of it as a log; None if not counted.
        reads_only: whether no scenario changes anything, so that no operations cause its writes.
        starved: its tier waits for CPU, so that a flush lasts as the server reports it for want of CPU.
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
    caps: Caps
    at_limit: bool
    waits_s: Mapping[str, float]
    each_s: float | None


def measured_disk(
    resource: Resource,
    rows: Rows,
    flows: Sequence[Flow],
    seen: Sequence[Running],
    shares: Sharing,
    beside: Beside,
) -> Disk | str:
    """The disk as a part of the model; a sentence where it cannot be one.

    Args:
        resource: a device with a role.
        rows: what is judged.
        flows: all scenarios of the case.
        seen: those that are modelled.
        shares: who does how much of what a tier does.
        beside: what else is known of it.
    """
    found = measure_disk(resource, rows)
    if found.io is None:
        return "its I/O was not measured"
    waits = {one.name: _waited(resource, found, flows, one) for one in seen}
    caps, at_limit = _caps(resource, found, max(waits.values(), default=0.0), beside.kind)
    reading = at_least(found.reads_ratio, MOSTLY_READS)
    disk = _Seen(
        resource=resource,
        found=found,
        caps=caps,
        at_limit=at_limit,
        waits_s={one.name: waits[one.name] * one.time_s for one in seen if waits[one.name] >= NOTICED},
        each_s=found.read_s if reading else write_and_flush_s(resource, found),
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


def _waited(resource: Resource, found: DiskMeasures, flows: Sequence[Flow], one: Running) -> float:
    """The share of its time that one scenario waits for a disk, whether it presses the farm or not."""
    alone = tuple(replace(flow, pressed=flow.load.scenario == one.name) for flow in flows)
    return waited(resource, found, alone)[0] or 0.0


def _caps(resource: Resource, found: DiskMeasures, wait: float, kind: Kind | None) -> tuple[Caps, bool]:
    """What it lets through, as declared unless the measurement says otherwise; whether it stood there."""
    caps = _declared(resource)
    io, size = found.io or 0.0, found.bytes or 0.0
    used = caps.share(io, size)
    # A disk that idles most of the time is flat by chance.
    held = found.held if found.busy is None or found.busy >= WAIT_SHARE.value else None
    if used > 1 + CAP_MATCH.value:  # the declaration does not hold
        caps = Caps(iops=io)
    if kind in NO_LIMIT_KINDS:
        return caps, False  # one write after the other is flat as well, without any regulator
    if held and not abs(used - 1) <= CAP_MATCH.value:
        level = found.responses[held].level or (io if held == "io" else size)
        caps = Caps(iops=level) if held == "io" else Caps(bytes_per_s=level)
    elif not caps.known and at_least(found.outstanding, WAITING_IO) and found.responses["io"].stays:
        caps = Caps(iops=io)  # a device that does no more, whatever waits
    # Who waits for it and then works on what it wrote leaves it idle meanwhile: it does all it may.
    busy = min(1.0, found.busy or 1.0)
    idle = busy if wait >= WAIT_SHARE.value and busy >= WAIT_SHARE.value else 1.0
    return caps, caps.share(io, size) / idle >= UTILISATION.value


def _declared(resource: Resource) -> Caps:
    limits = resource.limits
    return Caps(limits.iops, limits.bytes_per_s, limits.io_unit_bytes) if limits else Caps()


def _is_log(disk: _Seen, seen: Sequence[Running]) -> bool:
    """Whether commits share its writes: a log, unless each brings several of its own to a full disk."""
    resource, found = disk.resource, disk.found
    if not disk.waits_s or not resource.commit_path or at_least(found.reads_ratio, MOSTLY_READS):
        return False
    commits = sum(one.per_s * _commits(one) for one in seen)
    if not commits or not _committers(disk, seen):
        return False
    by_bytes = disk.at_limit and found.binding == "bytes"
    return not (disk.at_limit and (by_bytes or (found.io or 0.0) / commits >= OWN_WRITES))


def _committers(disk: _Seen, seen: Sequence[Running]) -> list[Running]:
    """The scenarios that commit, and wait for the disk."""
    return [one for one in seen if disk.waits_s.get(one.name) and _commits(one)]


def _commits(one: Running) -> float:
    """Commits per operation."""
    flow = one.flow
    if flow.commits is None or not flow.finished:
        return 0.0
    return min(1.0, flow.commits.count / flow.finished) if flow.load.use != "full-crawl" else 1.0


def _log(disk: _Seen, seen: Sequence[Running], shares: Sharing, beside: Beside) -> Disk:
    """A flush takes as long as the database says, or is found from how long it says that commits wait.

    Where it says nothing of that, a flush is taken to be one write.
    """
    there, flushes = _committers(disk, seen), beside.flushes
    commits = {one.name: _commits(one) for one in there}
    found, write_bytes = _part(disk, shares), disk.found.size_bytes or 0.0
    log = replace(
        found,
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
    there: Sequence[Running], commits: Mapping[str, float], waits_s: Mapping[str, float]
) -> Sessions:
    columns = (
        (one.users, one.per_s * commits[one.name], waits_s[one.name] / commits[one.name]) for one in there
    )
    users, per_s, each_s = (np.array(column, dtype=float) for column in zip(*columns, strict=True))
    return Sessions(users, per_s, each_s)


def _without_others(part: Disk, disk: _Seen, rows: Rows, shares: Sharing) -> Disk:
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


def _part(disk: _Seen, shares: Sharing) -> Disk:
    resource, found, role = disk.resource, disk.found, disk.resource.roles[0]
    each_s, at_once = disk.each_s, role.role == "index"
    probed_s = expected_s(role.curve, 1) if role.curve else None
    assumed = disk.at_limit and probed_s is None
    unqueued_s = probed_s if probed_s is not None else UNQUEUED_S
    alone_s = min(each_s, unqueued_s) if each_s is not None and disk.at_limit else each_s
    waited_each_s = each_s
    if at_once and alone_s is not None and found.io:
        waited_each_s = max(alone_s, disk.caps.share(1.0, (found.bytes or 0.0) / found.io))
    return Disk(
        key=resource.key,
        name=limit_words(resource, found),
        target=f"{role.tier}.{role.role}",
        host=role.host,
        profile=role.profile,
        stripes=role.stripes,
        attached=role.attached,
        caps=disk.caps,
        io=shares.each(found.io or 0.0, resource.tiers),
        bytes=shares.each(found.bytes or 0.0, resource.tiers),
        each_s=alone_s,
        seen_s=each_s,
        waits={name: wait / waited_each_s for name, wait in disk.waits_s.items()} if waited_each_s else {},
        waited_s=disk.waits_s,
        commits={},
        at_limit=disk.at_limit,
        assumed=assumed,
        seen=disk.caps.known and disk.caps != _declared(resource),
        queued=not disk.caps.known and at_least(found.outstanding, WAITING_IO),
        at_once=at_once,
    )
