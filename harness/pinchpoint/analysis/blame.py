"""Step 6: of several suspects the cause, and in what is shared the tier that uses most of it."""

from __future__ import annotations

from collections.abc import Iterable

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.measures import CpuMeasures, DiskMeasures, Measures
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.signature import Suspicion, suspect
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import STRANGERS

DEPTH = {"web": 1, "search": 1, "files": 1, "sql": 2, "nosql": 2}
"""How deep a tier lies on the call path. A resource that is used up pushes back upstream, so the deepest of
several is the cause. Tiers a user named are taken as the first to be called."""


MOST = 0.5


def suspects(resources: Iterable[Resource], rows: Rows, flows: tuple[Flow, ...]) -> tuple[Suspicion, ...]:
    """Everything with evidence against it over those rows, the cause first."""
    found = (suspect(resource, rows, flows) for resource in resources)
    return tuple(sorted((one for one in found if one is not None), key=_rank, reverse=True))


def _rank(one: Suspicion) -> tuple[bool, int, bool, bool, int, bool, str]:
    """Comparable: what waits for nothing comes last, more and more exact evidence first, then depth.

    Waiting for a disk that has room left (``disk_latency``) comes after what is used up.
    """
    full = one.kind not in {"disk_latency", "disk_concurrency", "disk_warm_up"}
    depth = max((DEPTH.get(tier, 1) for tier in one.resource.tiers), default=1)
    is_disk = one.resource.type == "disk"
    return (not one.demoted, len(one.evidence), full, one.exact, depth, is_disk, one.resource.key)


def owner(resource: Resource, found: Measures) -> tuple[str, str]:
    """(tier, host) to blame: of a shared pool of cores the tier that uses most, else whose it is."""
    if isinstance(found, CpuMeasures):
        for tier in found.uses:
            if tier in resource.tiers:
                return tier, resource.hosts[resource.tiers.index(tier)]
    if resource.roles:
        return resource.roles[0].tier, resource.roles[0].host
    return resource.tiers[0], resource.hosts[0]


def strangers(one: Suspicion) -> float | None:
    """The share of a pool's busy time that neither the farm nor the load generator used, if that is a third.

    None where it is less, or where not every tier's own use was measured.
    """
    if isinstance(one.found, DiskMeasures) or not set(one.resource.tiers) <= set(one.found.uses):
        return None
    rest = 1 - sum(one.found.uses.values())
    return rest if rest >= STRANGERS.value else None


def used_by_generator(one: Suspicion) -> bool:
    """Whether the load generator uses more than half of a pool of cores."""
    if isinstance(one.found, DiskMeasures):
        return False
    return one.found.uses.get("generator", 0.0) > MOST
