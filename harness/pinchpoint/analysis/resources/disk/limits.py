"""The limits of a disk beside those declared: burst credits of its type, and what its platform recorded.

What is declared of an Azure P10 is 500 I/Os a second. Saved-up credits let it do 3,500 for half an hour: a
shorter run never reaches the 500. While the rate is above it, the disk is compared with its burst limits.
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
"""More is done for a tenth of the time or longer: a second of it may be what idle time is made up for by."""


def with_credits(resource: Resource) -> Resource:
    """The disk, or a machine's disks, compared with the burst limits if the rate exceeds their own."""
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
    """Sentences about disks above their base rate: how long their credits last, and the rate after that."""
    for one in resources:
        entry = _profile(one)
        if one.baseline is None or entry is None or entry.burst is None:
            continue
        io = sum(mean_of(one, way, rows) or 0.0 for way in ("reads", "writes"))
        size, burst = mean_of(one, "bytes", rows) or 0.0, one.limits or one.baseline
        if exceeds(io, burst.iops) or exceeds(size, burst.bytes_per_s):
            continue  # more than even credits allow: the declaration is wrong
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
    """Whether it was for a tenth of the time: see ``USUALLY``."""
    measured = rate[np.isfinite(rate)]
    return len(measured) > 0 and exceeds(float(np.quantile(measured, USUALLY)), limit)


def _profile(resource: Resource) -> Profile | None:
    return known(resource.whole or next((role.profile for role in resource.roles if role.profile), None))


def _count(resource: Resource) -> int:
    """How many disks of its type are striped."""
    return resource.roles[0].stripes if resource.roles and resource.whole is None else 1


# ---- recorded by the platform ----------------------------------------------------------------------

DISK = "cloud.disk"
MACHINE: Mapping[str, Sequence[str]] = {
    "network": ("cloud.vm_uncached", "cloud.vm"),
    "cached": ("cloud.vm_cached",),
}
"""How disks are attached -> the platform's metrics of what they do together."""
_RATES = {"io": "iops", "bytes": "bytes"}
_SUFFIXES = {
    "used": ("_{rate}_ratio",),
    "over": ("_{rate}_exceeded_ratio",),
    "credits": ("_burst_{rate}_used_ratio", "_burst_used_ratio"),
}
"""Column -> how the names of its metrics end; Amazon has one figure of credits for both rates."""


def share_columns(
    samples: Samples, hosts: Sequence[str], families: Iterable[str], instances: Iterable[str]
) -> dict[str, Floats]:
    """Columns of each recorded rate: ``used_io`` (share), ``over_io`` (1: above the limit), ``credits_io``.

    ``credits_``: the share of the burst credits that is spent.
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
    """``io`` and ``bytes`` -> the mean share of the limit.

    A check that only reports whether more was requested counts if it does so nearly always: what it says
    otherwise is no share.
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
