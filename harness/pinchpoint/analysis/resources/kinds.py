"""All kinds of resources by type. A new kind needs a module, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.resources.base import (
    LimitMode,
    Measures,
    Resource,
    ResourceKind,
    Resources,
    Suspicion,
)
from pinchpoint.analysis.resources.cpu import Cores, CpuLimit, Thread
from pinchpoint.analysis.resources.dependency import Dependency
from pinchpoint.analysis.resources.disk.kind import Disk
from pinchpoint.analysis.resources.lock import Lock
from pinchpoint.analysis.resources.memory import Memory
from pinchpoint.analysis.resources.network import Network
from pinchpoint.analysis.resources.pool import Pool
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.verdict import Fact, Kind
from pinchpoint.data.inputs import Inputs

KINDS: Mapping[str, ResourceKind[Any]] = {
    each.type: each
    for each in (
        Cores(),
        CpuLimit(),
        Thread(),
        Disk(),
        Memory(),
        Network(),
        Pool(),
        Lock(),
        Dependency(),
    )
}
"""Kinds of resources in the order in which they are checked."""
LIMIT_MODES: Mapping[Kind, LimitMode] = {
    kind: way for each in KINDS.values() for kind, way in each.limit_modes.items()
}
"""Kind of limit -> how the limit acts on throughput."""


def find_resources(inputs: Inputs, flows: Flows) -> Resources:
    """Every resource that the run measured (docs/rules.md)."""
    resources: list[Resource] = []
    for kind in KINDS.values():
        disks = tuple(one for one in resources if one.is_device)
        resources += kind.discover(inputs, flows, disks)
    return tuple(resources)


def kind_of(suspicion: Suspicion) -> ResourceKind[Any]:
    """The kind of a suspected resource."""
    return KINDS[suspicion.resource.type]


def measure(resource: Resource, rows: Rows) -> Measures:
    """Measurements of a resource over these rows of the window."""
    measures: Measures = KINDS[resource.type].measure(resource, rows)
    return measures


def suspect(resource: Resource, rows: Rows, flows: Flows) -> Suspicion | None:
    """Judge one resource over these rows; None without evidence against it."""
    kind = KINDS[resource.type]
    if kind.clearly_unsuspected(resource, rows, flows):
        return None  # the fast path of most resources, in each of 200 resamples
    return kind.judge(resource, kind.measure(resource, rows), flows)


def facts(suspicion: Suspicion) -> tuple[Fact, ...]:
    """The evidence against one resource, the strongest first."""
    result = tuple(KINDS[suspicion.resource.type].facts(suspicion, suspicion.found))
    return (*result[:1], *suspicion.grown, *result[1:])


def owner(resource: Resource, measures: Measures) -> tuple[str | None, str | None]:
    """(tier, host) to name: for a shared resource, the tier that uses most of it; None: not known."""
    return KINDS[resource.type].owner(resource, measures)


def place(resource: Resource, measures: Measures) -> dict[str, Any]:
    """The place of a resource, as in all records of verdict.json."""
    tier, host = owner(resource, measures)
    return {
        "tier": tier,
        "host": host,
        "resource": resource.type,
        "instance": resource.instance,
        "role": resource.role,
    }


def resource_name(suspicion: Suspicion) -> str:
    """Name of a resource in plain words: ``the log disk of the sql tier (sql1)``."""
    return KINDS[suspicion.resource.type].name(suspicion.resource, suspicion.found)


def limit_words(resource: Resource, measures: Measures) -> str:
    """Name of a resource in advice: ``the index disk of search``."""
    return KINDS[resource.type].short_name(resource, measures)
