"""The caps a probe has found: a rate that workloads share, and that more outstanding I/O does not raise.

A device serves reads, writes, small and large I/Os at rates of their own; a regulator counts them all alike.
So a cap is found where two workloads or more stand at the same highest rate (within 3 %), each with I/O
waiting for I/O (its latency has grown with what is outstanding), without a device's spread, and as long as
more is outstanding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.inputs import Limits
from pinchpoint.analysis.thresholds import CAP_MATCH, FLAT
from pinchpoint.probe.figures import Figures, Mean
from pinchpoint.report import units
from pinchpoint_scenarios.storage_probe import Cell

Found = Mapping[Cell, Figures]
QUEUED = 1.5
"""I/O waits for I/O where it takes half as long again as with the least outstanding (our value)."""
PARTS = (2**17, 2**18, 2**19, 2**20)
"""On their way to the device large I/Os are split into parts of such a size."""
PART_MATCH = 0.015
"""Bytes are that many parts a second where they are within 1.5 % of it (our value). Hardly any type on sale
has such a pair of caps; where one has, both say the same."""
WORKLOADS = 2
"""A rate that two workloads share is none of a device's (our value)."""


@dataclass(frozen=True, slots=True)
class Cap:
    """One limit.

    Attributes:
        value: I/Os or bytes per second, the median of the cells that stand at it.
        cells: which.
        why: the arithmetic.
        unit_bytes: an I/O counts as one for every so many bytes begun; None: any I/O is one.
    """

    value: float
    cells: tuple[Cell, ...]
    why: str
    unit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """What was found; None: no such limit showed.

    Attributes:
        iops: I/Os per second.
        bytes_per_s: bytes per second.
    """

    iops: Cap | None
    bytes_per_s: Cap | None

    @property
    def limits(self) -> Limits | None:
        """As the rules of a run take them; None where nothing was found."""
        if self.iops is None and self.bytes_per_s is None:
            return None
        return Limits(
            self.iops.value if self.iops else None,
            self.bytes_per_s.value if self.bytes_per_s else None,
            self.iops.unit_bytes if self.iops else None,
        )


def find_caps(found: Found) -> Caps:
    """Look for both kinds; where one of them explains all that the other would, there is only that one.

    Also where bytes per second are the I/Os per second times a part into which large I/Os are split. Of one
    size of I/O alone the two cannot be told apart: it is then called a cap of I/Os.
    """
    iops = _cap(found, lambda one: one.iops, units.iops)
    size = _cap(found, lambda one: one.bytes_per_s, lambda value: units.of_metric("_bytes_per_s", value))
    if iops and size:
        if _stands(found, size.cells, iops.value, lambda one: one.iops):
            return Caps(iops, None)
        if _stands(found, iops.cells, size.value, lambda one: one.bytes_per_s):
            return Caps(None, size)
        unit = next((one for one in PARTS if abs(size.value / iops.value / one - 1) <= PART_MATCH), None)
        if unit:
            parts = f"; larger I/Os are split, and each part of {unit // 1024} KiB counts"
            return Caps(replace(iops, unit_bytes=unit, why=iops.why + parts), None)
    return Caps(iops, size)


def _stands(
    found: Found, cells: Sequence[Cell], level: float, rate: Callable[[Figures], Mean | None]
) -> bool:
    """Whether all of these stand at that level."""
    means = [rate(found[cell]) for cell in cells]
    return all(mean is not None and abs(mean.middle / level - 1) <= CAP_MATCH.value for mean in means)


def _cap(found: Found, rate: Callable[[Figures], Mean | None], words: Callable[[float], str]) -> Cap | None:
    rates = {cell: mean for cell, one in found.items() if (mean := rate(one)) is not None and mean.middle}
    if not rates:
        return None
    highest = max(mean.middle for mean in rates.values())
    # Two cells at a cap differ by their own spread: twice what a match allows, around their middle.
    near = [cell for cell, mean in rates.items() if mean.middle >= highest * (1 - 2 * CAP_MATCH.value)]
    waiting = [cell for cell in near if queued(found, cell)]
    if not waiting:
        return None
    level = float(np.median([rates[cell].middle for cell in waiting]))
    at = [
        cell
        for cell in near
        if abs(rates[cell].middle / level - 1) <= max(CAP_MATCH.value, counted_ratio(found[cell]))
    ]
    even = [cell for cell in waiting if _even(found[cell], rates[cell])]
    held = [cell for cell in even if cell in at and _stays(found, cell, at)]
    workloads = list(dict.fromkeys(cell.workload for cell in held))
    # Who waits for his I/O before he issues the next may stay below a cap, and so may who was disturbed;
    # nobody exceeds it.
    against = [cell for cell in near if cell not in at and (cell in even or rates[cell].middle > level)]
    if len(workloads) < WORKLOADS or against:
        return None
    if len({(cell.block_bytes, cell.read_ratio, cell.random_ratio) for cell in held}) < WORKLOADS:
        return None
    listed = ", ".join(f"{cell.name} {words(rates[cell].middle)}" for cell in held[:4])
    more = f" and {len(held) - 4} more" if len(held) > 4 else ""
    return Cap(
        value=level,
        cells=tuple(at),
        why=f"{len(workloads)} workloads stand at the same rate with I/O waiting for I/O: {listed}{more}",
    )


def _stays(found: Found, cell: Cell, at: Sequence[Cell]) -> bool:
    """Whether most cells of the workload with as much outstanding, or more, stand there: a peak is no cap."""
    deeper = [
        one
        for one in found
        if one.workload == cell.workload and (one.outstanding or 0) >= (cell.outstanding or 0)
    ]
    return sum(one in at for one in deeper) * 2 > len(deeper)


def _even(one: Figures, rate: Mean) -> bool:
    """Whether most repetitions and, where they are known, steps differ as little as a regulator's do."""
    steps = one.uneven_ratio is None or one.uneven_ratio <= FLAT.value
    return steps and rate.usual_spread_ratio <= max(FLAT.value, counted_ratio(one))


def counted_ratio(one: Figures) -> float:
    """How exactly a rate is known that was found by counting: by one I/O of a repetition's."""
    each = one.iops.middle * one.seconds / one.trials if one.iops and one.seconds else 0.0
    return 1 / each if each else 0.0


def queued(found: Found, cell: Cell) -> bool:
    """Whether latency there is clearly more than that of the same workload with the least outstanding."""
    one = found[cell]
    shallow = shallowest(found, cell)
    if one.mean_s is None or shallow is None or shallow == cell:
        return False
    least = found[shallow].mean_s
    return least is not None and one.mean_s >= QUEUED * least


def shallowest(found: Found, cell: Cell) -> Cell | None:
    """The cell of the same workload with the least outstanding."""
    same: Sequence[Cell] = [
        one for one in found if one.workload == cell.workload and one.outstanding is not None
    ]
    return min(same, key=lambda one: one.outstanding or 0, default=None)
