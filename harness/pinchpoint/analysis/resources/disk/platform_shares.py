"""Shares of limits and burst credits of a disk, or a machine's disks, as a cloud platform recorded them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from pinchpoint.analysis.thresholds import UTILISATION
from pinchpoint.data.series import Floats, Samples, mean

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
