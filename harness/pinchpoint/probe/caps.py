"""Finds the caps of a probed disk, and the catalogue types with the same caps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from pinchpoint.analysis.resources.disk.types import caps_words
from pinchpoint.analysis.thresholds import CAP_MATCH, FLAT, IRREGULAR, MIN_STEPS
from pinchpoint.base import units
from pinchpoint.data.inputs import Limits
from pinchpoint.probe.figures import Figures, TrialMean
from pinchpoint_infra.catalogue import BurstAllowance, Profile, catalogue
from pinchpoint_scenarios.storage_probe import Cell

FiguresByCell = Mapping[Cell, Figures]
QUEUED = 1.5
"""I/Os are queued if their latency is at least this many times the latency at the lowest queue depth (design
value)."""
PARTS = (2**17, 2**18, 2**19, 2**20)
"""Sizes in bytes of the parts into which large I/Os are split on their way to the device."""
PART_MATCH = 0.015
"""Bytes per second ÷ I/Os per second equals a part size if it is within 1.5 % of it (design value). Hardly
any type on sale has caps in this ratio; for such a type both interpretations agree."""
WORKLOADS = 2
"""Workloads that must share a rate before it counts as a cap (design value)."""
REGULAR = 0.005
"""Largest difference between repetitions under a regulator, as a ratio (design value)."""
WAYS = ("read", "write")


@dataclass(frozen=True, slots=True)
class Cap:
    """One cap of a disk.

    Attributes:
        value: I/Os or bytes per second, the median of the cells at the cap.
        cells: the cells at the cap.
        why: the evidence for the cap, in words.
        unit_bytes: each started block of this many bytes counts as one I/O; None if every I/O counts once.
    """

    value: float
    cells: tuple[Cell, ...]
    why: str
    unit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MeasuredCaps:
    """The measured caps of a disk; None for a kind of cap that was not found.

    Attributes:
        iops: cap on the I/Os per second of all I/O.
        bytes_per_s: cap on the bytes per second of all I/O.
        read_iops, read_bytes_per_s, write_iops, write_bytes_per_s: caps on reads or writes alone, where
            the caps on all I/O do not explain them.
    """

    iops: Cap | None = None
    bytes_per_s: Cap | None = None
    read_iops: Cap | None = None
    read_bytes_per_s: Cap | None = None
    write_iops: Cap | None = None
    write_bytes_per_s: Cap | None = None

    @property
    def limits(self) -> Limits | None:
        """The caps on all I/O as ``Limits``; None if there are none."""
        if self.iops is None and self.bytes_per_s is None:
            return None
        return Limits(
            self.iops.value if self.iops else None,
            self.bytes_per_s.value if self.bytes_per_s else None,
            self.iops.unit_bytes if self.iops else None,
        )

    def __iter__(self) -> Iterator[tuple[str, Cap]]:
        """(name, cap) of each cap that was found."""
        result = ((each.name, getattr(self, each.name)) for each in fields(self))
        return ((name, cap) for name, cap in result if cap is not None)

    def lowered(self, limits: Limits | None, read_ratio: float | None) -> Limits | None:
        """The limits of I/O with this share of reads, lowered where a cap on reads or writes is stricter."""
        if read_ratio is None:
            return limits
        result = limits or Limits(None, None, None)
        for way, share in zip(WAYS, (read_ratio, 1 - read_ratio), strict=True):
            iops, size = getattr(self, f"{way}_iops"), getattr(self, f"{way}_bytes_per_s")
            if iops and share and _below(iops.value / share, result.iops):
                result = replace(result, iops=iops.value / share, io_unit_bytes=iops.unit_bytes)
            if size and share and _below(size.value / share, result.bytes_per_s):
                result = replace(result, bytes_per_s=size.value / share)
        return result if result.iops or result.bytes_per_s else limits


def _below(one: float, other: float | None) -> bool:
    return other is None or one < other * (1 - CAP_MATCH.value)


def find_caps(figures: FiguresByCell) -> MeasuredCaps:
    """Find the caps of all kinds. A cap that another one fully explains is left out.

    A cap in bytes per second is also left out if it equals the cap in I/Os times a part size into which large
    I/Os are split. With a single block size the two caps cannot be distinguished, and the result is a cap in
    I/Os.
    """
    raw = {each.name: cap for each in fields(MeasuredCaps) if (cap := _cap(figures, each.name))}
    # A mixed workload limited by a read or write cap also has a constant total rate, which is not a cap on
    # all I/O.
    common = {name: cap for name, cap in raw.items() if not name.startswith(WAYS)}
    common = {name: cap for name, cap in common.items() if not _of_a_way(figures, name, cap, raw)}
    apart = {
        name: cap
        for name, cap in raw.items()
        if name.startswith(WAYS)
        and not any(_stands(figures, cap.cells, other, of) for of, other in common.items())
    }
    kept = [
        pair for way in ("", "read_", "write_") for pair in _one_or_both(figures, {**common, **apart}, way)
    ]
    return MeasuredCaps(**dict(kept))


def _of_a_way(figures: FiguresByCell, name: str, cap: Cap, raw: Mapping[str, Cap]) -> bool:
    """Whether a cap on reads or writes alone explains the cap on all I/O and further cells too."""
    ways = [(of, other) for of, other in raw.items() if of.startswith(WAYS)]
    return any(
        _stands(figures, cap.cells, other, of) and not _stands(figures, other.cells, cap, name)
        for of, other in ways
    )


def _one_or_both(figures: FiguresByCell, raw: Mapping[str, Cap], way: str) -> Iterator[tuple[str, Cap]]:
    """The caps in I/Os and in bytes, or only the one that explains both."""
    of_io, of_size = f"{way}iops", f"{way}bytes_per_s"
    iops, size = raw.get(of_io), raw.get(of_size)
    if iops and size:
        unit = next((one for one in PARTS if abs(size.value / iops.value / one - 1) <= PART_MATCH), None)
        if _stands(figures, size.cells, iops, of_io):
            size = None
        elif _stands(figures, iops.cells, size, of_size):
            iops = None
        elif unit:
            parts = f"; larger I/Os count once per {unit // 1024} KiB"
            iops, size = replace(iops, unit_bytes=unit, why=iops.why + parts), None
    yield from ((name, cap) for name, cap in ((of_io, iops), (of_size, size)) if cap)


def _stands(figures: FiguresByCell, cells: Sequence[Cell], cap: Cap, name: str) -> bool:
    """Whether all ``cells`` are at the cap, measured by the rate ``name``."""
    means = [_rate(figures[cell], name) for cell in cells]
    return all(mean is not None and abs(mean.middle / cap.value - 1) <= CAP_MATCH.value for mean in means)


def _rate(figures: Figures, name: str) -> TrialMean | None:
    rate: TrialMean | None = getattr(figures, name)
    return rate


def _cap(figures: FiguresByCell, name: str) -> Cap | None:
    """The cap on the rate ``name`` (a field of ``Figures``); None if there is none."""
    rates = {cell: mean for cell, one in figures.items() if (mean := _rate(one, name)) and mean.middle}
    if not rates:
        return None
    highest = max(mean.middle for mean in rates.values())
    # Two cells at the same cap each vary around its middle, so the tolerance is twice that of one match.
    near = [cell for cell, mean in rates.items() if mean.middle >= highest * (1 - 2 * CAP_MATCH.value)]
    waiting = [cell for cell in near if queued(figures, cell)]
    if not waiting:
        return None
    level = float(np.median([rates[cell].middle for cell in waiting]))
    at = [
        cell
        for cell in near
        if abs(rates[cell].middle / level - 1) <= max(CAP_MATCH.value, counted_ratio(figures[cell]))
    ]
    way = next((each for each in WAYS if name.startswith(each)), None)
    even = [cell for cell in waiting if _even(figures[cell], rates[cell], steps=not (way and _mixed(cell)))]
    held = [cell for cell in even if cell in at and _stays(figures, cell, at)]
    # A cell that waits for each I/O, or that was disturbed, may stay below a cap, but no cell may exceed it.
    against = [cell for cell in near if cell not in at and (cell in even or rates[cell].middle > level)]
    if against or not held:
        return None
    why = _shared(held, rates, name)
    if way:
        why = (why or _alone(figures, held, rates, name)) if _regular(figures, at, rates) else None
    return Cap(value=level, cells=tuple(at), why=why) if why else None


def _shared(held: Sequence[Cell], rates: Mapping[Cell, TrialMean], name: str) -> str | None:
    """Why a rate is a cap, if workloads of different kinds share it; else None."""
    workloads = dict.fromkeys(cell.workload for cell in held)
    if min(len(workloads), len({_kind(cell, name) for cell in held})) < WORKLOADS:
        return None
    at = {cell.workload: rate(name, rates[cell].middle) for cell in held}
    listed = ", ".join(f"{workload} {found}" for workload, found in [*at.items()][:4])
    more = f" and {len(at) - 4} more" if len(at) > 4 else ""
    do = next((each for each in WAYS if name.startswith(each)), "run")
    return f"{len(workloads)} workloads {do} at the same rate with queued I/Os ({listed}{more})"


def _kind(cell: Cell, name: str) -> tuple[float | None, ...]:
    """The properties in which workloads must differ before a shared rate shows a regulator.

    A device may write the same I/Os or bytes per second in any order, and the same bytes in any block size,
    but fewer of them when it also reads.
    """
    if not name.startswith(WAYS):
        return (cell.block_bytes, cell.read_ratio, cell.random_ratio)
    return (cell.block_bytes, cell.read_ratio) if name.endswith("iops") else (cell.read_ratio,)


def _alone(
    figures: FiguresByCell, held: Sequence[Cell], rates: Mapping[Cell, TrialMean], name: str
) -> str | None:
    """Why a rate is a cap, if only one workload reaches it; None without figures per second."""
    if all(_mixed(cell) or figures[cell].irregular_ratio is None for cell in held):
        return None
    listed = ", ".join(f"{cell.name} {rate(name, rates[cell].middle)}" for cell in held[:4])
    return f"one constant rate with queued I/Os, more even than any device reaches: {listed}"


def _regular(figures: FiguresByCell, at: Sequence[Cell], rates: Mapping[Cell, TrialMean]) -> bool:
    """Whether reads or writes are more regular than a device alone, by seconds or by repetitions.

    There are many rates of reads alone and writes alone, and some agree by chance.
    """
    pure = [cell for cell in at if not _mixed(cell)]
    reported = [cell for cell in pure if figures[cell].irregular_ratio is not None]
    if sum(figures[cell].seconds or 0.0 for cell in reported) >= MIN_STEPS.value:
        return median(figures[cell].irregular_ratio or 0.0 for cell in reported) < IRREGULAR.value
    repeated = [cell for cell in pure if figures[cell].trials > 1]
    return bool(repeated) and all(
        rates[cell].usual_spread_ratio <= max(REGULAR, counted_ratio(figures[cell])) for cell in repeated
    )


def _mixed(cell: Cell) -> bool:
    """Whether a cell mixes reads and writes; their ratio varies by chance, not by a regulator."""
    return cell.read_ratio not in (0, 1)


def rate(name: str, value: float) -> str:
    """A rate in words; ``name`` decides between I/Os and bytes per second."""
    return units.iops(value) if name.endswith("iops") else units.of_metric("_bytes_per_s", value)


def _stays(figures: FiguresByCell, cell: Cell, at: Sequence[Cell]) -> bool:
    """Whether most cells of the workload at this or a higher queue depth are at the cap: a peak is no cap."""
    deeper = [
        one
        for one in figures
        if one.workload == cell.workload and (one.outstanding or 0) >= (cell.outstanding or 0)
    ]
    return sum(one in at for one in deeper) * 2 > len(deeper)


def _even(figures: Figures, rate: TrialMean, *, steps: bool) -> bool:
    """Whether most repetitions, and with ``steps`` also the steps, vary as little as under a regulator."""
    flat = not steps or figures.uneven_ratio is None or figures.uneven_ratio <= FLAT.value
    return flat and rate.usual_spread_ratio <= max(FLAT.value, counted_ratio(figures))


def counted_ratio(figures: Figures) -> float:
    """The relative error of a rate from counting: one I/O of the I/Os per repetition."""
    each = figures.iops.middle * figures.seconds / figures.trials if figures.iops and figures.seconds else 0.0
    return 1 / each if each else 0.0


def queued(figures: FiguresByCell, cell: Cell) -> bool:
    """Whether the latency of a cell is clearly above that of the same workload at the lowest queue depth."""
    one = figures[cell]
    shallow = shallowest(figures, cell)
    if one.mean_s is None or shallow is None or shallow == cell:
        return False
    least = figures[shallow].mean_s
    return least is not None and one.mean_s >= QUEUED * least


def shallowest(figures: FiguresByCell, cell: Cell) -> Cell | None:
    """The cell of the same workload with the lowest queue depth."""
    same: Sequence[Cell] = [
        one for one in figures if one.workload == cell.workload and one.outstanding is not None
    ]
    return min(same, key=lambda one: one.outstanding or 0, default=None)


CLOSE = 0.05
"""Relative difference within which a cap counts as the cap of a catalogue type (design value)."""


@dataclass(frozen=True, slots=True)
class MatchingType:
    """A catalogue type with the same caps.

    Attributes:
        name: the name of the type in the catalogue.
        stripes: number of striped disks of the type.
        at: ``caps`` or ``burst``: which figures of the type the measured caps match.
        words: the matching figures in words.
        source: the source of the figures.
    """

    name: str
    stripes: int
    at: str
    words: str
    source: str

    @property
    def type(self) -> str:
        """The type with the number of stripes: ``azure/p30``, ``2 x azure/p30``."""
        return f"{self.stripes} x {self.name}" if self.stripes > 1 else self.name

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON types."""
        return asdict(self)


def types_with(
    caps: Limits | None,
    most_iops: float | None,
    most_bytes_per_s: float | None,
    stripes: Iterable[int] = (1,),
) -> tuple[MatchingType, ...]:
    """The types whose caps match the measured ones and that allow the highest measured rates.

    Args:
        caps: the measured caps; None if none were found, which gives an empty result.
        most_iops: the highest I/Os per second of any cell.
        most_bytes_per_s: the highest bytes per second of any cell.
        stripes: the numbers of stripes to consider; with an arbitrary number, some type always matches.
    """
    if caps is None:
        return ()
    result = []
    for entry in catalogue().values():
        if entry.kind != "disk":
            continue
        for count, (at, figures) in product(stripes, (("caps", entry), ("burst", entry.burst))):
            if figures and _fits(figures, count, caps, most_iops, most_bytes_per_s):
                burst = f"burst of {units.iops((figures.iops or 0.0) * count)}"
                words = caps_words(entry, count) if at == "caps" else burst
                result.append(MatchingType(entry.name, count, at, words, entry.source))
    return tuple(result)


def _fits(
    figures: Profile | BurstAllowance,
    count: int,
    caps: Limits,
    most_iops: float | None,
    most_bytes_per_s: float | None,
) -> bool:
    pairs = ((figures.iops, caps.iops, most_iops), (figures.bytes_per_s, caps.bytes_per_s, most_bytes_per_s))
    for of_one, result, most in pairs:
        of_type = of_one and of_one * count
        if result is not None and (of_type is None or abs(result / of_type - 1) > CLOSE):
            return False
        if result is None and of_type is not None and most is not None and most > of_type * (1 + CLOSE):
            return False
    return True
