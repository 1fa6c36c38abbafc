"""What a resource's columns say over a choice of rows: numbers only, so that resamples are judged alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pinchpoint.analysis.demand import Resource
from pinchpoint.analysis.series import Floats, mean, spread, weighted_mean
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MOVING


@dataclass(frozen=True, slots=True)
class CpuMeasures:
    """A pool of cores, an allowance or a thread. All None where not measured.

    Attributes:
        busy: mean busy ratio.
        pool: of a thread or an allowance, the busy ratio of the cores around it.
        pressure: share of the time somebody waited for CPU.
        seen: share of the rows with a value.
        uses: tier (or ``generator``) → share of the pool's busy time.
    """

    busy: float | None
    pool: float | None
    pressure: float | None
    seen: float
    uses: dict[str, float]


@dataclass(frozen=True, slots=True)
class DiskMeasures:
    """One device. All None where not measured.

    Attributes:
        io: data I/Os per second (the kernel's count where data I/O is not known).
        bytes: bytes per second.
        utilisation: max(I/O ÷ cap, bytes ÷ cap); None where no cap is declared.
        binding: ``io`` or ``bytes``: which of the two is nearer to its cap, or flatter where there is none.
        spread: the spread of the binding one.
        outstanding: mean number of I/Os going on.
        follows: how I/O moves when the outstanding count does: 0 it stays, 1 in proportion; None where
            the outstanding count hardly moved.
        busy: share of the time with at least one I/O going on. 1 says nothing about saturation.
        reads_ratio: reads ÷ all I/O.
        read_s: mean latency of a read, weighted by operations.
        write_s: likewise of a write.
        flush_s: likewise of a flush.
        pressure: share of the time somebody waited for I/O, any device.
    """

    io: float | None
    bytes: float | None
    utilisation: float | None
    binding: str
    spread: float | None
    outstanding: float | None
    follows: float | None
    busy: float | None
    reads_ratio: float | None
    read_s: float | None
    write_s: float | None
    flush_s: float | None
    pressure: float | None

    @property
    def size_bytes(self) -> float | None:
        """Mean size of one I/O."""
        return self.bytes / self.io if self.io and self.bytes is not None else None


Measures = CpuMeasures | DiskMeasures


def measure(resource: Resource, rows: Rows) -> Measures:
    """The figures of a resource over those rows of the window."""
    return measure_disk(resource, rows) if resource.type == "disk" else measure_cpu(resource, rows)


def measure_cpu(resource: Resource, rows: Rows) -> CpuMeasures:
    """Means over the rows; uses are shares of the pool's busy time."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    busy = mean(columns["busy"])
    uses = {}
    for name, column in columns.items():
        used = mean(column) if name.startswith("use:") else None
        if used and busy and resource.cores:
            uses[name.removeprefix("use:")] = min(1.0, used / (busy * resource.cores))
    return CpuMeasures(
        busy=busy,
        pool=mean(columns["pool"]) if "pool" in columns else None,
        pressure=mean(columns["pressure"]),
        seen=float(np.isfinite(columns["busy"]).mean()) if len(rows) else 0.0,
        uses=dict(sorted(uses.items(), key=lambda use: -use[1])),
    )


def measure_disk(resource: Resource, rows: Rows) -> DiskMeasures:
    """Rates and shares over time, latencies over operations."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    rate = columns["reads"] + columns["writes"]
    io, size, reads = mean(rate), mean(columns["bytes"]), mean(columns["reads"])
    binding, utilisation, flat = _binding(resource, rate, columns["bytes"])
    return DiskMeasures(
        io=io,
        bytes=size,
        utilisation=utilisation,
        binding=binding,
        spread=flat,
        outstanding=mean(columns["outstanding"]),
        follows=_follows(rate, columns["outstanding"]),
        busy=mean(columns["busy"]),
        reads_ratio=reads / io if io and reads is not None else None,
        read_s=weighted_mean(columns["read_latency"], columns["read_weight"]),
        write_s=weighted_mean(columns["write_latency"], columns["write_weight"]),
        flush_s=weighted_mean(columns["flush_latency"], columns["flush_weight"]),
        pressure=mean(columns["pressure"]),
    )


def _binding(resource: Resource, rate: Floats, size: Floats) -> tuple[str, float | None, float | None]:
    """Which limit is nearer, how near, and how flat that one is. I/Os are counted in the cap's own units."""
    spreads = {"io": spread(rate), "bytes": spread(size)}
    limits = resource.limits
    if limits is None:
        known = {name: value for name, value in spreads.items() if value is not None}
        name = min(known, key=known.__getitem__, default="io")
        return name, None, spreads[name]
    unit = limits.io_unit_bytes
    counted = np.fmax(rate, size / unit) if unit else rate
    used = {}
    for name, column, cap in (("io", counted, limits.iops), ("bytes", size, limits.bytes_per_s)):
        level = mean(column)
        if cap and level is not None:
            used[name] = level / cap
    if not used:
        return "io", None, spreads["io"]
    name = max(used, key=used.__getitem__)
    return name, used[name], spreads[name]


def _follows(rate: Floats, outstanding: Floats) -> float | None:
    """The slope of log I/O over log outstanding; None where outstanding I/O moved too little to tell."""
    usable = np.isfinite(rate) & np.isfinite(outstanding) & (rate > 0) & (outstanding > 0)
    moved = spread(outstanding[usable])
    if moved is None or moved < MOVING.value:
        return None
    x, y = np.log(outstanding[usable]), np.log(rate[usable])
    variance = float(x.var())
    return float(((x - x.mean()) * (y - y.mean())).mean()) / variance if variance > 0 else None
