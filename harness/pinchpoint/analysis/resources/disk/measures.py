"""Measures a disk over some rows, and finds whether it was read often enough to be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from pinchpoint.analysis.resources.base import DiskMeasures, NoSingleCause, Resource, Resources, busy, mean_of
from pinchpoint.analysis.resources.disk.limits import recorded_shares
from pinchpoint.analysis.resources.disk.rate_response import RateResponse, bytes_response, io_response
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import (
    LARGE_IO_BYTES,
    MIN_SAMPLES,
    OVERWHELMED_LARGE_S,
    OVERWHELMED_SMALL_S,
    OWN_USE,
    SEEN,
    UTILISATION,
    Threshold,
    at_least,
    latency_limit,
)
from pinchpoint.base.wording import listed
from pinchpoint.data.series import Floats, mean, weighted_mean

_NONE: Mapping[str, float] = {}
COLUMN_WORDS = {
    "reads": "reads",
    "writes": "writes",
    "outstanding": "what is outstanding",
    "busy": "how busy it is",
}
"""Columns of a disk that show whether it is at a limit -> words for them."""


def often_read(resource: Resource, rows: Rows) -> bool:
    """Whether a disk was read often enough to separate a cap, a slow device and a plain delay.

    They differ in how the rate varies from second to second.
    """
    read = readings(resource, rows)
    return read >= MIN_SAMPLES.value or read >= SEEN.value * len(rows)


def readings(resource: Resource, rows: Rows) -> int:
    """Number of rows in which all columns that ``often_read`` needs were measured."""
    columns = [resource.columns[name][rows] for name in _requested(resource)]
    return int(np.isfinite(columns).all(axis=0).sum())


def not_measured(resource: Resource, rows: Rows) -> tuple[str, ...]:
    """Words for the needed columns of a disk that were not measured."""
    return tuple(COLUMN_WORDS[name] for name in _requested(resource) if mean_of(resource, name, rows) is None)


def _requested(resource: Resource) -> tuple[str, ...]:
    # A database without I/O timing still counts its I/O.
    return ("reads", "writes") if resource.by_database else tuple(COLUMN_WORDS)


def kind_unknown(disk: Resource, rows: Rows) -> NoSingleCause:
    """Why the kind of limit of a disk is not known, and an experiment that would show it."""
    if not often_read(disk, rows):
        return seldom(disk, rows)
    what = f"the limits of the {disk.role} disk of {disk.hosts[0]}"
    why = "the queue depth did not change, so a cap of the disk looks the same as slow I/O"
    return NoSingleCause(why, f"Declare {what} in farm.yaml, or run the load in steps; then run again.")


def seldom(disk: Resource, rows: Rows) -> NoSingleCause:
    """Why a disk that was read too seldom cannot be judged, and what to measure instead."""
    place = disk.hosts[0]
    where = f"all disks of {place} together" if disk.whole else f"the {disk.role} disk of {place}"
    missing = not_measured(disk, rows)
    if missing:
        what = f"{listed(list(missing))} of {where}"
        why = f"{what} was not measured: needed to separate a limit from latency"
        return NoSingleCause(why, f"Measure {what} as well, and run the same plan again.")
    read = readings(disk, rows)
    why = (
        f"{where} {'were' if disk.whole else 'was'} read only {read} times in {len(rows)} steps; at least "
        f"{MIN_SAMPLES.value:.0f} readings are needed to separate a limit from slow I/O"
    )
    return NoSingleCause(why, f"Read {where} more often, or measure for longer; then run again.")


def seldom_read(resources: Iterable[Resource], rows: Rows) -> Resources:
    """Disks that are busy most of the time but were read too seldom to be judged."""
    disks = (one for one in resources if one.type == "disk" and one.whole is None)
    return tuple(
        one for one in disks if (busy(one, rows) or 0.0) >= OWN_USE.value and not often_read(one, rows)
    )


def settle(resources: Iterable[Resource], rows: Rows) -> Resources:
    """The resources with the rate responses of their disks over these rows, computed once for all resamples.

    The standard error shows how reliable a slope is. Resamples would not, because many of them lack the few
    seconds that determine the slope. Resamples show the uncertainty of a level.
    """
    return tuple(
        replace(one, responses=_Responses(one, rows)) if one.type == "disk" else one for one in resources
    )


class _Responses(Mapping[str, RateResponse]):
    """The rate response of a disk over some rows, computed on first use: most disks do not need it."""

    def __init__(self, disk: Resource, rows: Rows) -> None:
        self._disk, self._rows = disk, rows

    @cached_property
    def _found(self) -> dict[str, RateResponse]:
        return rate_responses(self._disk, self._rows)

    def __getitem__(self, rate: str) -> RateResponse:
        return self._found[rate]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def rate_responses(resource: Resource, rows: Rows) -> dict[str, RateResponse]:
    """How the I/O rate and the byte rate of a disk vary over these rows."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    rate = columns["reads"] + columns["writes"]
    rest = columns["bytes"], columns["outstanding"], columns["busy"], resource.step_s
    any_size = resource.service_time is not None and resource.service_time.by_bytes
    responses = {
        "io": io_response(rate, *rest),
        "bytes": replace(bytes_response(rate, *rest), any_size=any_size),
    }
    if not resource.even:
        return responses
    return {name: replace(one, slope=None, scheduled=True) for name, one in responses.items()}


def measure_disk(resource: Resource, rows: Rows) -> DiskMeasures:
    """Measurements of a disk over these rows: rates are means over time, latencies means over operations."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    rate, sizes = columns["reads"] + columns["writes"], columns["bytes"]
    io, size, reads = mean(rate), mean(sizes), mean(columns["reads"])
    recorded = recorded_shares(columns)
    nearest, utilisation = nearest_limit(resource, rate, sizes, recorded)
    result = DiskMeasures(
        io=io,
        bytes=size,
        utilisation=utilisation,
        binding=nearest,
        responses=resource.responses or rate_responses(resource, rows),
        outstanding=mean(columns["outstanding"]),
        busy=mean(columns["busy"]),
        reads_ratio=reads / io if io and reads is not None else None,
        read_s=weighted_mean(columns["read_latency"], columns["read_weight"]),
        write_s=weighted_mean(columns["write_latency"], columns["write_weight"]),
        flush_s=weighted_mean(columns["flush_latency"], columns["flush_weight"]),
        pressure=mean(columns["pressure"]),
        sessions=mean(columns["sessions"]),
        log_waits=mean(columns["log_waits"]) if "log_waits" in columns else None,
        often_read=often_read(resource, rows),
        recorded=nearest in recorded,
    )
    if not at_least(utilisation, UTILISATION):
        result = replace(result, binding=result.held or nearest)
    return replace(result, credits_used=mean_of(resource, f"credits_{result.binding}", rows))


def nearest_limit(
    resource: Resource, rate: Floats, size: Floats, recorded: Mapping[str, float] = _NONE
) -> tuple[str, float | None]:
    """(``io`` or ``bytes``, utilisation) of the nearer limit: as recorded by the platform, else as declared.

    I/Os are counted in the cap's own units.
    """
    limits = resource.limits
    used = {}
    if limits is not None:
        unit = limits.io_unit_bytes
        counted = np.fmax(rate, size / unit) if unit else rate
        for name, column, cap in (("io", counted, limits.iops), ("bytes", size, limits.bytes_per_s)):
            level = mean(column)
            if cap and level is not None:
                used[name] = level / cap
    used |= recorded
    name = max(used, key=used.__getitem__, default="io")
    return name, used.get(name)


MINOR_SHARE = 0.1
"""Reads or writes below this share of a disk's I/O do not make the disk slow."""


def is_slow(resource: Resource, measures: DiskMeasures) -> bool:
    """Whether reads or writes with more than a tenth of the I/O are slower than the role's limit."""
    return slow_way(resource, measures) is not None


def slow_way(resource: Resource, measures: DiskMeasures) -> Literal["read", "write"] | None:
    """``read`` or ``write``, if slower than the role's limit; of both, the more frequent; None if neither."""
    limit = slowness(resource).value
    reads = measures.reads_ratio if measures.reads_ratio is not None else 0.0
    write_s = write_and_flush_s(resource, measures)
    read = reads >= MINOR_SHARE and measures.read_s is not None and measures.read_s > limit
    write = 1 - reads >= MINOR_SHARE and write_s is not None and write_s > limit
    if read and (reads > 1 / 2 or not write):
        return "read"
    return "write" if write else None


def slowness(resource: Resource) -> Threshold:
    """The latency limit of a device, from its first role."""
    return latency_limit(resource.role or "")


def write_and_flush_s(resource: Resource, measures: DiskMeasures) -> float | None:
    """Seconds of one durable write on this device; None if not measured.

    If writes are known to be data I/O, the time of a flush is added. If writes may include flushes
    (docs/metrics.md), the longer of the two times is taken: it may be too low, never too high.
    """
    parts = [value for value in (measures.write_s, measures.flush_s) if value is not None]
    if not parts:
        return None
    verified = all(role.data_io in {"kernel", "writes-flushes"} for role in resource.roles)
    return sum(parts) if verified else max(parts)


def overwhelmed(resource: Resource, measures: DiskMeasures) -> bool:
    """Whether I/Os take longer than PAL's rule allows for their mean size.

    The rule is used if the rate response is not known. It is not used for a log, whose commits are better
    evidence.
    """
    if resource.commit_path:
        return False
    slowest = max((value for value in (measures.read_s, measures.write_s) if value is not None), default=0.0)
    return slowest > too_long(measures).value


def too_long(measures: DiskMeasures) -> Threshold:
    """PAL's latency limit for I/Os of the measured mean size."""
    large = measures.size_bytes is not None and measures.size_bytes > LARGE_IO_BYTES.value
    return OVERWHELMED_LARGE_S if large else OVERWHELMED_SMALL_S
