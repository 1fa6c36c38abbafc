"""Finds what limits a probed disk, by the rules of a run (``analysis.disk_points``). Pure.

Cells are held against what is declared, or what was found. Reads that are faster than the disk's type allows,
or faster once they were read before, may not come from the disk: the guest's page cache takes no part (direct
I/O, or dropped before), so what remembers is below it, on the host.
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
        limits: None: nothing is known.
        burst: those on credits.
        which: whether they were ``declared``, ``found``, or ``both``; None without one.
    """

    limits: Limits | None
    burst: Limits | None
    which: str | None

    def lowered(self, caps: MeasuredCaps, reads_ratio: float | None) -> ComparedLimits:
        """The limits for I/O with this share of reads: reads or writes may have lower limits of their own."""
        limits = caps.lowered(self.limits, reads_ratio)
        return self if limits == self.limits else ComparedLimits(limits, None, "found")


def held_against(
    declared: DeclaredDisk, caps: MeasuredCaps, contradicted: str | None, fall: Fall | None
) -> ComparedLimits:
    """The declared limits, unless the disk contradicts them; else the measured ones."""
    answer, result = declared.limits, caps.limits
    before = fall.limits if fall else None
    if answer is None or contradicted is not None:
        return ComparedLimits(result, before, "found") if result else ComparedLimits(None, None, None)
    rest = result or answer
    whole = replace(answer, iops=answer.iops or rest.iops, bytes_per_s=answer.bytes_per_s or rest.bytes_per_s)
    return ComparedLimits(whole, declared.burst or before, "declared" if whole == answer else "both")


def contradicted(declared: DeclaredDisk, caps: MeasuredCaps, trusted: Mapping[Cell, Figures]) -> str | None:
    """Why the declared figures are not this disk's: it stands at others, or does more than they allow."""
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
    """Whether a rate lies above a limit by more than its own repetitions differ.

    A regulator lets through later what it held back while the machine stood still: a repetition may be above
    its limit by that, and the next one is not.
    """
    return rate.middle > limit * (1 + max(CAP_MATCH.value, rate.spread_ratio))


def reads_above(value: Mapping[Cell, Figures], declared: DeclaredDisk) -> dict[Cell, str]:
    """Cells that read more than the declared type allows -> by which figure, where no write does.

    Where writes do too, it is the declaration that does not fit.
    """
    above = {cell: name for cell, one in value.items() if (name := _above(one, declared))}
    if any(cell.read_ratio == 0 for cell in above):
        return {}
    return {cell: name for cell, name in above.items() if cell.read_ratio}


def _allowed(name: str, declared: DeclaredDisk) -> float | None:
    """The highest declared limit of ``iops`` or ``bytes_per_s``; None where there is none."""
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
    """A sentence for each figure: the measurement with most of it, and how many more exceed its limit."""
    made = []
    for name in dict.fromkeys(above.values()):
        rates = {cell: getattr(value[cell], name).middle for cell, by in above.items() if by == name}
        cell, allowed = max(rates, key=lambda cell: rates[cell]), _allowed(name, declared) or math.nan
        made.append(words.above(cell, name, rates[cell], allowed, declared.profile, more=len(rates) - 1))
    return tuple(made)


def caps_but_of_reads(
    value: Mapping[Cell, Figures], caps: MeasuredCaps
) -> tuple[MeasuredCaps, tuple[str, ...]]:
    """The caps of all that writes, pure or mixed with reads, where reads alone do more; and that, in words.

    Those caps as they are, and nothing said, where there are no such ones.
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
"""Repetitions of writes that show, where they are the same, that a disk does not warm up (our value)."""


def reads_of_memory(
    reads: RateChange | None, writes: RateChange | None, written: Sequence[Figures]
) -> tuple[str, ...]:
    """Why what is read gets faster from repetition to repetition, and is no warming up: writes do not.

    Args:
        reads: how all reads went.
        writes: likewise; None where too little was measured for a change of level.
        written: the figures of what writes alone.
    """
    if reads is None or reads.move != "rose" or (writes is not None and writes.move == "rose"):
        return ()
    rates = [(one.trials, one.iops or one.bytes_per_s) for one in written]
    steady = bool(rates) and all(
        trials >= STEADY_TRIALS and rate is not None and rate.spread_ratio <= LITTLE for trials, rate in rates
    )
    return (words.remembered(reads, known=writes is not None or steady),)


LITTLE = 0.10
"""The measured queue depth is shown if it differs from the requested one by more than this (our value)."""

FAR_MORE = 2.0
"""A cap is not near where twice as much gets done for others (our value)."""

CLASSES = ((8, "very light"), (64, "light"), (128, "relatively heavy"), (512, "heavy"))
"""Outstanding I/Os up to which a load is called so; beyond, very heavy. 8, 128, 256 and 1,024 are those of a
published series of storage tests; what lies between is ours."""


TELLING_S = 5
"""The shortest repetition that shows what limits a disk: as the suites have it (our value)."""


def reports(one: Figures) -> bool:
    """Whether a cell was measured for long enough to say what limits it: twice, or once for five seconds."""
    return one.trials > 1 or one.seconds is None or round(one.seconds) >= TELLING_S


def judge(probe: Probe) -> ProbeVerdict:
    """The verdict on a probe, finished or not."""
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
    """Whether a cell reads alone, or is of a workload that read more than it could."""
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
    # What a cache answers shows no limit of the disk.
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
    """A device is known by its spread: repetitions without it, where no seconds show it, leave a cap open."""
    if verdict.kind != "disk_device" or value.irregular_ratio is not None or value.trials < 2:
        return verdict
    spread = value.iops.usual_spread_ratio if value.iops else 1.0
    if spread >= IRREGULAR.value / 3 * math.sqrt(counted_ratio(value)):
        return verdict
    return replace(verdict, kind=None, why=f"{verdict.why}; {words.OR_CAP}")


UNEVEN = 2 * IRREGULAR.value
"""The times between I/Os spread clearly as a device's do (our value; measured on a busy machine:
regulators 0.03 to 0.26, devices 0.35 to 1.6)."""


def _at_no_limit(cell: Cell, verdicts: Sequence[CellVerdict]) -> bool:
    return any(one.cell == cell.name and one.kind == "disk_cap" and not one.exact for one in verdicts)


def _by_chance(value: Sequence[Figures]) -> bool:
    """Whether cells that agree in their rate, and stand at no known limit, are as uneven as a device."""
    known = [one.irregular_ratio for one in value if one.irregular_ratio is not None]
    return bool(known) and median(known) >= UNEVEN


def _course(probe: Probe, cells: Sequence[Cell], fall: Fall | None) -> RateChange | None:
    """How a workload went: as the deepest of its cells that did not stay as it was."""
    changes = [over_time.of_cell(probe.cells[cell]) for cell in reversed(cells)]
    moved = next((change for change in changes if change and change.move != "steady"), None)
    if moved is None and fall is not None and cells[0].workload in fall.workloads:
        return RateChange("fell", fall.before, fall.after, None, None, fall.how)
    return moved or changes[0]


def _did_more(cell: Cell, of_all: Mapping[Cell, Figures]) -> bool:
    """Whether the disk did far more of the same, reads or writes, for others: then no cap holds this cell."""
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
            # Its neighbour alone left open whether I/O waits for I/O; the fewest outstanding show it.
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
    """The outstanding I/Os by Little's law, if they clearly differ from the requested ones."""
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
    """(the most outstanding up to which the line holds, the fewest at which it does not)."""
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
    if remembered:  # what gets faster because it is cached is no disk that warms up
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
