"""The share of its limits that a disk, or a machine's disks, used as the cloud platform recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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


def share_columns(
    samples: Samples, hosts: Sequence[str], families: Iterable[str], instances: Iterable[str]
) -> dict[str, Floats]:
    """``used_io``, ``used_bytes`` (shares), ``over_io``, ``over_bytes`` (1: asked for more), if recorded."""
    found = {}
    wanted = [(family, instance) for family in families for instance in instances]
    for rate, name in _RATES.items():
        for column, suffix in (("used", "ratio"), ("over", "exceeded_ratio")):
            for family, instance in wanted:
                values = samples.first_of(hosts, f"{family}_{name}_{suffix}", instance)
                if np.isfinite(values).any():
                    found[f"{column}_{rate}"] = values
    return found


def recorded_shares(columns: Mapping[str, Floats]) -> dict[str, float]:
    """``io`` and ``bytes`` -> the mean share of the limit.

    A check that only says whether more was asked for counts if it says so nearly always: what it says
    otherwise is no share.
    """
    found = {}
    for rate in _RATES:
        used, over = (
            mean(columns[name]) if name in columns else None for name in (f"used_{rate}", f"over_{rate}")
        )
        if used is not None:
            found[rate] = used
        elif over is not None and over >= UTILISATION.value:
            found[rate] = over
    return found
