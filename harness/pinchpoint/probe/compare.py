"""Two probes of one suite: which cells got faster or slower, and whether another thing limits a workload.

The repetitions of each probe are compared by Welch's test on their logarithms, with Holm's correction over
all cells. They were made within minutes of each other: what differs between days is not in the interval, and
the comparison says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from statistics import median
from typing import Any

from scipy.stats import ttest_ind

from pinchpoint.comparison.values import Call
from pinchpoint.errors import InputError
from pinchpoint.probe.figures import Figures, figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, Trial
from pinchpoint.probe.verdict import Verdict
from pinchpoint_scenarios.storage_probe import Cell

SCHEMA = "pinchpoint.probe-comparison/1"
LEAST = 5
"""Repetitions on each side, below which nothing is called."""
SAME = 0.05
"""Within 5 % of each other two disks are equivalent."""
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell on both sides.

    Attributes:
        cell: its name.
        metric: ``iops``, or ``bytes_per_s`` where the tool tells no I/Os.
        base: the median repetition; None where nothing was measured.
        other: likewise.
        ratio: other ÷ base.
        ci95: the 95 % interval of the ratio of geometric means; None with too few repetitions.
        p: of no difference; None likewise.
        call: what may be said.
        latency_ratio: of mean latencies; None where the tool tells none.
    """

    cell: str
    metric: str
    base: float | None
    other: float | None
    ratio: float | None
    ci95: tuple[float, float] | None
    p: float | None
    call: Call
    latency_ratio: float | None


@dataclass(frozen=True, slots=True)
class ProbeComparison:
    """What differs between two probes.

    Attributes:
        labels: what the sides are called.
        changes: every cell of both.
        moved: workload -> what limits it on each side, where that differs.
        confounders: what else differs: with it nothing is said of the disks alone.
        warnings: what a reader must know.
        summary: two or three sentences.
    """

    labels: tuple[str, str]
    changes: tuple[CellChange, ...]
    moved: Mapping[str, tuple[str | None, str | None]]
    confounders: tuple[str, ...]
    warnings: tuple[str, ...]
    summary: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {"schema": SCHEMA, **asdict(self)}


def compare(base: Probe, other: Probe) -> ProbeComparison:
    """Put two probes of one suite beside each other. Raises InputError where they are of two suites."""
    if base.suite != other.suite:
        raise InputError(
            f"compare: one probe is of the suite {base.suite}, the other of {other.suite}: they measured "
            "different things; compare two of one suite"
        )
    sides = figures(base), figures(other)
    both = [cell for cell in base.cells if cell in other.cells]
    changes = _corrected(
        [
            _change(cell, (base.cells[cell], other.cells[cell]), (sides[0][cell], sides[1][cell]))
            for cell in both
        ]
    )
    one, two = judge(base), judge(other)
    found = ProbeComparison(
        labels=_labels(base, other),
        changes=tuple(changes),
        moved=_moved(one, two),
        confounders=tuple(_confounders(base, other)),
        warnings=tuple(_warnings(base, other)),
    )
    return replace(found, summary=_summary(found))


def _change(
    cell: Cell, trials: tuple[Sequence[Trial], Sequence[Trial]], found: tuple[Figures, Figures]
) -> CellChange:
    told = all(one.iops for one in found)
    base, other = (_values(side) for side in trials)
    middles = [median(values) if values else None for values in (base, other)]
    latencies = [one.mean_s for one in found]
    ci95, p = _welch(base, other)
    return CellChange(
        cell=cell.name,
        metric="iops" if told else "bytes_per_s",
        base=middles[0],
        other=middles[1],
        ratio=_ratio(*middles),
        ci95=ci95,
        p=p,
        call="inconclusive",
        latency_ratio=_ratio(*latencies),
    )


def _ratio(base: float | None, other: float | None) -> float | None:
    return other / base if base and other is not None else None


def _values(trials: Sequence[Trial]) -> list[float]:
    return [one.figure for one in trials if one.failed is None and one.figure]


def _welch(base: Sequence[float], other: Sequence[float]) -> tuple[tuple[float, float] | None, float | None]:
    """(95 % interval of other ÷ base, p of no difference); of values all alike the interval is a point."""
    if min(len(base), len(other)) < LEAST:
        return None, None
    ours, theirs = [log(value) for value in base], [log(value) for value in other]
    if len(set(ours)) == len(set(theirs)) == 1:
        ratio = exp(theirs[0] - ours[0])
        return (ratio, ratio), 1.0 if ratio == 1 else 0.0
    found = ttest_ind(theirs, ours, equal_var=False)
    low, high = found.confidence_interval(0.95)
    return (exp(float(low)), exp(float(high))), float(found.pvalue)


def _corrected(changes: Sequence[CellChange]) -> list[CellChange]:
    """Holm: of k tests the smallest p counts k times, the next k - 1 times, none less than one before it."""
    tested = sorted((one for one in changes if one.p is not None), key=lambda one: one.p or 0.0)
    corrected: dict[str, float] = {}
    worst = 0.0
    for place, one in enumerate(tested):
        worst = max(worst, min(1.0, (one.p or 0.0) * (len(tested) - place)))
        corrected[one.cell] = worst
    return [
        replace(one, p=corrected.get(one.cell), call=_call(one, corrected.get(one.cell))) for one in changes
    ]


def _call(one: CellChange, p: float | None) -> Call:
    if one.ci95 is None or p is None:
        return "inconclusive"
    low, high = one.ci95
    if low >= 1 - SAME and high <= 1 + SAME:
        return "equivalent"
    if p < SIGNIFICANT and (low > 1 + SAME or high < 1 - SAME):
        return "better" if low > 1 else "worse"
    return "inconclusive"


def _moved(base: Verdict, other: Verdict) -> dict[str, tuple[str | None, str | None]]:
    theirs = {one.workload: one.kind for one in other.workloads}
    return {
        one.workload: (one.kind, theirs[one.workload])
        for one in base.workloads
        if one.workload in theirs and theirs[one.workload] != one.kind
    }


def _confounders(base: Probe, other: Probe) -> list[str]:
    """What was not the same, the disks themselves aside."""
    pairs: list[tuple[str, object, object]] = [
        ("machine", base.where.host, other.where.host),
        ("file system", base.where.file_system, other.where.file_system),
        ("time per cell", base.options.time_per_cell_s, other.options.time_per_cell_s),
        ("size of the file", base.options.size_bytes, other.options.size_bytes),
    ]
    pairs += [
        (name, base.versions.get(name), other.versions.get(name))
        for name in dict.fromkeys([*base.versions, *other.versions])
    ]
    return [f"{name}: {one} and {two}" for name, one, two in pairs if one != two]


def _warnings(base: Probe, other: Probe) -> list[str]:
    found = [
        f"{probe.where.label}: the probe was not finished"
        for probe in (base, other)
        if probe.state != "finished"
    ]
    if min(base.options.repeat, other.options.repeat) < LEAST:
        found.append(
            f"fewer than {LEAST} repetitions on a side: nothing is called; repeat with --repeat {LEAST}"
        )
    found.append("intervals are of repetitions within one probe: what differs from day to day is not in them")
    return found


def _labels(base: Probe, other: Probe) -> tuple[str, str]:
    if base.where.label != other.where.label:
        return base.where.label, other.where.label
    return f"{base.where.label} ({base.started})", f"{other.where.label} ({other.started})"


def _summary(found: ProbeComparison) -> str:
    counts = {
        call: sum(one.call == call for one in found.changes) for call in ("better", "worse", "equivalent")
    }
    said = ", ".join(f"{count} {call}" for call, count in counts.items() if count)
    left = len(found.changes) - sum(counts.values())
    text = f"Of {len(found.changes)} cells {found.labels[1]} is " + (
        said or "neither better nor worse in any that could be told"
    )
    text += f"; {left} inconclusive." if left else "."
    if found.moved:
        text += (
            f" What limits is another thing for {len(found.moved)} workload{'s' * (len(found.moved) != 1)}."
        )
    if found.confounders:
        text += " Not only the disks differ, so the difference is not shown to be theirs."
    return text
