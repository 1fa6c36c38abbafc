"""Judges a farm by the means in a report: its possible limits, and what must be measured.

The ranks are those of a run in which no resource stands out (``output``): disks slower than the limit of
their role come first, then unmeasured resources. Means alone show no queue, no second source and no constant
level, so there is at most one kind of evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pinchpoint.analysis.disk_points import Point, judge_points
from pinchpoint.analysis.resources.cpu import NOT_MEASURED_RANK
from pinchpoint.analysis.resources.disk.kind import SLOW_RANK
from pinchpoint.analysis.thresholds import (
    OUTSIDE_S,
    POOL_HELD,
    PRESSED,
    UTILISATION,
    exceeds,
    latency_limit,
)
from pinchpoint.analysis.verdict import Confidence, Kind
from pinchpoint.base import units
from pinchpoint.base.wording import SOURCES
from pinchpoint.data.inputs import Limits


@dataclass(frozen=True, slots=True)
class DiskMean:
    """A disk's published means; None for missing ones.

    Attributes:
        latency_s: mean latency of a read or of a write, whichever the report is about.
        limits: the disk's declared limits; None if unknown.
    """

    tier: str
    host: str
    role: str
    latency_s: float | None
    iops: float | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class CpuMean:
    """A host's published CPU utilisation; None if it was not measured."""

    tier: str
    host: str
    busy_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class SourceMean:
    """A crawled source's published means.

    Attributes:
        tier: the farm's tier that serves the source; None for a source outside the farm.
    """

    name: str
    rate_per_s: float
    latency_s: float
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class Suspected:
    """A resource that may limit the farm, or one source of a crawl.

    Attributes:
        of: type of the resource: ``cpu``, ``disk`` or ``dependency``.
        role: role of a disk; None for other resources.
        source: the only source that the resource limits; None if it limits the whole load.
        measured: False if the resource is suspected only because it was not measured.
        why: the reason for the suspicion, in words.
    """

    kind: Kind
    of: Literal["cpu", "disk", "dependency"]
    tier: str | None
    hosts: tuple[str, ...]
    role: str | None
    source: str | None
    measured: bool
    why: str


@dataclass(frozen=True, slots=True)
class Published:
    """The possible limits of a farm by its published means.

    Attributes:
        outcome: ``bottleneck`` only if one resource is saturated and all others were measured and are not.
        confidence: ``low`` for a bottleneck, because means are one kind of evidence; else None.
        candidates: the two resources nearest to their limits, hosts of one tier together; for a bottleneck
            only the bottleneck.
        rest: further resources that may limit the farm.
        sources: resources that limit a single source.
        slow: every disk that is slower than its role allows, or at a limit, with the disk's kind of limit.
        experiment: the measurement that would identify the bottleneck; None if not needed.
    """

    outcome: Literal["bottleneck", "not_reached", "inconclusive"]
    confidence: Confidence | None
    candidates: tuple[Suspected, ...]
    rest: tuple[Suspected, ...]
    sources: tuple[Suspected, ...]
    slow: tuple[tuple[DiskMean, Kind], ...]
    experiment: str | None


def judge_means(
    disks: Sequence[DiskMean], cpus: Sequence[CpuMean], sources: Sequence[SourceMean] = ()
) -> Published:
    """The possible limits of a farm, from its published means alone.

    Args:
        disks: the farm's published disks.
        cpus: CPUs of all working hosts in the order of the call path, including unmeasured ones.
        sources: the sources of a crawl, each with its repository latency.
    """
    judged = [(disk, _kind(disk)) for disk in disks]
    slow = tuple((disk, kind) for disk, kind in judged if kind is not None)
    ranked = [(SLOW_RANK, _slow(disk, kind)) for disk, kind in slow]
    unknown = ((disk, _unknown(disk)) for disk, kind in judged if kind is None)
    ranked += [(NOT_MEASURED_RANK, _unseen(disk, why)) for disk, why in unknown if why]
    ranked += [(NOT_MEASURED_RANK if cpu.busy_ratio is None else cpu.busy_ratio, _cpu(cpu)) for cpu in cpus]
    near = [(rank, one) for rank, one in ranked if rank >= PRESSED.value]
    near.sort(key=lambda each: -each[0])
    candidates = _together([one for _, one in near])
    used_up = [one for one in candidates if one.measured]
    if len(candidates) == 1 and used_up and near[0][0] >= min(SLOW_RANK, UTILISATION.value):
        return Published("bottleneck", "low", candidates, (), _outside(sources), slow, None)
    if not candidates and (disks or cpus):
        return Published("not_reached", None, (), (), _outside(sources), slow, None)
    named = " and ".join(_name(one) for one in candidates[:2]) or "the CPU and the disks of every tier"
    what = "Relieve one of" if candidates and len(used_up) == len(candidates) else "Measure"
    experiment = (
        f"{what} {named} over time, at several load levels: the bottleneck is the one whose utilisation "
        "rises with the load until it is saturated."
    )
    return Published(
        "inconclusive", None, candidates[:2], candidates[2:], _outside(sources), slow, experiment
    )


def _kind(disk: DiskMean) -> Kind | None:
    """How a disk limits by its own means; None if the means show no limit."""
    slow = disk.latency_s is not None and disk.latency_s > latency_limit(disk.role).value
    if disk.iops is None:
        return "disk_latency" if slow else None
    point = Point(iops=disk.iops, latency_s=disk.latency_s)
    [result] = judge_points([point], disk.limits, role=disk.role, wait_ratio=None)
    return result.kind or ("disk_latency" if slow else None)


def _slow(disk: DiskMean, kind: Kind) -> Suspected:
    limit, name = latency_limit(disk.role), f"{disk.tier}.{disk.role}"
    lines = []
    if kind == "disk_cap" and disk.limits is not None:
        lines.append(f"{name} does {units.iops(disk.iops)} of {units.iops(disk.limits.iops)}")
    if disk.latency_s is not None and (disk.latency_s > limit.value or not lines):
        taken = units.seconds(disk.latency_s)
        source = SOURCES.get(limit.source, limit.source)
        lines.append(f"an I/O of {name} takes {taken} ({limit.says}; {source})")
    why = "; ".join(lines)
    return Suspected(kind, "disk", disk.tier, (disk.host,), disk.role, None, measured=True, why=why)


def _unknown(disk: DiskMean) -> str:
    """Why the means do not show how near a disk is to its limit, in words; "" if they show it."""
    cap = disk.limits.iops if disk.limits is not None else None
    if cap and disk.iops is not None and exceeds(disk.iops / cap):
        return (
            f"{disk.tier}.{disk.role} does {units.iops(disk.iops)}, more than it is said to "
            f"({units.iops(cap)}): by burst credits, or it is another disk"
        )
    if disk.latency_s is None and not (cap and disk.iops is not None):
        return f"how long an I/O of {disk.tier}.{disk.role} takes is not published"
    return ""


def _unseen(disk: DiskMean, why: str) -> Suspected:
    return Suspected(
        "disk_latency", "disk", disk.tier, (disk.host,), disk.role, None, measured=False, why=why
    )


def _cpu(cpu: CpuMean) -> Suspected:
    why = f"CPU of {cpu.host}: {units.percent(cpu.busy_ratio)}"
    measured = cpu.busy_ratio is not None
    return Suspected("cpu", "cpu", cpu.tier, (cpu.host,), None, None, measured=measured, why=why)


def _together(suspecteds: Sequence[Suspected]) -> tuple[Suspected, ...]:
    """The candidates; hosts of one tier with the same suspicion become one candidate."""
    joined: dict[tuple[str | None, str, str | None], Suspected] = {}
    for one in suspecteds:
        key = (one.tier, one.of, one.role)
        other = joined.get(key)
        if other is None:
            joined[key] = one
        else:
            joined[key] = replace(
                other,
                hosts=(*other.hosts, *one.hosts),
                measured=other.measured and one.measured,
                why=f"{other.why}; {one.why}",
            )
    return tuple(joined.values())


def _outside(sources: Sequence[SourceMean]) -> tuple[Suspected, ...]:
    """Sources outside the farm with half or more of all requests in flight (Little's law).

    Such a source limits only itself; the other sources are judged by the rest of the farm.
    """
    going_on = {source.name: source.rate_per_s * source.latency_s for source in sources}
    total = sum(going_on.values())
    result = []
    for source in sources:
        share = going_on[source.name] / total if total else 0.0
        if source.tier is None and share >= POOL_HELD.value and source.latency_s >= OUTSIDE_S.value:
            why = (
                f"{units.percent(share)} of the requests in flight are at {source.name}, "
                f"{units.seconds(source.latency_s)} each"
            )
            result.append(
                Suspected("external", "dependency", None, (), None, source.name, measured=True, why=why)
            )
    return tuple(result)


def _name(suspected: Suspected) -> str:
    hosts = ", ".join(suspected.hosts)
    what = f"the {suspected.role} disks" if suspected.of == "disk" else "the CPU"
    shown = suspected.measured or suspected.of == "disk"  # the limit of a measured disk may be unknown
    return f"{what} of {suspected.tier} ({hosts}{'' if shown else ', not measured'})"
