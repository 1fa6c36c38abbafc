"""Which disk or machine of the catalogue lifts a cap, and how far: rates that are needed against its caps.

The analysis knows the catalogue through this module alone.
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
"""A type is of use from a tenth more on."""
MOST_STRIPES = 32
"""More disks than that no machine of the catalogue takes (Azure: D14 and DS14, 32 data disks)."""
AT_LEAST = 2.0
"""If no next bottleneck is known, a type with twice the rate is chosen."""


def known(name: str | None) -> Profile | None:
    """The catalogue's entry of that name; None if it has none, or nothing was declared."""
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
        """The capacity of ``count`` disks of that type ÷ the present load; None if the type has no such cap.

        An I/O counts once per ``io_unit_bytes`` begun.
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
    """The smallest type that does ``need`` times what is done now; of its series, else of its vendor's disks.

    If none is large enough: the one of the series that does most. None if none does clearly more than
    ``count`` of this one.
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
    """How many of that type, striped, do ``need`` times what is done now; None: more than can be had."""
    each = rates.room(entry)
    if not each:
        return None
    wanted = max(count + 1, math.ceil(need / each - 1e-9))
    return wanted if wanted <= MOST_STRIPES else None


def caps_words(entry: Profile, count: int = 1, *, cached: bool = False) -> str:
    """``2,300 IOPS, 150 MB/s``: what ``count`` disks of that type do at most."""
    iops = entry.cached_iops if cached else entry.iops
    rate = entry.cached_bytes_per_s if cached else entry.bytes_per_s
    return limits_words(iops and iops * count, rate and rate * count)


def limits_words(iops: float | None, bytes_per_s: float | None) -> str:
    """``2,300 IOPS, 150 MB/s``; only the known ones."""
    words = [units.iops(iops)] if iops else []
    words += [units.of_metric("_bytes_per_s", bytes_per_s)] if bytes_per_s else []
    return ", ".join(words)


def cited(entries: Iterable[Profile]) -> dict[str, str] | None:
    """Where the figures of these entries come from; None without one."""
    named: Sequence[Profile] = tuple(dict.fromkeys(entries))
    if not named:
        return None
    return {
        "entry": ", ".join(one.name for one in named),
        "source": "; ".join(dict.fromkeys(one.source for one in named)),
        "date": ", ".join(dict.fromkeys(one.date for one in named)),
    }
