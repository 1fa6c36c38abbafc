"""Probes of simulated disks with a known formula: the exact figures that a suite would measure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pinchpoint.data.inputs import Limits
from pinchpoint.probe.record import DeclaredDisk, Options, Probe, ProbeLocation, Trial
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.store import tool_histogram
from pinchpoint_infra.catalogue import profile
from pinchpoint_scenarios.storage_probe import SUITES, Cell, CellSeries

Speed = Callable[[Cell, int], float]
"""I/Os per second for a cell and a trial number."""


@dataclass(frozen=True)
class Disk:
    """A disk's formula: its rate at each queue depth and block size.

    Attributes:
        floor_s: minimal latency of an I/O in seconds, at any queue depth.
        iops: limit in I/Os per second; None: no limit.
        bytes_per_s: limit in bytes per second; None: no limit.
        read_iops: limit of reads per second, apart from writes; ``write_iops``: that of writes.
        service_s: service time in seconds by cell, for a device that serves one I/O at a time; None: no
            device.
        uneven: relative spread of the rate from trial to trial.
    """

    floor_s: float = 0.0001
    iops: float | None = None
    bytes_per_s: float | None = None
    read_iops: float | None = None
    write_iops: float | None = None
    service_s: Callable[[Cell], float] | None = None
    uneven: float = 0.0

    def __call__(self, cell: Cell, trial: int) -> float:
        """Return the I/Os per second of a cell in a trial."""
        found = (cell.outstanding or 1) / self.floor_s
        if self.iops:
            found = min(found, self.iops)
        if self.bytes_per_s and cell.block_bytes:
            found = min(found, self.bytes_per_s / cell.block_bytes)
        reads = cell.read_ratio or 0.0
        for cap, share in ((self.read_iops, reads), (self.write_iops, 1 - reads)):
            if cap and share:
                found = min(found, cap / share)
        if self.service_s:
            found = min(found, 1 / self.service_s(cell))
        chance = random.Random(f"{cell.name} {trial}")
        return found * (1 + self.uneven * chance.uniform(-1, 1))


def declared(name: str) -> DeclaredDisk:
    """Return a catalogue entry's limits as a declared disk."""
    entry = profile(name)
    more = entry.burst
    burst = Limits(more.iops, more.bytes_per_s, entry.io_unit_bytes) if more else None
    return DeclaredDisk(entry.name, 1, Limits(entry.iops, entry.bytes_per_s, entry.io_unit_bytes), burst)


def trial_of(
    cell: Cell, number: int, iops: float, seconds: float = 5.0, *, course: bool = False, uneven: float = 0.0
) -> Trial:
    """Return a trial with fio's figures for that rate; ``course``: with one rate per second."""
    reads = cell.read_ratio or 0.0
    size = cell.block_bytes or 0
    latency_s = (cell.outstanding or 1) / iops
    chance = random.Random(f"{cell.name} {number} seconds")
    rates = tuple(iops * (1 + uneven * chance.uniform(-2, 2)) for _ in range(int(seconds)))
    series = CellSeries(1.0, rates, (latency_s,) * len(rates)) if course else None
    return Trial(
        number=number,
        started="2026-01-01T00:00:00.000Z",
        seconds=seconds,
        reads_per_s=iops * reads,
        writes_per_s=iops * (1 - reads),
        read_bytes_per_s=iops * reads * size,
        write_bytes_per_s=iops * (1 - reads) * size,
        latency=tool_histogram.histogram({int(latency_s * 1e9): max(1, int(iops * seconds))}),
        mean_s=latency_s,
        max_s=latency_s,
        series=series,
    )


def probe_of(
    speed: Speed,
    cells: Iterable[Cell] | None = None,
    suite: str = "crystaldiskmark",
    repeat: int = 5,
    said: DeclaredDisk | None = None,
    *,
    course: bool = True,
    seconds: float = 5.0,
) -> Probe:
    """Return a finished probe of a disk of that speed."""
    asked = list(cells) if cells is not None else cells_of(suite)
    return Probe(
        suite=suite,
        where=ProbeLocation("/srv/data", "host1", "sdb", "ext4"),
        options=Options(repeat, seconds, 2**30, 0.020),
        declared=said or DeclaredDisk(),
        started="2026-01-01T00:00:00.000Z",
        ended="2026-01-01T01:00:00.000Z",
        state="finished",
        cells={
            cell: [
                trial_of(
                    cell,
                    number,
                    speed(cell, number),
                    seconds,
                    course=course,
                    uneven=getattr(speed, "uneven", 0.0),
                )
                for number in range(1, repeat + 1)
            ]
            for cell in asked
        },
    )


def cells_of(suite: str) -> Sequence[Cell]:
    """Return a suite's cells."""
    return [cell for job in SUITES[suite].jobs(5.0) for cell in job.cells]


def geometric(low: int, high: int) -> list[int]:
    """Return the powers of two from ``low`` to ``high``."""
    return [2**power for power in range(int(math.log2(low)), int(math.log2(high)) + 1)]


def kind_of(verdict: ProbeVerdict, workload: str) -> str | None:
    """Return the kind of limit that the verdict gives a workload."""
    [found] = [one for one in verdict.workloads if one.workload == workload]
    return found.kind
