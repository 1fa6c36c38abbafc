"""Limits besides the declared ones: burst credits of a disk type, and utilisation recorded by the platform.

An Azure P10 has a declared limit of 500 I/Os per second, but its saved credits allow 3,500 for half an hour,
so a shorter run never reaches the 500. While the rate is above the declared limit, the disk is compared with
its burst limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from pinchpoint.analysis.resources.base import Resource, mean_of
from pinchpoint.analysis.resources.disk.types import Profile, caps_words, known, limits_words
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import UTILISATION, exceeds
from pinchpoint.base import units
from pinchpoint.data.inputs import Limits
from pinchpoint.data.series import Floats, Samples, mean

USUALLY = 0.9
"""Quantile of the rate that is compared with the limit. A single second above the limit may only make up for
idle time."""


def with_credits(resource: Resource) -> Resource:
    """The disk, or all disks of a machine, with the burst limits if the rate exceeds the declared limits."""
    entry, limits = _profile(resource), resource.limits
    if entry is None or entry.burst is None or limits is None:
        return resource
    columns = resource.columns
    counted = columns["reads"] + columns["writes"]
    if limits.io_unit_bytes:
        counted = np.fmax(counted, columns["bytes"] / limits.io_unit_bytes)
    if not (_exceeded(counted, limits.iops) or _exceeded(columns["bytes"], limits.bytes_per_s)):
        return resource
    count = _count(resource)
    burst = Limits(entry.burst.iops * count, entry.burst.bytes_per_s * count, limits.io_unit_bytes)
    return replace(resource, limits=burst, baseline=limits)


def credit_words(resources: Iterable[Resource], rows: Rows) -> Iterator[str]:
    """Sentences about disks above their baseline: how long credits last, and the sustained limit."""
    for one in resources:
        entry = _profile(one)
        if one.baseline is None or entry is None or entry.burst is None:
            continue
        io = sum(mean_of(one, way, rows) or 0.0 for way in ("reads", "writes"))
        size, burst = mean_of(one, "bytes", rows) or 0.0, one.limits or one.baseline
        if exceeds(io, burst.iops) or exceeds(size, burst.bytes_per_s):
            continue  # the rate exceeds even the burst limits: the declaration is wrong
        done = limits_words(io, size)
        name = one.hosts[0] if one.whole else f"{one.roles[0].tier}.{one.role}"
        caps = caps_words(entry, _count(one))
        did = f"{name}: it did {done}; the sustained limit of {entry.name} is {caps}"
        if entry.burst.credit_s is None:
            yield f"a billed burst allowed {did}"
        else:
            lasts = units.seconds(entry.burst.credit_s)
            yield f"burst credits allowed {did}; full credits last {lasts} at the burst rate"


def _exceeded(rate: Floats, limit: float | None) -> bool:
    """Whether a rate exceeds a limit for a tenth of the time or longer (``USUALLY``)."""
    measured = rate[np.isfinite(rate)]
    return len(measured) > 0 and exceeds(float(np.quantile(measured, USUALLY)), limit)


def _profile(resource: Resource) -> Profile | None:
    return known(resource.whole or next((role.profile for role in resource.roles if role.profile), None))


def _count(resource: Resource) -> int:
    """Number of striped disks; 1 for all disks of a machine."""
    return resource.roles[0].stripes if resource.roles and resource.whole is None else 1


# ---- utilisation recorded by the platform ----------------------------------------------------------

DISK = "cloud.disk"
MACHINE: Mapping[str, Sequence[str]] = {
    "network": ("cloud.vm_uncached", "cloud.vm"),
    "cached": ("cloud.vm_cached",),
}
"""How disks are attached -> the platform's metrics of all such disks of a machine together."""
_RATES = {"io": "iops", "bytes": "bytes"}
_SUFFIXES = {
    "used": ("_{rate}_ratio",),
    "over": ("_{rate}_exceeded_ratio",),
    "credits": ("_burst_{rate}_used_ratio", "_burst_used_ratio"),
}
"""Column -> suffixes of its metrics. Amazon has one figure of credits for both rates."""


def share_columns(
    samples: Samples, hosts: Sequence[str], families: Iterable[str], instances: Iterable[str]
) -> dict[str, Floats]:
    """Recorded columns of each rate: ``used_io`` (share), ``over_io`` (1: above the limit), ``credits_io``.

    ``credits_io`` is the spent share of the burst credits. The columns of the byte rate end in ``_bytes``.
    """
    result = {}
    wanted = [(family, instance) for family in families for instance in instances]
    for rate, name in _RATES.items():
        for column, suffixes in _SUFFIXES.items():
            for (family, instance), suffix in product(wanted, suffixes):
                values = samples.first_of(hosts, f"{family}{suffix.format(rate=name)}", instance)
                if np.isfinite(values).any():
                    result[f"{column}_{rate}"] = values
    return result


def recorded_shares(columns: Mapping[str, Floats]) -> dict[str, float]:
    """By rate (``io``, ``bytes``), the mean utilisation of the limit that the platform recorded.

    A metric that only reports whether more was requested is used if its mean is near 1; a lower mean is no
    utilisation.
    """
    result = {}
    for rate in _RATES:
        used, over = (
            mean(columns[name]) if name in columns else None for name in (f"used_{rate}", f"over_{rate}")
        )
        if used is not None:
            result[rate] = used
        elif over is not None and over >= UTILISATION.value:
            result[rate] = over
    return result
