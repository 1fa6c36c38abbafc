"""Computes the times of an application's I/O on a probed disk: log writes, page reads, and the caps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.analysis.model.probed import Answered, Written
from pinchpoint.base.errors import InputError
from pinchpoint.data.curve import Curve
from pinchpoint.data.inputs import Limits
from pinchpoint.probe.caps import MeasuredCaps
from pinchpoint.probe.figures import Figures, figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import PROBE, Probe, load
from pinchpoint_scenarios.storage_probe import Cell

LEAST_SPREAD = 0.02
"""Least relative uncertainty of a latency, even if all repetitions agree (design value)."""
_AT_CAP = 0.05
"""A cell is limited by a cap if its rate is at most 5 % below the cap (design value)."""
_BURSTS = 0.5
"""A cap lets I/Os through in bursts if half of them take less than this share of the mean (design value)."""
_KINDS_APART = 4.0
"""Distance between a read and a write, equal to that between two block sizes with a ratio of 16 (design
value)."""


@dataclass(frozen=True, slots=True)
class MeasuredDisk:
    """A probed disk as seen by an application; it implements ``ProbedDisk`` of ``forecast``.

    Attributes:
        label: the disk in words.
        suite: the suite of the probe.
        limits: the declared caps if the probe does not contradict them, else the measured ones; None if no
            caps are known.
        limits_are: the origin of the limits: ``declared``, ``found`` or ``both``; None without limits.
        caps: the measured caps, including caps on reads or writes alone.
    """

    label: str
    suite: str
    limits: Limits | None
    limits_are: str | None
    caps: MeasuredCaps
    _figures: Mapping[Cell, Figures]

    def written(self, size_bytes: float | None) -> Written:
        """The time of a write of this size, interpolated between the smallest and the largest probed write.

        Raises:
            InputError: the probe has no cell of single writes.
        """
        ones = [cell for cell in self._cells() if cell.read_ratio == 0 and cell.outstanding == 1]
        logs = [cell for cell in ones if cell.role == "log"]
        result = sorted(logs or ones, key=lambda cell: (cell.block_bytes or 0, cell.random_ratio or 0))
        if not result:
            raise InputError(
                f"the probe of {self.label} (suite {self.suite}) has no measurement of single writes "
                "(queue depth 1); probe it with --suite database"
            )
        small, large = result[0], result[-1]
        sizes = float(small.block_bytes or 0), float(large.block_bytes or 0)
        share = (size_bytes - sizes[0]) / (sizes[1] - sizes[0]) if size_bytes and sizes[1] > sizes[0] else 0.0
        share = min(1.0, max(0.0, share))
        weights = {cell: weight for cell, weight in ((small, 1 - share), (large, share)) if weight}
        return self._written(weights, flushed=bool(logs))

    def answered(self, size_bytes: float | None, reads_ratio: float) -> Answered:
        """The latency by queue depth, from the workload most like the given I/O.

        Raises InputError if the probe has no read latency.
        """
        by_workload: dict[str, list[Cell]] = {}
        for cell in self._cells():
            if cell.role != "log" and cell.block_bytes and cell.outstanding:
                by_workload.setdefault(cell.workload, []).append(cell)
        if not by_workload:
            raise InputError(
                f"the probe of {self.label} (suite {self.suite}) has no read latency; probe it with "
                "--suite database, iometer or crystaldiskmark"
            )
        chosen = min(
            by_workload.values(), key=lambda cells: _apart(cells[0], size_bytes, reads_ratio, len(cells))
        )
        cells = sorted(chosen, key=lambda cell: cell.outstanding or 0)
        free = [cell for cell in cells if not self._held(cell)]
        points = tuple((float(cell.outstanding or 1), self._mean_s(cell)) for cell in free)
        return Answered(
            workload=cells[0].workload,
            curve=Curve(points, ends=len(free) == len(cells)) if points else None,
            deepest=cells[-1].outstanding or 1,
            spread_ratio=max(map(self._spread, free or cells)),
        )

    def limits_of(self, reads_ratio: float | None) -> Limits | None:
        """The limits for I/O with this share of reads; None if unknown."""
        return self.caps.lowered(self.limits, reads_ratio)

    def _cells(self) -> Sequence[Cell]:
        return [cell for cell, one in self._figures.items() if one.iops and one.iops.mean and one.mean_s]

    def _written(self, weights: Mapping[Cell, float], *, flushed: bool) -> Written:
        mean_s = sum(weight * self._mean_s(cell) for cell, weight in weights.items())
        half_s = sum(weight * (self._figures[cell].p50_s or 0.0) for cell, weight in weights.items())
        held = all(map(self._held, weights))
        bursts = held and 0 < half_s <= _BURSTS * mean_s
        each_s: float | None = mean_s
        if held:
            each_s = half_s if bursts else None
        return Written(
            each_s=each_s,
            spacing_s=mean_s if held else None,
            bursts=bursts,
            spread_ratio=max(map(self._spread, weights)),
            cells=tuple(cell.name for cell in weights),
            flushed=flushed,
        )

    def _held(self, cell: Cell) -> bool:
        """Whether a cap limits the cell."""
        one, limits = self._figures[cell], self.limits_of(cell.read_ratio)
        if limits is None:
            return False
        unit = limits.io_unit_bytes
        units_per_io = max(1.0, (cell.block_bytes or 0) / unit) if unit else 1.0
        pairs = ((one.iops, limits.iops, units_per_io), (one.bytes_per_s, limits.bytes_per_s, 1.0))
        return any(done and cap and done.middle * each >= (1 - _AT_CAP) * cap for done, cap, each in pairs)

    def _mean_s(self, cell: Cell) -> float:
        return self._figures[cell].mean_s or 0.0

    def _spread(self, cell: Cell) -> float:
        iops = self._figures[cell].iops
        return max(LEAST_SPREAD, iops.spread_ratio if iops else 0.0)


def _apart(cell: Cell, size_bytes: float | None, reads_ratio: float, depths: int) -> tuple[float, ...]:
    """The distance of a workload from the given I/O: size and kind, then order, then few queue depths."""
    size = abs(math.log2((cell.block_bytes or 1) / size_bytes)) if size_bytes else 0.0
    kind = _KINDS_APART * abs((cell.read_ratio or 0.0) - reads_ratio)
    return size + kind, 1 - (cell.random_ratio or 0.0), -depths


def probed_disk(kept: Path) -> MeasuredDisk:
    """The disk of a saved probe, from its directory or its probe.json. Raises InputError."""
    if kept.is_file() and kept.name != PROBE:
        raise InputError(
            f"{kept}: is neither the directory of a probe nor a {PROBE}; `pinchpoint probe` makes one"
        )
    return measured_disk(load(kept.parent if kept.is_file() else kept))


def measured_disk(probe: Probe) -> MeasuredDisk:
    """The disk of a probe. Raises InputError if no IOPS were measured."""
    verdict, result = judge(probe), figures(probe)
    if not any(one.iops for one in result.values()):
        raise InputError(
            f"the probe of {probe.where.label} measured no IOPS; repeat it, for example with --suite database"
        )
    return MeasuredDisk(
        label=probe.where.label,
        suite=probe.suite,
        limits=verdict.limits,
        limits_are=verdict.limits_are,
        caps=verdict.caps,
        _figures=result,
    )
