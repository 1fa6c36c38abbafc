"""A disk as a kind of resource: a device, all disks of a machine together, or what a database counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import DiskMeasures, Resource, ResourceKind, Suspicion, busy
from pinchpoint.analysis.resources.disk.classify import disk_evidence, disk_state, judge_disk
from pinchpoint.analysis.resources.disk.devices import find_disks
from pinchpoint.analysis.resources.disk.doubts import disk_doubts
from pinchpoint.analysis.resources.disk.facts import (
    disk_facts,
    disk_witnesses,
    held_words,
    share_words,
    shift_words,
    standing,
)
from pinchpoint.analysis.resources.disk.machines import find_machine_disks
from pinchpoint.analysis.resources.disk.measures import measure_disk
from pinchpoint.analysis.resources.disk.slowness import write_and_flush_s
from pinchpoint.analysis.resources.disk.waits import most_waited
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import WAIT_SHARE
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

    def evidence(self, resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]) -> frozenset[str]:
        """E1 from its cap, a flat top or the wait for it; E4 from I/O pressure or who waits."""
        return disk_evidence(found, disk_state(resource, found, flows))

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
        return disk_doubts(one, found, rows, flows)

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
            "disk_burst_exhausted": f"its {shift_words(one.resource)}, as when burst credits run out",
            "disk_warm_up": f"its {shift_words(one.resource)}: it was still warming up",
            "disk_device": f"it does {rate} at {each} a {way}{_no_more(found)}",
            "disk_concurrency": f"its reads take {waits} because too few are issued at once"
            "; it could do more",
            "disk_latency": f"a {way} there takes {each}, {waits}, though no limit of it is near",
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
        return ", and no more however many wait"
    return f" with {units.count(found.outstanding)} outstanding, as unevenly as a device does"
