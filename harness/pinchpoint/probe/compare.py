"""Compares two probes cell by cell; probes of different suites by the cells with the same I/O.

The repetitions of each probe are compared by Welch's test on logarithms, with Holm's correction over all
cells. The repetitions of a probe are minutes apart, so the interval does not cover differences between days,
and the comparison says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.base.wording import Summary
from pinchpoint.comparison.saved import COMPARISON
from pinchpoint.comparison.statistics import ENOUGH, SAME, Call, Estimate, call_of, holm, welch
from pinchpoint.probe.figures import Figures, figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import PROBE, Probe, Trial
from pinchpoint.probe.record import load as load_probe
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.probe.words import OVER_TIME, named
from pinchpoint.store import document
from pinchpoint_scenarios.storage_probe import Cell

_Key = TypeVar("_Key")
SCHEMA = "pinchpoint.probe-comparison/1"
MARGIN = 1 + SAME
"""Ratio within which two disks are equivalent."""


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell on both sides.

    Attributes:
        cell: the name of the cell.
        metric: ``iops``, or ``bytes_per_s`` if the tool reports no I/Os.
        base: the median of the base's repetitions; None if nothing was measured.
        other: the median of the other probe's repetitions; None if nothing was measured.
        ratio: other ÷ base.
        ci95: the 95 % interval of the ratio of geometric means; None with too few repetitions.
        p: p-value of the hypothesis that the ratio lies within ``MARGIN``, corrected for the number of cells;
            None with too few repetitions.
        call: the judgement of the other probe in one word.
        latency_ratio: the ratio of the mean latencies, other ÷ base; None if the tool reports none.
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
    """The differences between two probes.

    Attributes:
        labels: the names of both sides.
        changes: the cells that both probes have.
        moved: workload -> kind of limit on each side, for workloads whose kinds differ.
        confounders: other differences between the probes, which may explain the differences in the figures.
        warnings: warnings for the reader.
    """

    labels: tuple[str, str]
    changes: tuple[CellChange, ...]
    moved: Mapping[str, tuple[str | None, str | None]]
    confounders: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The name of the comparison's folder, the same for any two probes."""
        return "probe-comparison"

    @property
    def answer(self) -> Summary:
        """The figures that became better or worse, and whether more than the disks differs."""
        return Summary.of(list(_sentences(self)))

    def to_json(self) -> dict[str, Any]:
        """The content of comparison.json."""
        return {"schema": SCHEMA, "summary": str(self.answer), **asdict(self)}


def compare(base: Probe, other: Probe) -> ProbeComparison:
    """Compare two probes. Raises InputError if they have no cell in common."""
    sides = figures(base), figures(other)
    both = matching(base, other)
    if not both:
        raise InputError(
            f"compare: one probe is of the suite {base.suite}, the other of {other.suite}, and they have no "
            "measurement with the same block size, share of reads, order and queue depth; compare two probes "
            "of the same suite"
        )
    estimates = {
        cell: estimate(values_of(base.cells[cell]), values_of(other.cells[theirs]))
        for cell, theirs in both.items()
    }
    p = corrected(estimates)
    changes = [
        _change(
            cell,
            (base.cells[cell], other.cells[theirs]),
            (sides[0][cell], sides[1][theirs]),
            estimates[cell],
            p.get(cell),
        )
        for cell, theirs in both.items()
    ]
    one, two = judge(base), judge(other)
    return ProbeComparison(
        labels=_labels(base, other),
        changes=tuple(changes),
        moved=_moved(one, two, {cell.workload: theirs.workload for cell, theirs in both.items()}),
        confounders=tuple(_confounders(base, other)),
        warnings=(
            *_warnings(base, other),
            *unsettled(base.where.label, one),
            *unsettled(other.where.label, two),
        ),
    )


def matching(base: Probe, other: Probe) -> dict[Cell, Cell]:
    """Base cell -> cell of the other probe: the same cell, else one with the same I/O."""
    result = {cell: cell for cell in base.cells if cell in other.cells}
    by_shape = {_shape(cell): cell for cell in other.cells if None not in _shape(cell)}
    for cell in base.cells:
        theirs = by_shape.get(_shape(cell))
        if cell not in result and theirs is not None and theirs not in result.values():
            result[cell] = theirs
    return {cell: result[cell] for cell in base.cells if cell in result}


def _shape(cell: Cell) -> tuple[int | float | str | None, ...]:
    return cell.block_bytes, cell.read_ratio, cell.random_ratio, cell.outstanding, cell.role


def _change(
    cell: Cell,
    trials: tuple[Sequence[Trial], Sequence[Trial]],
    value: tuple[Figures, Figures],
    estimate: Estimate | None,
    p: float | None,
) -> CellChange:
    reported = any(one.iops is not None for one in value)
    base, other = map(values_of, trials)
    middles = [median(values) if values else None for values in (base, other)]
    latencies = [one.mean_s for one in value]
    call: Call = "inconclusive"
    if estimate is not None and p is not None:
        call = call_of(estimate, p, same=MARGIN, better="higher")
    return CellChange(
        cell=cell.name,
        metric="iops" if reported else "bytes_per_s",
        base=middles[0],
        other=middles[1],
        ratio=_ratio(*middles),
        ci95=estimate.ci95 if estimate else None,
        p=p,
        call=call,
        latency_ratio=_ratio(*latencies),
    )


def _ratio(base: float | None, other: float | None) -> float | None:
    return other / base if base and other is not None else None


def values_of(trials: Sequence[Trial]) -> list[float]:
    """The figure of each repetition that was measured."""
    return [one.figure for one in trials if one.failed is None and one.figure]


def estimate(base: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """The estimate of the ratio of two sides; None with too few repetitions."""
    return welch(base, other) if min(len(base), len(other)) >= ENOUGH else None


def corrected(estimates: Mapping[_Key, Estimate | None]) -> dict[_Key, float]:
    """Holm-corrected p-values of the hypothesis that each ratio lies within ``MARGIN``."""
    known = {key: one.p_within(MARGIN) for key, one in estimates.items() if one is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))


def _moved(
    base: ProbeVerdict, other: ProbeVerdict, names: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    theirs = {one.workload: one.kind for one in other.workloads}
    pairs = {one.workload: (one.kind, names.get(one.workload, one.workload)) for one in base.workloads}
    return {
        workload: (kind, theirs[name])
        for workload, (kind, name) in pairs.items()
        if name in theirs and theirs[name] != kind
    }


def bytes_words(value: int | None) -> str | None:
    """A size in words, such as ``128 KiB``; None if it is not known."""
    return units.bytes_(value) if value is not None else None


def _confounders(base: Probe, other: Probe) -> list[str]:
    """Differences between the probes other than the disks."""
    pairs: list[tuple[str, object, object]] = [
        ("suite", base.suite, other.suite),
        ("machine", base.where.host, other.where.host),
        ("file system", base.where.file_system, other.where.file_system),
        ("time per cell", base.options.time_per_cell_s, other.options.time_per_cell_s),
        ("size of the file", base.options.size_bytes, other.options.size_bytes),
        ("threads", base.options.threads, other.options.threads),
    ]
    ahead = base.where.read_ahead_bytes, other.where.read_ahead_bytes
    if None not in ahead:  # an imported probe, or a probe over ssh, does not report the read-ahead
        pairs.append(("read-ahead", bytes_words(ahead[0]), bytes_words(ahead[1])))
    pairs += [
        (name, base.versions.get(name), other.versions.get(name))
        for name in dict.fromkeys([*base.versions, *other.versions])
    ]
    return [
        f"{name}: {one or 'not reported'} and {two or 'not reported'}"
        for name, one, two in pairs
        if one != two
    ]


def unsettled(side: str, verdict: ProbeVerdict) -> list[str]:
    """Warnings about a disk that was warming up or using burst credits, so its figures will change."""
    return [
        f"{side}: {named(workloads)} {OVER_TIME[kind]}; its figures will still change"
        for kind, workloads in verdict.over_time.items()
    ]


def _warnings(base: Probe, other: Probe) -> list[str]:
    result = [
        f"{probe.where.label}: the probe is not finished"
        for probe in (base, other)
        if probe.state != "finished"
    ]
    if min(base.options.repeat, other.options.repeat) < ENOUGH:
        result.append(
            f"fewer than {ENOUGH} repetitions on a side: no difference can be confirmed; measure with "
            f"--repeat {ENOUGH}"
        )
    result.append("the intervals cover repetitions within one probe, not differences from day to day")
    return result


def _labels(base: Probe, other: Probe) -> tuple[str, str]:
    if base.where.label != other.where.label:
        return base.where.label, other.where.label
    return f"{base.where.label} ({base.started})", f"{other.where.label} ({other.started})"


def _sentences(comparison: ProbeComparison) -> Iterator[str]:
    counts = {
        call: sum(one.call == call for one in comparison.changes)
        for call in ("better", "worse", "equivalent")
    }
    result = ", ".join(f"{count} {call}" for call, count in counts.items() if count)
    left = len(comparison.changes) - sum(counts.values())
    text = f"{comparison.labels[1]} against {comparison.labels[0]}, {len(comparison.changes)} measurements: "
    text += result or "no significant difference"
    yield text + (f"; {left} inconclusive." if left else ".")
    if comparison.moved:
        count = len(comparison.moved)
        yield f"The kind of limit differs for {count} workload{'s' * (count != 1)}."
    if comparison.confounders:
        yield "More than the disks differs, so the difference may not come from them."


def are_probes(directories: Sequence[Path]) -> bool:
    """Whether all directories are probes. Raises InputError if only some are."""
    probes = [directory for directory in directories if (directory / PROBE).exists()]
    if probes and len(probes) < len(directories):
        rest = next(directory for directory in directories if directory not in probes)
        raise InputError(
            f"compare: {probes[0]} is a probe, {rest} is none: probes compare with probes, runs with runs"
        )
    return bool(probes)


def compared(base: Sequence[Path], other: Sequence[Path]) -> ProbeComparison:
    """Compare one probe with another. Raises InputError if a side has several probes."""
    if len(base) != 1 or len(other) != 1:
        raise InputError(
            f"compare: found {len(base)} and {len(other)} probes; a comparison of probes takes one on each "
            "side (its repetitions are in it)"
        )
    return compare(load_probe(base[0]), load_probe(other[0]))


def load(directory: Path) -> ProbeComparison:
    """Read the comparison in a directory. Raises InputError."""
    remedy = "`pinchpoint compare PROBE --with PROBE` makes it again"
    comparison: ProbeComparison = document.read_record(
        directory / COMPARISON, ProbeComparison, SCHEMA, remedy
    )
    return comparison
