"""What a resource's columns say over a choice of rows: numbers only, so that resamples are judged alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pinchpoint.analysis.movement import Movement, bytes_movement, io_movement
from pinchpoint.analysis.resources.base import GENERATOR, USE, Resource, ShareMeasures, mean_of
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MIN_SAMPLES, OWN_USE, SEEN, UTILISATION
from pinchpoint.data.series import Floats, mean, weighted_mean


@dataclass(frozen=True, slots=True)
class CpuMeasures:
    """A pool of cores, an allowance or a thread. All None where not measured.

    Attributes:
        busy: mean busy ratio.
        pool: of a thread or an allowance, the busy ratio of the cores around it.
        pressure: share of the time somebody waited for CPU.
        seen: share of the rows with a value.
        uses: tier (or ``GENERATOR``) → share of the pool's busy time.
        witness: of a thread, the share of the time it was at work, as its server says itself.
        quota: whether an allowance is less than the cores it is of.
    """

    busy: float | None
    pool: float | None
    pressure: float | None
    seen: float
    uses: dict[str, float]
    witness: float | None = None
    quota: bool = False


@dataclass(frozen=True, slots=True)
class DiskMeasures:
    """One device. All None where not measured.

    Attributes:
        io: data I/Os per second (the kernel's count where data I/O is not known).
        bytes: bytes per second.
        utilisation: max(I/O ÷ cap, bytes ÷ cap); None where no cap is declared.
        binding: ``io`` or ``bytes``: which of the two is at its declared cap, or held by something, or nearer
            to its cap.
        moves: how each of the two moves when the outstanding count does.
        outstanding: mean number of I/Os going on.
        busy: share of the time with at least one I/O going on. 1 says nothing about saturation.
        reads_ratio: reads ÷ all I/O.
        read_s: mean latency of a read, weighted by operations.
        write_s: likewise of a write.
        flush_s: likewise of a flush.
        pressure: share of the time somebody waited for I/O, any device.
        sessions: of the database's sessions, how many waited for this device, as it says itself.
        log_waits: the share of a store's work, or of its writes' time, that is waiting for its log, likewise.
        backlog: tasks in the background that wait to be let at it, likewise.
    """

    io: float | None
    bytes: float | None
    utilisation: float | None
    binding: str
    moves: Mapping[str, Movement]
    outstanding: float | None
    busy: float | None
    reads_ratio: float | None
    read_s: float | None
    write_s: float | None
    flush_s: float | None
    pressure: float | None
    sessions: float | None
    log_waits: float | None = None
    backlog: float | None = None

    @property
    def spread(self) -> float | None:
        """The spread of the binding rate."""
        return self.moves[self.binding].spread

    @property
    def level(self) -> float | None:
        """The binding rate: where it is held the level at which it is, else its mean."""
        if self.held == self.binding:
            return self.moves[self.binding].level
        return self.mean

    @property
    def mean(self) -> float | None:
        """The mean of the binding rate, which ``utilisation`` is of."""
        return self.io if self.binding == "io" else self.bytes

    @property
    def held(self) -> str | None:
        """``io`` or ``bytes``, whichever is held as only a regulator holds it; the flatter where both are.

        Where all I/Os are of one size both are alike: it is told in I/Os then.
        """
        spreads = {name: one.spread or 0.0 for name, one in self.moves.items() if one.regulated}
        return min(spreads, key=lambda name: (round(spreads[name], 4), name != "io"), default=None)

    @property
    def size_bytes(self) -> float | None:
        """Mean size of one I/O."""
        return self.bytes / self.io if self.io and self.bytes is not None else None


Measures = CpuMeasures | DiskMeasures | ShareMeasures


def measure(resource: Resource, rows: Rows) -> Measures:
    """The figures of a resource over those rows of the window."""
    if resource.type == "disk":
        return measure_disk(resource, rows)
    if resource.type in {"cpu", "allowance", "thread"}:
        return measure_cpu(resource, rows)
    figures = {name: mean(column[rows]) for name, column in resource.columns.items()}
    return ShareMeasures(**{"used": None, "witness": None, **figures})


TOLD_BY = {
    "reads": "reads",
    "writes": "writes",
    "outstanding": "what is outstanding",
    "busy": "how busy it is",
}
"""A disk's columns that tell whether it is at a limit, in words."""


def told(resource: Resource, rows: Rows) -> bool:
    """Whether a disk was read often enough to say whether it is at a limit, or merely slow, or neither.

    How I/O moves from one second to the next tells a limit from a device and both from a mere delay.
    """
    read = readings(resource, rows)
    return read >= MIN_SAMPLES.value or read >= SEEN.value * len(rows)


def readings(resource: Resource, rows: Rows) -> int:
    """In how many of the rows all was read of a disk that ``told`` asks for."""
    columns = [resource.columns[name][rows] for name in _asked(resource)]
    return int(np.isfinite(columns).all(axis=0).sum())


def not_measured(resource: Resource, rows: Rows) -> tuple[str, ...]:
    """What of it was not measured at all, in words."""
    return tuple(TOLD_BY[name] for name in _asked(resource) if mean_of(resource, name, rows) is None)


def _asked(resource: Resource) -> tuple[str, ...]:
    # A database that times none of its I/O has counted it all the same.
    return ("reads", "writes") if resource.by_database else tuple(TOLD_BY)


def untold(resources: Iterable[Resource], rows: Rows) -> tuple[Resource, ...]:
    """Disks that are busy most of the time, and were read too seldom to say what that means."""
    disks = (one for one in resources if one.type == "disk" and one.whole is None)
    return tuple(one for one in disks if (busy(one, rows) or 0.0) >= OWN_USE.value and not told(one, rows))


def settle(resources: Iterable[Resource], rows: Rows) -> tuple[Resource, ...]:
    """The resources with how disks' rates move over those rows: known once, for all resamples of them.

    What a slope is worth is told by its standard error. The few seconds that tell most would be missing from
    many resamples, which say how sure a level is.
    """
    return tuple(replace(one, moves=_Moves(one, rows)) if one.type == "disk" else one for one in resources)


class _Moves(Mapping[str, Movement]):
    """How a disk's rates move over some rows, found out when it is asked for: of most disks nobody asks."""

    def __init__(self, disk: Resource, rows: Rows) -> None:
        self._disk, self._rows = disk, rows

    @cached_property
    def _found(self) -> dict[str, Movement]:
        return movements(self._disk, self._rows)

    def __getitem__(self, rate: str) -> Movement:
        return self._found[rate]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def movements(resource: Resource, rows: Rows) -> dict[str, Movement]:
    """How a disk's I/O and bytes per second move over those rows."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    rate = columns["reads"] + columns["writes"]
    rest = columns["bytes"], columns["outstanding"], columns["busy"], resource.step_s
    any_size = resource.pace is not None and resource.pace.by_bytes
    found = {
        "io": io_movement(rate, *rest),
        "bytes": replace(bytes_movement(rate, *rest), any_size=any_size),
    }
    if not resource.even:
        return found
    return {name: replace(one, slope=None, of_any_size=None, scheduled=True) for name, one in found.items()}


def busy(resource: Resource, rows: Rows) -> float | None:
    """Of a CPU resource or a disk the mean busy ratio over the rows, None where not measured."""
    return mean_of(resource, "busy", rows)


def measure_cpu(resource: Resource, rows: Rows) -> CpuMeasures:
    """Means over the rows; uses are shares of the pool's busy time."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    busy = mean(columns["busy"])
    uses = {}
    for user in resource.users:
        used = mean(columns[f"{USE}{user}"])
        if used is None or busy is None or not resource.cores or (user == GENERATOR and not used):
            continue  # a tier that idles was measured; a load generator that uses nothing is elsewhere
        uses[user] = min(1.0, used / (busy * resource.cores)) if busy else 0.0
    return CpuMeasures(
        busy=busy,
        pool=mean(columns["pool"]) if "pool" in columns else None,
        pressure=mean(columns["pressure"]),
        seen=float(np.isfinite(columns["busy"]).mean()) if len(rows) else 0.0,
        uses=dict(sorted(uses.items(), key=lambda use: -use[1])),
        witness=mean(columns["witness"]) if "witness" in columns else None,
        quota=_is_quota(resource, columns),
    )


def _is_quota(resource: Resource, columns: Mapping[str, Floats]) -> bool:
    allowed = mean(columns["allowed"]) if "allowed" in columns else None
    return bool(resource.type == "allowance" and allowed and resource.cores and allowed < resource.cores)


def measure_disk(resource: Resource, rows: Rows) -> DiskMeasures:
    """Rates and shares over time, latencies over operations."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    rate, sizes = columns["reads"] + columns["writes"], columns["bytes"]
    io, size, reads = mean(rate), mean(sizes), mean(columns["reads"])
    nearest, utilisation = nearest_limit(resource, rate, sizes)
    found = DiskMeasures(
        io=io,
        bytes=size,
        utilisation=utilisation,
        binding=nearest,
        moves=resource.moves or movements(resource, rows),
        outstanding=mean(columns["outstanding"]),
        busy=mean(columns["busy"]),
        reads_ratio=reads / io if io and reads is not None else None,
        read_s=weighted_mean(columns["read_latency"], columns["read_weight"]),
        write_s=weighted_mean(columns["write_latency"], columns["write_weight"]),
        flush_s=weighted_mean(columns["flush_latency"], columns["flush_weight"]),
        pressure=mean(columns["pressure"]),
        sessions=mean(columns["sessions"]),
        log_waits=mean(columns["log_waits"]) if "log_waits" in columns else None,
        backlog=mean(columns["backlog"]) if "backlog" in columns else None,
    )
    at_limit = utilisation is not None and utilisation >= UTILISATION.value
    return found if at_limit else replace(found, binding=found.held or nearest)


def nearest_limit(resource: Resource, rate: Floats, size: Floats) -> tuple[str, float | None]:
    """Which declared limit is nearer, and how near. I/Os are counted in the cap's own units."""
    limits = resource.limits
    if limits is None:
        return "io", None
    unit = limits.io_unit_bytes
    counted = np.fmax(rate, size / unit) if unit else rate
    used = {}
    for name, column, cap in (("io", counted, limits.iops), ("bytes", size, limits.bytes_per_s)):
        level = mean(column)
        if cap and level is not None:
            used[name] = level / cap
    name = max(used, key=used.__getitem__, default="io")
    return name, used.get(name)
