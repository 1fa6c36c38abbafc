"""Step 4: the kinds of evidence that a resource is used up.

At one load level E2 (a queue that grows with load) and E3 (the ceiling is near the observed maximum) cannot
be had: both need several levels. E1 and E4 can. Where no cap of a disk is known there is no utilisation;
then latency beyond the role's limit stands in E1's place, with no more than medium confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinchpoint.analysis.demand import DiskShift, Resource
from pinchpoint.analysis.flows import COMMIT_TIER, Flow
from pinchpoint.analysis.measures import CpuMeasures, DiskMeasures
from pinchpoint.analysis.thresholds import (
    CAP_MATCH,
    DISK_OCCUPIED,
    DISK_SHIFT,
    FLAT,
    FOLLOWS,
    LARGE_IO_BYTES,
    MOSTLY_READS,
    OVERWHELMED_LARGE_S,
    OVERWHELMED_SMALL_S,
    PRESSURE,
    REGULATOR_FLAT,
    SEEN,
    STAYS,
    THREAD_BUSY,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
    Threshold,
    latency_limit,
)

HALF = 0.5
MINOR_SHARE = 0.1
"""Reads or writes that are fewer than a tenth of a disk's I/O do not make it slow."""


@dataclass(frozen=True, slots=True)
class DiskState:
    """The yes-or-no questions about a disk that evidence and signature share.

    Attributes:
        occupied: hardly ever idle (or not known); a disk that idles is at no limit.
        at_cap: within 3 % of the declared cap, and held there.
        near_cap: at 90 % of the declared cap or more, not beyond it.
        beyond_cap: more than the declared cap was done: the declaration does not hold.
        regulated: flat as only a regulator is, with I/O waiting.
        fell: its level fell and held there, though no less was waiting: burst credits ran out.
        rose: its level rose though no more was waiting: it is still warming up.
        slow: latency above the limit of its role.
        device: slow with a queue, and more outstanding I/O brings no more I/O.
        wait_ratio: waiting for this disk ÷ the time of the operation of a pressed scenario.
        waiting: that scenario.
        concurrency: operations wait for reads that come one after the other: more at a time would be served.
    """

    occupied: bool
    at_cap: bool
    near_cap: bool
    beyond_cap: bool
    regulated: bool
    fell: bool
    rose: bool
    slow: bool
    device: bool
    wait_ratio: float | None
    waiting: str | None
    concurrency: bool

    @property
    def waited_for(self) -> bool:
        """Whether operations of a pressed scenario spend half of their time or more on this disk."""
        return at_least(self.wait_ratio, WAIT_SHARE)


def cpu_evidence(resource: Resource, found: CpuMeasures) -> frozenset[str]:
    """E1 from the busy ratio, E4 from CPU pressure."""
    if found.busy is None or found.busy < cpu_limit(resource).value:
        return frozenset()
    if resource.type != "cpu" and not _stands_out(found):
        return frozenset()
    # Pressure of the whole machine can witness for a pool; one thread at its limit makes nobody else wait.
    witness = resource.type == "cpu" and at_least(found.pressure, PRESSURE)
    return frozenset({"E1", "E4"} if witness else {"E1"})


def cpu_limit(resource: Resource) -> Threshold:
    """From which busy ratio on this resource is used up."""
    return THREAD_BUSY if resource.type == "thread" else UTILISATION


def _stands_out(found: CpuMeasures) -> bool:
    """A thread or an allowance is a limit of its own only where the cores around it are not used up."""
    return found.seen >= SEEN.value and found.pool is not None and found.pool < UTILISATION.value


def disk_state(resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]) -> DiskState:
    """Answer the questions of ``DiskState``."""
    used, flat = found.utilisation, found.spread
    occupied = found.busy is None or found.busy >= DISK_OCCUPIED.value
    beyond = used is not None and used > 1 + CAP_MATCH.value
    near = used is not None and not beyond and used >= UTILISATION.value
    at_cap = near and used is not None and used >= 1 - CAP_MATCH.value and at_most(flat, FLAT)
    slow = is_slow(resource, found)
    queue = at_least(found.outstanding, WAITING_IO)
    stays = at_most(found.follows, STAYS) or (found.follows is None and _overwhelmed(resource, found))
    wait, scenario = _wait(resource, found, flows)
    return DiskState(
        occupied=occupied,
        at_cap=at_cap,
        near_cap=near,
        beyond_cap=beyond,
        regulated=at_most(flat, REGULATOR_FLAT) and queue,
        fell=queue and _fell(resource.shift),
        rose=queue and _rose(resource.shift),
        slow=slow,
        device=slow and queue and stays,
        wait_ratio=wait,
        waiting=scenario,
        concurrency=(
            not resource.commit_path
            and at_least(found.follows, FOLLOWS)
            and at_least(found.reads_ratio, MOSTLY_READS)
            and at_least(wait, WAIT_SHARE)
        ),
    )


def disk_evidence(found: DiskMeasures, state: DiskState) -> frozenset[str]:
    """E1 from the cap, a flat top, a slow device or the wait for it; E4 from I/O pressure or that wait."""
    held = state.at_cap or state.near_cap or state.regulated or state.fell
    full = state.occupied and (held or state.device or state.rose)
    if not (full or state.concurrency or (state.slow and state.waited_for)):
        return frozenset()
    witness = at_least(found.pressure, PRESSURE) or state.waited_for
    return frozenset({"E1", "E4"} if witness else {"E1"})


def _fell(shift: DiskShift | None) -> bool:
    """The rate fell and held; what was outstanding fell by less than half as much."""
    if shift is None or shift.after > shift.before * (1 - DISK_SHIFT.value):
        return False
    return at_most(shift.spread, FLAT) and abs(_moved(shift)) < HALF * (1 - shift.after / shift.before)


def _rose(shift: DiskShift | None) -> bool:
    """The rate rose; what was outstanding rose by less than half as much."""
    if shift is None or shift.after < shift.before * (1 + DISK_SHIFT.value):
        return False
    return abs(_moved(shift)) < HALF * (shift.after / shift.before - 1)


def _moved(shift: DiskShift) -> float:
    """The relative change of what was outstanding; all of it where nothing was at first."""
    if shift.outstanding_before == 0:
        return 1.0
    return shift.outstanding_after / shift.outstanding_before - 1


def is_slow(resource: Resource, found: DiskMeasures) -> bool:
    """Whether reads or writes, if they are more than a tenth of the I/O, exceed the role's limit."""
    limit = slowness(resource)
    reads = found.reads_ratio if found.reads_ratio is not None else 0.0
    shares: Mapping[str, float] = {"read": reads, "write": 1 - reads}
    latencies = {"read": found.read_s, "write": write_and_flush_s(resource, found)}
    return any(
        shares[name] >= MINOR_SHARE and latency is not None and latency > limit.value
        for name, latency in latencies.items()
    )


def slowness(resource: Resource) -> Threshold:
    """The latency limit of a device: that of the role it is named after."""
    return latency_limit(resource.role or "")


def write_and_flush_s(resource: Resource, found: DiskMeasures) -> float | None:
    """What one durable write costs on this device.

    Where writes are known to be data I/O a flush comes on top. Where they may contain the flushes
    (METHOD section 2, "Traps") the longer of the two is taken: it can be too low, never too high.
    """
    parts = [value for value in (found.write_s, found.flush_s) if value is not None]
    if not parts:
        return None
    verified = all(role.data_io in {"kernel", "writes-flushes"} for role in resource.roles)
    return sum(parts) if verified else max(parts)


def _overwhelmed(resource: Resource, found: DiskMeasures) -> bool:
    """PAL's rule for a queue that is too long, by the mean size of an I/O.

    It stands in where the outstanding count hardly moved; not for a log, whose commits tell more.
    """
    if resource.commit_path:
        return False
    large = found.size_bytes is not None and found.size_bytes > LARGE_IO_BYTES.value
    limit = OVERWHELMED_LARGE_S if large else OVERWHELMED_SMALL_S
    slowest = max((value for value in (found.read_s, found.write_s) if value is not None), default=0.0)
    return slowest > limit.value


def _wait(
    resource: Resource, found: DiskMeasures, flows: tuple[Flow, ...]
) -> tuple[float | None, str | None]:
    """The largest share of an operation's time that is spent on this disk, over the pressed scenarios.

    A commit waits for one durable write of its log. For reads the share is (reads going on) ÷ (operations
    going on), both by Little's law.
    """
    shares: dict[str, float] = {}
    durable = write_and_flush_s(resource, found)
    for flow in flows:
        if not flow.pressed:
            continue
        ratios = [0.0]
        commits_here = resource.commit_path and COMMIT_TIER.get(flow.load.use) in resource.tiers
        if commits_here and durable and flow.commits:
            ratios.append(durable / flow.commits.mean_s)
        if set(flow.tiers) & set(resource.tiers) and found.read_s and found.io and flow.in_flight:
            ratios.append(found.io * (found.reads_ratio or 0.0) * found.read_s / flow.in_flight)
        shares[flow.load.scenario] = min(1.0, max(ratios))
    if not shares:
        return None, None
    scenario = max(shares, key=shares.__getitem__)
    return shares[scenario], scenario


def at_least(value: float | None, limit: Threshold) -> bool:
    """Whether it was measured and reaches the limit."""
    return value is not None and value >= limit.value


def at_most(value: float | None, limit: Threshold) -> bool:
    """Whether it was measured and does not exceed the limit."""
    return value is not None and value <= limit.value
