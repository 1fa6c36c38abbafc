"""Share of their time that the operations of pressed scenarios spend waiting for one disk."""

from __future__ import annotations

from collections.abc import Iterable

from pinchpoint.analysis.flows import Flow, Flows, in_flight
from pinchpoint.analysis.resources.base import DiskMeasures, Resource, mean_of
from pinchpoint.analysis.resources.disk.measures import write_and_flush_s
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MOSTLY_READS, ONE_AT_A_TIME, UTILISATION, WAIT_SHARE, at_least
from pinchpoint.data.inputs import COMMIT_ROLES


def waited(resource: Resource, measures: DiskMeasures, flows: Flows) -> tuple[float | None, str | None]:
    """(largest share of time that a pressed scenario waits for the disk, scenario); None without one."""
    shares = shares_waited(resource, measures, flows, [flow for flow in flows if flow.pressed])
    if not shares:
        return None, None
    scenario = max(shares, key=shares.__getitem__)
    return shares[scenario], scenario


def shares_waited(
    resource: Resource, measures: DiskMeasures, flows: Flows, wanted: Iterable[Flow]
) -> dict[str, float]:
    """By scenario, the share of time that its operations wait for the disk.

    The share is the scenario's share of time at the disk's tier, times the share of that time spent waiting
    for the disk. The database reports the second factor; otherwise it is calculated from the disk's own
    figures.
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
    """Whether the disk mostly reads, and operations wait for it half of their time."""
    share, _ = waited(disk, measures, flows)
    return at_least(measures.reads_ratio, MOSTLY_READS) and at_least(share, WAIT_SHARE)


def most_waited(resource: Resource, rows: Rows, flows: Flows) -> float:
    """The largest share that ``waited`` could return for these rows; 0 if no scenario is pressed.

    The result needs two columns at most, and none if pressed scenarios are hardly ever at the disk's tier.
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
    """The scenarios whose operations may wait for a disk; for a log, only scenarios that commit.

    A scenario that reaches the tier through another tier may commit there as well. If no scenario commits,
    any may wait.
    """
    if not resource.roles or any(role.role not in COMMIT_ROLES for role in resource.roles):
        return flows
    there = (flow for flow in flows if flow.going_on(tier))
    result = (
        one for one in there if one.commits or any(tier in station.downstream for station in one.stations)
    )
    return tuple(result) or flows


def _most_of_time(flows: Flows, tier: str) -> float:
    """The largest share of time that a pressed scenario spends at a tier."""
    return max((flow.share(tier) for flow in flows if flow.pressed), default=0.0)


def _of_tier(resource: Resource, log_waits: float | None, tier: str) -> float | None:
    """A store's share of log waits, for the tier of the store; None for other tiers on the same disk."""
    hosts = {key.host for key in resource.views}
    return log_waits if any(role.tier == tier and role.host in hosts for role in resource.roles) else None


def _as_reported(sessions: float | None, log_waits: float | None, going_on: float) -> float | None:
    """Share of a tier's operations that wait for the disk, as its server reports; None if not reported."""
    if not going_on:
        return 0.0
    if sessions is None and log_waits is None:
        return None
    return min(1.0, (sessions or 0.0) / going_on + (log_waits or 0.0))


def _within(resource: Resource, measures: DiskMeasures, flow: Flow, tier: str, going_on: float) -> float:
    """The share of its time at a tier of the disk that a scenario waits for the disk."""
    log_waits = _of_tier(resource, measures.log_waits, tier)
    reported = _as_reported(measures.sessions, log_waits, going_on)
    if reported is not None:
        return reported
    reads = (measures.io or 0.0) * (measures.reads_ratio or 0.0) * (measures.read_s or 0.0)
    return min(1.0, max(reads / going_on, _writes(resource, measures, flow)))


def _writes(resource: Resource, measures: DiskMeasures, flow: Flow) -> float:
    """The share of an operation's time that is spent waiting for durable writes.

    - If writes come one at a time with hardly a pause, a commit is always waiting: for the write before it,
      which others share, and then for its own write.
    - Otherwise a commit waits for its own write, and for a write in progress as often as the disk is busy.
    - One index commit serves all users. The share of it that waits for the disk is not known, so the busy
      ratio of the disk is used.

    An operation whose commit takes less than half the time of a write does not wait for the write: the server
    delays the log, or has it on another disk.
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
