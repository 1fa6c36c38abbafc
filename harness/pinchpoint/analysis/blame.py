"""Step 6: of several suspects the cause, and in what is shared the tier that uses most of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.measures import CpuMeasures, Measures, busy, measure_disk, untold
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.series import mean
from pinchpoint.analysis.signature import Suspicion, suspect
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MOSTLY_READS, OWN_USE, STRANGERS, WAIT_SHARE, at_least
from pinchpoint.analysis.verdict import Kind
from pinchpoint.analysis.waits import waited

DEPTH = {"web": 1, "search": 1, "files": 1, "sql": 2, "nosql": 2}
"""How deep a tier lies on the call path. A resource that is used up pushes back upstream, so the deepest of
several is the cause. Tiers a user named are taken as the first to be called."""


MOST = 0.5


YIELDING: tuple[Kind, ...] = ("external", "lock", "pool")
"""Kinds that say that something else than the farm's CPU, memory and disks sets the pace: only where all of
those, and interfaces, have room (METHOD step 5: below 70 %)."""


def suspects(resources: Iterable[Resource], rows: Rows, flows: tuple[Flow, ...]) -> tuple[Suspicion, ...]:
    """Everything with evidence against it over those rows, the cause first."""
    resources = tuple(resources)
    found = [one for one in (suspect(resource, rows, flows) for resource in resources) if one is not None]
    found = [one for one in found if one.kind != "memory" or _felt(one, resources, rows, flows)]
    found = [one for one in found if not _throttled(one, found)]
    firm = [one for one in found if one.kind not in YIELDING]
    if any(not one.demoted for one in firm) or _crowded(resources, rows):
        found = firm
    return tuple(sorted(found, key=rank, reverse=True))


def _throttled(one: Suspicion, found: Iterable[Suspicion]) -> bool:
    """Whether what is seen of a disk is its machine's doing, which stands at the cap of all its disks."""
    if one.resource.type != "disk" or one.resource.whole is not None or one.exact:
        return False
    machines = (other for other in found if other.resource.whole is not None and other.exact)
    return any(other.resource.machine == one.resource.machine for other in machines)


def _felt(memory: Suspicion, resources: Iterable[Resource], rows: Rows, flows: tuple[Flow, ...]) -> bool:
    """Whether want of memory costs time: somebody waits for it, or for a disk that reads for want of it."""
    disks = (one for one in resources if one.type == "disk" and set(one.hosts) & set(memory.resource.hosts))
    return "E4" in memory.evidence or any(_reads_are_waited_for(disk, rows, flows) for disk in disks)


def _reads_are_waited_for(disk: Resource, rows: Rows, flows: tuple[Flow, ...]) -> bool:
    found = measure_disk(disk, rows)
    share, _ = waited(disk, found, flows)
    return at_least(found.reads_ratio, MOSTLY_READS) and at_least(share, WAIT_SHARE)


def _crowded(resources: tuple[Resource, ...], rows: Rows) -> bool:
    """Whether some of the farm's own has no room, or was read too seldom to say that it has."""
    return _own_use(resources, rows) >= OWN_USE.value or bool(untold(resources, rows))


def _own_use(resources: Iterable[Resource], rows: Rows) -> float:
    """The most that any tier uses of the CPU it may use, or of its interface."""
    own = [busy(one, rows) for one in resources if one.type == "allowance"]
    own += [mean(one.columns["used"][rows]) for one in resources if one.type == "network"]
    return max((used for used in own if used is not None), default=0.0)


class Rank(NamedTuple):
    """What decides which of two suspects is the cause: the first field that differs, the larger first.

    What waits for nothing comes last; want of memory before the disk that reads for it. Then more and more
    exact evidence first, then depth. Waiting for a disk that has room left (``disk_latency``) comes after
    what is used up.
    """

    waited_for: bool
    memory: bool
    kinds: int
    used_up: bool
    exact: bool
    depth: int
    disk: bool
    key: str


def rank(one: Suspicion) -> Rank:
    """Where a suspect stands among others."""
    return Rank(
        waited_for=not one.demoted,
        memory=one.kind == "memory",
        kinds=len(one.evidence),
        used_up=one.kind not in {"disk_latency", "disk_concurrency", "disk_warm_up"},
        exact=one.exact,
        depth=max((DEPTH.get(tier, 1) for tier in one.resource.tiers), default=1),
        disk=one.resource.type == "disk",
        key=one.resource.key,
    )


def owner(resource: Resource, found: Measures) -> tuple[str | None, str | None]:
    """(tier, host) to blame: of a shared pool of cores the tier that uses most, else whose it is.

    A dependency of which no tier is part of the farm has neither.
    """
    if isinstance(found, CpuMeasures):
        for tier in found.uses:
            if tier in resource.tiers:
                return tier, resource.hosts[resource.tiers.index(tier)]
    if resource.roles:
        return resource.roles[0].tier, resource.roles[0].host
    return next(iter(resource.tiers), None), next(iter(resource.hosts), None)


def strangers(one: Suspicion) -> float | None:
    """The share of a pool's busy time that nobody who was watched used, if that is a third or more.

    None where it is less, or where no tier's own use was measured: then nothing is known of who did.
    """
    if not isinstance(one.found, CpuMeasures) or not set(one.resource.tiers) & set(one.found.uses):
        return None
    rest = 1 - sum(one.found.uses.values())
    return rest if rest >= STRANGERS.value else None


def unwatched(one: Suspicion) -> tuple[str, ...]:
    """The tiers on a pool of cores whose own use of it was not measured."""
    uses = one.found.uses if isinstance(one.found, CpuMeasures) else {}
    return tuple(tier for tier in one.resource.tiers if tier not in uses)


def used_by_generator(one: Suspicion) -> bool:
    """Whether the load generator uses more than half of a pool of cores."""
    if not isinstance(one.found, CpuMeasures):
        return False
    return one.found.uses.get("generator", 0.0) > MOST
