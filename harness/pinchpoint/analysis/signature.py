"""Step 5: how a resource limits: the first kind of METHOD's table that matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pinchpoint.analysis.evidence import DiskState, cpu_evidence, disk_evidence, disk_state
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.measures import DiskMeasures, Measures, busy, measure
from pinchpoint.analysis.resources.base import Resource, ResourceType, ShareMeasures, mean_of
from pinchpoint.analysis.resources.kinds import SHARED
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import (
    HARDLY,
    THREAD_BUSY,
    UTILISATION,
    WAIT_SHARE,
    Threshold,
    at_least,
)
from pinchpoint.analysis.verdict import Fact, Kind
from pinchpoint.analysis.waits import most_waited


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A resource with evidence against it.

    Attributes:
        kind: how it limits.
        evidence: the kinds of evidence, ``E1`` to ``E4``.
        found: what was measured.
        disk: a disk's answers, None for anything else.
        exact: it stands at its declared cap, or at its quota.
        contradicted: the measurement contradicts the declared cap.
        demoted: nothing is known to wait for it: its writes are mostly asynchronous, or its server says so.
        grown: what several load levels say of it, ``E2`` and ``E3``.
        outrun: what they say against it, in words: throughput went on beyond what would use it up.
    """

    resource: Resource
    kind: Kind
    evidence: frozenset[str]
    found: Measures
    disk: DiskState | None = None
    exact: bool = False
    contradicted: bool = False
    demoted: bool = False
    grown: tuple[Fact, ...] = ()
    outrun: str = ""


KINDS: dict[ResourceType, Kind] = {
    "cpu": "cpu",
    "allowance": "cpu",
    "thread": "cpu_thread",
    **{type_: one.kind for type_, one in SHARED.items()},
}
"""What it is called when such a resource is used up; of a disk, how it limits is to be found out."""


class Least(NamedTuple):
    """What must be so for anything to speak against a resource: the mean of a column reaches a limit."""

    column: str
    limit: Threshold


LEAST: Mapping[ResourceType, Least] = {
    "cpu": Least("busy", UTILISATION),
    "allowance": Least("busy", UTILISATION),
    "thread": Least("busy", THREAD_BUSY),
    **{type_: Least(*one.least) for type_, one in SHARED.items() if one.least is not None},
}

AT_A_LEVEL = ("disk_cap", "disk_device")
"""Kinds that a declared limit can be held against; burst credits exceed it by nature."""

USED_UP = ("disk_cap", "disk_burst_exhausted")
"""Kinds that say something of a disk also where nobody waits: it does all it can. Being slow is a fault only
to those who wait for it."""


def suspect(resource: Resource, rows: Rows, flows: tuple[Flow, ...]) -> Suspicion | None:
    """Judge one resource over those rows; None where nothing speaks against it."""
    if at_ease(resource, rows, flows):
        return None  # the quick answer: most resources, in each of 200 resamples
    return judge(resource, rows, flows)


def at_ease(resource: Resource, rows: Rows, flows: tuple[Flow, ...]) -> bool:
    """Whether it is plain by one or two columns that nothing speaks against it; ``judge`` would say so, too.

    Of a disk: it kept its level, has nothing to do half of the time, and nobody waits for it that long.
    """
    if resource.type == "disk":
        used = busy(resource, rows)
        often_idle = used is not None and used < WAIT_SHARE.value and resource.shift is None
        return often_idle and most_waited(resource, rows, flows) < WAIT_SHARE.value
    least = LEAST.get(resource.type)
    return least is not None and not at_least(mean_of(resource, least.column, rows), least.limit)


def judge(resource: Resource, rows: Rows, flows: tuple[Flow, ...]) -> Suspicion | None:
    """All that is known of one resource over those rows; None where nothing speaks against it."""
    found = measure(resource, rows)
    if isinstance(found, DiskMeasures):
        return _disk(resource, found, flows)
    if isinstance(found, ShareMeasures):
        evidence, exact = SHARED[resource.type].evidence(resource, found, flows), False
    else:
        # A quota that is used up is met exactly: whoever merely shares full cores does not get that far.
        evidence, exact = cpu_evidence(resource, found), found.quota
    return Suspicion(resource, KINDS[resource.type], evidence, found, exact=exact) if evidence else None


def _disk(resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]) -> Suspicion | None:
    state = disk_state(resource, found, flows)
    evidence = disk_evidence(found, state)
    if not evidence:
        return None
    if resource.whole is not None and not (state.occupied and state.near_cap):
        return None  # only its own cap is a matter of the machine; all else is one disk's
    kind: Kind = "disk_cap" if resource.whole is not None else disk_kind(state)
    if state.wait_ratio is None and (kind not in USED_UP or demoted(resource, found)):
        return None
    below = found.utilisation is not None and not (state.near_cap or state.beyond_cap)
    return Suspicion(
        resource=resource,
        kind=kind,
        evidence=evidence,
        found=found,
        disk=state,
        exact=state.at_cap,
        contradicted=kind in AT_A_LEVEL and (state.beyond_cap or (kind == "disk_cap" and below)),
        demoted=(demoted(resource, found) and not state.waited_for) or ignored(found, state),
    )


def disk_kind(state: DiskState) -> Kind:
    """The first row of METHOD's table that matches."""
    # A change of level comes first: the steady part of such a run would look like any capped disk.
    if state.fell:
        return "disk_burst_exhausted"
    if state.rose:
        return "disk_warm_up"
    below = state.uneven and state.device and not state.at_cap
    if state.occupied and (state.regulated or (state.near_cap and not below)):
        return "disk_cap"
    if state.occupied and state.device:
        return "disk_device"
    return "disk_concurrency" if state.concurrency else "disk_latency"


def ignored(found: DiskMeasures, state: DiskState) -> bool:
    """Whether whoever was asked says that hardly anybody waits for it: it is others who use it."""
    asked = found.sessions is not None or found.log_waits is not None
    return asked and state.wait_ratio is not None and state.wait_ratio < HARDLY.value


def demoted(resource: Resource, found: DiskMeasures) -> bool:
    """Data-file writes are mostly asynchronous (METHOD step 6): they count only if something waits."""
    only_data = all(role.role == "data" for role in resource.roles) and not resource.commit_path
    return only_data and (found.reads_ratio is None or found.reads_ratio < 1 / 2)
