"""What keeps an answer at low confidence though its evidence holds: what else would look the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.behind import MOST, at_work, calls
from pinchpoint.analysis.blame import YIELDING
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import DiskMeasures, Resource, ShareMeasures, Suspicion, busy
from pinchpoint.analysis.resources.cpu import measure_cpu, not_shared_out, strangers
from pinchpoint.analysis.resources.dependency import LOCKS
from pinchpoint.analysis.resources.disk.classify import ignored
from pinchpoint.analysis.resources.disk.measures import measure_disk
from pinchpoint.analysis.resources.disk.movement import COUNT_ERROR, Movement
from pinchpoint.analysis.resources.disk.slowness import MINOR_SHARE, write_and_flush_s
from pinchpoint.analysis.resources.kinds import suspect
from pinchpoint.analysis.seen import unseen_at
from pinchpoint.analysis.stages import Rows, Stage
from pinchpoint.analysis.stores import operations_inside
from pinchpoint.analysis.thresholds import (
    DISK_SHIFT,
    HARDLY,
    MOSTLY_READS,
    NO_LATENCY_S,
    OWN_USE,
    PRESSURE,
    REGULATOR_FLAT,
    STEADIER,
    UTILISATION,
    WAIT_SHARE,
    at_least,
)
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, mean, spread


def doubts(
    inputs: Inputs,
    first: Suspicion,
    resources: tuple[Resource, ...],
    stage: Stage,
    flows: tuple[Flow, ...],
) -> Iterator[str]:
    """Why no more than low confidence is due to what was found of one resource, in sentences."""
    if first.outrun:
        yield f"throughput did not end where it is used up: {first.outrun}"
    yield from _disk_doubts(first)
    yield from _more_readers(first, flows)
    yield from _deeper(inputs, first, resources, stage, flows)
    yield from _shared_limits(first, resources, stage)
    yield from _strangers_beside(first, resources, stage)
    yield from _locks_beside(first, resources, stage, flows)


def _strangers_beside(first: Suspicion, resources: tuple[Resource, ...], stage: Stage) -> Iterator[str]:
    """Cores full of others' work: what is slow on that machine may be slow for want of them."""
    for pool in resources:
        if pool.type != "cpu" or pool.machine != first.resource.machine or pool.key == first.resource.key:
            continue
        found = measure_cpu(pool, stage.rows)
        rest = strangers(pool, found)
        if at_least(found.busy, UTILISATION) and rest is not None:
            share = units.percent(rest)
            yield f"{share} of the CPU of {pool.hosts[0]} was used by programs that are not the farm's"


def _locks_beside(
    first: Suspicion, resources: tuple[Resource, ...], stage: Stage, flows: tuple[Flow, ...]
) -> Iterator[str]:
    """Of cores full of nobody knows whose work: that most operations wait for locks, and not for them."""
    if not not_shared_out(first.resource):
        return
    for lock in resources:
        if lock.type != "lock" or lock.machine != first.resource.machine:
            continue
        found = suspect(lock, stage.rows, flows)
        if found is not None and isinstance(found.found, ShareMeasures):
            share = units.percent(found.found.witness)
            yield (
                f"{share} of the operations under way wait for one another's locks, and by whose work these "
                "cores are busy was not measured"
            )


def _deeper(
    inputs: Inputs,
    first: Suspicion,
    resources: tuple[Resource, ...],
    stage: Stage,
    flows: tuple[Flow, ...],
) -> Iterator[str]:
    """What lies deeper than a lock, a pool or a dependency, and may be why it is waited for."""
    if first.kind not in YIELDING or not isinstance(first.found, ShareMeasures):
        return
    if first.kind == "lock" and at_least(first.found.own, WAIT_SHARE):
        share = units.percent(first.found.own)
        yield f"{share} of the sessions that wait for no lock, who hold it among them, wait for a disk"
    if first.kind == "external" and not set(first.resource.tiers) & set(LOCKS):
        yield from _waits_for_io(inputs, first.resource.hosts, resources, stage)
        for tier in _unasked_behind(inputs, first.resource.tiers):
            hosts = tuple(host.name for host in inputs.hosts if host.tier == tier)
            yield from _waits_for_io(inputs, hosts, resources, stage)
        yield from _strange_sessions(inputs, first.resource.tiers, flows)
    for disk in (one for one in resources if one.type == "disk"):
        found = measure_disk(disk, stage.rows)
        if at_least(found.utilisation, OWN_USE):
            whose = disk.whole or f"the {disk.role} disk of {disk.hosts[0]}"
            yield f"{whose} is used {units.percent(found.utilisation)} of its declared limit itself"


def _waits_for_io(
    inputs: Inputs, hosts: tuple[str, ...], resources: tuple[Resource, ...], stage: Stage
) -> Iterator[str]:
    """That somebody there waits for I/O; of hosts without such a figure, that a disk is hardly ever idle.

    Or that nobody looked for either: then the host may wait for a disk all the time.
    """
    for host in hosts:
        everyone = _of_its_machine(inputs, host)
        waits = mean(inputs.samples.first_of(everyone, "pressure.io_ratio"))
        if at_least(waits, PRESSURE):
            yield f"somebody waits for I/O on {host} {units.percent(waits)} of the time"
        if waits is not None:
            continue
        disks = [one for one in resources if one.type == "disk" and host in one.hosts and one.whole is None]
        used = [(f"the {one.role} disk", busy(one, stage.rows)) for one in disks]
        used += _without_role(inputs, everyone, {one.instance for one in disks})
        for disk, ratio in used:
            if at_least(ratio, PRESSURE):
                yield f"{disk} of {host} has I/O to do {units.percent(ratio)} of the time"
        if all(ratio is None for _, ratio in used) and not _tells_who_is_at_work(inputs, host):
            yield f"whether anybody waits for a disk on {host} was not measured"


def _of_its_machine(inputs: Inputs, host: str) -> list[str]:
    """A host, and those that are the same machine and read the same counters."""
    machines = [one.machine for one in inputs.hosts if one.name == host]
    return [host, *(one.name for machine in machines for one in inputs.on_machine(machine))]


def _without_role(inputs: Inputs, hosts: list[str], known: set[str]) -> list[tuple[str, float | None]]:
    """Disks that were watched all the same, and how much of the time they had I/O to do."""
    keys = (key for key in inputs.samples.keys("disk.busy_ratio") if key.host in hosts)
    return [(f"disk {key.instance}", inputs.samples.mean(*key)) for key in keys if key.instance not in known]


def _tells_who_is_at_work(inputs: Inputs, host: str) -> bool:
    """Whether a store there says itself how much it has to do: what waits for its disks is in that."""
    busy_thread = inputs.samples.steps(host, "db.main_thread.busy_ratio")
    return bool(np.isfinite([busy_thread, operations_inside(inputs, host)]).any())


def _behind(inputs: Inputs, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """The tiers that these may wait for themselves."""
    deeper = dict.fromkeys(host.tier for host in inputs.hosts)
    return tuple(one for one in deeper if any(calls(inputs, tier, one) for tier in tiers))


def _unasked_behind(inputs: Inputs, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """Those of them in which nobody asked who is at work."""
    return tuple(one for one in _behind(inputs, tiers) if not np.isfinite(at_work(inputs, one)).any())


def unseen_behind(inputs: Inputs, first: Suspicion) -> tuple[str, ...]:
    """What was not seen at all of the tiers of a suspect, and of those they may wait for.

    Where a deeper tier's server told of its sessions, it is known whether anybody waits for it.
    """
    own = first.resource.tiers
    return tuple(unseen_at(inputs, (*own, *_unasked_behind(inputs, own))))


def _strange_sessions(inputs: Inputs, tiers: tuple[str, ...], flows: tuple[Flow, ...]) -> Iterator[str]:
    """Sessions at work in a deeper tier that are none of a scenario's, nor can all be of these tiers."""
    there = sum(flow.going_on(tier) for flow in flows for tier in tiers)
    for deeper in _behind(inputs, tiers):
        own = sum(flow.going_on(deeper) for flow in flows)
        more = (mean(at_work(inputs, deeper)) or 0.0) - own
        if more > HARDLY.value * there:
            yield f"{more:.2g} sessions are at work in {deeper}, and for whom is not known"


def _disk_doubts(first: Suspicion) -> Iterator[str]:
    if first.contradicted:
        yield "the measurement contradicts the declared limit of the disk"
    if isinstance(first.found, DiskMeasures) and first.kind == "disk_cap":
        yield from (f"{what} would be as even" for what in _as_even(first, first.found))
    elif isinstance(first.found, DiskMeasures):
        yield from (f"{what} would look the same" for what in _alike(first, first.found.moves["io"]))
    if first.demoted:
        yield _unwaited(first)
    if len(first.resource.roles) > 1 and first.resource.whole is None:
        roles = ", ".join(f"{role.tier}.{role.role}" for role in first.resource.roles)
        yield f"one device serves several roles ({roles}): it cannot be said whose I/O it is"


def _alike(first: Suspicion, io: Movement) -> Iterator[str]:
    """What else than slowness, or than too few I/Os at once, would make I/O move as it does."""
    limit = "a limit of the disk"
    if first.kind in {"disk_latency", "disk_concurrency"} and io.slope is None:
        even = "the load came evenly, whatever was outstanding"
        yield f"{even if first.resource.even else 'what was outstanding did not move'}: {limit}"
    shift = first.resource.shift
    if first.kind == "disk_warm_up" and shift is not None and shift.fell_back >= DISK_SHIFT.value:
        yield f"it fell again by {units.percent(shift.fell_back)} meanwhile: latency that goes up and down"
    if first.kind == "disk_device" and io.slope is None:
        yield "what was outstanding did not move: I/Os that merely take so long"
    if first.kind in {"disk_latency", "disk_concurrency"} and io.follows and io.lumps:
        yield f"I/Os end in lumps, and nothing else moved: {limit} that lets them through so"
    counted = io.slope is None or io.follows or io.spread is not None
    if first.kind in {"disk_latency", "disk_device"} and not counted:
        yield f"too few I/Os end at a time to tell how evenly: {limit}"


def _as_even(first: Suspicion, found: DiskMeasures) -> Iterator[str]:
    """What else than a limit would hold I/O as evenly; a declared limit that is met says that it is one."""
    declared, moves = first.disk is not None and first.disk.near_cap, found.moves[found.binding]
    if not declared and not any(move.flat for move in found.moves.values()):
        yield "bytes stay whatever the size of I/Os: the device's own bandwidth"
    hidden = REGULATOR_FLAT.value * moves.count < COUNT_ERROR
    if not declared and moves.flat and not moves.any_size and hidden:
        yield "few I/Os end in a second: those of a device whose times hardly differ"
    elif not declared and moves.flat and not moves.any_size and moves.irregular:
        yield "many I/Os end in a second: those of a device, each of which takes a time of its own,"
    if not declared and moves.by_large:
        yield "only larger I/Os tell that more outstanding gets no more done: I/Os that merely take so long"
    if declared and found.held is None and not at_least(found.utilisation, UTILISATION) and not moves.queued:
        yield "it is near its declared limit without its pauses alone: I/Os that each take their time"
    taken = write_and_flush_s(first.resource, found)
    if not first.exact and not found.moves["io"].queued and not at_least(taken, NO_LATENCY_S):
        yield "one I/O at a time, each of excellent latency: just the time they take"


def _more_readers(first: Suspicion, flows: tuple[Flow, ...]) -> Iterator[str]:
    """More reads than operations, of a disk of which nobody says who waits for it."""
    found = first.found
    if not isinstance(found, DiskMeasures) or found.sessions is not None or found.log_waits is not None:
        return
    reads = (found.io or 0.0) * (found.reads_ratio or 0.0) * (found.read_s or 0.0)
    there = sum(flow.going_on(tier) for flow in flows for tier in first.resource.tiers)
    if at_least(found.reads_ratio, MOSTLY_READS) and there and reads > MOST * there:
        yield f"{reads:.2g} reads are under way for {there:.2g} operations: others read there, too, or ahead"


def _shared_limits(first: Suspicion, resources: tuple[Resource, ...], stage: Stage) -> Iterator[str]:
    """Disks that together are held as flat as only a regulator is, and neither of them alone.

    Also those of several machines: volumes of one storage system. A load that comes evenly may be spread over
    them by chance, and is together as even as it came.
    """
    if first.resource.type != "disk" or first.resource.whole is not None or first.resource.even:
        return
    own = _io(first.resource, stage.rows)
    for other in resources:
        if other.type != "disk" or other.key == first.resource.key or other.whole is not None or other.even:
            continue
        its = _io(other, stage.rows)
        part, whole = mean(its), mean(own + its)
        alone = [one for one in (spread(own), spread(its)) if one is not None]
        flat = spread(own + its)
        if not part or not whole or part < MINOR_SHARE * whole or flat is None or len(alone) < 2:
            continue
        if flat <= REGULATOR_FLAT.value and min(alone) >= STEADIER.value * flat:
            yield (
                f"together with the {other.role} disk of {other.hosts[0]} it is held at "
                f"{units.per_second(whole)}, and neither alone is: they may share a limit"
            )


def _io(disk: Resource, rows: Rows) -> Floats:
    return np.asarray((disk.columns["reads"] + disk.columns["writes"])[rows])


def _unwaited(first: Suspicion) -> str:
    """Why a disk is no more than a candidate though it is full."""
    if first.disk is not None and isinstance(first.found, DiskMeasures) and ignored(first.found, first.disk):
        return "hardly anybody waits for it, as its server says"
    return "writes to data files are mostly asynchronous: nothing was seen to wait for them"
