"""Judges a disk in a recording: its latency, its limits, and I/O that waits behind other I/O.

The kind of a disk's limit shows only in readings of each second with the number of outstanding I/Os, under a
varying load. So here a disk at its declared limit is ``disk_cap``, and any other slow disk is ``disk``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.recordings.measures import (
    Measure,
    RecordedResource,
    Rows,
    Steps,
    contexts,
    figure,
    measure,
    overlap_s,
    sessions_waiting,
)
from pinchpoint.analysis.resources.disk.measures import MINOR_SHARE
from pinchpoint.analysis.sessions import DATA_WAITS, LOG_WAITS, TEMPORARY_WAITS
from pinchpoint.analysis.thresholds import DISK_OCCUPIED, PRESSURE, UTILISATION, Threshold, latency_limit
from pinchpoint.data.inputs import COMMIT_ROLES, DiskRole, Host, Inputs
from pinchpoint.data.series import Floats, Key

SELDOM_PER_S = Threshold(1.0, "design", "a disk with less than one I/O a second delays nothing")
QUEUED = Threshold(2.0, "PAL", "Avg. Disk Queue Length: more than 2 are waiting")
_SUM, _SHARE = "_total", "\\"
DIRECTIONS = ("write", "read", "transfer")
"""``transfer``: reads and writes together, if the file does not separate them."""
NOUNS = {"write": "a write took", "read": "a read took", "transfer": "an I/O took"}
CONTEXT = (
    ("disk.writes_per_s", "writes"),
    ("disk.reads_per_s", "reads"),
    ("disk.transfers_per_s", "I/Os"),
    ("disk.flushes_per_s", "flushes"),
    ("disk.flush_latency_s", "a flush took"),
)
BUSY = ("disk.busy_ratio", "busy")
_WAITS = (
    ("pressure.io_ratio", PRESSURE, "work waited for I/O, of any disk,"),
    ("cpu.wait_ratio", PRESSURE, "idle CPU time while I/O was outstanding:"),
    ("cpu.blocked_threads", QUEUED, "threads that waited for I/O:"),
)
_OF_FILES = "sessions of the database that waited for I/O of its files:"
SPENT = Threshold(
    0.99, "design", "its burst credits are spent, and stay so: it is asked for its limit or more"
)
_USED = (
    ("disk.used_iops_ratio", UTILISATION, "of its IOPS limit it used, as the platform reports:"),
    ("disk.used_bytes_ratio", UTILISATION, "of its bandwidth limit it used, as the platform reports:"),
    ("disk.used_burst_ratio", SPENT, "of its burst credits were spent, as the platform reports:"),
)
LOG_CONTEXT = (
    ("db.log_flushes_per_s", "log flushes of the database server"),
    ("db.log_flush_waits_per_s", "commits that waited for a log flush"),
    ("db.log_bytes_per_s", "what the database server wrote to its log"),
)
"""Metrics that are shown beside a disk for which commits wait."""


def disks(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Each disk of a host; one entry for all disks if none was recorded or none explains the waits."""
    waits = _waits(inputs, host.name)
    own = [_disk(inputs, disk, waits) for disk in inputs.disks if disk.host == host.name]
    yield from own
    slow = [one for one in waits if one.at_limit]
    if own and (not slow or any(overlap_s(one.stretches, slow[0].stretches) for one in own)):
        return
    yield RecordedResource(
        kind="disk",
        tier=host.tier,
        host=host.name,
        name=f"disks of {host.name}",
        metric=waits[0].metric if waits else "disk.write_latency_s",
        measures=waits,
        missing="" if own else f"no disk of {host.name} was recorded",
        doubt="which disk work waited for was not recorded" if slow else "",
        remedy=f"record latency and IOPS of each disk of {host.name}, network file systems, too"
        if own
        else f"record the disks of {host.name}",
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """The measures of a disk: latency per direction, busy time, and queue."""

    latencies: tuple[Measure, ...]
    busy: Measure | None
    queue: Measure | None


def _disk(inputs: Inputs, disk: DiskRole, waits: Sequence[Measure]) -> RecordedResource:
    device = disk.device or ""
    name = f"{disk.role} disk of {disk.tier} ({disk.host}{f', {device}' if device else ''})"
    if disk.role == disk.device:
        name = f"{'share' if device.startswith(_SHARE) else 'disk'} {device} of {disk.host}"
    capped, seen = _at_cap(inputs, disk), _seen(inputs, disk)
    slow = [one for one in (capped, *seen.latencies) if one and one.at_limit]
    queued = [one for one in (seen.busy, seen.queue) if one and one.at_limit]
    missing = doubt = remedy = ""
    figures: tuple[tuple[str, str], ...] = CONTEXT
    room: bool | None = False
    if slow:
        doubt, remedy = _doubt(inputs, disk, slow[0], seen)
        kept = [*slow, *(one for one in seen.latencies if one not in slow), *queued]
        kept += [one for one in waits if one.at_limit and overlap_s(one.stretches, slow[0].stretches)]
    elif queued and not seen.latencies:
        kept = queued
        doubt = "a disk that serves I/Os in parallel can be busy all the time and have room"
    else:  # a busy disk or a queue is no limit if latency is low
        kept = [one for one in (capped, *seen.latencies) if one]
        room = _has_room(seen, capped, waits)
        figures = CONTEXT if room else (BUSY, *CONTEXT)  # shown as a hint, not as a measure
    if disk.device is None or not (kept or seen.busy or seen.queue):
        missing = f"the {name} was not measured{f': {disk.why}' if disk.why else ''}"
    elif device.casefold() == _SUM:
        missing = f"of the disks of {disk.host} only the sum was recorded, which hides a slow one among them"
        doubt = doubt or ("which of the disks it is was not recorded" if slow else "")
        room = None if room else room
    elif not seen.latencies and capped is None:
        missing = f"the latency of the {name} was not recorded"
    of_log = contexts(inputs, disk.host, LOG_CONTEXT) if disk.role in COMMIT_ROLES else ()
    return RecordedResource(
        kind="disk_cap" if capped in slow else "disk",
        tier=disk.tier,
        host=disk.host,
        instance=device,
        role=disk.role,
        name=name,
        metric="disk.write_latency_s",
        measures=tuple(kept),
        has_room=room,
        missing=missing,
        doubt=doubt,
        remedy=f"record latency and IOPS of {'each disk' if device.casefold() == _SUM else f'the {name}'}"
        if missing
        else remedy,
        context=(*contexts(inputs, disk.host, figures, device), *of_log),
    )


def _seen(inputs: Inputs, disk: DiskRole) -> _Seen:
    device, limit = disk.device or "", latency_limit(disk.role)
    result = []
    for way in DIRECTIONS:
        rows, often = figure(inputs, disk.host, f"disk.{way}_latency_s", device), _often(inputs, disk, way)
        one = measure(
            inputs, rows, limit, "saturation", NOUNS[way], above=True, only=often, share=_spread(inputs, disk)
        )
        if one is not None:
            result.append(one)
    apart = [one for one in result if "transfer" not in one.metric] or result
    busy = figure(inputs, disk.host, "disk.busy_ratio", device)
    queue = figure(inputs, disk.host, "disk.outstanding", device) or _in_flight(inputs, disk)
    return _Seen(
        tuple(sorted(apart, key=lambda one: -one.over_s)),
        measure(inputs, busy, DISK_OCCUPIED, "utilisation", "busy"),
        measure(inputs, queue, QUEUED, "saturation", "I/Os outstanding:", above=True),
    )


def _in_flight(inputs: Inputs, disk: DiskRole) -> Rows | None:
    """The number of outstanding I/Os by Little's law (rate x latency); None without latencies."""
    device, rows = disk.device or "", None
    for way in DIRECTIONS:
        latency = figure(inputs, disk.host, f"disk.{way}_latency_s", device)
        if latency is None:
            continue
        values = np.nan_to_num(latency.values) * np.nan_to_num(_rate(inputs, disk, way))
        total = values if rows is None else rows.values + values
        rows = replace(latency, values=total, weight=latency.covered_s, metric="disk.outstanding")
    return rows


def _often(inputs: Inputs, disk: DiskRole, way: str) -> Steps:
    """The steps with enough I/Os of this direction to delay work, or with an unknown rate."""
    rates = {other: _rate(inputs, disk, other) for other in DIRECTIONS}
    own, both = rates[way], np.nan_to_num(rates["read"]) + np.nan_to_num(rates["write"])
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.isfinite(own) & ((own < SELDOM_PER_S.value) | (own < MINOR_SHARE * both))))


def _spread(inputs: Inputs, disk: DiskRole) -> Floats:
    """The share of each reading in which its I/Os came; less than 1 if the I/Os came in a burst.

    If I/Os come at random, a disk with this mean number of outstanding I/Os is busy for 1 - exp(-outstanding)
    of the time.
    """
    busy, outstanding = (
        inputs.samples.steps(disk.host, f"disk.{name}", disk.device or "")
        for name in ("busy_ratio", "outstanding")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        values: Floats = np.minimum(busy / -np.expm1(-outstanding), 1.0)
    return values


def _rate(inputs: Inputs, disk: DiskRole, way: str) -> Floats:
    return inputs.samples.steps(disk.host, f"disk.{way}s_per_s", disk.device or "")


def _doubt(inputs: Inputs, disk: DiskRole, slow: Measure, seen: _Seen) -> tuple[str, str]:
    """(why work may not have waited for a disk, what would show this); "" if PAL's rule says it waited.

    PAL calls a disk overwhelmed if its I/Os are slow and queue. Writes to data files are mostly asynchronous
    (docs/rules.md), whatever their latency.
    """
    logged = any(other.host == disk.host and other.role in COMMIT_ROLES for other in inputs.disks)
    if disk.role == "data" and "read" not in slow.metric and logged:
        return (
            "writes to data files are mostly asynchronous: no work is known to have waited for them",
            "record how long the database waits for this disk (its own waits, such as PAGEIOLATCH)",
        )
    queue, busy = seen.queue, seen.busy
    overwhelmed = any(one and one.at_limit for one in (queue, busy))
    if disk.role == disk.device and not overwhelmed:
        named = shlex.quote(f"{disk.host}:{disk.device}=sql.log")
        return (
            "what it is for is not known, and no queue was seen",
            f"say what the disk is for (--disk {named}), and import again",
        )
    return "", ""


def _has_room(seen: _Seen, capped: Measure | None, waits: Sequence[Measure]) -> bool | None:
    if any(one.at_limit for one in waits):
        return None
    if capped is not None:
        return capped.has_room
    if seen.busy is not None:  # the headroom of a disk that is seldom idle is unknown
        return True if seen.busy.has_room else None
    return True if seen.latencies else None


def _waits(inputs: Inputs, host: str) -> tuple[Measure, ...]:
    """Figures that show work waiting for I/O on any disk; those at their limits come first."""
    of_files = (*LOG_WAITS, *DATA_WAITS, *TEMPORARY_WAITS)
    result = [
        measure(inputs, figure(inputs, host, metric), limit, "attribution", noun)
        for metric, limit, noun in _WAITS
    ]
    result.append(measure(inputs, sessions_waiting(inputs, host, of_files), QUEUED, "attribution", _OF_FILES))
    return tuple(sorted(filter(None, result), key=lambda one: not one.at_limit))


def _at_cap(inputs: Inputs, disk: DiskRole) -> Measure | None:
    """A disk's I/O as a share of its limits, reported by the platform or declared; None if not measured."""
    limits, device = disk.limits, disk.device or ""
    reported = (
        measure(inputs, figure(inputs, disk.host, metric, device), limit, "utilisation", noun)
        for metric, limit, noun in _USED
    )
    if of_platform := [one for one in reported if one]:
        return max(of_platform, key=lambda one: (one.over_s, one.highest))
    if limits is None or disk.device is None:
        return None
    both = _rate(inputs, disk, "read") + _rate(inputs, disk, "write")
    rate = np.where(np.isfinite(both), both, _rate(inputs, disk, "transfer"))
    size = np.sum(
        [inputs.samples.steps(disk.host, f"disk.{way}_bytes_per_s", device) for way in ("read", "write")],
        axis=0,
    )
    if limits.io_unit_bytes:
        rate = np.fmax(rate, size / limits.io_unit_bytes)
    shares = [values / cap for values, cap in ((rate, limits.iops), (size, limits.bytes_per_s)) if cap]
    used = shares[0] if len(shares) == 1 else np.fmax(*shares)
    names = ("disk.writes_per_s", "disk.transfers_per_s", "disk.write_bytes_per_s")
    series = next((one for name in names if (one := inputs.samples.series(disk.host, name, device))), None)
    rows = Rows.of(series, Key(disk.host, "disk.used_ratio", device), used)
    result = measure(inputs, rows, UTILISATION, "utilisation", "of its declared limit it used")
    return result and replace(result, metric="disk.writes_per_s")
