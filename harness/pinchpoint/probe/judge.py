"""Finds what limits a probed disk, by the rules of a run (``analysis.disk_points``). Pure.

Cells are compared with the declared limits, or with the measured caps. Reads above the declared limit, or
reads that become faster when repeated, may come from a cache on the host below the guest. The guest's own
page cache is not involved, because the probe uses direct I/O or drops the cache.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from pinchpoint.analysis.disk_points import NO_LIMIT, Judged, Point, judge_points
from pinchpoint.analysis.thresholds import CAP_MATCH, IRREGULAR
from pinchpoint.data.inputs import Limits
from pinchpoint.probe import over_time, words
from pinchpoint.probe.caps import MeasuredCaps, counted_ratio, find_caps, queued, types_with
from pinchpoint.probe.figures import Figures, TrialMean, figures, highest, trial_figures
from pinchpoint.probe.over_time import Fall, RateChange, between, settled
from pinchpoint.probe.record import DeclaredDisk, Probe
from pinchpoint.probe.verdict import CellVerdict, ProbeVerdict, WorkloadVerdict
from pinchpoint_scenarios.storage_probe import Cell


@dataclass(frozen=True, slots=True)
class ComparedLimits:
    """The limits with which cells are compared.

    Attributes:
        limits: the limits; None if nothing is known.
        burst: the limits with burst credits; None if there are none.
        which: the origin of the limits: ``declared``, ``found`` or ``both``; None without limits.
    """

    limits: Limits | None
    burst: Limits | None
    which: str | None

    def lowered(self, caps: MeasuredCaps, reads_ratio: float | None) -> ComparedLimits:
        """The limits for I/O with this share of reads, as reads or writes may have lower limits."""
        limits = caps.lowered(self.limits, reads_ratio)
        return self if limits == self.limits else ComparedLimits(limits, None, "found")


def held_against(
    declared: DeclaredDisk, caps: MeasuredCaps, contradicted: str | None, fall: Fall | None
) -> ComparedLimits:
    """The declared limits, unless the measurements contradict them; else the measured caps."""
    answer, result = declared.limits, caps.limits
    before = fall.limits if fall else None
    if answer is None or contradicted is not None:
        return ComparedLimits(result, before, "found") if result else ComparedLimits(None, None, None)
    rest = result or answer
    whole = replace(answer, iops=answer.iops or rest.iops, bytes_per_s=answer.bytes_per_s or rest.bytes_per_s)
    return ComparedLimits(whole, declared.burst or before, "declared" if whole == answer else "both")


def contradicted(declared: DeclaredDisk, caps: MeasuredCaps, trusted: Mapping[Cell, Figures]) -> str | None:
    """Why the declared limits are wrong: the disk has other caps or exceeds the limits; else None."""
    limits = declared.limits
    if limits is None:
        return None
    unit = limits.io_unit_bytes
    as_bytes = limits.iops * unit if limits.iops and unit else None
    for name, cap, allowed in (
        ("iops", caps.iops, (limits.iops, declared.burst and declared.burst.iops)),
        (
            "bytes_per_s",
            caps.bytes_per_s,
            (limits.bytes_per_s, declared.burst and declared.burst.bytes_per_s, as_bytes),
        ),
    ):
        known = [value for value in allowed if value]
        if cap and known and all(abs(cap.value / value - 1) > CAP_MATCH.value for value in known):
            return words.contradiction(name, known[0], cap.value)
        rates = [mean for one in trusted.values() if (mean := getattr(one, name)) is not None]
        done = [mean.middle for mean in rates if known and _exceeds(mean, max(known))]
        if done:
            return words.exceeded(name, max(known), max(done))
    return None


def _exceeds(rate: TrialMean, limit: float) -> bool:
    """Whether a rate is above a limit by more than the spread of its repetitions.

    After a pause of the machine, a regulator lets the delayed I/Os through, so a single repetition may exceed
    the limit.
    """
    return rate.middle > limit * (1 + max(CAP_MATCH.value, rate.spread_ratio))


def reads_above(value: Mapping[Cell, Figures], declared: DeclaredDisk) -> dict[Cell, str]:
    """Cell -> the exceeded limit, for reads above the declared limits while no write is above them.

    If writes exceed the limits too, the declaration is wrong, and the result is empty.
    """
    above = {cell: name for cell, one in value.items() if (name := _above(one, declared))}
    if any(cell.read_ratio == 0 for cell in above):
        return {}
    return {cell: name for cell, name in above.items() if cell.read_ratio}


def _allowed(name: str, declared: DeclaredDisk) -> float | None:
    """The highest declared limit of ``iops`` or ``bytes_per_s``; None if there is none."""
    given = [getattr(each, name) for each in (declared.limits, declared.burst) if each]
    return max((value for value in given if value), default=None)


def _above(one: Figures, declared: DeclaredDisk) -> str | None:
    for name, mean in (("iops", one.iops), ("bytes_per_s", one.bytes_per_s)):
        allowed = _allowed(name, declared)
        if mean and allowed and _exceeds(mean, allowed):
            return name
    return None


def _above_words(
    above: Mapping[Cell, str], value: Mapping[Cell, Figures], declared: DeclaredDisk
) -> tuple[str, ...]:
    """A sentence per limit: the measurement that exceeds it most, and the number of other measurements."""
    made = []
    for name in dict.fromkeys(above.values()):
        rates = {cell: getattr(value[cell], name).middle for cell, by in above.items() if by == name}
        cell, allowed = max(rates, key=lambda cell: rates[cell]), _allowed(name, declared) or math.nan
        made.append(words.above(cell, name, rates[cell], allowed, declared.profile, more=len(rates) - 1))
    return tuple(made)


def caps_but_of_reads(
    value: Mapping[Cell, Figures], caps: MeasuredCaps
) -> tuple[MeasuredCaps, tuple[str, ...]]:
    """Caps that hold for all cells with writes while reads alone are faster, with a sentence about the reads.

    If there are no such caps, the result is ``caps`` without a sentence.
    """
    written = find_caps({cell: one for cell, one in value.items() if cell.read_ratio != 1})
    for name, cap in written:
        ratios = {cell.read_ratio for cell in cap.cells}
        if name in ("iops", "bytes_per_s") and len(ratios) > 1:
            rates = {
                cell: mean.middle
                for cell, one in value.items()
                if cell.read_ratio == 1 and (mean := getattr(one, name))
            }
            most = max(rates, key=lambda cell: rates[cell], default=None)
            if most is not None:
                return written, (words.reads_apart(most, name, rates[most], cap.value),)
    return caps, ()


STEADY_TRIALS = 3
"""Repetitions of writes at the same rate that exclude a warm-up of the disk (design value)."""


def reads_of_memory(
    reads: RateChange | None, writes: RateChange | None, written: Sequence[Figures]
) -> tuple[str, ...]:
    """Sentences about reads that get faster with each repetition because of a cache, not a warm-up.

    Args:
        reads: the change of all reads over time.
        writes: the change of all writes over time; None if too little was measured.
        written: the figures of the cells that only write.
    """
    if reads is None or reads.move != "rose" or (writes is not None and writes.move == "rose"):
        return ()
    rates = [(one.trials, one.iops or one.bytes_per_s) for one in written]
    steady = bool(rates) and all(
        trials >= STEADY_TRIALS and rate is not None and rate.spread_ratio <= LITTLE for trials, rate in rates
    )
    return (words.remembered(reads, known=writes is not None or steady),)


LITTLE = 0.10
"""Relative difference above which the measured queue depth is shown beside the requested one (design
value)."""

FAR_MORE = 2.0
"""A cell is not near a cap if other cells reach this many times its rate (design value)."""

CLASSES = ((8, "very light"), (64, "light"), (128, "relatively heavy"), (512, "heavy"))
"""(highest number of outstanding I/Os, name of the load); above the last, very heavy. 8, 128, 256 and 1,024
come from a published series of storage tests; the other values are design values."""


TELLING_S = 5
"""Shortest repetition in seconds that shows what limits a disk, as in the suites (design value)."""


def reports(one: Figures) -> bool:
    """Whether a cell was measured long enough for a verdict: twice, or once for five seconds."""
    return one.trials > 1 or one.seconds is None or round(one.seconds) >= TELLING_S


def judge(probe: Probe) -> ProbeVerdict:
    """The verdict on a finished or unfinished probe."""
    result = {cell: one for cell, one in figures(probe).items() if one.iops or one.bytes_per_s}
    by_workload: dict[str, list[Cell]] = {}
    for cell in result:
        by_workload.setdefault(cell.workload, []).append(cell)
    deepest = [max(cells, key=lambda cell: cell.outstanding or 0) for cells in by_workload.values()]
    reads = over_time.of_group(probe, [cell for cell in deepest if cell.read_ratio == 1])
    writes = over_time.of_group(probe, [cell for cell in deepest if cell.read_ratio == 0])
    long = {cell: one for cell, one in result.items() if reports(one)}
    above = reads_above(long, probe.declared)
    suspected = _above_words(above, long, probe.declared)
    remembered = reads_of_memory(reads, writes, [one for cell, one in result.items() if cell.read_ratio == 0])
    fall = between(probe.cells)
    later = {cell: settled(probe.cells[cell], writes, fall) for cell in result}
    judged = {cell: trial_figures(trials) if trials else result[cell] for cell, trials in later.items()}
    doubtful = bool(above or remembered)
    trusted = {
        cell: judged[cell]
        for cell, trials in later.items()
        if trials and cell in long and not (doubtful and _reads(cell, above))
    }
    caps, apart = find_caps(trusted), tuple[str, ...]()
    if caps.limits is None and not doubtful:
        caps, apart = caps_but_of_reads(trusted, caps)
    contradiction = contradicted(probe.declared, caps, trusted)
    held = held_against(probe.declared, caps, contradiction, fall)
    workloads = tuple(
        _workload(
            probe,
            {cell: judged[cell] for cell in by_workload[cell.workload]},
            judged,
            ComparedLimits(None, None, None)
            if apart and cell.read_ratio == 1
            else held.lowered(caps, judged[cell].reads_ratio),
            fall,
            long,
            above,
        )
        for cell in deepest
    )
    kinds: dict[str, list[str]] = {}
    for one in workloads:
        if one.kind:
            kinds.setdefault(one.kind, []).append(one.workload)
    verdict = ProbeVerdict(
        kinds={kind: tuple(names) for kind, names in kinds.items()},
        caps=caps,
        limits=held.limits,
        limits_are=held.which,
        contradicted=contradiction,
        over_time=_over_time(workloads, deepest, reads, writes, remembered=bool(remembered)),
        host_cache=(*suspected, *remembered, *apart),
        declared_used=_declared_used(probe.declared, trusted or result),
        behaves_like=types_with(
            caps.limits,
            highest(trusted.values(), "iops", "middle"),
            highest(trusted.values(), "bytes_per_s", "middle"),
            sorted({1, probe.declared.stripes}),
        ),
        workloads=workloads,
    )
    return replace(verdict, answer=words.summary(verdict, probe, too_short=bool(result) and not long))


def _reads(cell: Cell, above: Mapping[Cell, str]) -> bool:
    """Whether a cell only reads, or belongs to a workload whose reads exceed the declared limits."""
    return cell.read_ratio == 1 or cell.workload in {one.workload for one in above}


def _workload(
    probe: Probe,
    value: Mapping[Cell, Figures],
    of_all: Mapping[Cell, Figures],
    held: ComparedLimits,
    fall: Fall | None,
    long: Collection[Cell],
    above: Collection[Cell],
) -> WorkloadVerdict:
    cells = sorted(value, key=lambda cell: cell.outstanding or 0)
    deepest = cells[-1]
    if held.limits is None and len(cells) == 1 and _did_more(deepest, of_all):
        held = replace(held, limits=NO_LIMIT)
    judged = _judged(cells, value, held)
    verdicts = tuple(
        _doubted(_cell(cell, value[cell], judged.get(cell), held), value[cell]) for cell in cells
    )
    if _by_chance([one for cell, one in value.items() if _at_no_limit(cell, verdicts)]):
        verdicts = tuple(
            replace(one, kind="disk_device") if one.kind == "disk_cap" and not one.exact else one
            for one in verdicts
        )
    if held.limits is NO_LIMIT:
        verdicts = tuple(replace(one, why=f"{one.why}; {words.NO_CAP}") for one in verdicts)
    verdicts = tuple(
        one
        if cell in long
        else replace(one, kind=None, limit=None, used_ratio=None, exact=False, why=words.TOO_SHORT)
        for cell, one in zip(cells, verdicts, strict=True)
    )
    # Reads from a cache show no limit of the disk.
    verdicts = tuple(
        replace(one, kind=None, exact=False, why=words.OF_A_CACHE) if cell in above else one
        for cell, one in zip(cells, verdicts, strict=True)
    )
    holds, crossed = _line(cells, value, probe.options.line_s)
    return WorkloadVerdict(
        workload=deepest.workload,
        kind=verdicts[-1].kind,
        varied=words.varied(cells, probe.options.repeat),
        cells=verdicts,
        line_holds_to=holds,
        line_crossed_at=crossed,
        load_class=_class(holds),
        course=_course(probe, cells, fall),
        outliers=over_time.outliers(probe.cells[deepest]),
    )


def _doubted(verdict: CellVerdict, value: Figures) -> CellVerdict:
    """Withdraw ``disk_device`` from a cell whose repetitions vary less than those of a device.

    Without figures per second such a cell may be at a cap.
    """
    if verdict.kind != "disk_device" or value.irregular_ratio is not None or value.trials < 2:
        return verdict
    spread = value.iops.usual_spread_ratio if value.iops else 1.0
    if spread >= IRREGULAR.value / 3 * math.sqrt(counted_ratio(value)):
        return verdict
    return replace(verdict, kind=None, why=f"{verdict.why}; {words.OR_CAP}")


UNEVEN = 2 * IRREGULAR.value
"""Spread of the times between I/Os above which a device limits the rate (design value; measured on a busy
machine: regulators 0.03 to 0.26, devices 0.35 to 1.6)."""


def _at_no_limit(cell: Cell, verdicts: Sequence[CellVerdict]) -> bool:
    return any(one.cell == cell.name and one.kind == "disk_cap" and not one.exact for one in verdicts)


def _by_chance(value: Sequence[Figures]) -> bool:
    """Whether cells with the same rate but without a known limit vary like a device."""
    known = [one.irregular_ratio for one in value if one.irregular_ratio is not None]
    return bool(known) and median(known) >= UNEVEN


def _course(probe: Probe, cells: Sequence[Cell], fall: Fall | None) -> RateChange | None:
    """The change of a workload over time, from its deepest cell that changed, else from the deepest one."""
    changes = [over_time.of_cell(probe.cells[cell]) for cell in reversed(cells)]
    moved = next((change for change in changes if change and change.move != "steady"), None)
    if moved is None and fall is not None and cells[0].workload in fall.workloads:
        return RateChange("fell", fall.before, fall.after, None, None, fall.how)
    return moved or changes[0]


def _did_more(cell: Cell, of_all: Mapping[Cell, Figures]) -> bool:
    """Whether other cells had at least twice the reads or writes of this cell, so that no cap limits it."""
    least, others = _ways(cell, of_all[cell]), [_ways(*one) for one in of_all.items() if one[0] != cell]
    return any(least) and all(
        any((way[place] or 0.0) >= FAR_MORE * amount for way in others)
        for place, amount in enumerate(least)
        if amount
    )


def _ways(cell: Cell, one: Figures) -> tuple[float | None, ...]:
    """(reads, writes, bytes read, bytes written) per second; None if the tool does not report."""
    ratio = cell.read_ratio
    if ratio is None or one.iops is None or one.bytes_per_s is None:
        return (None,) * 4
    return tuple(mean.middle * share for mean in (one.iops, one.bytes_per_s) for share in (ratio, 1 - ratio))


def _judged(cells: Sequence[Cell], value: Mapping[Cell, Figures], held: ComparedLimits) -> dict[Cell, Judged]:
    points = {cell: point for cell in cells if (point := _point(cell, value[cell])) is not None}
    by_point = {id(point): cell for cell, point in points.items()}
    if not points:
        return {}
    by_rules = partial(
        judge_points,
        limits=held.limits,
        burst=held.burst,
        role=cells[0].role,
        declared=held.which == "declared",
    )
    done = by_rules(list(points.values()))
    judged = {by_point[id(one.point)]: one for one in done}
    for cell, one in judged.items():
        if one.kind == "disk_latency" and one is not done[0] and queued(value, cell):
            # The previous cell alone does not show whether I/Os are queued; the lowest queue depth does.
            judged[cell] = by_rules([done[0].point, one.point])[1]
    return judged


def _point(cell: Cell, one: Figures) -> Point | None:
    """The point of a cell; None if the tool does not report the outstanding I/Os."""
    if one.iops is None or cell.outstanding is None or not one.iops.middle:
        return None
    really = _really(cell, one)
    return Point(
        iops=one.iops.middle,
        latency_s=one.mean_s,
        outstanding=float(cell.outstanding) if really is None else really,
        bytes_per_s=one.bytes_per_s.middle if one.bytes_per_s else None,
        seconds=one.seconds or 1.0,
        spread=one.uneven_ratio,
    )


def _really(cell: Cell, one: Figures) -> float | None:
    """The outstanding I/Os by Little's law, if they clearly differ from the requested ones; else None."""
    if one.mean_s is None or one.iops is None or not cell.outstanding:
        return None
    really = one.iops.mean * one.mean_s
    return really if abs(really / cell.outstanding - 1) > LITTLE else None


def _cell(cell: Cell, one: Figures, judged: Judged | None, held: ComparedLimits) -> CellVerdict:
    limits, which = held.limits, held.which
    if judged is not None:
        name = "burst" if judged.limit == "burst" else which
        return CellVerdict(
            cell=cell.name,
            outstanding=cell.outstanding,
            kind=judged.kind,
            limit=name if judged.limit else None,
            used_ratio=judged.used_ratio,
            exact=judged.exact,
            really_outstanding=_really(cell, one),
            why=judged.why,
        )
    used = (
        one.bytes_per_s.middle / limits.bytes_per_s
        if limits and limits.bytes_per_s and one.bytes_per_s
        else None
    )
    exact = used is not None and abs(used - 1) <= CAP_MATCH.value
    return CellVerdict(
        cell=cell.name,
        outstanding=cell.outstanding,
        kind="disk_cap" if exact else None,
        limit=which if used is not None else None,
        used_ratio=used,
        exact=exact,
        really_outstanding=None,
        why=words.no_latency(used),
    )


def _line(
    cells: Sequence[Cell], value: Mapping[Cell, Figures], line_s: float
) -> tuple[int | None, int | None]:
    """(highest queue depth below the latency line, lowest queue depth above it)."""
    holds = None
    for cell in cells:
        latency = value[cell].mean_s
        if cell.outstanding is None or latency is None:
            continue
        if latency > line_s:
            return holds, cell.outstanding
        holds = cell.outstanding
    return holds, None


def _class(outstanding: int | None) -> str | None:
    if outstanding is None:
        return None
    return next((name for most, name in CLASSES if outstanding <= most), "very heavy")


def _over_time(
    workloads: Sequence[WorkloadVerdict],
    deepest: Sequence[Cell],
    reads: RateChange | None,
    writes: RateChange | None,
    *,
    remembered: bool,
) -> dict[str, tuple[str, ...]]:
    result: dict[str, dict[str, None]] = {}
    for one in workloads:
        if one.course and one.course.move in over_time.OVER_TIME:
            result.setdefault(over_time.OVER_TIME[one.course.move], {})[one.workload] = None
    for change, ratio in ((reads, 1), (writes, 0)):
        if change and change.move in over_time.OVER_TIME and change.at_s is None:
            names = {cell.workload: None for cell in deepest if cell.read_ratio == ratio}
            result.setdefault(over_time.OVER_TIME[change.move], {}).update(names)
    if remembered:  # reads that become faster because of a cache do not show a warm-up
        rose = result.get("disk_warm_up", {})
        result["disk_warm_up"] = {
            name: None
            for name in rose
            if any(cell.workload == name and cell.read_ratio == 0 for cell in deepest)
        }
    return {kind: tuple(names) for kind, names in result.items() if names}


def _declared_used(declared: DeclaredDisk, value: Mapping[Cell, Figures]) -> dict[str, float]:
    limits = declared.limits
    if limits is None:
        return {}
    pairs = (("iops", limits.iops), ("bytes_per_s", limits.bytes_per_s))
    return {
        name: done / cap for name, cap in pairs if cap and (done := highest(value.values(), name, "middle"))
    }
