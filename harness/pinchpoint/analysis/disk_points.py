"""Judges published means of a disk by the rules of a run, at one or several numbers of outstanding I/Os.

Used for the table of a probe, an imported table, or the figures of a report: none of them has samples. Rules
that need samples (a constant rate, a growing queue) are not applied. A mean alone shows only Little's law:
latency = outstanding ÷ rate holds for every disk and identifies no limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.resources.base import DiskMeasures, Resource
from pinchpoint.analysis.resources.disk.classify import disk_evidence, disk_kind, state_of
from pinchpoint.analysis.resources.disk.measures import nearest_limit
from pinchpoint.analysis.resources.disk.rate_response import RateResponse
from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.analysis.thresholds import CAP_MATCH, FLAT, REGULATOR_FLAT, WAITING_IO, exceeds
from pinchpoint.analysis.verdict import Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import COMMIT_ROLES, DiskRole, Limits
from pinchpoint.data.series import Floats

NO_LIMIT = Limits(None, None, None)
"""The limits of a disk without any; ``None`` instead of ``Limits`` means that the limits are unknown."""
TENFOLD = 10.0
DEVICE_QUEUE = 32
"""The rate of a device is also flat over outstanding I/Os once the device's own queue (SATA: 32) is full. So
a cap is identified only if the flat range starts at 32 outstanding I/Os or fewer and ends at ten times its
start or more (our values)."""


@dataclass(frozen=True, slots=True)
class Point:
    """The means of one measurement of one disk.

    Attributes:
        outstanding: mean number of outstanding I/Os; None: computed from rate and latency by Little's law.
        iops: I/Os per second.
        latency_s: mean time of an I/O; None if not published.
        bytes_per_s: bytes per second; None if not published.
        seconds: duration of the measurement; 1, the smallest possible one, if unknown.
        spread: variation of the rate from second to second beyond counting noise, as a share of the rate;
            None if unknown.
    """

    iops: float
    latency_s: float | None = None
    outstanding: float | None = None
    bytes_per_s: float | None = None
    seconds: float = 1.0
    spread: float | None = None

    @property
    def going_on(self) -> float | None:
        """Outstanding I/Os, as given or by Little's law."""
        if self.outstanding is not None:
            return self.outstanding
        return self.iops * self.latency_s if self.latency_s is not None else None

    @property
    def each_s(self) -> float | None:
        """Latency, as given or by Little's law."""
        if self.latency_s is not None:
            return self.latency_s
        return self.outstanding / self.iops if self.outstanding is not None and self.iops else None


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of one point.

    Attributes:
        kind: how the disk limits at this point; None if the point shows no limit.
        limit: the limit that the point was compared with, ``declared`` or ``burst``; None if unknown.
        used_ratio: I/O at the point ÷ ``limit``; None if unknown.
        exact: whether the I/O at the point equals ``limit``.
        why: the judgement in words.
    """

    point: Point
    kind: Kind | None
    limit: str | None
    used_ratio: float | None
    exact: bool
    why: str


def judge_points(
    points: Sequence[Point],
    limits: Limits | None = None,
    burst: Limits | None = None,
    role: str = "data",
    wait_ratio: float | None = 1.0,
    *,
    declared: bool = True,
) -> tuple[Judged, ...]:
    """How a disk limits at each of several points of one workload, by the rules of a run.

    Args:
        points: points with the same block size and mix of reads and writes, in any order.
        limits: the disk's limits; None if unknown, ``NO_LIMIT`` if the disk has none.
        burst: the limits while burst credits last, if any; used for a point above ``limits``.
        role: use of the disk, such as ``data``; the queue depth of a log cannot be raised.
        wait_ratio: share of the time for which the issuer of the I/Os waits for them (1 for a probe); None if
            unknown.
        declared: whether the user declared ``limits``; only then are they described as declared.

    Returns:
        One judgement per point, in order of outstanding I/Os.
    """
    order = sorted(points, key=lambda point: point.going_on or 0.0)
    return tuple(
        _judged(order, at, limits, burst, role, wait_ratio, declared=declared) for at in range(len(order))
    )


def _judged(
    points: Sequence[Point],
    at: int,
    limits: Limits | None,
    burst: Limits | None,
    role: str,
    wait_ratio: float | None,
    *,
    declared: bool,
) -> Judged:
    point = points[at]
    name, held = _in_force(point, limits, burst)
    resource = _disk(role, held)
    result = _measures(points, at, resource)
    if len(points) == 1 and limits is None:
        why = "one measurement without a known limit does not show how a disk limits"
        return Judged(point, None, None, None, exact=False, why=why)
    waits_for_each = role not in COMMIT_ROLES
    state = state_of(resource, result, wait_ratio, "", reading=waits_for_each)
    kind = disk_kind(state) if disk_evidence(result, state) or state.slow else None
    used = result.utilisation
    return Judged(
        point=point,
        kind=kind,
        limit=name if used is not None else None,
        used_ratio=used,
        exact=used is not None and abs(used - 1) <= CAP_MATCH.value,
        why=_why(kind, point, result, f"its {name}" if declared or name == "burst" else "the", held),
    )


def _in_force(point: Point, limits: Limits | None, burst: Limits | None) -> tuple[str, Limits | None]:
    """(name, limits) in force at a point: the burst limits if the point's rate exceeds ``limits``."""
    if burst is None or limits is None:
        return "declared", limits
    _, used = nearest_limit(_disk("", limits), *_columns(point))
    return ("burst", burst) if exceeds(used) else ("declared", limits)


def _disk(role: str, limits: Limits | None) -> Resource:
    named = DiskRole("", "", role, "", role, None, "kernel", limits)
    return Resource(
        key="point",
        type="disk",
        machine="",
        hosts=("",),
        tiers=("",),
        instance=role,
        roles=(named,),
        limits=limits,
        commit_path=role in COMMIT_ROLES,
    )


def _columns(point: Point) -> tuple[Floats, Floats]:
    size = np.nan if point.bytes_per_s is None else point.bytes_per_s
    return np.array([point.iops], dtype=float), np.array([size], dtype=float)


def _measures(points: Sequence[Point], at: int, resource: Resource) -> DiskMeasures:
    point = points[at]
    binding, used = nearest_limit(resource, *_columns(point))
    responses = {"io": _response(points, at, resource), "bytes": RateResponse()}
    return DiskMeasures(
        io=point.iops,
        bytes=point.bytes_per_s,
        utilisation=used,
        binding=binding,
        responses=responses,
        outstanding=point.going_on,
        busy=None,
        reads_ratio=None,
        read_s=None,
        write_s=point.each_s,
        flush_s=None,
        pressure=None,
        sessions=None,
    )


def _response(points: Sequence[Point], at: int, resource: Resource) -> RateResponse:
    """The response of the rate to more outstanding I/Os, between a point and the next (or the last two)."""
    point = points[at]
    other = at + 1 if at + 1 < len(points) else at - 1
    slope = _slope(point, points[other], resource) if 0 <= other < len(points) else None
    queued = (point.going_on or 0.0) >= WAITING_IO.value
    response = RateResponse(slope=slope, level=point.iops, queued=queued, count=point.iops * point.seconds)
    same = [one for one in points if abs(one.iops - point.iops) <= FLAT.value * point.iops]
    depth = [one.going_on for one in same if one.going_on]
    if any(one.spread is not None and one.spread > FLAT.value for one in same):
        return response  # means may agree by chance; a regulator's rate is constant in each second
    deeper = [one for one in points if depth and (one.going_on or 0.0) >= min(depth)]
    if len(deeper) > len(same):
        return response  # at a limit all deeper points agree; by chance only some do
    wide = bool(depth) and min(depth) <= DEVICE_QUEUE and max(depth) >= TENFOLD * min(depth)
    rates = [one.iops for one in same]
    spread = (max(rates) - min(rates)) / 2 / float(np.median(rates))
    return replace(response, spread=spread) if wide and spread <= REGULATOR_FLAT.value else response


def _slope(point: Point, other: Point, resource: Resource) -> float | None:
    """Relative change of the rate ÷ relative change of outstanding I/Os, up to a limit between the points."""
    here, there = point.going_on, other.going_on
    if not here or not there or not point.iops or not other.iops or here == there:
        return None
    could = there / here
    _, used = nearest_limit(resource, *_columns(point))
    if could > 1 and used and 1 / used > 1 + CAP_MATCH.value:
        could = min(could, 1 / used)
    return math.log(other.iops / point.iops) / math.log(could)


def _why(kind: Kind | None, point: Point, measures: DiskMeasures, which: str, limits: Limits | None) -> str:
    rate = units.iops(point.iops)
    each = units.seconds(point.each_s)
    outstanding = "" if point.going_on is None else f" with {units.count(point.going_on)} outstanding"
    text = f"{rate} at {each}{outstanding}"
    if measures.utilisation is not None and limits is not None:
        caps = limits_words(limits.iops, limits.bytes_per_s)
        text += f": {units.percent(measures.utilisation)} of {which} limit ({caps})"
    return text if kind else f"{text}; this point shows no limit"
