"""A disk as a kind of resource: a device, all disks of a machine together, or what a database counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.analysis.behind import MOST
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import DiskMeasures, Resource, ResourceKind, Suspicion, busy
from pinchpoint.analysis.resources.disk.classify import disk_state, ignored, judge_disk
from pinchpoint.analysis.resources.disk.devices import find_disks
from pinchpoint.analysis.resources.disk.facts import (
    disk_facts,
    disk_witnesses,
    held_words,
    share_words,
    shift_words,
    standing,
)
from pinchpoint.analysis.resources.disk.machines import find_machine_disks
from pinchpoint.analysis.resources.disk.measures import kind_unknown, measure_disk
from pinchpoint.analysis.resources.disk.movement import COUNT_ERROR
from pinchpoint.analysis.resources.disk.slowness import write_and_flush_s
from pinchpoint.analysis.resources.disk.waits import most_waited
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import (
    MOSTLY_READS,
    NO_LATENCY_S,
    REGULATOR_FLAT,
    UTILISATION,
    WAIT_SHARE,
    at_least,
)
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs

HALF = 0.5


class Disk(ResourceKind[DiskMeasures]):
    """How a disk limits is found out by ``classify``."""

    kind = "disk_cap"
    waiting = ("what is outstanding", "disk.outstanding", lambda value: f"{units.count(value)} I/Os")

    def discover(
        self, inputs: Inputs, flows: tuple[Flow, ...], disks: tuple[Resource, ...]
    ) -> Iterator[Resource]:
        """Those with a role, and all of each machine together whose caps are known."""
        own = [replace(disk, even=_evenly_asked(disk, flows)) for disk in find_disks(inputs)]
        yield from own
        yield from find_machine_disks(inputs, own)

    def at_ease(self, resource: Resource, rows: Rows, flows: tuple[Flow, ...]) -> bool:
        """It kept its level, has nothing to do half of the time, and nobody waits for it that long."""
        used = busy(resource, rows)
        often_idle = used is not None and used < WAIT_SHARE.value and resource.shift is None
        return often_idle and most_waited(resource, rows, flows) < WAIT_SHARE.value

    def measure(self, resource: Resource, rows: Rows) -> DiskMeasures:
        """Rates and shares over time, latencies over operations."""
        return measure_disk(resource, rows)

    def judge(self, resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]) -> Suspicion | None:
        """With the answers to what evidence and the kind of limit rest on."""
        return judge_disk(resource, found, flows)

    def innocent(self, resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]) -> Suspicion:
        """Likewise."""
        return replace(super().innocent(resource, found, flows), disk=disk_state(resource, found, flows))

    def facts(self, one: Suspicion, found: DiskMeasures) -> Iterator[Fact]:
        """What shows that it limits, and who waits for it."""
        return disk_facts(one, found)

    def witnesses(self, one: Suspicion, found: DiskMeasures) -> Iterator[Fact]:
        """Who waits for it."""
        return disk_witnesses(one, found)

    def doubts(
        self, one: Suspicion, found: DiskMeasures, rows: Rows, flows: tuple[Flow, ...]
    ) -> Iterator[str]:
        """What else would look the same."""
        return _doubts(one, found, rows, flows)

    def standing(self, resource: Resource, found: DiskMeasures) -> Fact:
        """How much it did, and how long each took."""
        return standing(resource, found)

    def owner(self, resource: Resource, found: DiskMeasures) -> tuple[str | None, str | None]:
        """Those of its first role."""
        if resource.roles:
            return resource.roles[0].tier, resource.roles[0].host
        return super().owner(resource, found)

    def name(self, resource: Resource, found: DiskMeasures) -> str:
        """``the log disk of the sql tier (sql1, sdb)``."""
        tier, host = self.owner(resource, found)
        if resource.whole:
            return f"the limit of the machine {host} for all its disks together ({resource.instance})"
        return f"the {resource.role} disk of the {tier} tier ({host}, {resource.instance})"

    def proof(self, one: Suspicion, found: DiskMeasures) -> str:
        """What shows how it limits."""
        whole = one.resource.whole is not None
        others = [] if whole else [f"{role.tier} {role.role}" for role in one.resource.roles[1:]]
        also = f" (the device also serves {listed(others)})" if others else ""
        way = "read" if (found.reads_ratio or 0.0) > HALF else "write"
        each = units.seconds(found.read_s if way == "read" else write_and_flush_s(one.resource, found))
        state = one.disk
        waits = f"{units.percent(state.wait_ratio)} of the time of {state.waiting}" if state else ""
        cap = held_words(one.resource, found)
        if state is not None and state.near_cap:
            limits = "declared limit" if one.resource.baseline is None else "burst's limit"
            limits = "limit" if whole else limits
            cap = share_words(found, f"its {limits}")
        rate = units.per_second(found.io)
        proofs = {
            "disk": f"{cap if state is not None and state.near_cap else f'a {way} takes {each}'}, {waits}",
            "disk_cap": cap,
            "disk_burst_exhausted": f"its {shift_words(one.resource)}: burst credits ran out",
            "disk_warm_up": f"its {shift_words(one.resource)}: the disk was still warming up",
            "disk_device": f"it does {rate}, {each} a {way}{_no_more(found)}",
            "disk_concurrency": f"reads take {waits}: too few are issued at the same time"
            "; the disk could do more",
            "disk_latency": f"each {way} takes {each}, {waits}; the disk is below its IOPS and "
            "bandwidth limits",
        }
        return proofs[one.kind] + also

    def relief(self, resource: Resource) -> str:
        """A faster one."""
        return "use a larger machine" if resource.whole else "put it on a faster disk"


def _evenly_asked(disk: Resource, flows: tuple[Flow, ...]) -> bool:
    """Whether all that go to a disk's tiers come in an even schedule."""
    there = [flow for flow in flows if any(flow.share(tier) for tier in disk.tiers)]
    return bool(there) and all(flow.even for flow in there)


def _no_more(found: DiskMeasures) -> str:
    """That more outstanding I/O gets no more done, where that was seen."""
    if found.moves["io"].stays or found.outstanding is None:
        return ", whatever the queue depth"
    return f" with {units.count(found.outstanding)} outstanding; the rate varies as a device's does"


def _doubts(first: Suspicion, found: DiskMeasures, rows: Rows, flows: tuple[Flow, ...]) -> Iterator[str]:
    """Why no more than low confidence is due, in sentences."""
    if first.kind == "disk":
        yield f"how it limits is not known: {kind_unknown(first.resource, rows).why}"
    if first.contradicted:
        yield "the measurement contradicts the declared limit of the disk"
    if first.demoted:
        yield _unwaited(first, found)
    yield from _more_readers(first, found, flows)
    yield from _alike(first, found)
    if len(first.resource.roles) > 1 and first.resource.whole is None:
        roles = ", ".join(f"{role.tier}.{role.role}" for role in first.resource.roles)
        yield f"one device serves several roles ({roles}): whose I/O it is is not known"


def _unwaited(first: Suspicion, found: DiskMeasures) -> str:
    """Why a disk is no more than a candidate though it is full."""
    if first.disk is not None and ignored(found, first.disk):
        return "its server reports almost no waits for it"
    return "writes to data files are mostly asynchronous: no work was seen to wait for them"


def _alike(first: Suspicion, found: DiskMeasures) -> Iterator[str]:
    """What else would make a disk's I/O look as it does: the disk is known, how it limits is not."""
    io = found.moves["io"]
    if first.kind in {"disk_latency", "disk_concurrency", "disk_device"} and io.slope is None:
        yield "the queue depth did not change: a limit of the disk would look the same"
    if first.kind != "disk_cap":
        return
    held, declared = found.moves[found.binding], first.disk is not None and first.disk.near_cap
    few = REGULATOR_FLAT.value * held.count < COUNT_ERROR
    if not declared and held.flat and not held.any_size and (few or held.irregular):
        yield "a device can be as steady at few I/Os a second, or at many slow ones"
    if not declared and held.by_large:
        yield "only larger I/Os, slower on any disk, show that a deeper queue does not raise the rate"
    if declared and found.held is None and not at_least(found.utilisation, UTILISATION) and not held.queued:
        yield "it is near its declared limit only without its pauses: slow I/Os would look the same"
    taken = write_and_flush_s(first.resource, found)
    if not first.exact and not io.queued and not at_least(taken, NO_LATENCY_S):
        yield "one I/O at a time, each with excellent latency: their duration alone would look the same"


def _more_readers(first: Suspicion, found: DiskMeasures, flows: tuple[Flow, ...]) -> Iterator[str]:
    """More reads than operations, of a disk of which nobody says who waits for it."""
    if found.sessions is not None or found.log_waits is not None:
        return
    reads = (found.io or 0.0) * (found.reads_ratio or 0.0) * (found.read_s or 0.0)
    there = sum(flow.going_on(tier) for flow in flows for tier in first.resource.tiers)
    if at_least(found.reads_ratio, MOSTLY_READS) and there and reads > MOST * there:
        yield f"{reads:.2g} reads are in flight for {there:.2g} operations: other reads, or read-ahead"
