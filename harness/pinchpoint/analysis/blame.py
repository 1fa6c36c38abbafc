"""Step 6: of several suspects the cause, and in what is shared the tier that uses most of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import (
    Resource,
    ShareMeasures,
    Suspicion,
    busy,
    mean_of,
)
from pinchpoint.analysis.resources.cpu import not_shared_out, strangers
from pinchpoint.analysis.resources.disk.measures import measure_disk, untold
from pinchpoint.analysis.resources.disk.waits import waited
from pinchpoint.analysis.resources.kinds import suspect
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.stations import DEPTH
from pinchpoint.analysis.thresholds import (
    HARDLY,
    MEMORY_WAIT,
    MOSTLY_READS,
    OWN_USE,
    WAIT_SHARE,
    at_least,
)
from pinchpoint.analysis.verdict import Kind
from pinchpoint.data.series import mean

MOST = 0.5
YIELDING: tuple[Kind, ...] = ("external", "lock", "pool")
"""Kinds that say that something else than the farm's CPU, memory and disks sets the pace: only where all of
those, and interfaces, have room (METHOD step 5: below 70 %)."""


def suspects(resources: Iterable[Resource], rows: Rows, flows: tuple[Flow, ...]) -> tuple[Suspicion, ...]:
    """Everything with evidence against it over those rows, the cause first."""
    resources = tuple(resources)
    found = [one for one in (suspect(resource, rows, flows) for resource in resources) if one is not None]
    found = [one for one in found if one.kind != "memory" or _felt(one, resources, rows, flows)]
    found = [one for one in found if not throttled(one, found)]
    rest = _without_yielding([one for one in found if not _of_strangers(one, rows, flows)], resources, rows)
    if all(one.demoted for one in rest):
        rest = _without_yielding(found, resources, rows)
    return tuple(sorted(rest, key=rank, reverse=True))


def _without_yielding(found: list[Suspicion], resources: tuple[Resource, ...], rows: Rows) -> list[Suspicion]:
    """Without what is named only where everything else has room, where something has none."""
    firm = [one for one in found if one.kind not in YIELDING]
    return firm if any(not one.demoted for one in firm) or _crowded(resources, rows) else found


def _of_strangers(one: Suspicion, rows: Rows, flows: tuple[Flow, ...]) -> bool:
    """Whether cores are full of others' work, and the servers there say that hardly anybody wants them.

    So they are not what operations wait for, as far as those who press the farm spend their time there.
    """
    running = mean_of(one.resource, "running", rows)
    if running is None or strangers(one.resource, one.found) is None:
        return False
    pressed = [flow for flow in flows if flow.pressed]
    there = sum(flow.going_on(tier) for flow in flows for tier in one.resource.tiers)
    elsewhere = any(
        1 - sum(flow.share(tier) for tier in one.resource.tiers) > HARDLY.value for flow in pressed
    )
    return bool(pressed) and not elsewhere and running < HARDLY.value * there


def throttled(one: Suspicion, found: Iterable[Suspicion]) -> bool:
    """Whether what is seen of a disk is its machine's doing, which stands at the cap of all its disks."""
    if one.resource.type != "disk" or one.resource.whole is not None or one.exact:
        return False
    machines = (other for other in found if other.resource.whole is not None and other.exact)
    return any(other.resource.machine == one.resource.machine for other in machines)


def _felt(memory: Suspicion, resources: Iterable[Resource], rows: Rows, flows: tuple[Flow, ...]) -> bool:
    """Whether want of memory costs time: somebody waits for it, or for a disk that reads for want of it.

    Where nobody counts who waits for memory, that little of it is left has to do.
    """
    disks = (one for one in resources if one.type == "disk" and set(one.hosts) & set(memory.resource.hosts))
    waits = memory.found.pressure if isinstance(memory.found, ShareMeasures) else None
    felt = "E4" in memory.evidence if waits is None else at_least(waits, MEMORY_WAIT)
    return felt or any(_reads_are_waited_for(disk, rows, flows) for disk in disks)


def _reads_are_waited_for(disk: Resource, rows: Rows, flows: tuple[Flow, ...]) -> bool:
    found = measure_disk(disk, rows)
    share, _ = waited(disk, found, flows)
    return at_least(found.reads_ratio, MOSTLY_READS) and at_least(share, WAIT_SHARE)


def _crowded(resources: tuple[Resource, ...], rows: Rows) -> bool:
    """Whether some of the farm's own has no room, or was read too seldom to say that it has."""
    return _own_use(resources, rows) >= OWN_USE.value or bool(untold(resources, rows))


def _own_use(resources: Iterable[Resource], rows: Rows) -> float:
    """The most that any tier uses of the CPU it may use, or of its interface.

    Where no tier's own use of a pool of cores was measured, all that is used of it is taken for theirs.
    """
    own = [busy(one, rows) for one in resources if one.type == "allowance" or not_shared_out(one)]
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
        used_up=one.kind not in {"disk", "disk_latency", "disk_concurrency", "disk_warm_up"},
        exact=one.exact,
        depth=max((DEPTH.get(tier, 1) for tier in one.resource.tiers), default=1),
        disk=one.resource.type == "disk",
        key=one.resource.key,
    )
