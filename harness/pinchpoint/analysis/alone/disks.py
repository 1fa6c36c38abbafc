"""What samples alone tell of a disk: its latency against its role's limit, its I/O against its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.alone.observed import (
    Observed,
    Reading,
    Subject,
    context,
    over,
    rule,
    seen,
    spread_words,
    unmeasured,
)
from pinchpoint.analysis.alone.stretches import Steps, figures, seconds_over
from pinchpoint.analysis.resources import COMMIT_ROLES
from pinchpoint.analysis.slowness import MINOR_SHARE
from pinchpoint.analysis.thresholds import PRESSURE, UTILISATION, Threshold, latency_limit
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.data.inputs import DiskRole, Inputs, Limits
from pinchpoint.data.series import Floats, Series

SELDOM_PER_S = Threshold(1.0, "design", "a disk with less than one I/O a second keeps nobody waiting")
WAYS = ("write", "read", "transfer")
"""``transfer``: reads and writes together, where they were not told apart."""
NOUNS = {"write": "a write", "read": "a read", "transfer": "an I/O"}
CONTEXT = (
    ("disk.outstanding", "I/Os outstanding"),
    ("disk.writes_per_s", "writes"),
    ("disk.reads_per_s", "reads"),
    ("disk.transfers_per_s", "I/Os"),
    ("disk.busy_ratio", "of the time with something to do"),
)


def observe_disk(inputs: Inputs, disk: DiskRole) -> Observed:
    """At its declared limit where it was there, else by its latency."""
    limit = latency_limit(disk.role)
    subject = Subject("disk_latency", "disk", disk.tier, disk.host, disk.device or "", disk.role, limit)
    if disk.device is None:
        return unmeasured(subject, "disk.write_latency_s", disk.why or "it was not measured")
    if disk.limits is not None:
        capped = _at_cap(inputs, disk, disk.limits)
        if capped is not None and capped.used_up:
            return capped
    ways = [way for way in WAYS if _latency(inputs, disk, way) is not None]
    ways = [way for way in ways if way != "transfer"] or ways
    if not ways:
        return unmeasured(subject, "disk.write_latency_s", "its latency was not measured")
    judged = [(way, *_slow(inputs, disk, way, limit.value)) for way in ways]
    way, series, slow = max(judged, key=lambda each: seconds_over(each[1].covered_s, each[2]))
    metric = f"disk.{way}_latency_s"
    found = figures(series)
    mean = found.mean if found else 0.0
    text = f"{NOUNS[way]} took {units.seconds(mean)} on average{spread_words(found, metric)}"
    reading = Reading(series, slow, text, metric, mean)
    more = [*_other_ways(inputs, disk, ways, way), *_meanwhile(inputs, disk)]
    return seen(inputs, subject, reading, more, demoted=_demoted(inputs, disk, way))


def _latency(inputs: Inputs, disk: DiskRole, way: str) -> Series | None:
    series = inputs.samples.series(disk.host, f"disk.{way}_latency_s", disk.device or "")
    return series if series is not None and series.measured else None


def _demoted(inputs: Inputs, disk: DiskRole, way: str) -> str:
    """Data-file writes are mostly asynchronous (METHOD step 6); of a disk without a role nobody can tell."""
    if disk.role == disk.device:
        return "what it is for is not known, so nobody can tell who waits for it"
    logged = any(other.host == disk.host and other.role in COMMIT_ROLES for other in inputs.disks)
    if disk.role == "data" and way != "read" and logged:
        return "writes to data files are mostly asynchronous: nothing is known to wait for them"
    return ""


def _slow(inputs: Inputs, disk: DiskRole, way: str, limit_s: float) -> tuple[Series, Steps]:
    """The steps in which such an I/O took longer than the limit, and there were enough of them."""
    series = _latency(inputs, disk, way)
    assert series is not None  # noqa: S101 -- only ways that were read are asked for
    rates = {other: _rate(inputs, disk, other) for other in WAYS}
    own, both = rates[way], np.nan_to_num(rates["read"]) + np.nan_to_num(rates["write"])
    with np.errstate(invalid="ignore"):
        seldom = np.isfinite(own) & ((own < SELDOM_PER_S.value) | (own < MINOR_SHARE * both))
    return series, over(series.steps(), series, limit_s, strictly=True) & ~seldom


def _rate(inputs: Inputs, disk: DiskRole, way: str) -> Floats:
    return inputs.samples.steps(disk.host, f"disk.{way}s_per_s", disk.device or "")


def _other_ways(inputs: Inputs, disk: DiskRole, ways: list[str], judged: str) -> Iterator[Fact]:
    for way in (way for way in ways if way != judged):
        metric = f"disk.{way}_latency_s"
        found = figures(_latency(inputs, disk, way))
        if found is not None:
            text = f"{NOUNS[way]} took {units.seconds(found.mean)} on average{spread_words(found, metric)}"
            limit = latency_limit(disk.role)
            yield Fact(text, metric, found.mean, disk.host, disk.device or "", "context", *rule(limit))


def _meanwhile(inputs: Inputs, disk: DiskRole) -> Iterator[Fact]:
    """What it had to do."""
    for metric, words in CONTEXT:
        yield from context(inputs, disk.host, metric, disk.device or "", words)
    found = figures(inputs.samples.series(disk.host, "pressure.io_ratio"))
    if found is not None:
        text = f"somebody waited for I/O, of any disk, {units.percent(found.mean)} of the time"
        yield Fact(text, "pressure.io_ratio", found.mean, disk.host, "", "context", *rule(PRESSURE))


def _at_cap(inputs: Inputs, disk: DiskRole, limits: Limits) -> Observed | None:
    """The disk against what it is declared to be able to do; None where its I/O was not measured."""
    device = disk.device or ""
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
    if series is None or not np.isfinite(used).any():
        return None
    mean, most = float(np.nanmean(used)), float(np.nanmax(used))
    text = f"{units.percent(mean)} of its declared limit was used on average, {units.percent(most)} at most"
    reading = Reading(series, over(used, series, UTILISATION.value), text, "disk.writes_per_s", mean)
    subject = Subject("disk_cap", "disk", disk.tier, disk.host, device, disk.role, UTILISATION)
    return seen(inputs, subject, reading, _meanwhile(inputs, disk), used=mean)
