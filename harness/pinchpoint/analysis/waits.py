"""How much of their time the operations of a pressed scenario spend waiting for one disk."""

from __future__ import annotations

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.measures import DiskMeasures
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.slowness import write_and_flush_s
from pinchpoint.analysis.thresholds import ONE_AT_A_TIME, UTILISATION


def waited(
    resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]
) -> tuple[float | None, str | None]:
    """(the largest share over the pressed scenarios, that scenario); None where none is pressed.

    The share of its time that a scenario spends at the disk's tier, times the share of that in which it
    waits for the disk: as the database says itself, or else as the disk's own figures let it be reckoned.
    """
    shares: dict[str, float] = {}
    for flow in flows:
        if flow.pressed:
            ratios = [
                flow.share(tier) * _within(resource, found, flow, flows, tier) for tier in resource.tiers
            ]
            shares[flow.load.scenario] = min(1.0, max(ratios, default=0.0))
    if not shares:
        return None, None
    scenario = max(shares, key=shares.__getitem__)
    return shares[scenario], scenario


def _within(resource: Resource, found: DiskMeasures, flow: Flow, flows: tuple[Flow, ...], tier: str) -> float:
    going_on = sum(one.going_on(tier) for one in flows)
    if not going_on:
        return 0.0
    if found.sessions is not None or found.log_waits is not None:
        return min(1.0, (found.sessions or 0.0) / going_on + (found.log_waits or 0.0))
    reads = (found.io or 0.0) * (found.reads_ratio or 0.0) * (found.read_s or 0.0)
    return min(1.0, max(reads / going_on, _writes(resource, found, flow)))


def _writes(resource: Resource, found: DiskMeasures, flow: Flow) -> float:
    """The share of an operation that waits for writes to be durable.

    - Where writes come one at a time and hardly pause, whoever commits waits for one all the time: for the
      one before, which others share, and then for its own.
    - Else a commit waits for its own, and meets another one going on as often as the disk is busy.
    - An index is committed for all at once: how much of that is waiting for its disk is not known but by how
      often that is busy.
    """
    durable, busy = write_and_flush_s(resource, found), found.busy or 0.0
    if resource.role == "index":
        return busy
    if not (resource.commit_path and durable and flow.commits and flow.service):
        return 0.0
    committing = 1.0
    if flow.finished and flow.load.use != "full-crawl":
        total_s = flow.finished * flow.service.mean_s
        committing = min(1.0, flow.commits.count * flow.commits.mean_s / total_s)
    one_at_a_time = found.outstanding is not None and found.outstanding <= ONE_AT_A_TIME.value * busy
    if one_at_a_time and busy >= UTILISATION.value:
        return committing
    return committing * min(1.0, (1 + busy) * durable / flow.commits.mean_s)
