"""What a probed disk takes for an application's I/O: one flush of a log, a page read, and its caps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.analysis.inputs import Limits
from pinchpoint.errors import InputError
from pinchpoint.probe.figures import Figures, figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe
from pinchpoint.probe.words import rate
from pinchpoint.report import units
from pinchpoint_scenarios.storage_probe import Cell

LEAST_SPREAD = 0.02
"""Of a latency that was measured once, or alike each time, so much is still not known (our value)."""
MIDDLE = 0.5
"""Between two measured depths the truth lies between two shapes: half-way, in logarithms."""
_AT_CAP = 0.05
"""Single writes are held by a cap from 5 % below it on (our value)."""
_KINDS_APART = 4.0
"""A read is as far from a write as an I/O is from one of sixteen times its size (our value)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one I/O takes.

    Attributes:
        mean_s: seconds.
        spread_ratio: half of what lies between the repetitions, as a share of the mean.
        cells: the cells it rests on.
        assumes: what must hold beside that.
        at_cap_s: where these I/Os, one at a time, were as many as a cap lets through: the time from one to
            the next. How long each takes the cap hides: anything up to that. None where no cap held them.
    """

    mean_s: float
    spread_ratio: float
    cells: tuple[str, ...]
    assumes: tuple[str, ...] = ()
    at_cap_s: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """Latency over the rate, of one workload.

    Attributes:
        workload: its name.
        points: (outstanding, I/Os per second, seconds each), by what is outstanding; neither ever falls.
        spread_ratio: as of ``Taken``.
    """

    workload: str
    points: tuple[tuple[float, float, float], ...]
    spread_ratio: float

    @property
    def most_per_s(self) -> float:
        """The highest rate that was measured."""
        return self.points[-1][1]

    def latency_s(self, per_s: float, shape: float = MIDDLE) -> float:
        """Seconds of an I/O at that rate; infinite above all that was measured.

        Args:
            per_s: I/Os per second.
            shape: between two measured depths: 0 as of a regulator (latency stays until the higher rate is
                reached), 1 as of a device (evenly, in logarithms of both); in between likewise.
        """
        if per_s > self.most_per_s:
            return math.inf
        before = self.points[0]
        for point in self.points:
            if per_s <= point[1]:
                return _between(before, point, per_s, shape)
            before = point
        return math.inf


def _between(
    before: tuple[float, float, float], after: tuple[float, float, float], per_s: float, shape: float
) -> float:
    depth, low, latency_s = before
    deeper, high, _ = after
    if per_s <= low or high <= low:
        return latency_s
    share = math.log(per_s / low) / math.log(high / low)
    even_s = math.exp(math.log(depth) + share * math.log(deeper / depth)) / per_s
    return float(latency_s ** (1 - shape) * max(even_s, latency_s) ** shape)


@dataclass(frozen=True, slots=True)
class ProbedDisk:
    """A probe, as far as an application meets it.

    Attributes:
        label: which disk, in words.
        suite: of the probe.
        limits: its caps as found, or as declared where the probe does not contradict; None: none are known.
        limits_are: which of both.
    """

    label: str
    suite: str
    limits: Limits | None
    limits_are: str | None
    _figures: Mapping[Cell, Figures]

    def flush_io(self, size_bytes: float | None) -> Taken:
        """One write of a log, on the disk before it ends. Raises InputError where no cell tells."""
        ones = [cell for cell in self._cells() if cell.read_ratio == 0 and cell.outstanding == 1]
        logs = [cell for cell in ones if cell.role == "log"]
        found = sorted(logs or ones, key=lambda cell: (cell.block_bytes or 0, cell.random_ratio or 0))
        if not found:
            raise InputError(
                f"--predict: the probe of {self.label} (suite {self.suite}) has no cell of writes one at a "
                "time; probe it with --suite database"
            )
        assumes = () if logs else ("a write that is flushed takes as long as one that is not",)
        size = size_bytes or float(found[0].block_bytes or 0)
        small, large = found[0], found[-1]
        if small.block_bytes == large.block_bytes or len(found) == 1:
            return self._taken((small,), assumes, {small: 1.0})
        sizes = float(small.block_bytes or 0), float(large.block_bytes or 0)
        share = min(1.0, max(0.0, (size - sizes[0]) / (sizes[1] - sizes[0])))
        return self._taken((small, large), assumes, {small: 1 - share, large: share})

    def reads(self, size_bytes: float | None, reads_ratio: float) -> Curve:
        """The curve of the workload most like that. Raises InputError where none tells."""
        by_workload: dict[str, list[Cell]] = {}
        for cell in self._cells():
            if cell.role != "log" and cell.block_bytes and cell.outstanding:
                by_workload.setdefault(cell.workload, []).append(cell)
        if not by_workload:
            raise InputError(
                f"--predict: the probe of {self.label} (suite {self.suite}) tells no latency of reads; "
                "probe it with --suite database, iometer or crystaldiskmark"
            )
        chosen = min(
            by_workload.values(), key=lambda cells: _apart(cells[0], size_bytes, reads_ratio, len(cells))
        )
        return self._curve(sorted(chosen, key=lambda cell: cell.outstanding or 0))

    def _cells(self) -> Sequence[Cell]:
        return [cell for cell, one in self._figures.items() if one.iops and one.iops.mean and one.mean_s]

    def _taken(self, cells: Sequence[Cell], assumes: tuple[str, ...], weights: Mapping[Cell, float]) -> Taken:
        used = [cell for cell in cells if weights[cell]]
        mean_s = sum(weights[cell] * (self._figures[cell].mean_s or 0.0) for cell in used)
        spread = max(self._spread(cell) for cell in used)
        names = tuple(cell.name for cell in used)
        held = self.limits is not None and all(self._held(cell, self.limits) for cell in used)
        if held:
            hidden = (
                "a cap held the probe's single writes: each may take less than the time from one to the next"
            )
            assumes = (*assumes, hidden)
        return Taken(mean_s, spread, names, assumes, mean_s if held else None)

    def _held(self, cell: Cell, limits: Limits) -> bool:
        """Whether a cell stands at one of the caps."""
        one = self._figures[cell]
        pairs = ((one.iops, limits.iops), (one.bytes_per_s, limits.bytes_per_s))
        return any(mean and cap and mean.mean >= (1 - _AT_CAP) * cap for mean, cap in pairs)

    def _curve(self, cells: Sequence[Cell]) -> Curve:
        points: list[tuple[float, float, float]] = []
        for cell in cells:
            one = self._figures[cell]
            per_s = max(one.iops.mean if one.iops else 0.0, points[-1][1] if points else 0.0)
            points.append((float(cell.outstanding or 1), per_s, one.mean_s or 0.0))
        spread = max(self._spread(cell) for cell in cells)
        return Curve(cells[0].workload, _rising(points), spread)

    def _spread(self, cell: Cell) -> float:
        iops = self._figures[cell].iops
        return max(LEAST_SPREAD, iops.spread_ratio if iops else 0.0)


def _rising(points: Sequence[tuple[float, float, float]]) -> tuple[tuple[float, float, float], ...]:
    """No disk answers sooner because more is asked of it: what was slower with less met something else."""
    found: list[tuple[float, float, float]] = []
    for depth, per_s, latency_s in reversed(points):
        deeper = found[-1] if found else None
        least_s = min(latency_s, deeper[2]) if deeper else latency_s
        rate = max(per_s, depth / least_s if least_s else per_s)
        found.append((depth, min(rate, deeper[1]) if deeper else rate, least_s))
    return tuple(reversed(found))


def _apart(cell: Cell, size_bytes: float | None, reads_ratio: float, depths: int) -> tuple[float, ...]:
    """How far a workload is from what is asked for: size and kind, then order, then how little it tells."""
    size = abs(math.log2((cell.block_bytes or 1) / size_bytes)) if size_bytes else 0.0
    kind = _KINDS_APART * abs((cell.read_ratio or 0.0) - reads_ratio)
    return size + kind, 1 - (cell.random_ratio or 0.0), -depths


def probed_disk(probe: Probe) -> ProbedDisk:
    """A probe's disk. Raises InputError where nothing was measured."""
    verdict, found = judge(probe), figures(probe)
    if not any(one.iops for one in found.values()):
        raise InputError(
            f"--predict: the probe of {probe.where.label} measured no I/Os per second; make it again, or "
            "with --suite database"
        )
    return ProbedDisk(probe.where.label, probe.suite, verdict.limits, verdict.limits_are, found)


def limits_told(limits: Limits) -> str:
    """``500 IOPS counted per 8.19 kB, 60 MB/s``."""
    parts = []
    if limits.iops:
        unit = f" counted per {units.bytes_(limits.io_unit_bytes)}" if limits.io_unit_bytes else ""
        parts.append(rate("iops", limits.iops) + unit)
    if limits.bytes_per_s:
        parts.append(rate("bytes_per_s", limits.bytes_per_s))
    return ", ".join(parts)
