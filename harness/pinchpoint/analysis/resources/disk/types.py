"""Finds the disk or machine type of the catalogue that carries a needed rate.

The analysis uses the catalogue through this module alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pinchpoint.base import units
from pinchpoint_infra.catalogue import Profile, catalogue, profile, series

__all__ = [
    "AT_LEAST",
    "Profile",
    "Rates",
    "caps_words",
    "catalogue",
    "cited",
    "known",
    "larger",
    "limits_words",
    "profile",
    "stripes_for",
]

CLEARLY = 1.1
"""A larger type is of use from this ratio of capacities on."""
MOST_STRIPES = 32
"""Largest number of data disks of a machine in the catalogue (Azure: D14 and DS14, 32 data disks)."""
AT_LEAST = 2.0
"""Multiple of the present rate that a new type must carry if the next bottleneck is unknown."""


def known(name: str | None) -> Profile | None:
    """The catalogue entry of that name; None if there is none, or if no name was declared."""
    return catalogue().get(name) if name is not None else None


@dataclass(frozen=True, slots=True)
class Rates:
    """The present load of a disk, or of all disks of a machine.

    Attributes:
        io: I/Os per second.
        bytes_per_s: bytes per second.
    """

    io: float
    bytes_per_s: float

    def room(self, entry: Profile, count: int = 1, *, cached: bool = False) -> float | None:
        """Capacity of ``count`` disks of that type ÷ present load; None if the type has no such cap.

        A large I/O counts as one I/O per ``io_unit_bytes``.
        """
        iops = entry.cached_iops if cached else entry.iops
        rate = entry.cached_bytes_per_s if cached else entry.bytes_per_s
        unit = entry.io_unit_bytes
        counted = max(self.io, self.bytes_per_s / unit) if unit else self.io
        result = [
            cap * count / done for cap, done in ((iops, counted), (rate, self.bytes_per_s)) if cap and done
        ]
        return min(result, default=None)


def larger(
    entry: Profile, rates: Rates, need: float, count: int = 1, *, cached: bool = False
) -> Profile | None:
    """The smallest type that carries ``need`` times the present load: of the series, else of the vendor.

    If no type is large enough, the largest one. None if no type clearly exceeds ``count`` disks of the
    present type.
    """

    def room(one: Profile) -> float:
        return rates.room(one, cached=cached) or 0.0

    now = (rates.room(entry, count, cached=cached) or 0.0) * CLEARLY
    own = [one for one in series(entry) if room(one) > now]
    vendor = entry.name.partition("/")[0]
    rest = [
        one
        for one in catalogue().values()
        if one.kind == entry.kind == "disk" and one.name.partition("/")[0] == vendor and room(one) > now
    ]
    for group in (own, rest):
        enough = [one for one in group if room(one) >= need]
        if enough:
            return min(enough, key=room)
    return max(own or rest, key=room, default=None)


def stripes_for(entry: Profile, rates: Rates, need: float, count: int) -> int | None:
    """Striped disks of that type for ``need`` times the present load; None if above ``MOST_STRIPES``."""
    each = rates.room(entry)
    if not each:
        return None
    wanted = max(count + 1, math.ceil(need / each - 1e-9))
    return wanted if wanted <= MOST_STRIPES else None


def caps_words(entry: Profile, count: int = 1, *, cached: bool = False) -> str:
    """The limits of ``count`` disks of that type in words: ``2,300 IOPS, 150 MB/s``."""
    iops = entry.cached_iops if cached else entry.iops
    rate = entry.cached_bytes_per_s if cached else entry.bytes_per_s
    return limits_words(iops and iops * count, rate and rate * count)


def limits_words(iops: float | None, bytes_per_s: float | None) -> str:
    """The known limits in words: ``2,300 IOPS, 150 MB/s``."""
    words = [units.iops(iops)] if iops else []
    words += [units.of_metric("_bytes_per_s", bytes_per_s)] if bytes_per_s else []
    return ", ".join(words)


def cited(entries: Iterable[Profile]) -> dict[str, str] | None:
    """The source of the figures of these entries; None without an entry."""
    named: Sequence[Profile] = tuple(dict.fromkeys(entries))
    if not named:
        return None
    return {
        "entry": ", ".join(one.name for one in named),
        "source": "; ".join(dict.fromkeys(one.source for one in named)),
        "date": ", ".join(dict.fromkeys(one.date for one in named)),
    }
