"""How much of their time the operations of a pressed scenario spend waiting for one disk."""

from __future__ import annotations

from collections.abc import Iterable

from pinchpoint.analysis.flows import Flow, Flows, in_flight
from pinchpoint.analysis.resources.base import DiskMeasures, Resource, mean_of
from pinchpoint.analysis.resources.disk.measures import write_and_flush_s
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MOSTLY_READS, ONE_AT_A_TIME, UTILISATION, WAIT_SHARE, at_least
from pinchpoint.data.inputs import COMMIT_ROLES


def waited(resource: Resource, measures: DiskMeasures, flows: Flows) -> tuple[float | None, str | None]:
    """(the largest share over the pressed scenarios, that scenario); None if none is pressed."""
    shares = shares_waited(resource, measures, flows, [flow for flow in flows if flow.pressed])
    if not shares:
        return None, None
    scenario = max(shares, key=shares.__getitem__)
    return shares[scenario], scenario


def shares_waited(
    resource: Resource, measures: DiskMeasures, flows: Flows, wanted: Iterable[Flow]
) -> dict[str, float]:
    """The share of time that operations of each wanted flow wait for the disk, by scenario.

    The share of its time that a scenario spends at the disk's tier, times the share of that in which it
    waits for the disk: as the database says itself, or else as the disk's own figures let it be reckoned.
    """
    waiters = {tier: _waiters(resource, flows, tier) for tier in resource.tiers}
    shares: dict[str, float] = {}
    for flow in wanted:
        ratios = [
            flow.share(tier) * _within(resource, measures, flow, tier, in_flight(there, tier))
            for tier, there in waiters.items()
            if any(flow is one for one in there)
        ]
        shares[flow.load.scenario] = min(1.0, max(ratios, default=0.0))
    return shares


def reads_are_waited_for(disk: Resource, measures: DiskMeasures, flows: Flows) -> bool:
    """Whether it mostly reads, and operations wait for it half of their time."""
    share, _ = waited(disk, measures, flows)
    return at_least(measures.reads_ratio, MOSTLY_READS) and at_least(share, WAIT_SHARE)


def most_waited(resource: Resource, rows: Rows, flows: Flows) -> float:
    """The highest result of ``waited`` over those rows; 0 where that is None.

    It takes two columns at most, and none where those who press the farm are hardly ever at the disk's tier.
    """
    waiters = {tier: _waiters(resource, flows, tier) for tier in resource.tiers}
    shares = {tier: _most_of_time(waiters[tier], tier) for tier in resource.tiers}
    if max(shares.values(), default=0.0) < WAIT_SHARE.value:
        return max(shares.values(), default=0.0)
    sessions, log_waits = (mean_of(resource, name, rows) for name in ("sessions", "log_waits"))
    reported = {
        tier: _as_reported(sessions, _of_tier(resource, log_waits, tier), in_flight(waiters[tier], tier))
        for tier in shares
    }
    return max(
        share * (1.0 if (answer := reported[tier]) is None else answer) for tier, share in shares.items()
    )


def _waiters(resource: Resource, flows: Flows, tier: str) -> Flows:
    """The scenarios whose operations may wait for a disk: for a log only those that commit.

    What a tier waits for there on behalf of a scenario may be a commit; if none commits, any scenario may
    wait.
    """
    if not resource.roles or any(role.role not in COMMIT_ROLES for role in resource.roles):
        return flows
    there = (flow for flow in flows if flow.going_on(tier))
    result = (
        one for one in there if one.commits or any(tier in station.downstream for station in one.stations)
    )
    return tuple(result) or flows


def _most_of_time(flows: Flows, tier: str) -> float:
    """The largest share of its time that a pressed scenario spends at a tier."""
    return max((flow.share(tier) for flow in flows if flow.pressed), default=0.0)


def _of_tier(resource: Resource, log_waits: float | None, tier: str) -> float | None:
    """A store's share of waiting is about the operations of its own tier, not of others on the same disk."""
    hosts = {key.host for key in resource.views}
    return log_waits if any(role.tier == tier and role.host in hosts for role in resource.roles) else None


def _as_reported(sessions: float | None, log_waits: float | None, going_on: float) -> float | None:
    """The share of a tier's operations that waits for the disk, as its server says; None if it does not."""
    if not going_on:
        return 0.0
    if sessions is None and log_waits is None:
        return None
    return min(1.0, (sessions or 0.0) / going_on + (log_waits or 0.0))


def _within(resource: Resource, measures: DiskMeasures, flow: Flow, tier: str, going_on: float) -> float:
    """The share of its time at one of the disk's tiers that a scenario waits for the disk."""
    log_waits = _of_tier(resource, measures.log_waits, tier)
    reported = _as_reported(measures.sessions, log_waits, going_on)
    if reported is not None:
        return reported
    reads = (measures.io or 0.0) * (measures.reads_ratio or 0.0) * (measures.read_s or 0.0)
    return min(1.0, max(reads / going_on, _writes(resource, measures, flow)))


def _writes(resource: Resource, measures: DiskMeasures, flow: Flow) -> float:
    """The share of an operation that waits for writes to be durable.

    - Where writes come one at a time and hardly pause, whoever commits waits for one all the time: for the
      one before, which others share, and then for its own.
    - Otherwise a commit waits for its own write, and for one in progress as often as the disk is busy.
    - An index is committed for all at once: how much of that is waiting for its disk is not known but by how
      often that is busy.

    Who takes less than half as long as a write does not wait for it: its server puts the log off, or has it
    elsewhere.
    """
    durable, busy = write_and_flush_s(resource, measures), measures.busy or 0.0
    if resource.role == "index":
        return busy
    if not (resource.commit_path and durable and flow.commits and flow.service):
        return 0.0
    if flow.commits.p95_s < durable / 2:
        return 0.0
    committing = 1.0
    if flow.finished and flow.load.use != "full-crawl":
        total_s = flow.finished * flow.service.mean_s
        committing = min(1.0, flow.commits.count * flow.commits.mean_s / total_s)
    one_at_a_time = measures.outstanding is not None and measures.outstanding <= ONE_AT_A_TIME.value * busy
    if one_at_a_time and busy >= UTILISATION.value:
        return committing
    return committing * min(1.0, (1 + busy) * durable / flow.commits.mean_s)
