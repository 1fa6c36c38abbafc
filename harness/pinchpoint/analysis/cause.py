"""Finds the cause among several candidates (step 6), and the tier that uses most of a shared resource."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pinchpoint.analysis.flows import Flows, in_flight
from pinchpoint.analysis.resources.base import Resource, Resources, Suspicion, mean_of
from pinchpoint.analysis.resources.cpu import other_processes
from pinchpoint.analysis.resources.disk.measures import seldom_read
from pinchpoint.analysis.resources.kinds import KINDS, LIMIT_MODES, kind_of, suspect
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.stations import DEPTH
from pinchpoint.analysis.thresholds import HARDLY_WAITED_FOR, OWN_USE, at_least


def suspects(resources: Iterable[Resource], rows: Rows, flows: Flows) -> tuple[Suspicion, ...]:
    """The suspected resources by their evidence in the steps ``rows``, the cause first."""
    resources = tuple(resources)
    result = [one for one in (suspect(resource, rows, flows) for resource in resources) if one is not None]
    disks = [one for one in resources if one.is_device]
    result = [one for one in result if kind_of(one).felt(one, one.found, disks, rows, flows)]
    result = [one for one in result if not kind_of(one).explained(one, result)]
    rest = _without_yielding(
        [one for one in result if not _of_other_processes(one, rows, flows)], resources, rows
    )
    if all(one.not_waited_for for one in rest):
        rest = _without_yielding(result, resources, rows)
    return tuple(sorted(rest, key=rank, reverse=True))


def _without_yielding(suspicions: list[Suspicion], resources: Resources, rows: Rows) -> list[Suspicion]:
    """The suspects; if one is saturated, without those that count only if no other is."""
    firm = [one for one in suspicions if not kind_of(one).yields]
    return firm if any(not one.not_waited_for for one in firm) or _crowded(resources, rows) else suspicions


def _of_other_processes(suspicion: Suspicion, rows: Rows, flows: Flows) -> bool:
    """Whether other processes saturate the cores while the servers report few sessions that need a CPU.

    In this case operations do not wait for the cores, if the scenarios that load the farm spend their time at
    these tiers.
    """
    running = mean_of(suspicion.resource, "running", rows)
    if running is None or other_processes(suspicion.resource, suspicion.found) is None:
        return False
    pressed = [flow for flow in flows if flow.pressed]
    there = in_flight(flows, *suspicion.resource.tiers)
    elsewhere = any(
        1 - sum(flow.share(tier) for tier in suspicion.resource.tiers) > HARDLY_WAITED_FOR.value
        for flow in pressed
    )
    return bool(pressed) and not elsewhere and running < HARDLY_WAITED_FOR.value * there


def _crowded(resources: Resources, rows: Rows) -> bool:
    """Whether a resource of the farm is saturated, or was read too rarely to exclude saturation."""
    own = (KINDS[one.type].own_use(one, rows) for one in resources)
    return any(at_least(used, OWN_USE) for used in own) or bool(seldom_read(resources, rows))


def of_one_tier(first: Resource, second: Resource) -> bool:
    """Whether two resources are the same resource on two hosts of a tier, such as CPUs of app3 and app4.

    Disks on two hosts are never the same, because the role of a disk names its host.
    """
    same = (first.type, first.tiers, first.roles) == (second.type, second.tiers, second.roles)
    return same and first.hosts != second.hosts


class Rank(NamedTuple):
    """The order of two suspects: the first field that differs decides, the larger value first.

    A resource without waiting sessions comes last. A memory shortage comes before the disk that reads because
    of the shortage. Then the number of kinds of evidence decides, then exactness, then the depth on the call
    path. A disk below its limits with waits (``disk_latency``) comes after saturated resources.
    """

    waited_for: bool
    memory: bool
    kinds: int
    used_up: bool
    exact: bool
    depth: int
    disk: bool
    key: str


def rank(suspicion: Suspicion) -> Rank:
    """The rank of a suspect among others."""
    return Rank(
        waited_for=not suspicion.not_waited_for,
        memory=kind_of(suspicion).explains_disks,
        kinds=len(suspicion.evidence),
        used_up=LIMIT_MODES[suspicion.kind] != "time",
        exact=suspicion.exact,
        depth=max((DEPTH.get(tier, 1) for tier in suspicion.resource.tiers), default=1),
        disk=kind_of(suspicion).delays_cpu,
        key=suspicion.resource.key,
    )
